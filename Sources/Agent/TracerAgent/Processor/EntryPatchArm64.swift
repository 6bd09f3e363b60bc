// AArch64: what stands at the entry of a patched function, and what it leads to (docs/internals/entry-patches.md; Arm ARM C6).
#if arch(arm64)
import CSupport
import CTraceLayout

enum EntryPatch {
    /// A `b`, less what one module may be long.
    static let reach: UInt64 = 0x700_0000
    /// Alignment of a stub with the relocated instructions after it, in bytes.
    static let alignment: UInt64 = 4
    private static func isSigned(_ function: plan_function) -> Bool { Int(function.flags) & Int(PLAN_FUNCTION_SIGNED) != 0 }
    static func stubBytes(_ function: plan_function) -> UInt64 { tracer_patch_stub_bytes(isSigned(function) ? 1 : 0) }
    /// Flags of a function's site, beside its address.
    static func siteFlags(_ function: plan_function) -> UInt32 { isSigned(function) ? UInt32(SITE_SIGNED) : 0 }
    static func relocatedBytes(_ function: plan_function) -> UInt64 { UInt64(function.relocated_count) &+ (isSigned(function) ? 4 : 0) }
    private static let authenticate: UInt32 = 0xd503_23bf // autiasp
    private static let sign: UInt32 = 0xd503_233f // paciasp

    /// [autiasp;] adrp x17, hook; add x16, x17, hook + FUNCTION_ENTER; add x17, x17, hook; ldar x16, [x16]; br x16. Acquire:
    /// another thread may just have given the function its number (PatchedFunctions.name), and what it stored before that word
    /// is read after it. Where the function has signed its return address already, that is taken back: it signs the label's
    /// instead, in its relocated instructions.
    static func writeStub(at address: UnsafeMutableRawPointer, hook: UInt64, _ function: plan_function) {
        var word = address.assumingMemoryBound(to: UInt32.self)
        if isSigned(function) {
            word.pointee = authenticate
            word += 1
        }
        word[0] = 0x9000_0011 | pages(from: UInt64(UInt(bitPattern: word)), to: hook)
        let low = UInt32(truncatingIfNeeded: hook & 4095) // a multiple of FUNCTION_BYTES
        word[1] = 0x9100_0230 | (low &+ UInt32(FUNCTION_ENTER)) &<< 10
        word[2] = 0x9100_0231 | low &<< 10
        word[3] = 0xc8df_fe10
        word[4] = 0xd61f_0200
    }
    /// No function makes room for another.
    static func isStub(_: UInt64) -> Bool { true }
    /// The distance in an `adrp`, in pages of 4 KB.
    private static func pages(from address: UInt64, to target: UInt64) -> UInt32 {
        let distance = UInt32(truncatingIfNeeded: (target &>> 12) &- (address &>> 12))
        return (distance & 3) &<< 29 | (distance &>> 2 & 0x7ffff) &<< 5
    }

    /// Writes the relocated instructions, with their references resolved against `base`. False: one does not reach.
    /// - Parameter stub: the stub of a function of tactic calls, by its address less the base; nil: it has none
    static func writeRelocated(
        at start: UnsafeMutableRawPointer, _ function: plan_function, _ plan: PlanContent, base: UInt64, stub: (UInt32) -> UInt64?
    ) -> Bool {
        var address = start
        if isSigned(function) {
            address.storeBytes(of: sign, as: UInt32.self)
            address += 4
        }
        address.copyMemory(from: plan.relocatedCode(of: function), byteCount: Int(function.relocated_count))
        for k in 0..<Int(function.fixup_count) {
            let fixup = plan.fixup(of: function, k)
            var target = base &+ UInt64(bitPattern: Int64(fixup.target))
            let at = address + Int(fixup.offset), kind = UInt32(fixup.kind)
            if kind == PLAN_STUB26.rawValue { target = stub(UInt32(bitPattern: fixup.target)) ?? target }
            if UInt(bitPattern: at) & 3 != 0 { return false }
            let here = UInt64(UInt(bitPattern: at)), low = UInt32(truncatingIfNeeded: target & 4095)
            let word = at.assumingMemoryBound(to: UInt32.self)
            switch kind {
            case PLAN_BRANCH26.rawValue, PLAN_STUB26.rawValue:
                guard let distance = branch(from: here, to: target) else { return false }
                put(distance, 0x3ff_ffff, word)
            case PLAN_PAGE21.rawValue:
                if abs(Int64(bitPattern: (target &>> 12) &- (here &>> 12))) >= 1 &<< 20 { return false }
                put(pages(from: here, to: target), 0x60ff_ffe0, word)
            case PLAN_LOW12.rawValue: put(low &<< 10, 0x3f_fc00, word)
            case PLAN_LOAD12_4.rawValue: put((low &>> 2) &<< 10, 0x3f_fc00, word)
            case PLAN_LOAD12_8.rawValue: put((low &>> 3) &<< 10, 0x3f_fc00, word)
            default: return false
            }
        }
        return true
    }
    private static func put(_ bits: UInt32, _ mask: UInt32, _ word: UnsafeMutablePointer<UInt32>) {
        word.pointee = word.pointee & ~mask | bits & mask
    }
    /// 26 bits, in fours.
    private static func branch(from address: UInt64, to target: UInt64) -> UInt32? {
        let distance = Int64(bitPattern: target &- address)
        if distance & 3 != 0 || abs(distance) >= 1 &<< 27 { return nil }
        return UInt32(truncatingIfNeeded: distance &>> 2) & 0x3ff_ffff
    }

