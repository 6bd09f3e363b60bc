// On aarch64 the address of a slot's page comes from an `adrp`, the slot's value from a load with an offset into that
// page, and the call is a `blr` or `br`: three instructions, which the compiler may place anywhere in the function. A
// slot counts as called when they stand close together, in this shape:
//
//      adrp xP, page
//      …                       neither a branch nor an instruction that may name xP
//      ldr  xP, [xP, #offset]  the page is forgotten: this reference is to one slot
//      …                       neither a branch nor an instruction that may name xP
//      blr  xP  or  br xP      xP is one that a call spoils, so that nothing of it is left
//
// A load without such a call after it, or into a register that outlives the call (the compiler has moved it out of a loop), takes its
// slot out. An addition makes the address of an object on the same page. Any other `adrp` takes all slots out that a load with its page
// could reach: 32 KB from the page's beginning, since -fpic (unlike -fPIC) has one page for all slots of a function. An instruction
// names a register when any of its four register fields has the number. In the commonest instructions with a constant it is known which
// fields are none; with others a slot may be left alone for nothing.
#if arch(arm64)
import CSupport

extension CallOnlySlots {
    private static let reach = 16 // instructions between the parts
    private static let span: UInt64 = 4096 * 8

    func scan(_ image: Image, at path: CText) {
        let lowPage = (low & ~4095) &- CallOnlySlots.span
        let pageCount = (low &+ count &* 8 &- lowPage) &>> 12 &+ 1
        var isOut = InlineArray<64, UInt64>(repeating: 0) // pages of which nothing is left
        if pageCount > 4096 { return }
        forEachText(image, CodeSections(image, at: path)) { start, end in
            if start & 3 != 0 { return }
            let text = UnsafePointer<UInt32>(bitPattern: UInt(start))!
            let total = Int(end &- start) / 4
            for n in 0..<total where text[n] & 0x9f00_0000 == 0x9000_0000 { // adrp
                let distance = Int64(Int32(bitPattern: (text[n] &>> 5 & 0x7ffff) &<< 13)) &>> 11 | Int64(text[n] &>> 29 & 3)
                let page = (start &+ UInt64(n) &* 4) & ~4095 &+ UInt64(bitPattern: distance &<< 12)
                let number = (page &- lowPage) &>> 12
                if number >= pageCount { continue }
                let word = Int(number &>> 6), bit: UInt64 = 1 &<< (number & 63)
                if isOut[word] & bit != 0 || mark(text, n, total, page) { continue }
                isOut[word] |= bit
                takeOut(page)
            }
        }
    }

    /// False when the reference that begins at `n` may be to any slot.
    private func mark(_ text: UnsafePointer<UInt32>, _ n: Int, _ total: Int, _ page: UInt64) -> Bool {
        let pointer = text[n] & 31
        if pointer == 16 && isTableEntry(text, n, total) { return true }
        guard let load = firstUse(of: pointer, text, n &+ 1, total) else { return false }
        let instruction = text[load]
        // add xD, xP, #offset: the address of an object, which is something else when it is not in the slots' range. (Nor
        // just below, where the table of slots may begin.)
        if instruction & 0xffc0_0000 == 0x9100_0000 && instruction &>> 5 & 31 == pointer {
            return page &+ UInt64(instruction &>> 10 & 4095) &- (low &- 64) > count &* 8 &+ 64
        }
        // ldr xP, [xP, #offset]
        if instruction & 0xffc0_0000 != 0xf940_0000 || instruction &>> 5 & 31 != pointer || instruction & 31 != pointer {
            return false
        }
        guard let slot = index(page &+ UInt64(instruction &>> 10 & 4095) &* 8) else { return true } // not a candidate
        // blr xP, br xP
        if pointer < 19 || pointer == 30, let call = firstUse(of: pointer, text, load &+ 1, total),
            text[call] & 0xffdf_fc1f == 0xd61f_0000, text[call] &>> 5 & 31 == pointer
        {
            states[slot] |= CallOnlySlots.called
        } else {
            states[slot] |= CallOnlySlots.addressed
        }
        return true
    }

    /// An entry of the procedure linkage table: adrp x16; ldr x17, [x16, …]; add x16, x16, …; br x17. Its slot is a
    /// JUMP_SLOT.
    private func isTableEntry(_ text: UnsafePointer<UInt32>, _ n: Int, _ total: Int) -> Bool {
        n &+ 3 < total && text[n &+ 1] & 0xffc0_03ff == 0xf940_0211 && text[n &+ 2] & 0xffc0_03ff == 0x9100_0210
            && text[n &+ 3] == 0xd61f_0220
    }

    /// The next instruction that may name the register, unless a branch comes before it.
    private func firstUse(of register: UInt32, _ text: UnsafePointer<UInt32>, _ start: Int, _ total: Int) -> Int? {
        for n in start..<min(start &+ CallOnlySlots.reach, total) {
            let instruction = text[n]
            if CallOnlySlots.mayName(register, instruction) { return n }
            if instruction & 0x1c00_0000 == 0x1400_0000 { return nil } // branches, exceptions, system
        }
        return nil
    }

    /// One of the four fields has the number, and is not part of the constant of an instruction that loads arguments (Arm Architecture
    /// Reference Manual, C4.1: data processing with an immediate; load and store register with an unsigned immediate).
    private static func mayName(_ register: UInt32, _ instruction: UInt32) -> Bool {
        if instruction & 31 == register { return true }
        if instruction & 0x1f00_0000 == 0x1000_0000 || instruction & 0x1f80_0000 == 0x1280_0000 { return false } // adr, adrp; movn, movz, movk
        if instruction &>> 5 & 31 == register { return true }
        // add and sub of a constant; load and store at a constant's distance
        if instruction & 0x1f80_0000 == 0x1100_0000 || instruction & 0x3b00_0000 == 0x3900_0000 { return false }
        return instruction &>> 10 & 31 == register || instruction &>> 16 & 31 == register
    }

    /// Takes out the slots that a load with the page can reach.
    private func takeOut(_ page: UInt64) {
        var slot = page
        while slot < page &+ CallOnlySlots.span {
            if let n = index(slot) { states[n] |= CallOnlySlots.addressed }
            slot = slot &+ 8
        }
    }
}
#endif
