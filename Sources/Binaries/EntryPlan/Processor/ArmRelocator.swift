// aarch64: all instructions have four bytes, and one is replaced. Arm ARM C4.1, C6.2.
import CTraceLayout
import ELF

enum ArmInstruction {
    case branch(Int64), call(Int64), conditional(Int64) // b, bl; b.cond, cbz, tbz
    case register // br, ret and their kin
    case page(Int64), near(Int64) // adrp, adr
    case literal(Int64)
    case stop
    case other

    init(_ word: UInt32) {
        func field(_ low: UInt32, _ bits: UInt32, scale: Int64) -> Int64 {
            let value = Int64(word >> low & (1 << bits - 1))
            return (value >= 1 << (bits - 1) ? value - 1 << bits : value) * scale
        }
        switch word {
        case _ where word & 0xfc00_0000 == 0x1400_0000: self = .branch(field(0, 26, scale: 4))
        case _ where word & 0xfc00_0000 == 0x9400_0000: self = .call(field(0, 26, scale: 4))
        case _ where word & 0xff00_0000 == 0x5400_0000, _ where word & 0x7e00_0000 == 0x3400_0000:
            self = .conditional(field(5, 19, scale: 4))
        case _ where word & 0x7e00_0000 == 0x3600_0000: self = .conditional(field(5, 14, scale: 4))
        case _ where word & 0xfe00_0000 == 0xd600_0000: self = word >> 21 & 0xf == 1 || word >> 21 & 0xf == 9 ? .other : .register // blr, blraa go on
        case _ where word & 0x1f00_0000 == 0x1000_0000:
            let high = Int64(word >> 5 & 0x7ffff), low = Int64(word >> 29 & 3)
            let value = high << 2 | low
            let signed = value >= 1 << 20 ? value - 1 << 21 : value
            self = word >> 31 == 0 ? .near(signed) : .page(signed << 12)
        case _ where word & 0x3b00_0000 == 0x1800_0000: self = .literal(field(5, 19, scale: 4))
        case _ where word & 0xffe0_001f == 0xd420_0000, _ where word & 0xffff_0000 == 0: self = .stop // brk, udf
        default: self = .other
        }
    }

    static let nop: UInt32 = 0xd503_201f, branchTarget: UInt32 = 0xd503_245f, anyTarget: UInt32 = 0xd503_24df
    /// ret, retaa, retab.
    static func isReturn(_ word: UInt32) -> Bool { word & 0xffff_fc1f == 0xd65f_0000 || word & 0xffff_fbff == 0xd65f_0bff }
    /// yield, wfe, wfi; wfet, wfit; isb, which programs use where x86-64 has pause. Arm ARM C4.1.94.
    static func pauses(_ word: UInt32) -> Bool {
        [0xd503_203f, 0xd503_205f, 0xd503_207f].contains(word) || word & 0xffff_ffc0 == 0xd503_1000 || word & 0xffff_f0ff == 0xd503_30df
    }
    /// Exclusive loads and stores and compare-and-swap, but not plain acquire and release; and the atomics of LSE. Arm ARM C4.1.96.
    static func isAtomic(_ word: UInt32) -> Bool {
        word & 0x3f00_0000 == 0x0800_0000 && word & 0x00a0_0000 != 0x0080_0000 || word & 0x3b20_0c00 == 0x3820_0000
    }

    static let signA: UInt32 = 0xd503_233f, signB: UInt32 = 0xd503_237f, checkA: UInt32 = 0xd503_23bf
}

