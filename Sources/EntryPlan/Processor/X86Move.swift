// Moves the first instructions of a function of x86-64.
import CTraceLayout
import CZydis

enum X86Move {
    /// Moves the instructions that cover the `wanted` bytes from `patch` on, of a function at `address` with `count` bytes.
    static func move(_ code: ModuleCode, _ address: UInt64, count: Int, patch: Int, wanted: Int) -> MovedCode {
        var moved = MovedCode()
        moved.resume = patch
        let bytes = code.code(at: address)
        let available = min(count, bytes.count)
        guard let start = bytes.baseAddress?.assumingMemoryBound(to: UInt8.self) else {
            moved.reason = .notCode
            return moved
        }
        var instruction = x86_instruction()
        while moved.resume < patch + wanted, moved.reason == .no, !moved.isEnded {
            guard moved.resume < available else {
                moved.reason = .endsOpen
                return moved
            }
            guard x86_decode(start + moved.resume, available - moved.resume, &instruction) != 0 else {
                moved.reason = .notCode
                return moved
            }
            moved.instructions.append((moved.resume, moved.bytes.count))
            let length = Int(instruction.length)
            append(instruction, start + moved.resume, address &+ UInt64(moved.resume), code.base, &moved)
            moved.resume += length
        }
        if moved.reason == .no, !moved.isEnded {
            moved.instructions.append((moved.resume, moved.bytes.count))
            jump(to: address &+ UInt64(moved.resume), code.base, &moved)
        }
        return moved
    }

    private static func append(
        _ instruction: x86_instruction, _ bytes: UnsafePointer<UInt8>, _ address: UInt64, _ base: UInt64, _ moved: inout MovedCode
    ) {
        let length = Int(instruction.length)
        let target = address &+ UInt64(bitPattern: instruction.target)
        let flags = UInt32(instruction.flags)
        switch x86_kind(UInt32(instruction.kind)) {
        case X86_JUMP:
            jump(to: target, base, &moved)
            moved.isEnded = true
        case X86_CONDITIONAL:
            if flags & UInt32(X86_SHORT_ONLY) != 0 {
                moved.reason = .notMovable
                return
            }
            moved.bytes += [0x0f, 0x80 | instruction.opcode & 0xf] // Jcc rel32, whatever its form was
            displacement(target, base, &moved)
        case X86_CALL:
            pushReturn(address &+ UInt64(length), base, &moved)
            jump(to: target, base, &moved)
            moved.isEnded = true
            moved.isCall = true
        case X86_INDIRECT_CALL:
            // FF /2; /3 is a far one. An operand by rsp is another one once the return address is pushed.
            let modrm = bytes[Int(instruction.modrm)]
            if flags & UInt32(X86_STACK_BASE) != 0 || modrm >> 3 & 7 != 2 || modrm == 0xd4 {
                moved.reason = .notMovable
                return
            }
            pushReturn(address &+ UInt64(length), base, &moved)
            copy(instruction, bytes, target, base, &moved, modrm: modrm & 0xc7 | 4 << 3) // FF /4: jmp
            moved.isEnded = true
            moved.isCall = true
        case X86_TRANSACTION, X86_SYSTEM: // the kernel tells the address of a system call; an abort jumps
            moved.reason = .notMovable
        case X86_RETURN, X86_INDIRECT_JUMP, X86_STOP:
            copy(instruction, bytes, target, base, &moved)
            moved.isEnded = true
        default: copy(instruction, bytes, target, base, &moved)
        }
    }

    private static func copy(
        _ instruction: x86_instruction, _ bytes: UnsafePointer<UInt8>, _ target: UInt64, _ base: UInt64, _ moved: inout MovedCode,
        modrm: UInt8? = nil
    ) {
        let start = moved.bytes.count
        moved.bytes += UnsafeBufferPointer(start: bytes, count: Int(instruction.length))
        if let modrm { moved.bytes[start + Int(instruction.modrm)] = modrm }
        if instruction.displacement != 0 {
            let place = start + Int(instruction.displacement)
            for n in 0..<4 { moved.bytes[place + n] = 0 }
            moved.fix(PLAN_RELATIVE32, target, base, at: place, end: moved.bytes.count)
        }
    }

    private static func displacement(_ target: UInt64, _ base: UInt64, _ moved: inout MovedCode) {
        moved.bytes += [0, 0, 0, 0]
        moved.fix(PLAN_RELATIVE32, target, base, at: moved.bytes.count - 4, end: moved.bytes.count)
    }

    private static func jump(to target: UInt64, _ base: UInt64, _ moved: inout MovedCode) {
        moved.bytes.append(0xe9)
        displacement(target, base, &moved)
    }

    /// Pushes the return address that the callee would have without us: unwinders, look-ups of the caller and jumps out of the callee
    /// rely on it. A call puts a word on the stack and an entry into the CPU's return predictor, which then agrees with the
    /// number of returns; the word is replaced. (`call` to the next instruction is no call to predictors, hence the int3.)
    private static func pushReturn(_ target: UInt64, _ base: UInt64, _ moved: inout MovedCode) {
        moved.bytes += [0xe8, 1, 0, 0, 0, 0xcc]
        moved.linked = moved.bytes.count - 1
        moved.bytes += [0xc7, 0x04, 0x24, 0, 0, 0, 0] // movl $LOW, (%rsp)
        moved.fix(PLAN_LOW32, target, base, at: moved.bytes.count - 4, end: moved.bytes.count)
        moved.bytes += [0xc7, 0x44, 0x24, 0x04, 0, 0, 0, 0] // movl $HIGH, 4(%rsp)
        moved.fix(PLAN_HIGH32, target, base, at: moved.bytes.count - 4, end: moved.bytes.count)
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
