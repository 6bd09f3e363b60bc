// Functions that capture their caller's context: they store their return address, or their caller's stack pointer, in memory
// that an argument points to, before they call anything. Whoever brings such a context back returns to that address, or unwinds
// from there: it must be the caller's own. An ordinary prologue does not look like it: what it stores of the two goes to the
// stack, and what it hands out of the stack's addresses lies in its own frame.
//
// To read the code of every function would cost a start some page faults and cache misses for each of them: only functions
// whose name speaks of it are read (`isNamed`), and the code decides. Of 6,772 functions that the libraries of GTK 3 call these
// are 225.
// What the code does not show (it is far from the entry, or cannot be read) is known by name alone: SpecialFunction.swift.
import CSupport

enum ContextCapture {
    /// What a register is known to hold at a moment.
    fileprivate enum Value: UInt8 {
        case unknown
        case argument      // one of the first two, or an address at a fixed distance from it
        case returnAddress
        case caller        // the stack pointer at entry, or above: what it was, or is going to be, in the caller
        case frame         // an address in the function's own frame
    }
    fileprivate static let mostInstructions = 64

    /// "…context…", "…jmp…", whatever the case: unw_getcontext, CaptureContext, setjmp's kin. Eight bytes at a time it is asked
    /// whether there is an x or a j at all.
    static func isNamed(_ name: Name) -> Bool {
        let bytes = UnsafeRawPointer(name.text), ones: UInt64 = 0x0101_0101_0101_0101
        var n = 0
        while n &+ 8 <= name.byteCount {
            let word = bytes.loadUnaligned(fromByteOffset: n, as: UInt64.self) | ones &<< 5 // small letters
            let x = word ^ (ones &* 0x78), j = word ^ (ones &* 0x6a)
            var hits = ((x &- ones) & ~x | (j &- ones) & ~j) & ones &<< 7 // the lowest bit of them is right
            while hits != 0 {
                if isSpelled(name.text, n &+ hits.trailingZeroBitCount / 8) { return true }
                hits &= hits &- 1
            }
            n &+= 8
        }
        while n < name.byteCount {
            if isSpelled(name.text, n) { return true }
            n &+= 1
        }
        return false
    }
    /// The x of context or the j of jmp is at `n`. What stands before a name in a table of strings is not read.
    private static func isSpelled(_ text: CText, _ n: Int) -> Bool {
        func letter(_ n: Int) -> UInt8 { text[n] | 0x20 } // the NUL becomes a blank
        if letter(n) == 0x6a { return letter(n &+ 1) == 0x6d && letter(n &+ 2) == 0x70 }
        return letter(n) == 0x78 && n >= 5 && letter(n &+ 1) == 0x74 && letter(n &- 1) == 0x65 && letter(n &- 2) == 0x74
            && letter(n &- 3) == 0x6e && letter(n &- 4) == 0x6f && letter(n &- 5) == 0x63
    }
}

