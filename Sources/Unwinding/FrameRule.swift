// How the registers of a function's caller are found while a certain instruction of it is the next one: a row of the table that
// .eh_frame describes (DWARF 5, 6.4), computed once for each address that occurs.
import ELF

struct SavedRegister: Equatable {
    enum Rule: Equatable {
        case offset(Int64) // in memory, from the CFA
        case valueOffset(Int64) // the CFA plus this is the value itself
        case register(Int)
        case expression(Range<Int>) // range of the section's bytes; computes the address in memory
        case valueExpression(Range<Int>)
        case undefined
    }
    var register: Int
    var rule: Rule
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
}

/// The instructions of one function in .eh_frame.
struct FrameProgram {
    let common: CallFrames.Common, function: CallFrames.Function

    private struct Row {
        var frameAddress = FrameRule.FrameAddress.register(-1, 0)
        var saved: [SavedRegister] = []

        mutating func set(_ register: UInt64, _ rule: SavedRegister.Rule) {
            guard let number = Int(exactly: register), number < 64 else { return } // vector registers: never needed
            unset(register)
            saved.append(SavedRegister(register: number, rule: rule))
        }
        mutating func unset(_ register: UInt64) { saved.removeAll { UInt64($0.register) == register } }
        mutating func restore(_ register: UInt64, from first: Row) {
            unset(register)
            if let kept = first.saved.first(where: { UInt64($0.register) == register }) { saved.append(kept) }
        }
        mutating func setOffset(_ offset: Int64) -> Bool {
            guard case .register(let number, _) = frameAddress else { return false }
            frameAddress = .register(number, offset)
            return true
        }
    }

    /// nil: there is something in it that is not understood.
    /// - Parameter list: of all rules' saved registers; gets those of this one
    func rule(at address: UInt64, _ bytes: UnsafeRawBufferPointer, _ list: inout [SavedRegister]) -> FrameRule? {
        var row = Row()
        guard run(common.program, bytes, to: .max, &row, first: Row()) else { return nil }
        let first = row
        guard run(function.program, bytes, to: address, &row, first: first) else { return nil }
        if case .register(let number, _) = row.frameAddress, !(0..<64).contains(number) { return nil }
        list += row.saved
        return FrameRule(
            frameAddress: row.frameAddress, saved: list.count - row.saved.count..<list.count, returnColumn: common.returnColumn,
            isSignalFrame: common.isSignalFrame,
            isOutermost: row.saved.contains { $0.register == common.returnColumn && $0.rule == .undefined })
    }

    private static let mostKept = 64, mostInstructions = 100_000

    /// Runs the instructions that hold at `end`.
    private func run(_ program: Range<Int>, _ bytes: UnsafeRawBufferPointer, to end: UInt64, _ row: inout Row, first: Row) -> Bool {
        var reader = DwarfReader(bytes, address: 0, offset: program.lowerBound, end: program.upperBound)
        var location = function.address, kept: [Row] = [], budget = Self.mostInstructions
        func register(_ value: UInt64) -> Int { Int(clamping: value) }
        func scaled(_ value: UInt64) -> Int64 { Int64(truncatingIfNeeded: value) &* common.dataFactor }
        func block() -> Range<Int>? {
            let count = reader.unsigned(), start = reader.offset
            reader.skip(count)
            return reader.failed ? nil : start..<reader.offset
        }
        while !reader.isAtEnd {
            budget -= 1
            if budget < 0 { return false }
            let code = reader.byte(), low = UInt64(code & 0x3f)
            var step: UInt64?
            switch code {
            case 0x40...0x7f: step = low
            case 0x80...0xbf: row.set(low, .offset(scaled(reader.unsigned())))
            case 0xc0...0xff: row.restore(low, from: first)
            case 0x00: break // nop
            case 0x02: step = UInt64(reader.byte())
            case 0x03: step = UInt64(reader.number(UInt16.self))
            case 0x04: step = UInt64(reader.number(UInt32.self))
            case 0x05: row.set(reader.unsigned(), .offset(scaled(reader.unsigned())))
            case 0x06: row.restore(reader.unsigned(), from: first)
            case 0x07: row.set(reader.unsigned(), .undefined)
            case 0x08: row.unset(reader.unsigned()) // the same value
            case 0x09: row.set(reader.unsigned(), .register(register(reader.unsigned())))
            case 0x0a:
                if kept.count == Self.mostKept { return false }
                kept.append(row)
            case 0x0b:
                guard let last = kept.popLast() else { return false }
                row = last
            case 0x0c: row.frameAddress = .register(register(reader.unsigned()), Int64(truncatingIfNeeded: reader.unsigned()))
            case 0x0d:
                guard case .register(_, let offset) = row.frameAddress else { return false }
                row.frameAddress = .register(register(reader.unsigned()), offset)
            case 0x0e: if !row.setOffset(Int64(truncatingIfNeeded: reader.unsigned())) { return false }
            case 0x0f:
                guard let block = block() else { return false }
                row.frameAddress = .expression(block)
            case 0x10, 0x16:
                let number = reader.unsigned()
                guard let block = block() else { return false }
                row.set(number, code == 0x10 ? .expression(block) : .valueExpression(block))
            case 0x11: row.set(reader.unsigned(), .offset(reader.signed() &* common.dataFactor))
            case 0x12: row.frameAddress = .register(register(reader.unsigned()), reader.signed() &* common.dataFactor)
            case 0x13: if !row.setOffset(reader.signed() &* common.dataFactor) { return false }
            case 0x14: row.set(reader.unsigned(), .valueOffset(scaled(reader.unsigned())))
            case 0x15: row.set(reader.unsigned(), .valueOffset(reader.signed() &* common.dataFactor))
            case 0x2d: break // aarch64: return addresses are signed from here on, or no longer
            case 0x2e: _ = reader.unsigned() // GNU_args_size
            case 0x2f: row.set(reader.unsigned(), .offset(0 &- scaled(reader.unsigned())))
            default: return false // among them set_loc, which no compiler writes
            }
            if reader.failed { return false }
            if let step {
                location = location &+ step &* common.codeFactor
                if location > end { return true }
            }
        }
        return true
    }
}
