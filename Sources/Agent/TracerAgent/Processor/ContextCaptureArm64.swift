#if arch(arm64)
import CSupport

extension ContextCapture {
    @inline(__always) private static func isCaptured(_ value: Value) -> Bool { value == .returnAddress || value == .caller }

    /// Arm ARM C4.1, as far as assembly of this kind goes; a call, a return, an indirect branch ends the search.
    static func captures(_ entry: UInt64, _ image: UnsafePointer<Image>) -> Bool {
        var values = InlineArray<32, Value>(repeating: .unknown) // 31 is the stack pointer, or zero
        values[0] = .argument
        values[1] = .argument
        values[30] = .returnAddress
        values[31] = .caller
        var address = entry
        for _ in 0..<mostInstructions {
            guard image.pointee.isCode(address), let word = image.pointee.word32(address) else { return false }
            let first = Int(word & 31), base = Int(word &>> 5 & 31), second = Int(word &>> 10 & 31)
            if word & 0xfc00_0000 == 0x1400_0000 { // b
                address = address &+ UInt64(bitPattern: Int64(Int32(bitPattern: word &<< 6) &>> 4))
                continue
            }
            address = address &+ 4
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
                        && (first != 31 && isCaptured(values[first]) || second != 31 && isCaptured(values[second]))
                    {
                        return true
                    }
                }
                if mode & 1 != 0 && base == 31 { values[31] = .frame } // written back
            } else if word & 0x3b00_0000 == 0x3900_0000 || word & 0x3b00_0000 == 0x3800_0000 { // one register, with an offset
                let isVector = word & 1 &<< 26 != 0, isStore = word &>> 22 & 3 == 0
                if !isVector {
                    if isStore {
                        let isPlain = word & 0x0100_0000 != 0 || word & 0x0020_0000 == 0 // not with a register added
                        if word &>> 30 == 3 && isPlain && base != 31 && values[base] == .argument && first != 31
                            && isCaptured(values[first])
                        {
                            return true
                        }
                    } else if first != 31 {
                        values[first] = .unknown
                    }
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
                if first != 31 {
                    values[first] =
                        base != 31 && isCaptured(values[base])
                        ? values[base]
                        : other != 31 && isCaptured(values[other]) ? values[other] : .unknown
                }
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
