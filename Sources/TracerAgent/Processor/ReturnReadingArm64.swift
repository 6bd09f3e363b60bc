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
        if word & 0x0e00_0000 == 0x0a00_0000 { return first == 30 || second == 30 } // two registers: mov, cmp, add
        // A number: add, cmp, and. Not adr; not movz and its kin, which have none.
        return word & 0x1c00_0000 == 0x1000_0000 && word & 0x1f00_0000 != 0x1000_0000 && word & 0x1f80_0000 != 0x1280_0000 && first == 30
    }
}
#endif
