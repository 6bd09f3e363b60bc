#if arch(x86_64)
import CSupport

extension ContextCapture {
    /// The instructions that assembly of this kind consists of (Intel SDM volume 2); any other ends the search.
    static func captures(_ entry: UInt64, _ image: UnsafePointer<Image>) -> Bool {
        var state = State(image: image, address: entry)
        for _ in 0..<mostInstructions {
            switch state.step() {
            case .goesOn: continue
            case .captures: return true
            case .ends: return false
            }
        }
        return false
    }

    private enum Step: UInt8 { case goesOn, captures, ends }

    private struct State {
        let image: UnsafePointer<Image>
        var address: UInt64
        var values = InlineArray<16, Value>(repeating: .unknown)
        var depth: Int64 = 0 // bytes pushed; 0: the return address is on top
        var isDepthKnown = true

        init(image: UnsafePointer<Image>, address: UInt64) {
            self.image = image
            self.address = address
            values[7] = .argument // rdi
            values[6] = .argument // rsi
        }

        /// Returns a byte of the instruction: `step` has seen that it can be read.
        @inline(__always) private func byte(_ n: UInt64) -> UInt8 { UnsafePointer<UInt8>(bitPattern: UInt(address &+ n))!.pointee }
        @inline(__always) private func signed(_ n: UInt64) -> Int64 {
            Int64(UnsafeRawPointer(bitPattern: UInt(address &+ n))!.loadUnaligned(as: Int32.self))
        }
        private func value(_ register: Int) -> Value {
            register == 4 ? (isDepthKnown && depth <= 0 ? .caller : .frame) : values[register]
        }
        private mutating func set(_ register: Int, _ value: Value) {
            if register == 4 { isDepthKnown = false } else { values[register] = value }
        }

        private func operand(at n: UInt64, _ rex: UInt8) -> X86Operand { X86Operand(address &+ n, rex) }

        private func isPrefix(_ byte: UInt8) -> Bool { byte == 0x66 || byte == 0xf2 || byte == 0xf3 || byte == 0x64 || byte == 0x2e }
        /// Prefixes, REX, opcode of two bytes, ModRM, SIB, distance and number: as many as are looked at, not as are allowed.
        private var mostBytes: UInt64 { 32 }

        mutating func step() -> Step {
            if !image.pointee.isReadable(address, mostBytes) { return .ends }
            var n: UInt64 = 0, rex: UInt8 = 0
            while n < 8 && isPrefix(byte(n)) { n = n &+ 1 }
            if byte(n) & 0xf0 == 0x40 {
                rex = byte(n)
                n = n &+ 1
            }
            let opcode = byte(n)
            n = n &+ 1
            let low = Int(opcode & 7) | Int(rex & 1) &<< 3
            switch opcode {
            case 0x50...0x57:
                depth = depth &+ 8
            case 0x58...0x5f:
                set(low, isDepthKnown && depth == 0 ? .returnAddress : .unknown)
                depth = depth &- 8
            case 0x90, 0x98, 0x99, 0xfc, 0x9b: break // nop, cltq, cqto, cld, fwait
            case 0x9c: depth = depth &+ 8 // pushfq
            case 0x9d: depth = depth &- 8
            case 0xb8...0xbf: // mov $…, register
                set(low, .unknown)
                n = n &+ (rex & 8 != 0 ? 8 : 4)
            case 0x70...0x7f: n = n &+ 1 // a jump that is not taken
            case 0xeb:
                return jump(n &+ 1, Int64(Int8(bitPattern: byte(n))))
            case 0xe9:
                return jump(n &+ 4, signed(n))
            case 0x0f: return stepTwoBytes(n, rex)
            default: return stepOperand(opcode, n, rex)
            }
            address = address &+ n
            return .goesOn
        }

        private mutating func jump(_ n: UInt64, _ distance: Int64) -> Step {
            address = address &+ n &+ UInt64(bitPattern: distance)
            return image.pointee.isCode(address) ? .goesOn : .ends
        }

