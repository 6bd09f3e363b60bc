#if arch(x86_64)
import CSupport

/// Finds out whether a function reads its return slot: its instructions are gone through from the first to the last one, with the distance
/// of the stack pointer from there (Intel SDM volume 2, appendix A). What stands after a return or a jump has the frame of the whole.
enum ReturnReading {
    static func isIn(_ entry: UInt64, _ byteCount: UInt64, _ image: UnsafePointer<Image>) -> Bool {
        if !image.pointee.isReadable(entry, byteCount) { return false }
        var code = Code(address: entry), count = 0
        let end = entry &+ byteCount
        while code.address < end {
            // The page is there as a whole.
            if code.address & 4095 > 4096 &- Code.mostBytes && !image.pointee.isReadable(code.address, Code.mostBytes) || !code.step() {
                return false
            }
            if code.isRead { return true }
            count &+= 1
            // Its frame is complete by then, mostly. Few functions go on with bytes that could be such an operand.
            if count == beginning && !code.mayRead(until: end) { return false }
        }
        return false
    }
    private static let beginning = 20

    private struct Code {
        var address: UInt64
        var depth: Int64 = 0 // bytes pushed; 0: the return address is on top
        var deepest: Int64 = 0
        var frame: Int64 = .min // distance of the return slot from rbp
        var pushesFrame = false // `push %rbp` was before
        var isRead = false
        static let mostBytes: UInt64 = 24

        init(address: UInt64) { self.address = address }

        private func byte(_ n: UInt64) -> UInt8 { UnsafePointer<UInt8>(bitPattern: UInt(address &+ n))!.pointee }
        private func signed(_ n: UInt64) -> Int64 {
            Int64(UnsafeRawPointer(bitPattern: UInt(address &+ n))!.loadUnaligned(as: Int32.self))
        }

        /// Finds out whether any bytes up to there are an operand that is the return slot, as the frame is now.
        @inline(never) func mayRead(until end: UInt64) -> Bool {
            var n: UInt64 = 0
            while address &+ n &+ 2 < end {
                let modrm = byte(n), next = byte(n &+ 1)
                if next == 0x24 && modrm & 7 == 4 && (modrm &>> 6 != 2 || address &+ n &+ 6 <= end) { // from rsp
                    let operand = X86Operand(address &+ n, 0)
                    if operand.base == 4 && operand.distance == deepest { return true }
                } else if modrm & 0xc7 == 0x45 && Int64(Int8(bitPattern: next)) == frame {
                    return true
                }
                n = n &+ 1
            }
            return false
        }
        private func isReturnSlot(_ operand: X86Operand) -> Bool {
            operand.base == 4 && operand.distance == depth || operand.base == 5 && operand.distance == frame
        }

        /// Returns the form of what follows the opcode: an operand (m), also with a number of one (a) or four bytes (b; two with prefix
        /// 66), or with one if the operand is of the first two kinds (g, h); numbers alone (1, 2, 4, 8; q: as wide as the register; c:
        /// always four bytes); another opcode (f), of vectors (v, w, e); nothing (n). p: a prefix. x: nothing that compilers make.
        private func form(_ n: UInt64) -> UInt8 {
            let opcode = Int(byte(n))
            let row: StaticString =
                switch opcode &>> 6 {
                case 0: "mmmm14xxmmmm14xfmmmm14xxmmmm14xxmmmm14pxmmmm14pxmmmm14pxmmmm14px"
                case 1: "xxxxxxxxxxxxxxxxnnnnnnnnnnnnnnnnxxempppx4b1axxxx1111111111111111"
                case 2: "abaammmmmmmmmmmmnnnnnnnnnnxnnnnn8888nnnn14nnnnnn11111111qqqqqqqq"
                default: "aa2nwvabxnxxn1xxmmmmxxxxmmmmmmmm1111xxxxccx1xxxxpxppnnghnnnnnnmm"
                }
            return row.utf8Start[opcode & 63]
        }

