// Functions that list the frames of a thread: their stubs lead to ours, which leave the agent's frames out
// (CSupport/backtraces.c).
import CSupport

enum Backtraces {
    /// Where the agent's own frames are; empty: not known.
    nonisolated(unsafe) static var image = own_image(low: 0, high: 0)

    /// What the stub of the function at `target`, of the image `owner`, calls.
    static func target(_ target: UInt64, _ name: Name, in owner: UnsafePointer<Image>) -> UInt64 {
        if image.high == 0 { return target }
        if equal(name.text, literal: "backtrace") || equal(name.text, literal: "unw_backtrace") {
            // Only there it has a function that captures a context.
            if let capture = function("_Ux86_64_getcontext", of: owner), let begin = function("_ULx86_64_init_local", of: owner),
                let step = function("_ULx86_64_step", of: owner), let get = function("_ULx86_64_get_reg", of: owner)
            {
                return tracer_replace_list(image, target, capture, begin, step, get, Int32(cursors[0].address))
            }
            return tracer_replace_backtrace(image, target)
        }
        // The unwinder's own way to ask for a frame's address, which comes from where the unwinder does.
        if equal(name.text, literal: "_Unwind_Backtrace") {
            return function("_Unwind_GetIP", of: owner).map { tracer_replace_unwind_backtrace(image, target, $0) } ?? target
        }
        if equal(name.text, literal: "_Unwind_SetIP") {
            return function("_Unwind_GetIP", of: owner).map { tracer_replace_landing(target, $0) } ?? target
        }
        for n in 0..<writers.count where equal(name.text, literal: writers[n].set) {
            return function(writers[n].get, of: owner).map { tracer_replace_set(target, $0, Int32(n), unwinderAddress) } ?? target
        }
        for n in 0..<cursors.count where equal(name.text, literal: cursors[n].step) {
            let cursor = cursors[n], kind = Int32(cursor.kind), address = Int32(Int8(bitPattern: cursor.address))
            return function(cursor.get, of: owner).map { tracer_replace_step(image, target, $0, kind, address) } ?? target
        }
        return target
    }

    /// The address of a function that the image defines, by its name.
    static func function(_ name: StaticString, of owner: UnsafePointer<Image>) -> UInt64? {
        let query = SymbolQuery(name: Name(CText(name.utf8Start)), version: VersionNeed())
        guard let index = Image.find(query, in: owner), let symbol = owner.pointee.symbol(index)?.pointee,
            owner.pointee.isCode(owner.pointee.bias &+ symbol.value)
        else { return nil }
        return owner.pointee.bias &+ symbol.value
    }

    /// The names that libunwind's header gives to unw_step and unw_get_reg, and the number of UNW_REG_IP: HP's libunwind for a
    /// process's own frames (UNW_LOCAL_ONLY) and for any, LLVM's.
    private struct Cursor {
        let kind: UInt8
        let step: StaticString, get: StaticString
        let address: UInt8 // 255: -1
    }
    private static let cursors: InlineArray<_, Cursor> = [
        .init(kind: 0, step: "_ULx86_64_step", get: "_ULx86_64_get_reg", address: 16), // UNW_X86_64_RIP
        .init(kind: 1, step: "_Ux86_64_step", get: "_Ux86_64_get_reg", address: 16),
        .init(kind: 0, step: "_ULaarch64_step", get: "_ULaarch64_get_reg", address: 30), // UNW_AARCH64_X30
        .init(kind: 1, step: "_Uaarch64_step", get: "_Uaarch64_get_reg", address: 30),
        .init(kind: 2, step: "unw_step", get: "unw_get_reg", address: 255),
        .init(kind: 2, step: "__unw_step", get: "__unw_get_reg", address: 255),
    ]

    /// unw_set_reg of HP's libunwind, likewise.
    private struct Writer {
        let set: StaticString, get: StaticString
    }
    private static let writers: InlineArray<_, Writer> = [
        .init(set: "_ULx86_64_set_reg", get: "_ULx86_64_get_reg"),
        .init(set: "_Ux86_64_set_reg", get: "_Ux86_64_get_reg"),
    ]
    private static let unwinderAddress: Int32 = 16 // UNW_X86_64_RIP
}