        private mutating func stepTwoBytes(_ start: UInt64, _ rex: UInt8) -> Step {
            let opcode = byte(start)
            var n = start &+ 1
            switch opcode {
            case 0x80...0x8f: n = n &+ 4 // a jump that is not taken
            case 0x05, 0x0b, 0xff: return .ends // a system call may be what it is for; ud2
            case 0x10, 0x11, 0x12, 0x13, 0x16, 0x17, 0x1e, 0x1f, 0x28, 0x29, 0x6f, 0x7f, 0xae, 0xe7, 0xd6, 0x7e, 0x6e, 0x18, 0x57, 0xef,
                0x14, 0x6c:
                // Vector registers moved, endbr64, rdssp, nop, fxsave, stmxcsr
                let operand = operand(at: n, rex)
                if opcode == 0x1e && operand.direct >= 0 || opcode == 0x7e {
                    if operand.direct >= 0 && operand.direct != 4 { set(operand.direct, .unknown) }
                }
                n = n &+ operand.byteCount
            case 0xb6, 0xb7, 0xbe, 0xbf, 0x40...0x4f: // movzx, movsx, cmov
                let operand = operand(at: n, rex)
                set(operand.register, .unknown)
                n = n &+ operand.byteCount
            default: return .ends
            }
            address = address &+ n
            return .goesOn
        }

        private mutating func stepOperand(_ opcode: UInt8, _ start: UInt64, _ rex: UInt8) -> Step {
            let operand = operand(at: start, rex)
            var n = start &+ operand.byteCount
            let isWide = rex & 8 != 0
            switch opcode {
            case 0x89: // mov register, r/m
                if operand.direct >= 0 {
                    set(operand.direct, isWide ? value(operand.register) : .unknown)
                } else if isWide && operand.base >= 0 && operand.base != 4 && value(operand.base) == .argument {
                    let stored = value(operand.register)
                    if stored == .returnAddress || stored == .caller { return .captures }
                }
            case 0x8b: // mov r/m, register
                if operand.direct >= 0 {
                    set(operand.register, isWide ? value(operand.direct) : .unknown)
                } else {
                    let isReturn = isWide && operand.base == 4 && isDepthKnown && operand.distance == depth
                    set(operand.register, isReturn ? .returnAddress : .unknown)
                }
            case 0x8d: // lea
                if operand.base == 4 {
                    set(operand.register, isWide && isDepthKnown && operand.distance >= depth ? .caller : .frame)
                } else {
                    set(operand.register, operand.base >= 0 && value(operand.base) == .argument ? .argument : .unknown)
                }
            case 0x88, 0x84, 0x85, 0x38, 0x39, 0x3a, 0x3b: break // a byte stored; test, cmp
            case 0x8a: set(operand.register, .unknown)
            case 0x63: set(operand.register, .unknown)
            case 0x31, 0x33, 0x01, 0x03, 0x29, 0x2b, 0x09, 0x0b, 0x21, 0x23: // arithmetic: what was disguised is still that
                let target = opcode & 2 != 0 ? operand.register : operand.direct
                if target == 4 { isDepthKnown = false }
                if target >= 0 && opcode & 0xfc == 0x30 && operand.direct == operand.register { set(target, .unknown) }
            case 0x80, 0xc0, 0xd0, 0xc6: n = n &+ (opcode == 0xd0 ? 0 : 1)
            case 0x81, 0x83: // arithmetic with a number
                let number = opcode == 0x83 ? Int64(Int8(bitPattern: byte(n))) : signed(n)
                n = n &+ (opcode == 0x83 ? 1 : 4)
                if operand.direct == 4 {
                    switch operand.register & 7 {
                    case 5: depth = depth &+ number // sub
                    case 0: depth = depth &- number
                    default: isDepthKnown = false
                    }
                }
            case 0xc1: n = n &+ 1 // rotated
            case 0xd1, 0xd3: break
            case 0xf6, 0xf7: // test with a number; not, neg
                if operand.register & 7 == 0 { n = n &+ (opcode == 0xf6 ? 1 : 4) } else if operand.register & 7 > 3 { return .ends }
            case 0xc7:
                if operand.direct >= 0 { set(operand.direct, .unknown) }
                n = n &+ 4
            case 0xd9, 0xdd, 0xdb: break // fnstenv, fnstcw, fnstsw, fldenv
            default: return .ends
            }
            address = address &+ n
            return .goesOn
        }
    }
}
#endif
