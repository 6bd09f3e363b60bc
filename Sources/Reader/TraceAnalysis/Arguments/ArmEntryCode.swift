// Instructions of aarch64 that compilers begin functions with (Arm Architecture Reference Manual, C4.1).

extension EntryCode {
    /// Follows one instruction. Returns its length; nil: it is not known, or nothing goes on after it.
    mutating func armStep(_ code: UnsafeRawBufferPointer, _ offset: Int) -> Int? {
        guard offset + 4 <= code.count else { return nil }
        let word = (0..<4).reduce(0 as UInt32) { $0 | UInt32(code[offset + $1]) << UInt32($1 * 8) }
        return armStep(word) ? 4 : nil
    }

    private mutating func armStep(_ word: UInt32) -> Bool {
        let target = Int(word & 31), source = Int(word >> 5 & 31), other = Int(word >> 16 & 31), isLong = word >> 31 == 1
        if word & 0xffff_f01f == 0xd503_201f { return true } // hints: nop, bti, paciasp
        if word & 0x1f80_0000 == 0x1100_0000 { // add and subtract a constant
            return armAdd(word, target, source, isLong)
        }
        if word & 0x7fe0_ffe0 == 0x2a00_03e0 { // mov
            armPut(other == 31 ? .zero : registers[other].narrowed(to: isLong ? 8 : 4), target)
            return true
        }
        if word & 0x7fff_fc00 == 0x1200_0000 || word & 0xffff_fc00 == 0x9240_0000 { // and with 1: what is left of a boolean
            if source == 31 || target == 31 { return false }
            registers[target] = registers[source].bit
            return true
        }
        if word & 0x3b00_0000 == 0x3900_0000 { // loads and stores, from a register on
            guard let count = Self.armWidth(word) else { return false }
            return armMove(word, source, Int(word >> 10 & 0xfff) * count, count)
        }
        if word & 0x3b20_0000 == 0x3800_0000 { return armUnscaled(word, source) }
        if word & 0x3b20_0c00 == 0x3820_0800 { // with an index in a register
            guard let count = Self.armWidth(word) else { return false }
            return armMove(word, nil, 0, count)
        }
        if word & 0x3a00_0000 == 0x2800_0000 { return armPair(word, source) }
        if word & 0xfc00_0000 == 0x9400_0000 || word & 0xffff_fc1f == 0xd63f_0000 {
            call()
            return true
        }
        return armOther(word, target, source, other)
    }

    /// What is computed otherwise is not known.
    private mutating func armOther(_ word: UInt32, _ target: Int, _ source: Int, _ other: Int) -> Bool {
        // Constants and addresses; logic with constants; bit fields; logic, sums, conditions, products of registers
        if word & 0x1f80_0000 == 0x1280_0000 || word & 0x1f00_0000 == 0x1000_0000 || word & 0x1f80_0000 == 0x1200_0000
            || word & 0x1f80_0000 == 0x1300_0000 || [0x0a00_0000, 0x0b00_0000, 0x1a00_0000, 0x1b00_0000].contains(word & 0x1f00_0000)
        {
            // A sum or a constant's logic may go into the stack pointer.
            if target == 31, word & 0x1f80_0000 == 0x1200_0000 || word & 0x1f20_0000 == 0x0b20_0000 { return false }
            armPut(word & 0x7fe0_0000 == 0x5280_0000 && word & 0x1f_ffe0 == 0 ? .zero : .unknown, target)
            return true
        }
        if word & 0xff3f_fc00 == 0x1e20_4000 { // fmov of vector registers
            registers[Self.vectors + target] = registers[Self.vectors + source].narrowed(to: word & 0x40_0000 == 0 ? 4 : 8)
            return true
        }
        if word & 0xbfe0_fc00 == 0x0ea0_1c00, source == other { // mov of vector registers
            registers[Self.vectors + target] = registers[Self.vectors + source]
            return true
        }
        if word & 0xffe0_fc00 == 0x4e00_1c00 { // ins: a part of a vector register
            registers[Self.vectors + target] = .unknown
            return true
        }
        if word & 0xbff8_fc00 == 0x2f00_e400, word & 0x7_03e0 == 0 { // movi with 0
            registers[Self.vectors + target] = .zero
            return true
        }
        return false
    }

