// The instructions of call frame information (DWARF 5, 6.4.2), which make the table of how registers are found. Inlinable: a planner
// walks through them several times for each function.

/// How a register of the caller is found.
public enum RegisterRule: Equatable {
    case offset(Int64) // in memory, from the CFA
    case valueOffset(Int64) // the CFA plus this is the value itself
    case register(Int)
    case expression(Range<Int>) // range of the section's bytes; computes the address in memory
    case valueExpression(Range<Int>)
    case undefined
}

/// One instruction, with numbers in bytes. The first number in a case about a register is DWARF's for it.
public enum FrameInstruction {
    /// The next instructions hold from this many bytes of code further on.
    case advance(UInt64)
    /// The CFA is a register's content plus an offset.
    case frameAddress(UInt64, Int64)
    case frameRegister(UInt64)
    case frameOffset(Int64)
    case frameExpression(Range<Int>)
    case save(UInt64, RegisterRule)
    /// The register has its value still.
    case same(UInt64)
    /// The register is found as the CIE says.
    case restore(UInt64)
    case remember, recall
}

/// The instructions of one entry, in their order. Valid as long as its bytes.
public struct FrameInstructions {
    @usableFromInline var reader: DwarfReader
    @usableFromInline let codeFactor: UInt64, dataFactor: Int64
    /// Number of instructions that may follow.
    @usableFromInline var budget = 100_000

    init(_ reader: DwarfReader, _ common: CallFrames.Common) {
        self.reader = reader
        codeFactor = common.codeFactor
        dataFactor = common.dataFactor
    }

    /// One of them is not understood, or reaches outside, or there are more than any function has.
    @inlinable public var failed: Bool { reader.failed || budget < 0 }

    /// nil: there are no more, or `failed`. Skips instructions that do not change where registers are.
    @inlinable public mutating func next() -> FrameInstruction? {
        let factor = dataFactor
        func scaled(_ value: UInt64) -> Int64 { Int64(truncatingIfNeeded: value) &* factor }
        while !reader.isAtEnd {
            budget -= 1
            if budget < 0 { break }
            let code = reader.byte(), low = UInt64(code & 0x3f)
            let instruction: FrameInstruction
            switch code {
            case 0x00, 0x2d: continue // nop; aarch64: return addresses are signed from here on, or no longer
            case 0x2e: // GNU_args_size
                _ = reader.unsigned()
                continue
            case 0x40...0x7f: instruction = .advance(low &* codeFactor)
            case 0x80...0xbf: instruction = .save(low, .offset(scaled(reader.unsigned())))
            case 0xc0...0xff: instruction = .restore(low)
            case 0x02: instruction = .advance(UInt64(reader.byte()) &* codeFactor)
            case 0x03: instruction = .advance(UInt64(reader.number(UInt16.self)) &* codeFactor)
            case 0x04: instruction = .advance(UInt64(reader.number(UInt32.self)) &* codeFactor)
            case 0x05: instruction = .save(reader.unsigned(), .offset(scaled(reader.unsigned())))
            case 0x06: instruction = .restore(reader.unsigned())
            case 0x07: instruction = .save(reader.unsigned(), .undefined)
            case 0x08: instruction = .same(reader.unsigned())
            case 0x09: instruction = .save(reader.unsigned(), .register(Int(clamping: reader.unsigned())))
            case 0x0a: instruction = .remember
            case 0x0b: instruction = .recall
            case 0x0c: instruction = .frameAddress(reader.unsigned(), Int64(truncatingIfNeeded: reader.unsigned()))
            case 0x0d: instruction = .frameRegister(reader.unsigned())
            case 0x0e: instruction = .frameOffset(Int64(truncatingIfNeeded: reader.unsigned()))
            case 0x0f: instruction = .frameExpression(block())
            case 0x10: instruction = .save(reader.unsigned(), .expression(block()))
            case 0x11: instruction = .save(reader.unsigned(), .offset(reader.signed() &* factor))
            case 0x12: instruction = .frameAddress(reader.unsigned(), reader.signed() &* factor)
            case 0x13: instruction = .frameOffset(reader.signed() &* factor)
            case 0x14: instruction = .save(reader.unsigned(), .valueOffset(scaled(reader.unsigned())))
            case 0x15: instruction = .save(reader.unsigned(), .valueOffset(reader.signed() &* factor))
            case 0x16: instruction = .save(reader.unsigned(), .valueExpression(block()))
            case 0x2f: instruction = .save(reader.unsigned(), .offset(0 &- scaled(reader.unsigned())))
            default: // among them set_loc, which no compiler writes
                reader.failed = true
                return nil
            }
            return reader.failed ? nil : instruction
        }
        return nil
    }

    @inlinable mutating func block() -> Range<Int> {
        let count = reader.unsigned(), start = reader.offset
        reader.skip(count)
        return start..<reader.offset
    }
}
