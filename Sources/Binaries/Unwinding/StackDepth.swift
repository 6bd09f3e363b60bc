// How far below its frame the stack pointer of an x86-64 function is. Descriptions say where a frame is by rbp once a function has put it
// there; who does not know rbp asks the code: it is followed from its entry on, and what it does to rsp and rbp is counted. Where that is
// more than pushing, popping, adding constants and coming back to rbp, as for alloca, there is no answer.
import CZydis
import ELF

package struct StackDepth {
    /// Before an instruction.
    package struct State: Equatable {
        /// Bytes from the stack pointer to the canonical frame address.
        package var depth: Int64
        /// rbp is `frameDistance` below the canonical frame address.
        package var hasFrame: Bool
    }
    private let code: [UInt8]
    /// States by offset in the code; nil: nothing is known to lead there.
    private var states: [State?]
    private var lengths: [UInt8]
    private var isUnderstood = true
    /// At jumps to places that the instruction does not name.
    private var indirect: [State] = []
    /// Offsets after instructions that nothing goes on from.
    private var ends: [Int] = []

    /// The return address and rbp: how far rbp is below the canonical frame address.
    package static let frameDistance: Int64 = 16
    private static let rsp = 4, rbp = 5

    /// nil where there is no decoder.
    /// - Parameter code: of the whole function, as the file has it
    init?(_ code: [UInt8]) {
        guard x86_decoder_open(installedLibraryFolder()) == nil else { return nil }
        self.code = code
        states = Array(repeating: nil, count: code.count)
        lengths = Array(repeating: 0, count: code.count)
        follow([(0, State(depth: 8, hasFrame: false))])
        // A switch goes on at labels that only its table names, with the stack that it has itself.
        while isUnderstood, let state = indirect.first, indirect.allSatisfy({ $0 == state }) {
            let unknown = ends.map(afterPadding).filter { $0 < code.count && states[$0] == nil }
            ends = []
            if unknown.isEmpty { break }
            for offset in unknown where states[offset] == nil { follow([(offset, state)]) }
        }
    }

    /// What holds as the instruction that has this offset is executed; nil: it cannot be told.
    func state(at offset: Int) -> State? {
        guard isUnderstood, code.indices.contains(offset) else { return nil }
        for start in stride(from: offset, through: max(offset - 14, 0), by: -1) {
            if let state = states[start], offset - start < Int(lengths[start]) { return state }
        }
        return nil
    }

    /// Labels are aligned, and nothing executes what is before them.
    private func afterPadding(_ start: Int) -> Int {
        var offset = start, instruction = x86_instruction()
        while offset < code.count {
            let isOne = code.withUnsafeBufferPointer { x86_decode($0.baseAddress! + offset, $0.count - offset, &instruction) != 0 }
            guard isOne, x86_kind(UInt32(instruction.kind)) == X86_NOP else { break }
            offset += Int(instruction.length)
        }
        return offset
    }

    private mutating func follow(_ starts: [(offset: Int, state: State)]) {
        var waiting = starts
        while isUnderstood, let next = waiting.popLast() {
            var (offset, state) = next
            while code.indices.contains(offset) {
                if let known = states[offset] {
                    isUnderstood = known == state
                    break
                }
                var instruction = x86_instruction()
                let isOne = code.withUnsafeBufferPointer { x86_decode($0.baseAddress! + offset, $0.count - offset, &instruction) != 0 }
                guard isOne else { return isUnderstood = false }
                states[offset] = state
                lengths[offset] = instruction.length
                let after = offset + Int(instruction.length)
                let target = Int(exactly: Int64(offset) &+ instruction.target) ?? -1, isInside = code.indices.contains(target)
                switch x86_kind(UInt32(instruction.kind)) {
                case X86_CONDITIONAL:
                    if isInside { waiting.append((target, state)) }
                    offset = after
                case X86_JUMP:
                    ends.append(after)
                    offset = isInside ? target : code.count
                case X86_RETURN, X86_STOP:
                    ends.append(after)
                    offset = code.count
                case X86_INDIRECT_JUMP:
                    indirect.append(state)
                    ends.append(after)
                    offset = code.count
                case X86_CALL where isInside && target != 0: return isUnderstood = false // what it pushes may stay
                case X86_TRANSACTION: return isUnderstood = false
                case X86_CALL, X86_INDIRECT_CALL, X86_SYSTEM, X86_NOP, X86_ENDBR: offset = after
                default:
                    guard let changed = self.state(after: instruction, at: offset, state) else { return isUnderstood = false }
                    state = changed
                    offset = after
                }
            }
        }
    }

    /// nil: rsp is something else now. (Intel SDM volume 2, appendix A: opcode map; 2.2.1: REX.)
    private func state(after instruction: x86_instruction, at offset: Int, _ state: State) -> State? {
        let opcode = instruction.opcode, isLegacy = instruction.flags & UInt8(X86_LEGACY) != 0
        let hasOperand = instruction.modrm != 0, modrm = hasOperand ? code[offset + Int(instruction.modrm)] : 0
        let rex = rex(of: instruction, at: offset), isWide = rex & 8 != 0
        let register = Int(modrm >> 3 & 7) | Int(rex & 4) << 1, operand = modrm >> 6 == 3 ? Int(modrm & 7) | Int(rex & 1) << 3 : -1
        var after = state
        /// Some value goes to a register.
        func written(_ number: Int) -> State? {
            if number == Self.rsp { return nil }
            if number == Self.rbp { after.hasFrame = false }
            return after
        }
        func pushed(_ byteCount: Int64) -> State? {
            if isHalf(offset) { return nil }
            after.depth += byteCount
            return after
        }
        /// rsp is a distance from rbp.
        func backed(by distance: Int64) -> State? {
            guard isWide, state.hasFrame else { return nil }
            after.depth = Self.frameDistance - distance
            return after
        }
        /// rbp is a distance from rsp.
        func framed(by distance: Int64) -> State? {
            after.hasFrame = isWide && state.depth - distance == Self.frameDistance
            return after
        }
        guard isLegacy else {
            let isDestination = hasOperand && Self.otherMaps.contains(opcode)
            return isDestination && register == Self.rsp ? nil : written(Self.destination(opcode, operand, hasOperand))
        }
        if opcode < 0x40, opcode & 7 < 4, opcode & 1 == 1 { // arithmetic; a byte of rsp is none's
            return opcode >> 3 == 7 ? after : written(opcode & 2 == 0 ? operand : register)
        }
        switch opcode {
        case 0x50...0x57, 0x68, 0x6a, 0x9c: return pushed(8)
        case 0x58...0x5f:
            guard let popped = written(Int(opcode & 7) | Int(rex & 1) << 3) else { return nil }
            after = popped
            return pushed(-8)
        case 0x9d: return pushed(-8)
        case 0x8f:
            guard let popped = written(operand) else { return nil }
            after = popped
            return pushed(-8)
        case 0xff where register & 7 == 6: return pushed(8)
        case 0xc8: return nil
        case 0xc9:
            guard state.hasFrame, !isHalf(offset) else { return nil }
            return State(depth: Self.frameDistance - 8, hasFrame: false)
        case 0x81, 0x83:
            let operation = register & 7
            if operation == 7 { return after }
            guard operand == Self.rsp else { return written(operand) }
            guard isWide, operation == 0 || operation == 5, let value = constant(of: instruction, at: offset, isByte: opcode == 0x83) else {
                return nil
            }
            after.depth += operation == 0 ? -value : value
            return after
        case 0x89:
            if operand == Self.rsp, register == Self.rbp { return backed(by: 0) }
            return operand == Self.rbp && register == Self.rsp ? framed(by: 0) : written(operand)
        case 0x8b:
            if register == Self.rsp, operand == Self.rbp { return backed(by: 0) }
            return register == Self.rbp && operand == Self.rsp ? framed(by: 0) : written(register)
        case 0x8d:
            let distance = Int64(instruction.distance)
            if register == Self.rsp, instruction.base == Self.rbp { return backed(by: distance) }
            if register == Self.rsp, instruction.base == Self.rsp, isWide {
                after.depth -= distance
                return after
            }
            return register == Self.rbp && instruction.base == Self.rsp ? framed(by: distance) : written(register)
        case 0x87: return written(register) == nil ? nil : written(operand)
        case 0x90...0x97, 0xb8...0xbf: return written(Int(opcode & 7) | Int(rex & 1) << 3)
        case 0x63, 0x69, 0x6b: return written(register)
        case 0x8c, 0xc1, 0xc7, 0xd1, 0xd3: return written(operand)
        case 0xf7, 0xff: return written(opcode == 0xf7 && ![2, 3].contains(register & 7) ? -1 : operand)
        default: return after
        }
    }

    /// Opcodes of the map 0F whose first operand, by ModRM's reg, is a general register: cmov, imul, movzx, movsx, bsf and others.
    private static let otherMaps: Set<UInt8> = Set(
        Array(0x40...0x4f) + [0xaf, 0xb6, 0xb7, 0xb8, 0xbc, 0xbd, 0xbe, 0xbf, 0xc0, 0xc1, 0xb0, 0xb1])

    /// What instructions of other maps write to: xadd, cmpxchg, shifts of two, bit operations, set; push and pop of segments, bswap.
    private static func destination(_ opcode: UInt8, _ operand: Int, _ hasOperand: Bool) -> Int {
        switch opcode {
        case 0xa0, 0xa1, 0xa8, 0xa9, 0xcc: hasOperand ? -1 : rsp
        case 0xa4, 0xa5, 0xac, 0xad, 0xab, 0xb3, 0xba, 0xbb, 0xb0, 0xb1, 0xc0, 0xc1, 0xc7: operand
        default: -1
        }
    }

    private func rex(of instruction: x86_instruction, at offset: Int) -> UInt8 {
        for byte in code[offset..<offset + Int(instruction.length)] where !Self.prefixes.contains(byte) {
            return byte & 0xf0 == 0x40 ? byte : 0
        }
        return 0
    }
    private static let prefixes: Set<UInt8> = [0xf0, 0xf2, 0xf3, 0x66, 0x67, 0x26, 0x2e, 0x36, 0x3e, 0x64, 0x65]

    /// It pushes or pops two bytes, which no compiler has it do.
    private func isHalf(_ offset: Int) -> Bool { code[offset...].prefix { Self.prefixes.contains($0) }.contains(0x66) }

    private func constant(of instruction: x86_instruction, at offset: Int, isByte: Bool) -> Int64? {
        let start = offset + Int(instruction.modrm) + 1, count = isByte ? 1 : 4
        guard start + count == offset + Int(instruction.length) else { return nil }
        if isByte { return Int64(Int8(bitPattern: code[start])) }
        return Int64(Int32(bitPattern: code[start..<start + 4].reversed().reduce(UInt32(0)) { $0 << 8 | UInt32($1) }))
    }
}