#if arch(x86_64)
extension ContextCapture {
    /// The instructions that assembly of this kind consists of (Intel SDM volume 2); any other ends the search.
    static func captures(_ entry: UInt64, _ image: UnsafePointer<Image>) -> Bool {
        var state = State(image: image, place: entry)
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
        var place: UInt64
        var values = InlineArray<16, Value>(repeating: .unknown)
        var depth: Int64 = 0 // bytes pushed; 0: the return address is on top
        var isDepthKnown = true

        init(image: UnsafePointer<Image>, place: UInt64) {
            self.image = image
            self.place = place
            values[7] = .argument // rdi
            values[6] = .argument // rsi
        }

        /// Of the instruction: `step` has seen that so much can be read.
        @inline(__always) private func byte(_ n: UInt64) -> UInt8 { UnsafePointer<UInt8>(bitPattern: UInt(place &+ n))!.pointee }
        @inline(__always) private func signed(_ n: UInt64) -> Int64 {
            Int64(UnsafeRawPointer(bitPattern: UInt(place &+ n))!.loadUnaligned(as: Int32.self))
        }
        private func value(_ register: Int) -> Value {
            register == 4 ? (isDepthKnown && depth <= 0 ? .caller : .frame) : values[register]
        }
        private mutating func set(_ register: Int, _ value: Value) {
            if register == 4 { isDepthKnown = false } else { values[register] = value }
        }

        /// A ModRM operand: a register, or memory at a distance from one.
        private struct Operand {
            var register = 0 // the other operand, with REX.R
            var base = -1    // of memory; -1: none, or an index is added
            var direct = -1  // a register, not memory
            var distance: Int64 = 0
            var byteCount: UInt64 = 0
        }
        private func operand(at n: UInt64, _ rex: UInt8) -> Operand {
            let modrm = byte(n)
            var result = Operand(register: Int(modrm &>> 3 & 7) | Int(rex & 4) &<< 1, byteCount: 1)
            let mode = modrm &>> 6, low = Int(modrm & 7)
            if mode == 3 {
                result.direct = low | Int(rex & 1) &<< 3
                return result
            }
            var base = low | Int(rex & 1) &<< 3
            if low == 4 {
                let sib = byte(n &+ 1)
                result.byteCount = 2
                base = Int(sib & 7) | Int(rex & 1) &<< 3
                let hasIndex = sib &>> 3 & 7 != 4 || rex & 2 != 0
                if hasIndex || mode == 0 && sib & 7 == 5 { base = -1 }
                if mode == 0 && sib & 7 == 5 { result.byteCount = 6 }
            } else if mode == 0 && low == 5 { // relative to rip
                base = -1
                result.byteCount = 5
            }
            result.base = base
            if mode == 1 {
                result.distance = Int64(Int8(bitPattern: byte(n &+ result.byteCount)))
                result.byteCount = result.byteCount &+ 1
            } else if mode == 2 {
                result.distance = signed(n &+ result.byteCount)
                result.byteCount = result.byteCount &+ 4
            }
            return result
        }

        private func isPrefix(_ byte: UInt8) -> Bool { byte == 0x66 || byte == 0xf2 || byte == 0xf3 || byte == 0x64 || byte == 0x2e }
        /// Prefixes, REX, opcode of two bytes, ModRM, SIB, distance and number: as many as are looked at, not as are allowed.
        private var mostBytes: UInt64 { 32 }

        mutating func step() -> Step {
            if !image.pointee.isReadable(place, mostBytes) { return .ends }
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
            place = place &+ n
            return .goesOn
        }

        private mutating func jump(_ n: UInt64, _ distance: Int64) -> Step {
            place = place &+ n &+ UInt64(bitPattern: distance)
            return image.pointee.isCode(place) ? .goesOn : .ends
        }

        private mutating func stepTwoBytes(_ start: UInt64, _ rex: UInt8) -> Step {
            let opcode = byte(start)
            var n = start &+ 1
            switch opcode {
            case 0x80...0x8f: n = n &+ 4 // a jump that is not taken
            case 0x05, 0x0b, 0xff: return .ends // a system call may be what it is for; ud2
            case 0x10, 0x11, 0x12, 0x13, 0x16, 0x17, 0x1e, 0x1f, 0x28, 0x29, 0x6f, 0x7f, 0xae, 0xe7, 0xd6, 0x7e, 0x6e, 0x18, 0x57, 0xef, 0x14, 0x6c:
                // Vector registers moved, endbr64, rdssp, nop, fxsave, stmxcsr
                let operand = operand(at: n, rex)
                if opcode == 0x1e && operand.direct >= 0 || opcode == 0x7e { if operand.direct >= 0 && operand.direct != 4 { set(operand.direct, .unknown) } }
                n = n &+ operand.byteCount
            case 0xb6, 0xb7, 0xbe, 0xbf, 0x40...0x4f: // movzx, movsx, cmov
                let operand = operand(at: n, rex)
                set(operand.register, .unknown)
                n = n &+ operand.byteCount
            default: return .ends
            }
            place = place &+ n
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
            place = place &+ n
            return .goesOn
        }
    }
}
#elseif arch(arm64)
extension ContextCapture {
    @inline(__always) private static func isCaptured(_ value: Value) -> Bool { value == .returnAddress || value == .caller }

