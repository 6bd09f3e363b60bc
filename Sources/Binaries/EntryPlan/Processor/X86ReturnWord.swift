// Finds x86-64 functions that use the return address which their caller's call has pushed, other than by returning to it.
import CZydis
import ELF

/// The word is at the stack pointer where the function begins (System V ABI, AMD64 supplement, 3.2.2). A memory operand is recognised as
/// this word by its distance: known on a straight line from the entry by what was pushed, elsewhere by the function's description.
struct X86ReturnWord {
    private struct Access {
        var offset: Int
        var register: UInt64 // DWARF's number: 6 rbp, 7 rsp
        var distance: Int64
        var isLoad: Bool
    }
    /// In the order of the code.
    private var accesses: [Access] = []
    /// Bytes that were pushed since the entry; nil: no straight line leads here.
    private var depth: Int64?
    /// Registers that hold an address of the stack, on a straight line: this many bytes below the word.
    private var copies = [Int64?](repeating: nil, count: 16)
    /// A bit for each that holds what rbp does.
    private var frameCopies: UInt16 = 0
    private var isRead = false
    /// The end of the straight line from the entry, and what was pushed until there.
    private var lineEnd: (offset: Int, depth: Int64)?

    private static let stackPointer = 4, framePointer = 5
    /// rdi, rsi, rdx, rcx, r8, r9
    private static let arguments = [7, 6, 2, 1, 8, 9]

    mutating func begin() {
        accesses.removeAll(keepingCapacity: true)
        leaveLine()
        (depth, isRead, lineEnd) = (0, false, nil)
    }

    mutating func take(_ bytes: UnsafePointer<UInt8>, _ instruction: x86_instruction, _ kind: x86_kind, _ offset: Int) {
        let isLegacy = instruction.flags & UInt8(X86_LEGACY) != 0, opcode = isLegacy ? instruction.opcode : 0
        let modrm = instruction.modrm > 0 ? bytes[Int(instruction.modrm)] : 0
        let field = modrm >> 3 & 7
        if kind != X86_NOP, !(isLegacy && opcode == 0x8d), !Self.changesNothing(bytes, instruction, opcode, field) {
            noteAccess(instruction, offset, isPush: opcode == 0xff && field == 6, isLoad: opcode == 0x8b)
        }
        if isLegacy { noteImplied(opcode, hasOperand: instruction.modrm > 0, field, offset) }
        if kind == X86_CALL || kind == X86_INDIRECT_CALL, Self.arguments.contains(where: { copies[$0] == 0 }) { isRead = true }
        if kind != X86_OTHER && kind != X86_NOP && kind != X86_ENDBR && kind != X86_LEA {
            if let depth { lineEnd = (offset, depth) }
            return leaveLine()
        }
        let rex = Self.rex(bytes, instruction)
        noteStored(opcode, modrm, rex)
        noteCopies(instruction, opcode, modrm, rex)
        if let now = depth { depth = Self.depth(after: bytes, instruction, opcode, modrm, rex, now) }
    }

    /// Returns whether the word is read or changed, and whether the caller's frame pointer is read, which leads to that of another one.
    mutating func end(_ function: CallFrames.Function?, _ frames: FrameTable) -> (word: Bool, callersFrame: Bool) {
        guard let function, !accesses.isEmpty else { return (isRead, false) }
        var next = 0, isCallersFrameRead = false, isTrue = true
        frames.forEachRow(of: function) { row, range in
            // Assembly may have a description of its first byte alone.
            if let lineEnd, range.contains(lineEnd.offset), row.register == 7, row.offset - 8 != lineEnd.depth { isTrue = false }
            while next < accesses.count, accesses[next].offset < range.upperBound {
                let access = accesses[next]
                if range.contains(access.offset), !row.isExpression, row.register == access.register {
                    if isTrue || access.register == 6, (row.offset - 8..<row.offset).contains(access.distance) { isRead = true }
                    if access.isLoad, row.register == 6, row.offset == 16, access.distance == 0 { isCallersFrameRead = true }
                }
                next += 1
            }
            return next < accesses.count
        }
        return (isRead, isCallersFrameRead)
    }

    private mutating func leaveLine() {
        depth = nil
        frameCopies = 0
        for n in 0..<16 { copies[n] = nil }
    }

    private mutating func noteAccess(_ instruction: x86_instruction, _ offset: Int, isPush: Bool, isLoad: Bool) {
        guard instruction.base != UInt8(X86_NO_BASE) else { return }
        let base = Int(instruction.base), distance = Int64(instruction.distance)
        if base == Self.stackPointer { return note(offset, distance) }
        if distance >= 0, base == Self.framePointer || isLoad && frameCopies >> UInt16(base) & 1 != 0 {
            accesses.append(Access(offset: offset, register: 6, distance: distance, isLoad: isLoad))
        }
        // But for `push -8(%r10)`: a frame that is aligned anew has a copy of the word on top, for debuggers.
        if let below = copies[base], (0..<8).contains(distance - below), !isPush { isRead = true }
    }

    /// Notes implied reads: pop (also into memory), popf and iret read the top of the stack, string instructions by rsi and rdi.
    private mutating func noteImplied(_ opcode: UInt8, hasOperand: Bool, _ field: UInt8, _ offset: Int) {
        switch opcode {
        case 0x58...0x5f where !hasOperand, 0x8f where field == 0, 0x9d, 0xcf: note(offset, 0)
        case 0xa4...0xa7, 0xac...0xaf: if copies[6] == 0 || copies[7] == 0 { isRead = true }
        default: break
        }
    }

