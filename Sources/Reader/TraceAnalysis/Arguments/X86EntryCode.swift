// Instructions of x86-64 that compilers begin functions with (Intel's Software Developer's Manual, volume 2).

extension EntryCode {
    private struct Operand {
        /// nil: it is in memory.
        var register: Int?
        /// A place of the frame; nil: it is elsewhere.
        var address: Int?
    }
    private struct Bytes {
        let code: UnsafeRawBufferPointer
        var offset: Int
        mutating func byte() -> UInt8? {
            guard offset < code.count else { return nil }
            defer { offset += 1 }
            return code[offset]
        }
        mutating func signed(_ count: Int) -> Int? {
            guard count > 0, offset + count <= code.count else { return nil }
            defer { offset += count }
            let bits = (0..<count).reduce(0 as UInt64) { $0 | UInt64(code[offset + $1]) << UInt64($1 * 8) }
            let unused = UInt64(64 - count * 8)
            return Int(Int64(bitPattern: bits << unused) >> Int64(unused))
        }
    }
    private struct Prefixes {
        var rex: UInt8 = 0
        var isShort = false, isSegment = false
        /// F2 or F3; 0: none.
        var repeating: UInt8 = 0
        /// Bytes of an operand that is no single one.
        var width: Int { rex & 8 != 0 ? 8 : isShort ? 2 : 4 }
    }

    /// Follows one instruction. Returns its length; nil: it is not known, or nothing goes on after it.
    mutating func x86Step(_ code: UnsafeRawBufferPointer, _ start: Int) -> Int? {
        var bytes = Bytes(code: code, offset: start), prefixes = Prefixes()
        while bytes.offset < code.count, bytes.offset - start < 6 {
            switch code[bytes.offset] {
            case 0x66: prefixes.isShort = true
            case 0x64, 0x65: prefixes.isSegment = true
            case 0xf2, 0xf3: prefixes.repeating = code[bytes.offset]
            case 0x2e: break // fills space
            default:
                if code[bytes.offset] & 0xf0 == 0x40 {
                    prefixes.rex = code[bytes.offset]
                    bytes.offset += 1
                }
                return x86Step(&bytes, prefixes) ? bytes.offset - start : nil
            }
            bytes.offset += 1
        }
        return nil
    }

