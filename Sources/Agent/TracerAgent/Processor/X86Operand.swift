#if arch(x86_64)

/// A ModRM operand (Intel SDM volume 2, 2.1.5): a register, or memory at a distance from one. As many bytes can be read as it has, seven at
/// most.
struct X86Operand {
    private(set) var register = 0 // the other operand, with REX.R, or more of the opcode
    private(set) var base = -1 // base register, of memory; -1: none, or an index is added
    private(set) var direct = -1 // a register, not memory
    private(set) var distance: Int64 = 0
    private(set) var byteCount: UInt64 = 1

    @inline(never) init(_ address: UInt64, _ rex: UInt8) {
        let bytes = UnsafePointer<UInt8>(bitPattern: UInt(address))!
        let modrm = bytes[0], mode = modrm &>> 6, low = Int(modrm & 7)
        register = Int(modrm &>> 3 & 7) | Int(rex & 4) &<< 1
        if mode == 3 {
            direct = low | Int(rex & 1) &<< 3
            return
        }
        base = low | Int(rex & 1) &<< 3
        if low == 4 {
            let sib = bytes[1]
            byteCount = 2
            base = Int(sib & 7) | Int(rex & 1) &<< 3
            let hasIndex = sib &>> 3 & 7 != 4 || rex & 2 != 0
            if hasIndex || mode == 0 && sib & 7 == 5 { base = -1 }
            if mode == 0 && sib & 7 == 5 { byteCount = 6 }
        } else if mode == 0 && low == 5 { // relative to rip
            base = -1
            byteCount = 5
        }
        if mode == 1 {
            distance = Int64(Int8(bitPattern: bytes[Int(byteCount)]))
            byteCount = byteCount &+ 1
        } else if mode == 2 {
            distance = Int64(UnsafeRawPointer(bytes).loadUnaligned(fromByteOffset: Int(byteCount), as: Int32.self))
            byteCount = byteCount &+ 4
        }
    }
}
#endif
