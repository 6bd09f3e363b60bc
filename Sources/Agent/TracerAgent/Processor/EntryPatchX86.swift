// x86-64: what stands at the entry of a patched function, and what it leads to (docs/internals/entry-patches.md; Intel SDM volume 2).
#if arch(x86_64)
import CSupport
import CTraceLayout

enum EntryPatch {
    /// A jump of 32 bits, less what one module may be long.
    static let reach: UInt64 = 0x7000_0000
    /// Alignment of a stub with the relocated instructions after it, in bytes.
    static let alignment: UInt64 = 16
    static func stubBytes(_ function: plan_function) -> UInt64 { tracer_patch_stub_bytes(0) }
    /// Flags of a function's site, beside its address.
    static func siteFlags(_ function: plan_function) -> UInt32 { 0 }
    static func relocatedBytes(_ function: plan_function) -> UInt64 { max(UInt64(function.relocated_count), 5) }

    /// push %r11; lea hook(%rip), %r11; jmp *FUNCTION_ENTER(%r11)
    static func writeStub(at address: UnsafeMutableRawPointer, hook: UInt64, _ function: plan_function) {
        let distance = UInt64(UInt32(truncatingIfNeeded: hook &- UInt64(UInt(bitPattern: address)) &- 9))
        address.storeBytes(of: 0x1d_8d4c_5341 | distance &<< 40, as: UInt64.self) // 41 53, 4c 8d 1d
        address.storeBytes(of: distance &>> 24 | 0xcccc_cc18_63ff_4100, toByteOffset: 8, as: UInt64.self)
    }

    /// Writes the relocated instructions, with their references resolved against `base`; only the jump back if nothing was relocated.
    /// False: one does not reach.
    /// - Parameter stub: the stub of a function of tactic calls, by its address less the base; nil: it has none
    static func writeRelocated(
        at address: UnsafeMutableRawPointer, _ function: plan_function, _ plan: PlanContent, base: UInt64, stub: (UInt32) -> UInt64?
    ) -> Bool {
        if function.relocated_count == 0 {
            writeJump(at: address, to: base &+ UInt64(function.address) &+ UInt64(function.resume))
            return true
        }
        address.copyMemory(from: plan.relocatedCode(of: function), byteCount: Int(function.relocated_count))
        for k in 0..<Int(function.fixup_count) {
            let fixup = plan.fixup(of: function, k)
            var target = base &+ UInt64(bitPattern: Int64(fixup.target))
            let word = address + Int(fixup.offset), kind = UInt32(fixup.kind)
            if kind == PLAN_STUB32.rawValue { target = stub(UInt32(bitPattern: fixup.target)) ?? target }
            switch kind {
            case PLAN_RELATIVE32.rawValue, PLAN_STUB32.rawValue:
                let distance = Int64(bitPattern: target &- UInt64(UInt(bitPattern: address)) &- UInt64(fixup.end))
                guard let short = Int32(exactly: distance) else { return false }
                word.storeBytes(of: short, as: Int32.self)
            case PLAN_LOW32.rawValue: word.storeBytes(of: UInt32(truncatingIfNeeded: target), as: UInt32.self)
            case PLAN_HIGH32.rawValue: word.storeBytes(of: UInt32(truncatingIfNeeded: target &>> 32), as: UInt32.self)
            default: return false
            }
        }
        return true
    }

    /// Returns true if the displacement at `word` is one of a call or jump to `target`.
    static func leads(_ word: UInt64, to target: UInt64, in image: UnsafePointer<Image>) -> Bool {
        guard image.pointee.isCode(word &- 1), let distance = image.pointee.word32(word) else { return false }
        let opcode = UnsafePointer<UInt8>(bitPattern: UInt(word &- 1))!
        let isConditional = opcode.pointee & 0xf0 == 0x80 && image.pointee.isCode(word &- 2) && opcode[-1] == 0x0f
        return (opcode.pointee & 0xfe == 0xe8 || isConditional)
            && word &+ 4 &+ UInt64(bitPattern: Int64(Int32(bitPattern: distance))) == target
    }
    /// Makes it lead to a stub, which is in reach. The module's text is writable.
    static func lead(_ word: UInt64, to stub: UInt64) {
        UnsafeMutableRawPointer(bitPattern: UInt(word))!.storeBytes(of: UInt32(truncatingIfNeeded: stub &- word &- 4), as: UInt32.self)
    }