    private mutating func x86Step(_ bytes: inout Bytes, _ prefixes: Prefixes) -> Bool {
        guard let opcode = bytes.byte() else { return false }
        let width = prefixes.width
        switch opcode {
        case 0x00...0x3f where opcode & 7 < 6:
            let isCompare = opcode >> 3 == 7
            if opcode & 7 >= 4 {
                guard let value = bytes.signed(opcode & 1 == 0 ? 1 : min(width, 4)) else { return false }
                if !isCompare { registers[0] = opcode >> 3 == 4 && value == 1 ? registers[0].bit : .unknown }
                return true
            }
            guard let (operand, register) = x86Operands(&bytes, prefixes) else { return false }
            if isCompare { return true }
            let isXor = opcode >> 3 == 6 && operand.register == register && opcode & 1 == 1 && width >= 4
            let target = opcode & 2 != 0 ? Operand(register: register) : operand
            if isXor { registers[register] = .zero } else { x86Put(.unknown, target, 8) }
            return true
        case 0x50...0x57: // push
            x86Push(registers[x86Register(opcode & 7, prefixes.rex & 1)])
            return true
        case 0x63, 0x69, 0x6b:
            guard let (_, register) = x86Operands(&bytes, prefixes, opcode == 0x63 ? 0 : opcode == 0x6b ? 1 : min(width, 4)) else {
                return false
            }
            registers[register] = .unknown
            return true
        case 0x80, 0x81, 0x83: return x86Immediate(&bytes, prefixes, opcode)
        case 0x84, 0x85: return x86Operands(&bytes, prefixes) != nil // test
        case 0x88, 0x89, 0x8a, 0x8b:
            guard let (operand, register) = x86Operands(&bytes, prefixes) else { return false }
            let count = opcode & 1 == 0 ? 1 : width
            // ah, ch, dh and bh
            if count == 1, prefixes.rex == 0, register > 3 || operand.register.map({ $0 > 3 }) == true {
                x86Put(.unknown, opcode & 2 == 0 ? operand : Operand(register: register), 8)
                return true
            }
            if opcode & 2 == 0 {
                x86Put(registers[register].narrowed(to: count), operand, count)
            } else {
                put(x86Value(operand, count), register)
            }
            return true
        case 0x8d:
            guard let (operand, register) = x86Operands(&bytes, prefixes), operand.register == nil else { return false }
            put(operand.address.map { .frame($0) } ?? .unknown, register)
            return true
        case 0x90: return true
        case 0xa8, 0xa9: return bytes.signed(opcode == 0xa8 ? 1 : min(width, 4)) != nil
        case 0xb0...0xbf:
            let isByte = opcode < 0xb8
            guard let value = bytes.signed(isByte ? 1 : width) else { return false }
            let register = isByte && prefixes.rex == 0 ? Int(opcode & 3) : x86Register(opcode & 7, prefixes.rex & 1)
            registers[register] = value == 0 && !isByte ? .zero : .unknown
            return true
        case 0xc0, 0xc1, 0xd0...0xd3: // shifts
            guard let (operand, _) = x86Operands(&bytes, prefixes, opcode < 0xd0 ? 1 : 0) else { return false }
            x86Put(.unknown, operand, 8)
            return true
        case 0xc6, 0xc7:
            guard let (operand, kind) = x86Operands(&bytes, prefixes, 0), kind & 7 == 0,
                let value = bytes.signed(opcode == 0xc6 ? 1 : min(width, 4))
            else { return false }
            x86Put(value == 0 ? .zero : .unknown, operand, opcode == 0xc6 ? 1 : width)
            return true
        case 0xe8:
            guard bytes.signed(4) != nil else { return false }
            call()
            return true
        case 0xf6, 0xf7:
            guard let (operand, kind) = x86Operands(&bytes, prefixes, 0), kind & 7 < 4 else { return false }
            if kind & 7 < 2 { return bytes.signed(opcode == 0xf6 ? 1 : min(width, 4)) != nil } // test
            x86Put(.unknown, operand, 8) // not, neg
            return true
        case 0xfe, 0xff:
            guard let (operand, kind) = x86Operands(&bytes, prefixes) else { return false }
            switch kind & 7 {
            case 0, 1: x86Put(.unknown, operand, 8)
            case 2 where opcode == 0xff: call()
            case 6 where opcode == 0xff: x86Push(x86Value(operand, 8))
            default: return false
            }
            return true
        case 0x0f: return x86Second(&bytes, prefixes)
        default: return false
        }
    }

    private mutating func x86Immediate(_ bytes: inout Bytes, _ prefixes: Prefixes, _ opcode: UInt8) -> Bool {
        let count = opcode == 0x80 ? 1 : prefixes.width
        guard let (operand, kind) = x86Operands(&bytes, prefixes, opcode == 0x81 ? min(prefixes.width, 4) : 1) else { return false }
        var end = bytes
        end.offset -= opcode == 0x81 ? min(prefixes.width, 4) : 1
        guard let value = end.signed(opcode == 0x81 ? min(prefixes.width, 4) : 1) else { return false }
        switch (kind & 7, operand.register) {
        case (7, _): break // cmp
        case (0, let register?), (5, let register?):
            if register == stackPointer, kind & 7 == 0 ? value > 0 : value < 0 { return false } // the frame is given back
            if case .frame(let distance) = registers[register], prefixes.width == 8, opcode != 0x80, abs(distance) < 1 << 40 {
                put(.frame(kind & 7 == 0 ? distance + value : distance - value), register)
            } else {
                registers[register] = .unknown
            }
        // What is left of a boolean is one, as long as the caller has passed one.
        case (4, let register?) where value == 1 && (prefixes.rex != 0 || register < 4 || opcode != 0x80):
            registers[register] = registers[register].bit
        default: x86Put(.unknown, operand, count == 1 ? 1 : 8)
        }
        return true
    }