    /// Arm ARM C4.1, as far as assembly of this kind goes; a call, a return, an indirect branch ends the search.
    static func captures(_ entry: UInt64, _ image: UnsafePointer<Image>) -> Bool {
        var values = InlineArray<32, Value>(repeating: .unknown) // 31 is the stack pointer, or zero
        values[0] = .argument
        values[1] = .argument
        values[30] = .returnAddress
        values[31] = .caller
        var place = entry
        for _ in 0..<mostInstructions {
            guard image.pointee.isCode(place), let word = image.pointee.word32(place) else { return false }
            let first = Int(word & 31), base = Int(word &>> 5 & 31), second = Int(word &>> 10 & 31)
            if word & 0xfc00_0000 == 0x1400_0000 { // b
                place = place &+ UInt64(bitPattern: Int64(Int32(bitPattern: word &<< 6) &>> 4))
                continue
            }
            place = place &+ 4
            if word & 0xffff_f01f == 0xd503_201f { continue } // hints: nop, bti, paciasp
            if word & 0x7e00_0000 == 0x3400_0000 || word & 0x7e00_0000 == 0x3600_0000 || word & 0xff00_0010 == 0x5400_0000 { continue } // not taken
            if word & 0xfc00_0000 == 0x9400_0000 || word & 0xfe00_0000 == 0xd600_0000 || word & 0xff00_0000 == 0xd400_0000 { return false }
            if word & 0x3a00_0000 == 0x2800_0000 { // a pair is stored or loaded
                let isLoad = word & 1 &<< 22 != 0, isVector = word & 1 &<< 26 != 0, isWide = word &>> 30 == 2, mode = word &>> 23 & 3
                if !isVector {
                    if isLoad {
                        if first != 31 { values[first] = .unknown }
                        if second != 31 { values[second] = .unknown }
                    } else if isWide && base != 31 && values[base] == .argument
                        && (first != 31 && isCaptured(values[first]) || second != 31 && isCaptured(values[second])) { return true }
                }
                if mode & 1 != 0 && base == 31 { values[31] = .frame } // written back
            } else if word & 0x3b00_0000 == 0x3900_0000 || word & 0x3b00_0000 == 0x3800_0000 { // one register, with an offset
                let isVector = word & 1 &<< 26 != 0, isStore = word &>> 22 & 3 == 0
                if !isVector {
                    if isStore {
                        let isPlain = word & 0x0100_0000 != 0 || word & 0x0020_0000 == 0 // not with a register added
                        if word &>> 30 == 3 && isPlain && base != 31 && values[base] == .argument && first != 31
                            && isCaptured(values[first]) { return true }
                    } else if first != 31 { values[first] = .unknown }
                }
                if word & 0x0120_0400 == 0x0000_0400 && base == 31 { values[31] = .frame } // written back
            } else if word & 0xff80_0000 == 0x9100_0000 { // add, a number
                if first == 31 { values[31] = base == 31 ? .frame : values[base] } else { values[first] = values[base] }
            } else if word & 0xff80_0000 == 0xd100_0000 { // sub, a number
                let distance = word &>> 10 & 0xfff
                let value: Value = values[base] == .caller && distance != 0 ? .frame : values[base]
                values[first] = value
            } else if word & 0xffe0_ffe0 == 0xaa00_03e0 { // mov
                let source = Int(word &>> 16 & 31)
                if first != 31 { values[first] = source == 31 ? .unknown : values[source] }
            } else if word & 0xff20_0000 == 0xca00_0000 { // eor: what was disguised is still that
                let other = Int(word &>> 16 & 31)
                if first != 31 { values[first] = base != 31 && isCaptured(values[base]) ? values[base]
                    : other != 31 && isCaptured(values[other]) ? values[other] : .unknown }
            } else if word & 0x0e00_0000 == 0x0e00_0000 || word & 0xfff0_0000 == 0xd510_0000 { // vectors; msr
                continue
            } else if first != 31 {
                values[first] = .unknown
            }
        }
        return false
    }
}
#endif