        /// The next instruction. False: it is none that compilers make.
        mutating func step() -> Bool {
            var n: UInt64 = 0, rex: UInt8 = 0, isNarrow = false
            while n < 8 && form(n) == 0x70 {
                isNarrow = isNarrow || byte(n) == 0x66
                n = n &+ 1
            }
            if byte(n) & 0xf0 == 0x40 {
                rex = byte(n)
                n = n &+ 1
            }
            let opcode = byte(n), form = form(n), wide: UInt64 = isNarrow ? 2 : 4, wasPush = pushesFrame
            n = n &+ 1
            pushesFrame = opcode == 0x55 && rex & 1 == 0
            if opcode & 0xf8 == 0x58 || opcode == 0x8f || opcode == 0x9d { // pop, popf
                if depth == 0 { isRead = true }
                depth = depth &- 8
            }
            if opcode & 0xf8 == 0x50 || opcode == 0x68 || opcode == 0x6a || opcode == 0x9c { depth = depth &+ 8 } // push, pushf
            if opcode == 0xc9 || opcode == 0xc3 || opcode == 0xeb || opcode == 0xe9 { depth = deepest } // leave, ret, jmp
            deepest = max(deepest, depth)
            switch form {
            case 0x66: return stepTwoBytes(n, rex) // f
            case 0x76: return stepOther(n &+ 1, 1, 0) // v, w, e
            case 0x77: return stepOther(n &+ 2, byte(n) & 31, byte(n) &>> 5 & 1 ^ 1)
            case 0x65: return stepOther(n &+ 3, byte(n) & 7, byte(n) &>> 5 & 1 ^ 1)
            case 0x78: return false // x
            case 0x6e: break // n
            case 0x31, 0x32, 0x38: n = n &+ UInt64(form & 15)
            case 0x34: n = n &+ wide // 4
            case 0x63: n = n &+ 4 // c
            case 0x71: n = n &+ (rex & 8 != 0 ? 8 : wide) // q
            default:
                let operand = X86Operand(address &+ n, rex)
                n = n &+ operand.byteCount
                if opcode != 0x8d && isReturnSlot(operand) { isRead = true }
                change(opcode, operand, n, wasPush)
                switch form {
                case 0x61: n = n &+ 1 // a
                case 0x62: n = n &+ wide // b
                case 0x67 where operand.register & 7 < 2: n = n &+ 1 // g, h
                case 0x68 where operand.register & 7 < 2: n = n &+ wide
                default: break
                }
            }
            address = address &+ n
            return true
        }

        /// Follows what the instruction does to the stack pointer, or to rbp.
        private mutating func change(_ opcode: UInt8, _ operand: X86Operand, _ n: UInt64, _ wasPush: Bool) {
            let kind = operand.register & 7
            if opcode == 0x89 && operand.direct == 5 { // mov
                frame = operand.register == 4 ? wasPush ? 8 : depth : .min
            } else if (opcode == 0x81 || opcode == 0x83) && operand.direct == 4 && (kind == 0 || kind == 5) { // add, sub
                let value = opcode == 0x83 ? Int64(Int8(bitPattern: byte(n))) : signed(n)
                depth = depth &+ (kind == 5 ? value : 0 &- value)
            } else if opcode == 0xff && kind == 6 { // push
                depth = depth &+ 8
            } else if opcode == 0xff && kind == 4 { // jmp
                depth = deepest
            }
            deepest = max(deepest, depth)
        }

        private mutating func stepTwoBytes(_ start: UInt64, _ rex: UInt8) -> Bool {
            let opcode = byte(start)
            switch opcode {
            case 0x38: return stepOther(start &+ 1, 2, rex)
            case 0x3a: return stepOther(start &+ 1, 3, rex)
            case 0x80...0x8f: address = address &+ start &+ 5
            case 0x05...0x09, 0x0b, 0x30...0x37, 0x77, 0xa0...0xa2, 0xa8...0xaa, 0xc8...0xcf: address = address &+ start &+ 1
            default: return stepOther(start, 1, rex)
            }
            return true
        }
        /// An opcode and an operand, of maps 0F, 0F 38 and 0F 3A, whatever is before them.
        @inline(never) private mutating func stepOther(_ start: UInt64, _ map: UInt8, _ rex: UInt8) -> Bool {
            let opcode = byte(start), operand = X86Operand(address &+ start &+ 1, rex)
            if isReturnSlot(operand) { isRead = true }
            let hasNumber: Bool
            switch opcode {
            case 0x70...0x73, 0xa4, 0xac, 0xba, 0xc2, 0xc4...0xc6: hasNumber = map == 1
            default: hasNumber = map == 3
            }
            address = address &+ start &+ 1 &+ operand.byteCount &+ (hasNumber ? 1 : 0)
            return map != 0 && map < 8
        }
    }
}
#endif
