// Finds aarch64 functions that use the return address which their caller has left in x30, other than by returning to it.
import ELF

/// x30 holds it from the entry on until something else writes x30 (AAPCS64 6.1.1), and wherever the function's description says that it is
/// not kept elsewhere; where it is kept, a load from there into another register reads it.
struct ArmReturnLink {
    private struct Load {
        var offset: Int
        var base: UInt32
        var distance: Int64
        /// How many bytes go elsewhere than to x30.
        var byteCount: Int64
    }
    private var loads: [Load] = []
    /// Offsets of instructions that read x30 after the straight line from the entry.
    private var reads: [Int] = []
    private var isHeld = true, isRead = false
    /// x30 has been put on the stack, on the straight line from the entry.
    private var isKept = false
    /// x29 leads to the frame's record: the caller's, and x30 (AAPCS64 6.4.6).
    private var hasRecord = false

    private static let link: UInt32 = 30, stackPointer: UInt32 = 31

    mutating func take(_ word: UInt32, _ offset: Int) {
        if Self.reads(word) {
            if isHeld { isRead = true } else { reads.append(offset) }
        }
        if isHeld, Self.keeps(word) {
            if isKept { isRead = true } // once for the frame, and once to look at it
            isKept = true
        }
        // xpaclri takes the signature from an address, to look at it
        if word == 0xd503_20ff { isRead = true }
        // mov register, x30; ldr register, [x29, #8], which is where it is kept (AAPCS64 6.4.6)
        if word & 0xffff_ffe0 == 0xaa1e_03e0 || word & 0xffff_ffe0 == 0xf940_07a0, word & 31 != Self.link { isRead = true }
        if word & 0xff80_03ff == 0x9100_03fd { hasRecord = true } // add x29, sp, #distance
        if hasRecord, word & 0xffff_83e0 == 0xa940_03a0, word >> 10 & 31 != Self.link { isRead = true } // ldp registers, [x29]
        noteLoad(word, offset)
        if Self.writes(word) || Self.endsLine(word) { isHeld = false }
    }

    func end(_ function: CallFrames.Function?, _ frames: FrameTable) -> Bool {
        guard !isRead, let function, !reads.isEmpty || !loads.isEmpty else { return isRead }
        var read = 0, load = 0, isFound = false
        frames.forEachRow(of: function) { row, range in
            while read < reads.count, reads[read] < range.upperBound {
                if range.contains(reads[read]), row.register != .max, row.link == nil { isFound = true }
                read += 1
            }
            while load < loads.count, loads[load].offset < range.upperBound {
                let from = loads[load]
                if range.contains(from.offset), let link = row.link, !row.isExpression, row.register == UInt64(from.base),
                    (from.distance..<from.distance + from.byteCount).contains(row.offset + link)
                {
                    isFound = true
                }
                load += 1
            }
            return !isFound && (read < reads.count || load < loads.count)
        }
        return isFound
    }

    /// ldr and ldp of 64-bit registers, from sp or x29, without writing these (Arm ARM, C4.1.94, loads and stores).
    private mutating func noteLoad(_ word: UInt32, _ offset: Int) {
        let base = word >> 5 & 31, first = word & 31, second = word >> 10 & 31
        guard base == Self.stackPointer || base == 29 else { return }
        if word & 0xffc0_0000 == 0xf940_0000 { // ldr, unsigned offset
            if first != Self.link { loads.append(Load(offset: offset, base: base, distance: Int64(word >> 10 & 0xfff) * 8, byteCount: 8)) }
        } else if word & 0xffc0_0000 == 0xa940_0000 { // ldp, signed offset
            let distance = Int64(Int32(bitPattern: word << 10) >> 25) * 8
            if first != Self.link { loads.append(Load(offset: offset, base: base, distance: distance, byteCount: 8)) }
            if second != Self.link { loads.append(Load(offset: offset, base: base, distance: distance + 8, byteCount: 8)) }
        }
    }

    /// str, stp of x30 to the stack.
    private static func keeps(_ word: UInt32) -> Bool {
        guard word >> 25 & 0b0101 == 0b0100, word >> 5 & 31 == stackPointer, word & 1 << 26 == 0 else { return false }
        if word >> 27 & 7 == 0b101 { return word & 1 << 22 == 0 && (word & 31 == link || word >> 10 & 31 == link) }
        return word >> 27 & 7 == 0b111 && word >> 22 & 3 == 0 && word & 31 == link
    }