    /// Returns true if the module has the bytes that the plan says, and the jumps that are written reach.
    static func fits(_ function: plan_function, in image: UnsafePointer<Image>, base: UInt64) -> Bool {
        let address = base &+ UInt64(function.address) &+ UInt64(function.patch)
        guard image.pointee.isCode(address), image.pointee.isCode(address &+ UInt64(function.replaced) &- 1),
            equal(function.original, address, Int(function.replaced))
        else { return false }
        if UInt32(function.tactic) != PLAN_JUMP2.rawValue { return function.replaced >= 5 }
        let landing = base &+ UInt64(function.landing)
        guard function.replaced >= 2, image.pointee.isCode(landing), image.pointee.isCode(landing &+ 4),
            equal(function.landing_original, landing, 5)
        else { return false }
        return Int8(exactly: Int64(bitPattern: landing &- address &- 2)) != nil
    }
    private static func equal<Bytes>(_ expected: Bytes, _ address: UInt64, _ count: Int) -> Bool {
        let found = UnsafePointer<UInt8>(bitPattern: UInt(address))!
        return withUnsafeBytes(of: expected) {
            for n in 0..<count where $0[n] != found[n] { return false }
            return true
        }
    }

    /// The module's text is writable.
    static func redirect(_ function: plan_function, base: UInt64, to stub: UInt64) {
        let address = base &+ UInt64(function.address) &+ UInt64(function.patch)
        if UInt32(function.tactic) != PLAN_JUMP2.rawValue {
            return writeJump(at: UnsafeMutableRawPointer(bitPattern: UInt(address))!, to: stub)
        }
        let landing = base &+ UInt64(function.landing)
        writeJump(at: UnsafeMutableRawPointer(bitPattern: UInt(landing))!, to: stub)
        let distance = UInt16(truncatingIfNeeded: landing &- address &- 2) & 0xff
        UnsafeMutableRawPointer(bitPattern: UInt(address))!.storeBytes(of: 0xeb | distance &<< 8, as: UInt16.self)
    }
    /// How many bytes that changes, from `patch` on. (The landing of a short jump stays as it is: somebody may be on his way there.)
    static func writtenBytes(_ function: plan_function) -> Int { min(Int(function.replaced), 5) }
    static func isJump(_ code: UnsafeRawPointer) -> Bool {
        let first = code.load(as: UInt8.self)
        return first == 0xe9 || first == 0xeb
    }
    private static func writeJump(at address: UnsafeMutableRawPointer, to target: UInt64) {
        address.storeBytes(of: 0xe9, as: UInt8.self)
        let distance = target &- UInt64(UInt(bitPattern: address)) &- 5
        address.storeBytes(of: UInt32(truncatingIfNeeded: distance), toByteOffset: 1, as: UInt32.self)
    }

    /// Returns where the entry leads, if it begins as a patched one may. `address` is code.
    static func target(of address: UInt64, in image: UnsafePointer<Image>) -> UInt64? {
        var here = address
        if image.pointee.word32(here) == 0xfa1e_0ff3 { here = here &+ 4 } // endbr64
        guard var word = image.pointee.word32(here) else { return nil }
        if word & 0xff == 0xe8 { // a call of __fentry__
            here = here &+ 5
            word = image.pointee.word32(here) ?? 0
        }
        if word & 0xff == 0xeb {
            here = here &+ 2 &+ UInt64(bitPattern: Int64(Int8(truncatingIfNeeded: word &>> 8)))
            word = image.pointee.word32(here) ?? 0
        }
        guard word & 0xff == 0xe9, let distance = image.pointee.word32(here &+ 1) else { return nil }
        return here &+ 5 &+ UInt64(bitPattern: Int64(Int32(bitPattern: distance)))
    }
}
#endif
