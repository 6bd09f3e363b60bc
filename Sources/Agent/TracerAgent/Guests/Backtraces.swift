// Functions that list the frames of a thread: their stubs lead to the agent's versions, which omit the agent's frames
// (CSupport/backtraces.c).
import CSupport

enum Backtraces {
    /// Address range of the agent's own frames; empty if not known.
    nonisolated(unsafe) static var image = own_image(low: 0, high: 0)

    /// Returns the function that the stub of the function at `target`, of the image `owner`, calls.
    static func target(_ target: UInt64, _ name: Name, in owner: UnsafePointer<Image>) -> UInt64 {
        if image.high == 0 { return target }
        if equal(name.text, literal: "backtrace") || equal(name.text, literal: "unw_backtrace") {
            // nongnu libunwind has a function that captures a context only on x86_64.
            if let capture = Image.function("_Ux86_64_getcontext", of: owner),
                let begin = Image.function("_ULx86_64_init_local", of: owner),
                let step = Image.function("_ULx86_64_step", of: owner), let get = Image.function("_ULx86_64_get_reg", of: owner)
            {
                return tracer_replace_list(image, target, capture, begin, step, get, Int32(cursors[0].address))
            }
            return tracer_replace_backtrace(image, target)
        }
        // The unwinder's own way to ask for a frame's address, which comes from where the unwinder does.
        if equal(name.text, literal: "_Unwind_Backtrace") {
            return Image.function("_Unwind_GetIP", of: owner).map { tracer_replace_unwind_backtrace(image, target, $0) } ?? target
        }
        if equal(name.text, literal: "_Unwind_SetIP") {
            return Image.function("_Unwind_GetIP", of: owner).map { tracer_replace_landing(target, $0) } ?? target
        }
        if rest(of: name.text, after: "dladdr") != nil { return tracer_replace_module_question(target, name.byteCount == 7 ? 1 : 0) }
        for n in 0..<cursors.count {
            let cursor = cursors[n], kind = Int32(cursor.kind), address = Int32(Int8(bitPattern: cursor.address))
            let isStep = equal(name.text, literal: cursor.step)
            if !isStep && !equal(name.text, literal: cursor.set) { continue }
            guard let get = Image.function(cursor.get, of: owner) else { return target }
            return isStep ? tracer_replace_step(image, target, get, kind, address) : tracer_replace_set(target, get, kind, address)
        }
        return target
    }

    /// The names that libunwind's header gives to unw_step, unw_get_reg and, where it must be helped, unw_set_reg, and the number of
    /// UNW_REG_IP: nongnu libunwind for a process's own frames (UNW_LOCAL_ONLY) and for any, LLVM's.
    private struct Cursor {
        let kind: UInt8
        let step: StaticString, get: StaticString, set: StaticString
        let address: UInt8 // 255: -1
    }
    private static let cursors: InlineArray<_, Cursor> = [
        .init(kind: 0, step: "_ULx86_64_step", get: "_ULx86_64_get_reg", set: "_ULx86_64_set_reg", address: 16), // UNW_X86_64_RIP
        .init(kind: 1, step: "_Ux86_64_step", get: "_Ux86_64_get_reg", set: "_Ux86_64_set_reg", address: 16),
        .init(kind: 0, step: "_ULaarch64_step", get: "_ULaarch64_get_reg", set: "", address: 30), // UNW_AARCH64_X30
        .init(kind: 1, step: "_Uaarch64_step", get: "_Uaarch64_get_reg", set: "", address: 30),
        .init(kind: 2, step: "unw_step", get: "unw_get_reg", set: "", address: 255),
        .init(kind: 2, step: "__unw_step", get: "__unw_get_reg", set: "", address: 255),
    ]
}
