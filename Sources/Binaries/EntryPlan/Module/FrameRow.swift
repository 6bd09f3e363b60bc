// How far the stack pointer is from a function's return address at each instruction, by its call frame instructions.
import ELF

/// Rule that gives a frame's address: a register and a distance.
struct FrameRow: Equatable {
    var register: UInt64
    var offset: Int64
    var isExpression = false
    /// The distance of the saved x30 from the frame's address; nil: x30 holds it.
    var link: Int64?

    /// x30; x86-64 has no register of this number that a frame keeps.
    private static let linkRegister: UInt64 = 30

    mutating func take(_ instruction: FrameInstruction, _ kept: inout [FrameRow]) {
        switch instruction {
        case .frameAddress(let register, let distance): (self.register, offset, isExpression) = (register, distance, false)
        case .frameRegister(let register): (self.register, isExpression) = (register, false)
        case .frameOffset(let distance): offset = distance
        case .frameExpression: isExpression = true
        case .remember: if kept.count < 64 { kept.append(self) }
        case .recall: self = kept.popLast() ?? self
        case .save(Self.linkRegister, .offset(let distance)): link = distance
        case .save(Self.linkRegister, .undefined), .same(Self.linkRegister), .restore(Self.linkRegister): link = nil
        case .save, .same, .restore, .advance: break
        }
    }
}

extension Architecture {
    /// The row at the first instruction of a function, whoever called it.
    var rowAtEntry: FrameRow { self == .x86 ? FrameRow(register: 7, offset: 8) : FrameRow(register: 31, offset: 0) }
}

extension FrameTable {
    /// Goes through a function's call frame instructions. `body` gets each with the offset in the function from which it holds, and
    /// ends the walk by returning false. Returns false when an instruction is not understood.
    private func walk(_ function: CallFrames.Function, _ body: (Int, FrameInstruction) -> Bool) -> Bool {
        var (common, own) = instructions(of: function), location: UInt64 = 0
        while let instruction = common.next() {
            if !body(0, instruction) { return true }
        }
        if common.failed { return false }
        while let instruction = own.next() {
            if case .advance(let byteCount) = instruction {
                location = location &+ byteCount
            } else if !body(Int(clamping: location), instruction) {
                return true
            }
        }
        return !own.failed
    }

    /// Each row and the part of the function in which it holds, in order. False from `body` ends it.
    func forEachRow(of function: CallFrames.Function, _ body: (FrameRow, Range<Int>) -> Bool) {
        var row = FrameRow(register: .max, offset: 0), kept: [FrameRow] = [], start = 0, isOver = false
        _ = walk(function) { location, instruction in
            if location > start {
                if !body(row, start..<location) {
                    isOver = true
                    return false
                }
                start = location
            }
            row.take(instruction, &kept)
            return true
        }
        if !isOver, start < Int(function.byteCount) { _ = body(row, start..<Int(function.byteCount)) }
    }

    /// How the frame is found when the instruction at `offset` of the function is the next one; nil: not known.
    func row(of function: CallFrames.Function, at offset: Int) -> FrameRow? {
        var row = FrameRow(register: .max, offset: 0), kept: [FrameRow] = []
        let isUnderstood = walk(function) { location, instruction in
            if location > offset { return false }
            row.take(instruction, &kept)
            return true
        }
        return isUnderstood && row.register != .max ? row : nil
    }
}