    /// True for b, br, ret and their like: only a jump leads to what follows.
    private static func endsLine(_ word: UInt32) -> Bool {
        word & 0xfc00_0000 == 0x1400_0000 || word & 0xfe00_0000 == 0xd600_0000
    }

    /// True when the instruction uses the content of x30 other than to return to it or to keep it on the stack (register fields of each
    /// group: Arm ARM, C4.1).
    private static func reads(_ word: UInt32) -> Bool {
        let d = word & 31 == link, n = word >> 5 & 31 == link, a = word >> 10 & 31 == link, m = word >> 16 & 31 == link
        switch word >> 25 & 15 {
        case 0b1000, 0b1001: // with an immediate
            switch word >> 23 & 7 {
            case 2, 3, 4: return n // add, sub, logical
            case 5: return d && word >> 29 & 3 == 3 // movk
            case 6: return n || d && word >> 29 & 3 == 1 // bitfields; bfm keeps the rest
            case 7: return n || m // extr
            default: return false // adr
            }
        case 0b1010, 0b1011: // branches and system
            if word & 0x7e00_0000 == 0x3400_0000 || word & 0x7e00_0000 == 0x3600_0000 { return d } // cbz, tbz
            if word & 0xffff_fc1f == 0xd63f_0000 { return n } // blr
            return d && word & 0xfff0_0000 == 0xd510_0000 // msr
        case 0b0100, 0b0110, 0b1100, 0b1110: return accesses(word, d: d, n: n, a: a, m: m)
        case 0b0101, 0b1101: // register operands
            if word & 0x1fe0_0800 == 0x1a40_0800 { return n } // ccmp with an immediate
            if word & 0x5fe0_0000 == 0x5ac0_0000 { return n } // one source register
            return n || m || a && word & 0x1f00_0000 == 0x1b00_0000 // madd and its like have three
        case 0b0111, 0b1111: // to a vector or floating-point register
            if word & 0x7f20_fc00 == 0x1e20_0000 { return n && [2, 3, 7].contains(word >> 16 & 7) }
            return n && (word & 0xbfe0_fc00 == 0x0e00_0c00 || word & 0xffe0_fc00 == 0x4e00_1c00) // dup, ins
        default: return false
        }
    }

    /// Loads and stores.
    private static func accesses(_ word: UInt32, d: Bool, n: Bool, a: Bool, m: Bool) -> Bool {
        if word & 0x3b00_0000 == 0x1800_0000 { return false } // relative to the instruction
        if word & 0xff20_0000 == 0xd920_0000 { return n } // memory tags
        if n { return true }
        let isVector = word & 1 << 26 != 0, isOnStack = word >> 5 & 31 == stackPointer
        switch word >> 27 & 7 {
        case 0b101: // pairs
            return !isVector && word & 1 << 22 == 0 && (d || a) && !isOnStack
        case 0b111:
            let isStore = word >> 22 & 3 == 0 && !isVector
            if word & 1 << 24 == 0, word & 1 << 21 != 0 { // a register for the offset, or an atomic operation's
                if m { return true }
                return word >> 10 & 3 == 2 && isStore && d
            }
            return isStore && d && !isOnStack
        default: // exclusive and ordered ones, compare and swap
            return !isVector && (word & 1 << 22 == 0 && (d || a && word & 1 << 21 != 0) || m && word & 1 << 21 != 0 && word & 1 << 23 != 0)
        }
    }

    /// True when x30 holds something else afterwards.
    private static func writes(_ word: UInt32) -> Bool {
        let d = word & 31 == link
        switch word >> 25 & 15 {
        case 0b1000, 0b1001: return d
        case 0b1010, 0b1011: return word & 0xfc00_0000 == 0x9400_0000 || word & 0xfe9f_f000 == 0xd61f_0000 && word >> 21 & 3 == 1 // bl, blr and blraa
        case 0b0100, 0b0110, 0b1100, 0b1110:
            guard word & 1 << 26 == 0 else { return false }
            if word >> 27 & 7 == 0b101 { return word & 1 << 22 != 0 && (d || word >> 10 & 31 == link) }
            if word & 0x3b00_0000 == 0x1800_0000 { return d }
            return d && (word >> 27 & 7 == 0b111 ? word >> 22 & 3 != 0 : word & 1 << 22 != 0)
        case 0b0101, 0b1101: return d && word & 0x1fe0_0400 != 0x1a40_0000 // but ccmp
        default: return false
        }
    }
}