    /// Notes a store of the word's address, by which other code may read the word.
    private mutating func noteStored(_ opcode: UInt8, _ modrm: UInt8, _ rex: UInt8) {
        guard opcode == 0x89, rex & 8 != 0, modrm >> 6 != 3 else { return }
        let source = Int(modrm >> 3 & 7 | (rex & 4) << 1)
        if (source == Self.stackPointer ? depth : copies[source]) == 0 { isRead = true }
    }

    /// At a distance from the stack pointer.
    private mutating func note(_ offset: Int, _ distance: Int64) {
        if let depth {
            if (0..<8).contains(distance - depth) { isRead = true }
        } else if distance >= 0 {
            accesses.append(Access(offset: offset, register: 7, distance: distance, isLoad: false))
        }
    }

    /// `lock or $0, (%rsp)` orders memory, `or $0, (%rsp)` asks whether there is more stack.
    private static func changesNothing(_ bytes: UnsafePointer<UInt8>, _ instruction: x86_instruction, _ opcode: UInt8, _ field: UInt8)
        -> Bool
    {
        opcode == 0x83 && field <= 1 && bytes[Int(instruction.length) - 1] == 0
    }

    /// The prefix before the opcode, 0 without one.
    private static func rex(_ bytes: UnsafePointer<UInt8>, _ instruction: x86_instruction) -> UInt8 {
        var at = 0
        while [0x66, 0xf0, 0xf2, 0xf3, 0x2e, 0x36, 0x3e, 0x26, 0x64, 0x65].contains(bytes[at]) { at += 1 }
        return bytes[at] & 0xf0 == 0x40 ? bytes[at] : 0
    }

    /// Follows `mov %rsp, register`, `mov %rbp, register` and `lea distance(%rsp), register`; whatever else may write a register ends what
    /// was known of it.
    private mutating func noteCopies(_ instruction: x86_instruction, _ opcode: UInt8, _ modrm: UInt8, _ rex: UInt8) {
        guard instruction.modrm > 0 else {
            if opcode & 0xf8 == 0x58 || opcode & 0xf8 == 0xb8 || opcode & 0xf8 == 0x90 { forget(Int(opcode & 7 | (rex & 1) << 3)) }
            if opcode & 0xf8 == 0x90 { forget(0) }
            return
        }
        let field = Int(modrm >> 3 & 7 | (rex & 4) << 1), other = Int(modrm & 7 | (rex & 1) << 3)
        let isRegister = modrm >> 6 == 3, isWide = rex & 8 != 0
        var source: Int?, target = field, distance: Int64 = 0
        switch opcode {
        case 0x89 where isWide && isRegister: (source, target) = (field, other)
        case 0x8b where isWide && isRegister: source = other
        case 0x8d where isWide && instruction.base != UInt8(X86_NO_BASE):
            (source, distance) = (Int(instruction.base), Int64(instruction.distance))
        default: break
        }
        guard let source else {
            forget(field)
            if isRegister { forget(other) }
            return
        }
        let below = source == Self.stackPointer ? depth : copies[source]
        let isFrame = distance == 0 && (source == Self.framePointer || frameCopies >> UInt16(source) & 1 != 0)
        forget(target)
        if target == Self.stackPointer { return }
        copies[target] = below.map { $0 - distance }
        if isFrame, target != Self.framePointer { frameCopies |= 1 << UInt16(target) }
    }

    private mutating func forget(_ register: Int) {
        copies[register] = nil
        frameCopies &= ~(1 << UInt16(register))
    }

    /// Returns the depth after the instruction, by pushes, pops and constants added to rsp; nil after other writes of the stack pointer.
    private static func depth(
        after bytes: UnsafePointer<UInt8>, _ instruction: x86_instruction, _ opcode: UInt8, _ modrm: UInt8, _ rex: UInt8, _ depth: Int64
    ) -> Int64? {
        guard instruction.flags & UInt8(X86_LEGACY) != 0 else { return depth }
        let field = modrm >> 3 & 7
        guard instruction.modrm > 0 else {
            switch opcode {
            case 0x50...0x57, 0x68, 0x6a, 0x9c: return depth + 8
            case 0x5c: return nil // pop %rsp
            case 0x58...0x5f, 0x9d: return depth - 8
            case 0xc8, 0xc9: return nil
            default: return depth
            }
        }
        if opcode == 0xff, field == 6 { return depth + 8 }
        if opcode == 0x8f { return depth - 8 }
        if modrm >> 6 == 3, modrm & 7 == 4, rex & 1 == 0 {
            let isSum = opcode == 0x83 || opcode == 0x81
            guard isSum, field == 0 || field == 5, rex & 8 != 0 else { return writesOperand(opcode) ? nil : depth }
            let at = bytes + Int(instruction.modrm) + 1
            let amount = opcode == 0x83 ? Int64(Int8(bitPattern: at[0])) : Int64(UnsafeRawPointer(at).loadUnaligned(as: Int32.self))
            return field == 0 ? depth - amount : depth + amount
        }
        if field == 4, rex & 4 == 0, writesField(opcode) { return nil }
        return depth
    }

    /// An instruction whose ModRM names a register writes it, but for cmp, test and what stores from it.
    private static func writesOperand(_ opcode: UInt8) -> Bool {
        switch opcode {
        case 0x39, 0x3b, 0x85, 0x8b, 0x03, 0x2b, 0x63: false
        default: true
        }
    }

    /// Intel SDM volume 2, appendix A: the forms that write what ModRM's middle field names.
    private static func writesField(_ opcode: UInt8) -> Bool {
        switch opcode {
        case 0x8b, 0x8d, 0x87, 0x63, 0x69, 0x6b: true
        case 0x03, 0x0b, 0x13, 0x1b, 0x23, 0x2b, 0x33: true
        default: false
        }
    }
}
