// DWARF expressions (DWARF 5, 2.5) as frames have them: of linkage tables, realigned stacks, signal frames, labels of the agent.
import ELF

package struct Expression {
    let bytes: UnsafeRawBufferPointer
    let range: Range<Int>

    package init(bytes: UnsafeRawBufferPointer, range: Range<Int>) {
        self.bytes = bytes
        self.range = range
    }

    private static let mostSteps = 1000, deepest = 64

    /// nil: it cannot be computed, or takes what is not known.
    /// - Parameter first: the CFA, for the expressions that begin with it
    package func value(first: UInt64?, register: (Int) -> UInt64?, memory: (UInt64) -> UInt64?) -> UInt64? {
        var reader = DwarfReader(bytes, address: 0, offset: range.lowerBound, end: range.upperBound)
        var stack: [UInt64] = first.map { [$0] } ?? [], steps = 0
        func based(_ number: Int) -> UInt64? { register(number).map { $0 &+ UInt64(bitPattern: reader.signed()) } }
        func jump(_ distance: Int16) -> Bool {
            let target = reader.offset + Int(distance)
            guard range.contains(target) || target == range.upperBound else { return false }
            reader.offset = target
            return true
        }
        while !reader.isAtEnd {
            steps += 1
            if steps > Self.mostSteps || stack.count > Self.deepest { return nil }
            let code = reader.byte()
            switch code {
            case 0x03, 0x0e, 0x0f: stack.append(reader.number(UInt64.self)) // an address (not relocated: hardly ever there), const8
            case 0x08: stack.append(UInt64(reader.byte()))
            case 0x09: stack.append(UInt64(bitPattern: Int64(Int8(bitPattern: reader.byte()))))
            case 0x0a: stack.append(UInt64(reader.number(UInt16.self)))
            case 0x0b: stack.append(UInt64(bitPattern: Int64(reader.number(Int16.self))))
            case 0x0c: stack.append(UInt64(reader.number(UInt32.self)))
            case 0x0d: stack.append(UInt64(bitPattern: Int64(reader.number(Int32.self))))
            case 0x10: stack.append(reader.unsigned())
            case 0x11: stack.append(UInt64(bitPattern: reader.signed()))
            case 0x30...0x4f: stack.append(UInt64(code - 0x30))
            case 0x70...0x8f:
                guard let value = based(Int(code - 0x70)) else { return nil }
                stack.append(value)
            case 0x92:
                guard let number = Int(exactly: reader.unsigned()), let value = based(number) else { return nil }
                stack.append(value)
            case 0x12, 0x14, 0x15: // dup, over, pick
                let depth = code == 0x12 ? 0 : code == 0x14 ? 1 : Int(reader.byte())
                guard depth < stack.count else { return nil }
                stack.append(stack[stack.count - 1 - depth])
            case 0x2f: if !jump(reader.number(Int16.self)) { return nil }
            case 0x96: break // nop
            default:
                guard let top = stack.popLast() else { return nil }
                switch code {
                case 0x06, 0x94: // deref, deref_size
                    let size = code == 0x94 ? reader.byte() : 8
                    guard [1, 2, 4, 8].contains(size), let value = memory(top) else { return nil }
                    stack.append(size == 8 ? value : value & (1 << (8 * UInt64(size)) - 1))
                case 0x13: break // drop
                case 0x19: stack.append(Int64(bitPattern: top).magnitude)
                case 0x1f: stack.append(0 &- top)
                case 0x20: stack.append(~top)
                case 0x23: stack.append(top &+ reader.unsigned())
                case 0x28:
                    let distance = reader.number(Int16.self)
                    if top != 0, !jump(distance) { return nil }
                default:
                    guard let below = stack.popLast(), let value = Self.binary(code, below, top) else { return nil }
                    stack.append(value)
                }
            }
            if reader.failed { return nil }
        }
        return reader.failed ? nil : stack.last
    }

    private static func binary(_ code: UInt8, _ a: UInt64, _ b: UInt64) -> UInt64? {
        let signedA = Int64(bitPattern: a), signedB = Int64(bitPattern: b)
        func truth(_ value: Bool) -> UInt64 { value ? 1 : 0 }
        switch code {
        case 0x1a: return a & b
        case 0x1c: return a &- b
        case 0x1e: return a &* b
        case 0x21: return a | b
        case 0x22: return a &+ b
        case 0x24: return a << b
        case 0x25: return a >> b
        case 0x26: return UInt64(bitPattern: signedA >> signedB)
        case 0x27: return a ^ b
        case 0x29: return truth(a == b)
        case 0x2a: return truth(signedA >= signedB)
        case 0x2b: return truth(signedA > signedB)
        case 0x2c: return truth(signedA <= signedB)
        case 0x2d: return truth(signedA < signedB)
        case 0x2e: return truth(a != b)
        default: return nil
        }
    }
}