    private mutating func armAdd(_ word: UInt32, _ target: Int, _ source: Int, _ isLong: Bool) -> Bool {
        let isCompare = word & 0x2000_0000 != 0, isSum = word & 0x4000_0000 == 0
        guard isLong, !isCompare, case .frame(let place) = registers[source], abs(place) < 1 << 40 else {
            if target == 31, !isCompare { return false }
            armPut(.unknown, target)
            return true
        }
        let value = Int(word >> 10 & 0xfff) << (word & 0x40_0000 != 0 ? 12 : 0)
        if target == 31, isSum, value > 0 || source != 31 { return false } // the frame is given back
        let address = isSum ? place + value : place - value
        put(.frame(address), target)
        return true
    }

    // MARK: - Memory

    /// Bytes of a load or a store of one register; nil: a load with a sign, or a prefetch.
    private static func armWidth(_ word: UInt32) -> Int? {
        let size = Int(word >> 30)
        if word & 0x0400_0000 != 0 { return word & 0x80_0000 != 0 ? (size == 0 ? 16 : nil) : 1 << size }
        return word & 0x80_0000 != 0 ? nil : 1 << size
    }

    private mutating func armUnscaled(_ word: UInt32, _ base: Int) -> Bool {
        guard let count = Self.armWidth(word) else { return false }
        let bits = Int(word >> 12 & 0x1ff), distance = bits >= 0x100 ? bits - 0x200 : bits
        switch word >> 10 & 3 {
        case 0: return armMove(word, base, distance, count)
        case 1: return armMove(word, base, 0, count) && armMoveBase(base, distance)
        case 3: return armMoveBase(base, distance) && armMove(word, base, 0, count)
        default: return false
        }
    }

    private mutating func armMoveBase(_ base: Int, _ distance: Int) -> Bool {
        if base == 31, distance > 0 { return false } // the frame is given back
        if case .frame(let place) = registers[base] { registers[base] = .frame(place + distance) } else { registers[base] = .unknown }
        return true
    }

    private mutating func armMove(_ word: UInt32, _ base: Int?, _ distance: Int, _ count: Int) -> Bool {
        armMove(Int(word & 31), isVector: word & 0x0400_0000 != 0, isLoad: word & 0x40_0000 != 0, base, distance, count)
        return true
    }
    private mutating func armMove(_ register: Int, isVector: Bool, isLoad: Bool, _ base: Int?, _ distance: Int, _ count: Int) {
        var address: Int?
        if let base, case .frame(let place) = registers[base], abs(place) < 1 << 40 { address = place + distance }
        let own = isVector ? Self.vectors + register : register
        if isLoad {
            let content = load(address, count)
            if isVector || register != 31 { put(content, own) }
        } else {
            store(!isVector && register == 31 ? .zero : registers[own].narrowed(to: count), address, count)
        }
    }

    private mutating func armPair(_ word: UInt32, _ base: Int) -> Bool {
        let isVector = word & 0x0400_0000 != 0, size = Int(word >> 30)
        guard size != 3, isVector || size != 1 else { return false }
        let count = isVector ? 4 << size : size == 0 ? 4 : 8
        let bits = Int(word >> 15 & 0x7f), distance = (bits >= 0x40 ? bits - 0x80 : bits) * count
        let how = word >> 23 & 3, isLoad = word & 0x40_0000 != 0 // 1: after, 2: offset, 3: before
        if how == 0 { return false }
        // The caller's frame pointer comes back: the frame is given back.
        if isLoad, !isVector, [word & 31, word >> 10 & 31].contains(29), case .frame = registers[29] { return false }
        if how == 3, !armMoveBase(base, distance) { return false }
        let first = how == 2 ? distance : 0
        armMove(Int(word & 31), isVector: isVector, isLoad: isLoad, base, first, count)
        armMove(Int(word >> 10 & 31), isVector: isVector, isLoad: isLoad, base, first + count, count)
        return how == 1 ? armMoveBase(base, distance) : true
    }

    private mutating func armPut(_ content: Content, _ target: Int) { if target != 31 { put(content, target) } }
}
