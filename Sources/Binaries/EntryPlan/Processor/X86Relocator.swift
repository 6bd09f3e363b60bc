// Relocates the first instructions of a function of x86-64.
import CTraceLayout
import CZydis

enum X86Relocator {
    /// Relocates the instructions that cover the `wanted` bytes from `patch` on, of a function at `address` with `count` bytes.
    static func relocate(_ code: ModuleCode, _ address: UInt64, count: Int, patch: Int, wanted: Int) -> RelocatedCode {
        var relocated = RelocatedCode()
        relocated.resume = patch
        let bytes = code.code(at: address)
        let available = min(count, bytes.count)
        guard let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
            relocated.reason = .notCode
            return relocated
        }
        var instruction = x86_instruction()
        while relocated.resume < patch + wanted, relocated.reason == .no, !relocated.isEnded {
            guard relocated.resume < available else {
                relocated.reason = .endsOpen
                return relocated
            }
            guard x86_decode(start + relocated.resume, available - relocated.resume, &instruction) != 0 else {
                relocated.reason = .notCode
                return relocated
            }
            relocated.instructions.append((relocated.resume, relocated.bytes.count))
            let length = Int(instruction.length)
            append(instruction, start + relocated.resume, address &+ UInt64(relocated.resume), code.base, &relocated)
            relocated.resume += length
        }
        if relocated.reason == .no, !relocated.isEnded {
            relocated.instructions.append((relocated.resume, relocated.bytes.count))
            jump(to: address &+ UInt64(relocated.resume), code.base, &relocated)
        }
        return relocated
    }

    private static func append(
        _ instruction: x86_instruction, _ bytes: UnsafePointer<UInt8>, _ address: UInt64, _ base: UInt64, _ relocated: inout RelocatedCode
    ) {
        let length = Int(instruction.length)
        let target = address &+ UInt64(bitPattern: instruction.target)
        let flags = UInt32(instruction.flags)
        switch x86_kind(UInt32(instruction.kind)) {
        case X86_JUMP:
            jump(to: target, base, &relocated, PLAN_STUB32)
            relocated.isEnded = true
        case X86_CONDITIONAL:
            if flags & UInt32(X86_SHORT_ONLY) != 0 {
                relocated.reason = .notRelocatable
                return
            }
            relocated.bytes += [0x0f, 0x80 | instruction.opcode & 0xf] // Jcc rel32, whatever its form was
            displacement(target, base, &relocated, PLAN_STUB32)
        case X86_CALL:
            pushReturn(address &+ UInt64(length), base, &relocated)
            jump(to: target, base, &relocated, PLAN_STUB32)
            relocated.isEnded = true
            relocated.isCall = true
        case X86_INDIRECT_CALL:
            // FF /2; /3 is a far one. An operand by rsp is another one once the return address is pushed.
            let modrm = bytes[Int(instruction.modrm)]
            if flags & UInt32(X86_STACK_BASE) != 0 || modrm >> 3 & 7 != 2 || modrm == 0xd4 {
                relocated.reason = .notRelocatable
                return
            }
            pushReturn(address &+ UInt64(length), base, &relocated)
            copy(instruction, bytes, target, base, &relocated, modrm: modrm & 0xc7 | 4 << 3) // FF /4: jmp
            relocated.isEnded = true
            relocated.isCall = true
        case X86_TRANSACTION, X86_SYSTEM: // the kernel reports the address of a system call; an abort jumps
            relocated.reason = .notRelocatable
        case X86_RETURN, X86_INDIRECT_JUMP, X86_STOP:
            copy(instruction, bytes, target, base, &relocated)
            relocated.isEnded = true
        default: copy(instruction, bytes, target, base, &relocated)
        }
    }

    private static func copy(
        _ instruction: x86_instruction, _ bytes: UnsafePointer<UInt8>, _ target: UInt64, _ base: UInt64, _ relocated: inout RelocatedCode,
        modrm: UInt8? = nil
    ) {
        let start = relocated.bytes.count
        relocated.bytes += UnsafeBufferPointer(start: bytes, count: Int(instruction.length))
        if let modrm { relocated.bytes[start + Int(instruction.modrm)] = modrm }
        if instruction.displacement != 0 {
            let offset = start + Int(instruction.displacement)
            for n in 0..<4 { relocated.bytes[offset + n] = 0 }
            relocated.fix(PLAN_RELATIVE32, target, base, at: offset, end: relocated.bytes.count)
        }
    }

    private static func displacement(_ target: UInt64, _ base: UInt64, _ relocated: inout RelocatedCode, _ kind: plan_fixup_kind) {
        relocated.bytes += [0, 0, 0, 0]
        relocated.fix(kind, target, base, at: relocated.bytes.count - 4, end: relocated.bytes.count)
    }

    private static func jump(
        to target: UInt64, _ base: UInt64, _ relocated: inout RelocatedCode, _ kind: plan_fixup_kind = PLAN_RELATIVE32
    ) {
        relocated.bytes.append(0xe9)
        displacement(target, base, &relocated, kind)
    }

    /// Copies a function of `count` bytes from `patch` on, to its end: each instruction with its own length, so that jumps within stay as
    /// they are. nil: it calls, makes a system call, jumps by a register, takes an address within itself, or is too long; or a jump out
    /// of it is short, or leads to where `isEntry` says that no function begins.
    static func whole(_ code: ModuleCode, _ address: UInt64, count: Int, patch: Int, isEntry: (UInt64) -> Bool) -> RelocatedCode? {
        let bytes = code.code(at: address), own = address &+ UInt64(patch)..<address &+ UInt64(count)
        guard count <= bytes.count, count - patch >= 5, count - patch <= Int(PLAN_RELOCATED_MOST_BYTES),
            let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self)
        else { return nil }
        var relocated = RelocatedCode(), instruction = x86_instruction(), offset = patch
        while offset < count {
            guard x86_decode(start + offset, count - offset, &instruction) != 0 else { return nil }
            let target = address &+ UInt64(offset) &+ UInt64(bitPattern: instruction.target)
            var kind = PLAN_RELATIVE32, word = Int(instruction.displacement)
            switch x86_kind(UInt32(instruction.kind)) {
            case X86_CALL, X86_INDIRECT_CALL, X86_SYSTEM, X86_TRANSACTION: return nil
            case X86_INDIRECT_JUMP where instruction.displacement == 0: return nil
            case X86_LEA where own.contains(target): return nil
            case X86_JUMP, X86_CONDITIONAL:
                if own.contains(target) { break }
                guard isEntry(target), !(address..<own.lowerBound).contains(target), isLong(instruction) else { return nil }
                (kind, word) = (PLAN_STUB32, Int(instruction.immediate))
            default: break
            }
            let at = relocated.bytes.count
            relocated.bytes += UnsafeBufferPointer(start: start + offset, count: Int(instruction.length))
            if word > 0 {
                for n in 0..<4 { relocated.bytes[at + word + n] = 0 }
                relocated.fix(kind, target, code.base, at: at + word, end: relocated.bytes.count)
            }
            offset += Int(instruction.length)
        }
        relocated.resume = count
        relocated.isEnded = true
        return relocated.reason == .no ? relocated : nil
    }

    /// A jump or call with a displacement of 32 bits, which are its last bytes.
    private static func isLong(_ instruction: x86_instruction) -> Bool {
        instruction.immediate != 0 && instruction.length == instruction.immediate + 4
            && UInt32(instruction.flags) & UInt32(X86_SHORT_ONLY) == 0
    }

    /// Returns where the displacement of the direct jump or call at `site` is; nil: it has less than 32 bits.
    static func displacement(at site: UInt64, _ code: ModuleCode) -> UInt64? {
        let bytes = code.code(at: site)
        var instruction = x86_instruction()
        guard let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self), x86_decode(start, bytes.count, &instruction) != 0,
            [X86_CALL, X86_JUMP, X86_CONDITIONAL].contains(x86_kind(UInt32(instruction.kind))), isLong(instruction)
        else { return nil }
        return site &+ UInt64(instruction.immediate)
    }

    /// Pushes the return address that the callee would have without us: unwinders, look-ups of the caller and jumps out of the callee
    /// rely on it. A call puts a word on the stack and an entry into the CPU's return predictor, which then agrees with the
    /// number of returns; the word is replaced. (`call` to the next instruction is no call to predictors, hence the int3.)
    private static func pushReturn(_ target: UInt64, _ base: UInt64, _ relocated: inout RelocatedCode) {
        relocated.bytes += [0xe8, 1, 0, 0, 0, 0xcc]
        relocated.linked = relocated.bytes.count - 1
        relocated.bytes += [0xc7, 0x04, 0x24, 0, 0, 0, 0] // movl $LOW, (%rsp)
        relocated.fix(PLAN_LOW32, target, base, at: relocated.bytes.count - 4, end: relocated.bytes.count)
        relocated.bytes += [0xc7, 0x44, 0x24, 0x04, 0, 0, 0, 0] // movl $HIGH, 4(%rsp)
        relocated.fix(PLAN_HIGH32, target, base, at: relocated.bytes.count - 4, end: relocated.bytes.count)
    }

    /// Returns where instructions begin among `count` bytes, and after them, by bits: up to 16 bytes.
    static func starts(_ code: ModuleCode, _ address: UInt64, count: Int) -> UInt16 {
        let bytes = code.code(at: address)
        var instruction = x86_instruction(), offset = 0, starts: UInt16 = 0
        while offset < 16 {
            starts |= 1 << UInt16(offset)
            guard offset < min(count, bytes.count), let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self),
                x86_decode(start + offset, bytes.count - offset, &instruction) != 0
            else { break }
            offset += Int(instruction.length)
        }
        return starts
    }

    /// How many bytes of it stand before the patch: an endbr64, which an indirect call must find.
    static func kept(_ code: ModuleCode, _ address: UInt64, count: Int) -> Int {
        let bytes = code.code(at: address)
        return count >= 4 && bytes.load(0, as: UInt32.self) == 0xfa1e_0ff3 ? 4 : 0
    }

    /// Bytes of nops from `patch` on, as compilers leave them to be patched; 0: fewer than five. Of XRay's sled the first
    /// instruction jumps over the others (compiler-rt, xray_x86_64.cpp).
    static func nops(_ code: ModuleCode, _ address: UInt64, count: Int, patch: Int) -> Int {
        let bytes = code.code(at: address)
        guard count <= bytes.count, let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else { return 0 }
        if count >= patch + 11, start[patch] == 0xeb, start[patch + 1] == 0x09,
            X86Scan.isPadding(UnsafeRawBufferPointer(rebasing: bytes[patch + 2..<patch + 11]))
        {
            return 11
        }
        var instruction = x86_instruction(), offset = patch
        while offset < count, offset - patch < 5, x86_decode(start + offset, count - offset, &instruction) != 0,
            x86_kind(UInt32(instruction.kind)) == X86_NOP
        { offset += Int(instruction.length) }
        return offset - patch >= 5 ? offset - patch : 0
    }
}
