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

    /// Returns true if it begins as one. Relocated instructions of a function that only makes room for another do not.
    static func isStub(_ address: UInt64) -> Bool {
        UnsafeRawPointer(bitPattern: UInt(address))!.loadUnaligned(as: UInt32.self) == 0x8d4c_5341
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

    /// Returns true if the displacement at `word` is one of a call or jump to `target`; `copied`: in a copy of the code, so many bytes on.
    @inline(never) static func leads(_ word: UInt64, to target: UInt64, in image: UnsafePointer<Image>, copied: UInt64 = 0) -> Bool {
        guard isCode(word &- 1, 5, image) else { return false }
        let opcode = UnsafePointer<UInt8>(bitPattern: UInt(word &+ copied &- 1))!
        let distance = UnsafeRawPointer(opcode + 1).loadUnaligned(as: UInt32.self)
        let isConditional = opcode.pointee & 0xf0 == 0x80 && image.pointee.isCode(word &- 2) && opcode[-1] == 0x0f
        return (opcode.pointee & 0xfe == 0xe8 || isConditional)
            && word &+ 4 &+ UInt64(bitPattern: Int64(Int32(bitPattern: distance))) == target
    }
    /// Makes it lead to a stub, which is in reach. The module's text is writable.
    static func lead(_ word: UInt64, to stub: UInt64) {
        UnsafeMutableRawPointer(bitPattern: UInt(word))!.storeBytes(of: UInt32(truncatingIfNeeded: stub &- word &- 4), as: UInt32.self)
    }

    /// Returns true if the module, or the copy, has the bytes that the plan says, and the jumps that are written reach.
    @inline(never) static func fits(_ function: plan_function, in image: UnsafePointer<Image>, base: UInt64, copied: UInt64 = 0) -> Bool {
        let address = base &+ UInt64(function.address) &+ UInt64(function.patch)
        guard isCode(address, UInt64(function.replaced), image),
            equal(function.original, address &+ copied, Int(function.replaced))
        else { return false }
        if !PlanContent.isByLanding(function) { return function.replaced >= 5 }
        // A neighbour keeps its bytes where threads run (ChangedEntries.swift).
        if Process.isAttached && UInt32(function.tactic) == PLAN_NEIGHBOUR.rawValue { return function.replaced >= 2 }
        let landing = base &+ UInt64(function.landing)
        guard function.replaced >= 2, isCode(landing, 5, image),
            equal(function.landing_original, landing &+ copied, 5)
        else { return false }
        return Int8(exactly: Int64(bitPattern: landing &- address &- 2)) != nil
    }
    @inline(never) private static func isCode(_ address: UInt64, _ byteCount: UInt64, _ image: UnsafePointer<Image>) -> Bool {
        image.pointee.isCode(address) && image.pointee.isCode(address &+ byteCount &- 1)
    }
    private static func equal<Bytes>(_ expected: Bytes, _ address: UInt64, _ count: Int) -> Bool {
        let found = UnsafePointer<UInt8>(bitPattern: UInt(address))!
        return withUnsafeBytes(of: expected) {
            var n = 0
            while n &+ 8 <= count {
                let word = UnsafeRawPointer(found + n).loadUnaligned(as: UInt64.self)
                if $0.loadUnaligned(fromByteOffset: n, as: UInt64.self) != word { return false }
                n = n &+ 8
            }
            while n < count {
                if $0[n] != found[n] { return false }
                n = n &+ 1
            }
            return true
        }
    }

    /// The module's text is writable.
    static func redirect(_ function: plan_function, base: UInt64, to stub: UInt64) {
        let address = base &+ UInt64(function.address) &+ UInt64(function.patch)
        if !PlanContent.isByLanding(function) {
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

    // MARK: - Beside running threads

    /// False: an instruction may be in two pages, and to be changed while it is fetched.
    static let changesWords = false

    /// Calls `body` with each jump that can take the place of one of the first instructions, the one that can lead farthest first, until it
    /// returns true. False: it never did.
    static func forEachJump(
        _ function: plan_function, base: UInt64, in image: UnsafePointer<Image>, _ body: (EntryJump) -> Bool
    ) -> Bool {
        let start = base &+ UInt64(function.address) &+ UInt64(function.patch), end = Int(function.resume) &- Int(function.patch)
        if !image.pointee.isCode(start) || !image.pointee.isCode(start &+ 12) { return false }
        let code = UnsafePointer<UInt8>(bitPattern: UInt(start))!
        // A function that was moved as a whole may have jumps of its own that lead behind its first byte.
        let limit = UInt32(function.tactic) == PLAN_WHOLE.rawValue ? 1 : min(Int(function.replaced), end)
        let isLeft = UInt32(function.flags) & UInt32(PLAN_FUNCTION_RELOCATED_END) != 0
        var free = jumpBytes &- 1
        while free >= 0 {
            var before = UndoneInstructions(), offset = 0
            while offset < limit, let own = length(function.starts, at: offset) {
                // Padding is behind a function that is too short.
                let length = isLeft && offset &+ own == end ? max(own, Int(function.replaced) &- offset) : own
                if min(length, jumpBytes) > free, !isRepeated(code + offset),
                    let jump = jump(start &+ UInt64(offset), code + offset, min(length, jumpBytes), free: free, before), body(jump)
                {
                    return true
                }
                if !before.add(code + offset, length) { break }
                offset = offset &+ length
            }
            free = free &- 1
        }
        return false
    }
    /// jmp of 32 bits, without prefixes.
    private static let jumpBytes = 5
    /// ES, which means nothing to a jump in 64-bit mode (Intel SDM volume 2, 2.1.1 and JMP): it moves the distance on by a byte.
    private static let prefix: UInt64 = 0x26
    /// A string instruction that repeats itself, which may be interrupted in the middle: what comes before it cannot be done again then.
    private static func isRepeated(_ code: UnsafePointer<UInt8>) -> Bool {
        if code[0] & 0xfe != 0xf2 { return false }
        let opcode = code[1] & 0xf0 == 0x40 ? code[2] : code[1]
        return opcode >= 0xa4 && opcode <= 0xaf || opcode >= 0x6c && opcode <= 0x6f
    }
    /// Length of the instruction there; nil: none begins there.
    private static func length(_ starts: UInt16, at offset: Int) -> Int? {
        let rest = starts &>> UInt16(offset)
        if rest & 1 == 0 { return nil }
        return rest == 1 ? 16 &- offset : (rest &>> 1).trailingZeroBitCount &+ 1
    }
    /// A jump of which `count` bytes are in the place of an instruction, `free` of these in its distance: prefixes fill up the rest. nil: it would
    /// lead outside of a program's addresses.
    private static func jump(
        _ address: UInt64, _ code: UnsafePointer<UInt8>, _ count: Int, free: Int, _ before: UndoneInstructions
    ) -> EntryJump? {
        let prefixes = count &- 1 &- free, byteCount = prefixes &+ jumpBytes, next = address &+ UInt64(byteCount)
        var low = next &- min(reach, next), high = next &+ reach
        if count < byteCount { // the low bytes of the distance are free, the others stand there
            var distance: UInt32 = 0
            for n in count..<byteCount { distance |= UInt32(code[n]) &<< UInt32((n &- prefixes &- 1) &* 8) }
            low = next &+ UInt64(bitPattern: Int64(Int32(bitPattern: distance)))
            high = low &+ (1 &<< UInt64(free &* 8) &- 1)
            if high >= 1 &<< 47 { return nil }
        }
        return EntryJump(
            address: address, count: count, byteCount: byteCount, undo: before.code, undoCount: before.count, low: low, high: high)
    }
    /// The jump's bytes, the first one lowest: up to eight.
    static func word(_ jump: EntryJump, to target: UInt64) -> UInt64 {
        var word = 0xe9 | UInt64(UInt32(truncatingIfNeeded: target &- jump.end)) &<< 8, n = jumpBytes
        while n < jump.byteCount {
            word = word &<< 8 | prefix
            n = n &+ 1
        }
        return word
    }
    /// The same of a call site: its 32 bits.
    static func siteWord(_ word: UInt64, to stub: UInt64) -> UInt64 { UInt64(UInt32(truncatingIfNeeded: stub &- word &- 4)) }

    /// Bytes at most of what `writeLanding` writes.
    static func landingBytes(_ jump: EntryJump) -> Int { jump.undoCount &+ 14 }
    /// Writes the undoing instructions, and a jump to the stub.
    static func writeLanding(at address: UnsafeMutableRawPointer, _ jump: EntryJump, to stub: UInt64) {
        address.storeBytes(of: jump.undo, as: UInt64.self)
        let rest = address + jump.undoCount, distance = Int64(bitPattern: stub &- UInt64(UInt(bitPattern: rest)) &- 5)
        if Int64(Int32(truncatingIfNeeded: distance)) == distance { return writeJump(at: rest, to: stub) }
        rest.storeBytes(of: 0x25ff, as: UInt16.self) // jmp *0(%rip)
        rest.storeBytes(of: 0, toByteOffset: 2, as: UInt32.self)
        rest.storeBytes(of: stub, toByteOffset: 6, as: UInt64.self)
    }

    /// The instructions that have been executed when a jump comes, and what undoes them. Whatever they do to registers
    /// that they have pushed is undone by popping these.
    private struct UndoneInstructions {
        /// The first byte is the lowest.
        private(set) var code: UInt64 = 0
        private(set) var count = 0
        private var pushed: UInt16 = 0 // a bit a register
        private var hasReadResult = false // rax

        /// False: what the instruction does cannot be undone.
        mutating func add(_ instruction: UnsafePointer<UInt8>, _ length: Int) -> Bool {
            if length == 1 && instruction[0] == 0x90 { return true }
            if length == 4 && instruction[0] == 0x48 && instruction[1] == 0x83 && instruction[2] == 0xec { // sub $…, %rsp
                return undo(0x24_648d48 | UInt64(instruction[3]) &<< 32, 5) // lea …(%rsp), %rsp
            }
            let hasPrefix = instruction[0] & 0xf0 == 0x40, opcode = hasPrefix ? instruction[1] : instruction[0]
            let prefix = hasPrefix ? instruction[0] : 0
            if length == (hasPrefix ? 2 : 1) && opcode & 0xf8 == 0x50 { // push
                let number = opcode & 7 | (prefix & 1) &<< 3
                if number == 4 { return false } // rsp
                pushed |= 1 &<< UInt16(number)
                let pop = 0x58 | UInt64(number & 7)
                return number < 8 ? undo(pop, 1) : undo(0x41 | pop &<< 8, 2)
            }
            // mov and xor between two registers
            if length != (hasPrefix ? 3 : 2) || opcode & 0xfd != 0x31 && opcode & 0xfd != 0x89 { return false }
            let operands = instruction[length &- 1]
            if operands < 0xc0 { return false }
            if operands == 0xc0 && opcode & 0xfd == 0x31 && prefix & 5 == 0 { return !hasReadResult } // xor %eax, %eax
            hasReadResult = hasReadResult || operands & 7 == 0 || operands &>> 3 & 7 == 0 // or r8
            let changed = opcode & 2 == 0 ? operands & 7 | (prefix & 1) &<< 3 : operands &>> 3 & 7 | (prefix & 4) &<< 1
            return pushed &>> UInt16(changed) & 1 != 0
        }
        private mutating func undo(_ instruction: UInt64, _ byteCount: Int) -> Bool {
            if count &+ byteCount > 8 { return false }
            code = code &<< UInt64(byteCount &* 8) | instruction
            count = count &+ byteCount
            return true
        }
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
