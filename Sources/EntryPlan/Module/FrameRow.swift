// How far the stack pointer is from a function's return address at each instruction, by its call frame instructions.
import ELF

/// One DWARF call frame instruction, with numbers in bytes.
enum FrameStep {
    case define(register: UInt64, offset: Int64)
    case defineRegister(UInt64)
    case defineOffset(Int64)
    case defineByExpression
    case remember, recall
    /// x30, in which calls on aarch64 leave their return address, is kept so far from the frame's address.
    case savesLink(Int64)
    /// x30 holds what the call has left in it.
    case keepsLink
    /// Anything else.
    case other
}

/// Rule that gives a frame's address: a register and a distance.
struct FrameRow: Equatable {
    var register: UInt64
    var offset: Int64
    var isExpression = false
    /// The distance of the saved x30 from the frame's address; nil: x30 holds it.
    var link: Int64?

    mutating func take(_ step: FrameStep, _ kept: inout [FrameRow]) {
        switch step {
        case .define(let register, let distance): (self.register, offset, isExpression) = (register, distance, false)
        case .defineRegister(let register): (self.register, isExpression) = (register, false)
        case .defineOffset(let distance): offset = distance
        case .defineByExpression: isExpression = true
        case .remember: if kept.count < 64 { kept.append(self) }
        case .recall: self = kept.popLast() ?? self
        case .savesLink(let distance): link = distance
        case .keepsLink: link = nil
        case .other: break
        }
    }
}

extension Architecture {
    /// The row at the first instruction of a function, whoever called it.
    var rowAtEntry: FrameRow { self == .x86 ? FrameRow(register: 7, offset: 8) : FrameRow(register: 31, offset: 0) }
}

extension FrameTable {
    /// x30; x86-64 has no register of this number that a frame keeps.
    private static let link: UInt64 = 30

    /// Goes through a function's call frame instructions. `body` gets each with the offset in the function from which it holds, and
    /// ends the walk by returning false. Returns false when an instruction is not understood.
    func walk(_ function: CallFrames.Function, _ body: (Int, FrameStep) -> Bool) -> Bool {
        let common = common(of: function)
        var location: UInt64 = 0
        for (part, program) in [common.program, function.program].enumerated() {
            var reader = DwarfReader(frames.bytes, address: 0, offset: program.lowerBound, end: program.upperBound)
            while !reader.isAtEnd {
                let op = reader.byte()
                var step = FrameStep.other, isAdvance = false
                func scaled(_ value: Int64) -> Int64 { value &* common.dataFactor }
                func saves(_ register: UInt64, _ distance: Int64) { if register == Self.link { step = .savesLink(scaled(distance)) } }
                func keeps(_ register: UInt64) { if register == Self.link { step = .keepsLink } }
                switch op {
                case 0x40...0x7f: (location, isAdvance) = (location &+ UInt64(op & 0x3f) &* common.codeFactor, true)
                case 0x80...0xbf: saves(UInt64(op & 0x3f), Int64(truncatingIfNeeded: reader.unsigned()))
                case 0xc0...0xff: keeps(UInt64(op & 0x3f))
                case 0x00: continue
                case 0x02: (location, isAdvance) = (location &+ UInt64(reader.byte()) &* common.codeFactor, true)
                case 0x03: (location, isAdvance) = (location &+ UInt64(reader.number(UInt16.self)) &* common.codeFactor, true)
                case 0x04: (location, isAdvance) = (location &+ UInt64(reader.number(UInt32.self)) &* common.codeFactor, true)
                case 0x06, 0x07, 0x08: keeps(reader.unsigned())
                case 0x2e: _ = reader.unsigned()
                case 0x05: saves(reader.unsigned(), Int64(truncatingIfNeeded: reader.unsigned()))
                case 0x09:
                    _ = reader.unsigned()
                    _ = reader.unsigned()
                case 0x0a: step = .remember
                case 0x0b: step = .recall
                case 0x0c: step = .define(register: reader.unsigned(), offset: Int64(truncatingIfNeeded: reader.unsigned()))
                case 0x0d: step = .defineRegister(reader.unsigned())
                case 0x0e: step = .defineOffset(Int64(truncatingIfNeeded: reader.unsigned()))
                case 0x0f:
                    reader.skip(reader.unsigned())
                    step = .defineByExpression
                case 0x10, 0x16:
                    _ = reader.unsigned()
                    reader.skip(reader.unsigned())
                case 0x11: saves(reader.unsigned(), reader.signed())
                case 0x12: step = .define(register: reader.unsigned(), offset: scaled(reader.signed()))
                case 0x13: step = .defineOffset(scaled(reader.signed()))
                case 0x2d: break // DW_CFA_AARCH64_negate_ra_state
                default: return false
                }
                if reader.failed { return false }
                if isAdvance || part == 0 && location != 0 { continue }
                if !body(Int(clamping: location), step) { return true }
            }
        }
        return true
    }

    /// Each row and the part of the function in which it holds, in order. False from `body` ends it.
    func forEachRow(of function: CallFrames.Function, _ body: (FrameRow, Range<Int>) -> Bool) {
        var row = FrameRow(register: .max, offset: 0), kept: [FrameRow] = [], start = 0, isOver = false
        _ = walk(function) { location, step in
            if location > start {
                if !body(row, start..<location) {
                    isOver = true
                    return false
                }
                start = location
            }
            row.take(step, &kept)
            return true
        }
        if !isOver, start < Int(function.byteCount) { _ = body(row, start..<Int(function.byteCount)) }
    }

    /// How the frame is found when the instruction at `offset` of the function is the next one; nil: not known.
    func row(of function: CallFrames.Function, at offset: Int) -> FrameRow? {
        var row = FrameRow(register: .max, offset: 0), kept: [FrameRow] = []
        let isUnderstood = walk(function) { location, step in
            if location > offset { return false }
            row.take(step, &kept)
            return true
        }
        return isUnderstood && row.register != .max ? row : nil
    }
}