enum ArmRelocator {
    static func relocate(_ code: ModuleCode, _ address: UInt64, patch: Int) -> RelocatedCode {
        var relocated = RelocatedCode()
        guard let word = code.code(at: address).load(patch, as: UInt32.self) else {
            relocated.reason = .notCode
            return relocated
        }
        let site = address &+ UInt64(patch), base = code.base
        func target(_ distance: Int64) -> UInt64 { site &+ UInt64(bitPattern: distance) }
        relocated.instructions = [(patch, 0)]
        relocated.resume = patch + 4
        func emit(_ words: UInt32...) { for word in words { withUnsafeBytes(of: word.littleEndian) { relocated.bytes += $0 } } }
        func fix(_ kind: plan_fixup_kind, _ target: UInt64) {
            relocated.fix(kind, target, base, at: relocated.bytes.count - 4, end: relocated.bytes.count)
        }
        switch ArmInstruction(word) {
        case .branch(let distance):
            emit(0x1400_0000)
            fix(PLAN_STUB26, target(distance))
            relocated.isEnded = true
        case .conditional(let distance): // over a branch, if not; to the branch, if so
            let isTest = word & 0x7e00_0000 == 0x3600_0000
            let mask: UInt32 = isTest ? 0x3fff << 5 : 0x7ffff << 5
            emit(word & ~mask | 2 << 5, 0x1400_0002, 0x1400_0000)
            fix(PLAN_STUB26, target(distance))
        case .page(let distance):
            emit(word & 0x9f00_001f)
            fix(PLAN_PAGE21, site & ~4095 &+ UInt64(bitPattern: distance))
        case .near(let distance): // adrp, add
            let register = word & 31
            emit(0x9000_0000 | register)
            fix(PLAN_PAGE21, target(distance))
            emit(0x9100_0000 | register << 5 | register)
            fix(PLAN_LOW12, target(distance))
        case .literal(let distance):
            let register = word & 31
            switch word >> 24 {
            case 0x18, 0x58, 0x98: // ldr w, ldr x, ldrsw: the register that it writes holds the address first
                emit(0x9000_0000 | register)
                fix(PLAN_PAGE21, target(distance))
                let load: UInt32 = word >> 24 == 0x18 ? 0xb940_0000 : word >> 24 == 0x58 ? 0xf940_0000 : 0xb980_0000
                emit(load | register << 5 | register)
                fix(word >> 24 == 0x58 ? PLAN_LOAD12_8 : PLAN_LOAD12_4, target(distance))
                if word >> 24 == 0x58 && target(distance) & 7 != 0 || register == 31 { relocated.reason = .notRelocatable }
            default: relocated.reason = .notRelocatable // loads of vector registers, and prefetches
            }
        case .call: // returns to where it would have
            let back = target(4)
            emit(0x9000_001e) // adrp x30; add x30, x30; b
            fix(PLAN_PAGE21, back)
            relocated.linked = relocated.bytes.count
            emit(0x9100_03de)
            fix(PLAN_LOW12, back)
            if case .call(let distance) = ArmInstruction(word) {
                emit(0x1400_0000)
                fix(PLAN_STUB26, target(distance))
            }
            relocated.isEnded = true
        case .register, .stop:
            emit(word)
            relocated.isEnded = true
        case .other:
            if word & 0xffe0_001f == 0xd400_0001 { relocated.reason = .notRelocatable } // svc: the kernel reports its address
            if word & 0xfe00_0000 == 0xd600_0000 { // blr
                emit(0x9000_001e)
                fix(PLAN_PAGE21, target(4))
                relocated.linked = relocated.bytes.count
                emit(0x9100_03de)
                fix(PLAN_LOW12, target(4))
                if word & 0xffff_fc1f != 0xd63f_0000 || word >> 5 & 31 == 30 { relocated.reason = .notRelocatable } // signed; by x30
                emit(word & ~(1 << 21)) // br
                relocated.isEnded = true
            } else {
                emit(word)
            }
        }
        if !relocated.isEnded, relocated.reason == .no {
            relocated.instructions.append((relocated.resume, relocated.bytes.count))
            emit(0x1400_0000)
            fix(PLAN_BRANCH26, address &+ UInt64(relocated.resume))
        }
        return relocated
    }

    /// b or bl, which reach 128 MB.
    static func isLong(at site: UInt64, _ code: ModuleCode) -> Bool {
        code.code(at: site).load(0, as: UInt32.self).map { $0 & 0x7c00_0000 == 0x1400_0000 } ?? false
    }

    /// A jump to a function whose own bytes stay.
    static func jump(to address: UInt64, _ code: ModuleCode) -> RelocatedCode {
        var relocated = RelocatedCode()
        withUnsafeBytes(of: UInt32(0x1400_0000).littleEndian) { relocated.bytes += $0 }
        relocated.instructions = [(0, 0)]
        relocated.fix(PLAN_BRANCH26, address, code.base, at: 0, end: 4)
        return relocated
    }

    /// Copies a function of `count` bytes from `patch` on, to its end. nil: it calls, makes a system call, jumps by a register, takes an
    /// address by `adr` or from a literal, or is too long; or a jump out of it is conditional, or leads to where `isEntry` says that no
    /// function begins.
    static func whole(_ code: ModuleCode, _ address: UInt64, count: Int, patch: Int, isEntry: (UInt64) -> Bool) -> RelocatedCode? {
        let bytes = code.code(at: address), own = address &+ UInt64(patch)..<address &+ UInt64(count)
        guard count <= bytes.count, count > patch, (count - patch) % 4 == 0, count - patch <= Int(PLAN_RELOCATED_MOST_BYTES) else {
            return nil
        }
        var relocated = RelocatedCode()
        for offset in stride(from: patch, to: count, by: 4) {
            guard var word = bytes.load(offset, as: UInt32.self) else { return nil }
            let site = address &+ UInt64(offset)
            var fixup: (kind: plan_fixup_kind, target: UInt64)?
            switch ArmInstruction(word) {
            case .branch(let distance), .conditional(let distance):
                let target = site &+ UInt64(bitPattern: distance)
                if own.contains(target) { break }
                guard word & 0xfc00_0000 == 0x1400_0000, isEntry(target), !(address..<own.lowerBound).contains(target) else { return nil }
                (word, fixup) = (0x1400_0000, (PLAN_STUB26, target))
            case .page(let distance):
                (word, fixup) = (word & 0x9f00_001f, (PLAN_PAGE21, site & ~4095 &+ UInt64(bitPattern: distance)))
            case .call, .near, .literal: return nil
            case .register: if !ArmInstruction.isReturn(word) { return nil }
            case .stop: break
            case .other: if word & 0xffe0_001f == 0xd400_0001 || word & 0xfe00_0000 == 0xd600_0000 { return nil } // svc; blr
            }
            withUnsafeBytes(of: word.littleEndian) { relocated.bytes += $0 }
            let end = relocated.bytes.count
            if let fixup { relocated.fix(fixup.kind, fixup.target, code.base, at: end - 4, end: end) }
        }
        relocated.resume = count
        relocated.isEnded = true
        return relocated.reason == .no ? relocated : nil
    }
}

