#if arch(arm64)
import CSupport

/// Finds out whether a function uses its return address, other than to keep it in its frame and to return to it (Arm ARM C4.1).
enum ReturnReading {
    static func isIn(_ entry: UInt64, _ byteCount: UInt64, _ image: UnsafePointer<Image>) -> Bool {
        if !image.pointee.isReadable(entry, byteCount) { return false }
        let code = UnsafePointer<UInt32>(bitPattern: UInt(entry))!
        for n in 0..<Int(byteCount / 4) where uses(code[n]) { return true }
        return false
    }
    private static func uses(_ word: UInt32) -> Bool {
        if word == 0xd503_20ff { return true } // xpaclri: what compilers strip it of a signature by, a nop where there is none
        let first = word &>> 5 & 31, second = word &>> 16 & 31
        if word & 0x0a00_0000 == 0x0800_0000 { return passesOn(word, base: first) }
        if word & 0x0e00_0000 == 0x0a00_0000 { return first == 30 || second == 30 } // two registers: mov, cmp, add
        // A number: add, cmp, and. Not adr; not movz and its kin, which have none.
        return word & 0x1c00_0000 == 0x1000_0000 && word & 0x1f00_0000 != 0x1000_0000 && word & 0x1f80_0000 != 0x1280_0000 && first == 30
    }
    /// True for a load or store that reads data after the call, or puts the address elsewhere than into the frame.
    private static func passesOn(_ word: UInt32, base: UInt32) -> Bool {
        if word & 0x3b00_0000 == 0x1800_0000 { return false } // literal: addressed by the program counter, without a base
        if base == 30 { return true }
        let isPair = word & 0x3800_0000 == 0x2800_0000, isSingle = word & 0x3800_0000 == 0x3800_0000
        let isStore = isPair && word & 0x0040_0000 == 0 || isSingle && word & 0x00c0_0000 == 0
        let isVector = word & 0x0400_0000 != 0
        return isStore && !isVector && base != 31 && (word & 31 == 30 || isPair && word &>> 10 & 31 == 30)
    }
}
#endif