    /// Returns true if the instruction at `word` is a `b` or `bl` to `target`; `copied`: in a copy of the code, so many bytes on.
    @inline(never) static func leads(_ word: UInt64, to target: UInt64, in image: UnsafePointer<Image>, copied: UInt64 = 0) -> Bool {
        guard word & 3 == 0, image.pointee.isCode(word), let distance = branch(from: word, to: target) else { return false }
        return UnsafePointer<UInt32>(bitPattern: UInt(word &+ copied))!.pointee & 0x7fff_ffff == 0x1400_0000 | distance
    }
    /// Makes it lead to a stub, which is in reach. The module's text is writable.
    static func lead(_ word: UInt64, to stub: UInt64) {
        put(branch(from: word, to: stub) ?? 0, 0x3ff_ffff, UnsafeMutablePointer(bitPattern: UInt(word))!)
    }

    /// Returns true if the module, or the copy, has the instruction that the plan says.
    @inline(never) static func fits(_ function: plan_function, in image: UnsafePointer<Image>, base: UInt64, copied: UInt64 = 0) -> Bool {
        let address = base &+ UInt64(function.address) &+ UInt64(function.patch)
        guard address & 3 == 0, function.replaced == 4, image.pointee.isCode(address), image.pointee.isCode(address &+ 3) else {
            return false
        }
        let bytes = function.original, found = UnsafePointer<UInt32>(bitPattern: UInt(address &+ copied))!.pointee
        return found == UInt32(bytes.0) | UInt32(bytes.1) &<< 8 | UInt32(bytes.2) &<< 16 | UInt32(bytes.3) &<< 24
    }

    /// The module's text is writable.
    static func redirect(_ function: plan_function, base: UInt64, to stub: UInt64) {
        let address = base &+ UInt64(function.address) &+ UInt64(function.patch)
        let word = 0x1400_0000 | (branch(from: address, to: stub) ?? 0)
        UnsafeMutableRawPointer(bitPattern: UInt(address))!.storeBytes(of: word, as: UInt32.self)
    }

    /// How many bytes that changes, from `patch` on.
    static func writtenBytes(_ function: plan_function) -> Int { Int(function.replaced) }
    static func isJump(_ code: UnsafeRawPointer) -> Bool { code.load(as: UInt32.self) & 0xfc00_0000 == 0x1400_0000 }

    // MARK: - Beside running threads

    /// Each change is a store of one aligned word.
    static let changesWords = true

    /// As on x86-64. An instruction has as many bytes as a jump.
    static func forEachJump(
        _ function: plan_function, base: UInt64, in image: UnsafePointer<Image>, _ body: (EntryJump) -> Bool
    ) -> Bool {
        let address = base &+ UInt64(function.address) &+ UInt64(function.patch)
        return body(
            EntryJump(address: address, count: 4, byteCount: 4, undo: 0, undoCount: 0, low: address &- reach, high: address &+ reach))
    }
    static func word(_ jump: EntryJump, to target: UInt64) -> UInt64 {
        UInt64(0x1400_0000 | (branch(from: jump.address, to: target) ?? 0))
    }
    /// The same of a call site: it stays a `b` or a `bl`.
    static func siteWord(_ word: UInt64, to stub: UInt64) -> UInt64 {
        let old = UnsafePointer<UInt32>(bitPattern: UInt(word))!.pointee
        return UInt64(old & 0xfc00_0000 | (branch(from: word, to: stub) ?? 0))
    }
    static func landingBytes(_ jump: EntryJump) -> Int { 4 }
    static func writeLanding(at address: UnsafeMutableRawPointer, _ jump: EntryJump, to stub: UInt64) {
        address.storeBytes(of: 0x1400_0000 | (branch(from: UInt64(UInt(bitPattern: address)), to: stub) ?? 0), as: UInt32.self)
    }

    /// Returns where the entry leads, if it begins as a patched one may.
    static func target(of address: UInt64, in image: UnsafePointer<Image>) -> UInt64? {
        var here = address
        while here <= address &+ 8 { // after `bti` or `paciasp`
            guard let word = image.pointee.word32(here) else { return nil }
            if word & 0xfc00_0000 == 0x1400_0000 {
                let distance = (Int64(Int32(bitPattern: word &<< 6)) &>> 6) &* 4
                return here &+ UInt64(bitPattern: distance)
            }
            here = here &+ 4
        }
        return nil
    }
}
#endif