/// One pass over the code of aarch64.
struct ArmScan: CodeScan {
    private(set) var finder: EntryFinder

    init(_ finder: EntryFinder) { self.finder = finder }

    mutating func scan(_ entry: FunctionEntry, _ index: Int) -> ScannedCode.Body {
        var body = ScannedCode.Body()
        let bytes = finder.code.code(at: entry.address)
        let count = min(Int(entry.end - entry.address), bytes.count)
        if entry.address & 3 != 0 || count < 4 {
            body.isBroken = true
            return body
        }
        var isEnd = false, pages: [UInt32: UInt64] = [:], returnLink = ArmReturnLink()
        for offset in stride(from: 0, to: count - 3, by: 4) {
            let word = bytes.load(offset, as: UInt32.self)!, site = entry.address + UInt64(offset)
            returnLink.take(word, offset)
            // ldr register, [x29]: the caller's frame record
            if word & 0xffff_ffe0 == 0xf940_03a0, word & 31 != 29 { body.readsCallersFrame = true }
            func target(_ distance: Int64) -> UInt64 { site &+ UInt64(bitPattern: distance) }
            switch ArmInstruction(word) {
            case .branch(let distance):
                isEnd = true
                finder.jump(site, target(distance), entry, index, &body, .jump)
            case .conditional(let distance):
                isEnd = false
                finder.jump(site, target(distance), entry, index, &body, .conditional)
            case .call(let distance):
                isEnd = true
                finder.call(site, target(distance), index, &body)
            case .register:
                isEnd = true
                if !ArmInstruction.isReturn(word) {
                    body.leadsElsewhere = true
                    body.length.leadsToUnknown = true
                }
            case .near(let distance):
                isEnd = false
                addressTaken(site, target(distance), entry, index)
            case .page(let distance):
                isEnd = false
                pages[word & 31] = site & ~4095 &+ UInt64(bitPattern: distance)
            case .stop: isEnd = true
            case .literal: isEnd = false
            case .other:
                if word == ArmInstruction.nop { continue }
                isEnd = false
                if word & 0xffc0_0000 == 0x9100_0000, let page = pages[word >> 5 & 31] { // add, with the rest of an adrp's address
                    addressTaken(site, page &+ UInt64(word >> 10 & 0xfff), entry, index)
                }
                if word & 0xfe00_0000 == 0xd600_0000 { // blr
                    isEnd = true
                    body.leadsElsewhere = true
                    body.length.leadsToUnknown = true
                }
                if word & 0xffe0_001f == 0xd400_0001 { // svc
                    body.leadsElsewhere = true
                    body.length.waits = true
                }
                if ArmInstruction.pauses(word) { body.length.waits = true }
                if ArmInstruction.isAtomic(word) { body.length.hasAtomics = true }
            }
        }
        body.runsOn = !isEnd
        body.readsReturnAddress = returnLink.end(entry.frames, finder.frames)
        return body
    }

    private mutating func addressTaken(_ site: UInt64, _ target: UInt64, _ entry: FunctionEntry, _ index: Int) {
        // gcc's tables are of distances from an address in the code, in bytes or halfwords; they do not lead to the first word.
        if finder.watched.contains(target) { finder.add(site, target, index, .codeAddress) }
        if !(target >= entry.address && target < entry.end), !finder.starts.contains(target) { finder.addBase(target) }
    }

    mutating func guessAll(_ low: UInt64, _ high: UInt64, _ index: Int) {
        let bytes = finder.code.code(at: low)
        for offset in stride(from: Int((4 - low & 3) & 3), to: min(bytes.count, Int(clamping: high - low)) - 3, by: 4) {
            guard let word = bytes.load(offset, as: UInt32.self) else { return }
            let site = low + UInt64(offset)
            switch ArmInstruction(word) {
            case .branch(let distance), .conditional(let distance), .call(let distance):
                finder.guess(site, site &+ UInt64(bitPattern: distance), index)
            default: break
            }
        }
    }
}