    /// Instructions of two bytes.
    private mutating func x86Second(_ bytes: inout Bytes, _ prefixes: Prefixes) -> Bool {
        guard let opcode = bytes.byte() else { return false }
        if opcode == 0x1e, prefixes.repeating == 0xf3 { return bytes.byte() == 0xfa } // endbr64
        guard let (operand, register) = x86Operands(&bytes, prefixes, opcode == 0xc6 || opcode == 0x70 ? 1 : 0) else { return false }
        let vector = Self.vectors + register
        var other = operand
        other.register = operand.register.map { $0 + Self.vectors }
        // movss, movsd; movups and its like
        let count = prefixes.repeating == 0xf3 ? 4 : prefixes.repeating == 0xf2 ? 8 : 16
        switch opcode {
        case 0x1f, 0x2e, 0x2f: break // nop, comparisons
        case 0x10, 0x28: registers[vector] = x86Value(other, opcode == 0x10 ? count : 16)
        case 0x6f,
            0x7e where prefixes.repeating == 0xf3:
            registers[vector] = x86Value(other, opcode == 0x7e ? 8 : 16)
        case 0x11, 0x29: x86Put(registers[vector].narrowed(to: opcode == 0x11 ? count : 16), other, opcode == 0x11 ? count : 16)
        case 0x7f: x86Put(registers[vector].narrowed(to: 16), other, 16)
        case 0xd6 where prefixes.isShort: x86Put(registers[vector].narrowed(to: 8), other, 8) // movq
        case 0x7e: x86Put(registers[vector].narrowed(to: prefixes.rex & 8 != 0 ? 8 : 4), operand, prefixes.rex & 8 != 0 ? 8 : 4)
        case 0x6e: registers[vector] = x86Value(operand, prefixes.rex & 8 != 0 ? 8 : 4)
        case 0x57, 0xef: registers[vector] = other.register == vector ? .zero : .unknown
        case 0x2c, 0x2d: registers[register] = .unknown
        case 0x14, 0x16, 0x2a, 0x51...0x56, 0x58...0x5f, 0x62, 0x6c, 0x70, 0xc6, 0xd4, 0xdb, 0xeb, 0xfa, 0xfb: registers[vector] = .unknown
        case 0x40...0x4f, 0xaf, 0xbe, 0xbf: registers[register] = .unknown
        case 0x90...0x9f: x86Put(.unknown, operand, 1)
        case 0xb6, 0xb7: registers[register] = x86Value(operand, opcode == 0xb6 ? 1 : 2)
        default: return false
        }
        return true
    }

    // MARK: - Operands

    private func x86Register(_ number: UInt8, _ extended: UInt8) -> Int { Int(number) + (extended != 0 ? 8 : 0) }

    /// What ModRM and SIB say (volume 2, 2.1.5), and the number of the other register. A constant after them is passed over.
    private func x86Operands(_ bytes: inout Bytes, _ prefixes: Prefixes, _ constant: Int = 0) -> (Operand, register: Int)? {
        guard let mode = bytes.byte() else { return nil }
        let register = x86Register(mode >> 3 & 7, prefixes.rex & 4)
        if mode >> 6 == 3 {
            if constant > 0, bytes.signed(constant) == nil { return nil }
            return (Operand(register: x86Register(mode & 7, prefixes.rex & 1)), register)
        }
        var base: Int? = x86Register(mode & 7, prefixes.rex & 1), isPlain = !prefixes.isSegment, distance = 0
        if mode & 7 == 4 {
            guard let scale = bytes.byte() else { return nil }
            if scale >> 3 & 7 != 4 || prefixes.rex & 2 != 0 { isPlain = false }
            base = scale & 7 == 5 && mode >> 6 == 0 ? nil : x86Register(scale & 7, prefixes.rex & 1)
            if base == nil, bytes.signed(4) == nil { return nil }
        } else if mode & 7 == 5, mode >> 6 == 0 { // from the next instruction on
            base = nil
            if bytes.signed(4) == nil { return nil }
        }
        if mode >> 6 != 0 {
            guard let value = bytes.signed(mode >> 6 == 1 ? 1 : 4) else { return nil }
            distance = value
        }
        if constant > 0, bytes.signed(constant) == nil { return nil }
        guard isPlain, let base, case .frame(let place) = registers[base], abs(place) < 1 << 40 else { return (Operand(), register) }
        return (Operand(address: place + distance), register)
    }

    private mutating func x86Value(_ operand: Operand, _ byteCount: Int) -> Content {
        operand.register.map { registers[$0].narrowed(to: byteCount) } ?? load(operand.address, byteCount)
    }
    private mutating func x86Put(_ content: Content, _ operand: Operand, _ byteCount: Int) {
        guard let register = operand.register else { return store(content, operand.address, byteCount) }
        // Less than four bytes leave the others as they are, and so does nothing that is of use here.
        put(content == .zero && byteCount < 4 ? .unknown : content, register)
    }
    private mutating func x86Push(_ content: Content) {
        guard case .frame(let place) = registers[4], abs(place) < 1 << 40 else { return }
        registers[4] = .frame(place - 8)
        store(content, place - 8, 8)
    }
}
