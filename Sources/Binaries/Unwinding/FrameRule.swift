// How the registers of a function's caller are found while a certain instruction of it is the next one: a row of the table that
// .eh_frame describes (DWARF 5, 6.4), computed once for each address that occurs.
import ELF

struct SavedRegister {
    var register: Int
    var rule: RegisterRule
}

package struct FrameRule {
    /// The canonical frame address: the stack pointer of the caller.
    enum FrameAddress: Equatable {
        case register(Int, Int64)
        case expression(Range<Int>)
    }
    var frameAddress: FrameAddress
    /// All others are as they were. Indices in the module's list.
    var saved: Range<Int>
    /// DWARF number of the register that holds the return address once the others are restored.
    var returnColumn: Int
    /// The kernel has called it: what it interrupted goes on at exactly that address.
    var isSignalFrame: Bool
    /// Nobody called it.
    var isOutermost: Bool

    /// Bytes from this register to the frame address; nil: another one says where it is.
    package func frameDistance(from register: Int) -> Int64? {
        guard case .register(register, let distance) = frameAddress else { return nil }
        return distance
    }
}

/// The instructions of one function in .eh_frame.
struct FrameProgram {
    let frames: CallFrames, common: CallFrames.Common, function: CallFrames.Function

    private struct Row {
        var frameAddress = FrameRule.FrameAddress.register(-1, 0)
        var saved: [SavedRegister] = []

        mutating func set(_ register: UInt64, _ rule: RegisterRule) {
            guard let number = Int(exactly: register), number < 64 else { return } // vector registers: never needed
            unset(register)
            saved.append(SavedRegister(register: number, rule: rule))
        }
        mutating func unset(_ register: UInt64) { saved.removeAll { UInt64($0.register) == register } }
        mutating func restore(_ register: UInt64, from first: Row) {
            unset(register)
            if let kept = first.saved.first(where: { UInt64($0.register) == register }) { saved.append(kept) }
        }
    }

    /// nil: there is something in it that is not understood.
    /// - Parameter list: of all rules' saved registers; gets those of this one
    func rule(at address: UInt64, _ list: inout [SavedRegister]) -> FrameRule? {
        var row = Row()
        guard run(frames.instructions(common.program, common), to: .max, &row, first: Row()) else { return nil }
        let first = row
        guard run(frames.instructions(function.program, common), to: address, &row, first: first) else { return nil }
        if case .register(let number, _) = row.frameAddress, !(0..<64).contains(number) { return nil }
        list += row.saved
        return FrameRule(
            frameAddress: row.frameAddress, saved: list.count - row.saved.count..<list.count, returnColumn: common.returnColumn,
            isSignalFrame: common.isSignalFrame,
            isOutermost: row.saved.contains { $0.register == common.returnColumn && $0.rule == .undefined })
    }

    private static let mostKept = 64

    /// Runs the instructions that hold at `end`.
    private func run(_ instructions: FrameInstructions, to end: UInt64, _ row: inout Row, first: Row) -> Bool {
        var instructions = instructions, location = function.address, kept: [Row] = []
        while let instruction = instructions.next() {
            switch instruction {
            case .advance(let byteCount):
                location = location &+ byteCount
                if location > end { return true }
            case .frameAddress(let register, let offset): row.frameAddress = .register(Int(clamping: register), offset)
            case .frameRegister(let register):
                guard case .register(_, let offset) = row.frameAddress else { return false }
                row.frameAddress = .register(Int(clamping: register), offset)
            case .frameOffset(let offset):
                guard case .register(let register, _) = row.frameAddress else { return false }
                row.frameAddress = .register(register, offset)
            case .frameExpression(let range): row.frameAddress = .expression(range)
            case .save(let register, let rule): row.set(register, rule)
            case .same(let register): row.unset(register)
            case .restore(let register): row.restore(register, from: first)
            case .remember:
                if kept.count == Self.mostKept { return false }
                kept.append(row)
            case .recall:
                guard let last = kept.popLast() else { return false }
                row = last
            }
        }
        return !instructions.failed
    }
}
