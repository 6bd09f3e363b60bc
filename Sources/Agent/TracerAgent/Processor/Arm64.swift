// AArch64: stubs, labels, linkage tables, the loader's hook, start-up code, as instructions (Arm ARM C6).
#if arch(arm64)
import CSupport

enum Stub {
    /// adr x17, hook; b enter. Nothing of them is in guarded pages, so no `bti`.
    static func write(at address: UnsafeMutablePointer<UInt8>, hook: UInt64, enter: UInt64) {
        let start = UInt64(UInt(bitPattern: address))
        let words = UnsafeMutableRawPointer(address).assumingMemoryBound(to: UInt32.self)
        let toHook = UInt32(truncatingIfNeeded: hook &- start)
        let toEntry = UInt32(truncatingIfNeeded: Int64(bitPattern: enter &- (start &+ 4)) &>> 2)
        words[0] = 0x1000_0011 | (toHook & 3) &<< 29 | (toHook &>> 2 & 0x7ffff) &<< 5
        words[1] = 0x1400_0000 | toEntry & 0x3ff_ffff
        words[2] = 0xd420_0000 // brk #0
        words[3] = 0xd420_0000
    }
}

enum ReturnLabel {
    /// blr x16; adr x17, label; b returned. Not in guarded pages, so no `bti`.
    static func write(at address: UnsafeMutableRawPointer, returned: UInt64) {
        let words = address.assumingMemoryBound(to: UInt32.self)
        let distance = Int64(bitPattern: returned &- UInt64(UInt(bitPattern: address)) &- 8)
        words[0] = 0xd63f_0200
        words[1] = 0x10ff_fff1 // adr x17, -4
        words[2] = 0x1400_0000 | UInt32(truncatingIfNeeded: distance &>> 2) & 0x3ff_ffff
        words[3] = 0xd420_0000 // brk #0
    }
    /// There are none.
    static func writePatched(at address: UnsafeMutableRawPointer, returned: UInt64) {}
}

extension Spills {
    /// At a return: what the function returns.
    var result: UInt64 { firstArgument }
    /// Offset of the register that has the first or second word of a result.
    static func resultRegister(_ number: Int) -> Int { -Int(number == 0 ? SPILL_FIRST : SPILL_SECOND) }
    /// Offset of the integer register of this number, from 4 on: x4 to x7, in pairs.
    static func laterRegister(_ number: Int) -> Int { -(number < 6 ? Int(SPILL_X4) : Int(SPILL_X6)) &+ (number & 1) &* 8 }
}

extension Trampolines {
    /// 24 bits: what an addition and an offset make together.
    static func isReachable() -> Bool {
        if distance < 1 &<< 24 &- 4096 { return true }
        Message.warn { $0.append("more than 16 MB of thread-local variables: the program runs unrecorded") }
        return false
    }

    /// Twelve bits from bit 10 on, in eights in a load or store, and in an addition, which the variants for far
    /// states have, the twelve bits above the lowest twelve.
    static func patch(_ address: UnsafeMutableRawPointer, _ distance: UInt64) {
        let instruction = address.load(as: UInt32.self)
        let isAddition = instruction & 0x7fc0_0000 == 0x1140_0000 // add Rd, Rn, #imm12, lsl #12
        let isFar = tracer_thread_is_far() != 0
        let low = isFar ? distance & 4095 : distance
        let value = isAddition ? isFar ? distance &>> 12 : 0 : low / 8 &+ UInt64(instruction &>> 10 & 4095)
        let bits = UInt32(truncatingIfNeeded: value & 4095)
        address.storeBytes(of: instruction & ~(4095 &<< 10) | bits &<< 10, as: UInt32.self)
    }
    /// mrs register, cntvct_el0 becomes bl tracer_monotonic_register.
    static func patchClock(_ address: UnsafeMutableRawPointer) {
        let target = tracer_address_monotonic(address.load(as: UInt32.self) & 31)
        let distance = Int64(bitPattern: target &- UInt64(UInt(bitPattern: address)))
        address.storeBytes(of: 0x9400_0000 | UInt32(truncatingIfNeeded: distance &>> 2) & 0x3ff_ffff, as: UInt32.self)
    }
    /// An instruction becomes a b.
    static func jump(from address: UnsafeMutableRawPointer, to target: UnsafeMutableRawPointer) {
        address.storeBytes(of: 0x1400_0000 | UInt32(truncatingIfNeeded: (target - address) &>> 2) & 0x3ff_ffff, as: UInt32.self)
    }
}

/// The loader's debugger hook becomes a jump to `tracer_loader_event`.
///
/// Threads of a program that runs already may be on its page, and in the hook itself: then the page stays executable, and the code changes by one store of one word.
enum LoaderHook {
    private static let ret: UInt32 = 0xd65f_03c0
    /// Address of the `ret` that became a branch, and the branch; 0: none is there.
    nonisolated(unsafe) private static var place: UInt64 = 0
    nonisolated(unsafe) private static var branch: UInt32 = 0

    /// `ret` (or `bti c` first) becomes a branch to `tracer_loader_event`, or, where that is out of reach (128 MB), to an
    /// island after the code of the loader: what is left of the last page of its segment belongs to nobody. False: the hook is not as
    /// expected, or the kernel refuses.
    static func open(_ loaderHook: UInt64, in loader: Image) -> Bool {
        if place != 0 { return exchange(ret, branch) }
        guard loaderHook != 0, loaderHook & 3 == 0, let words = UnsafeMutablePointer<UInt32>(bitPattern: UInt(loaderHook)) else {
            return false
        }
        let bti: UInt32 = 0xd503_245f
        let first = words[0] == bti ? 1 : 0
        if words[first] != ret { return false }
        let from = loaderHook &+ UInt64(first) &* 4
        var target = tracer_address_loader_event()
        if !isNear(from, target) {
            guard let island = makeIsland(loaderHook, target, loader), isNear(from, island) else { return false }
            target = island
        }
        branch = 0x1400_0000 | UInt32(truncatingIfNeeded: Int64(bitPattern: target &- from) &>> 2) & 0x3ff_ffff
        place = from
        return exchange(ret, branch)
    }
    static func close() { _ = place != 0 && exchange(branch, ret) }

    /// False: something else is there, a debugger's breakpoint for one.
    private static func exchange(_ old: UInt32, _ new: UInt32) -> Bool {
        let word = UnsafeMutablePointer<UInt32>(bitPattern: UInt(place))!
        if word.pointee != old || !Memory.protect(place, 4, Process.changingCode) { return false }
        tracer_store_release_32(word, new)
        return Memory.protectCode(place, 4)
    }
    private static func isNear(_ from: UInt64, _ to: UInt64) -> Bool { to &- from &+ 1 &<< 27 < 1 &<< 28 }

    /// ldr x16, +8; br x16; the address.
    private static func makeIsland(_ loaderHook: UInt64, _ target: UInt64, _ image: Image) -> UInt64? {
        for n in 0..<image.segmentCount {
            let segment = image.segment(n)
            let start = image.bias &+ segment.address
            if segment.type != ProgramHeader.load || loaderHook &- start >= segment.memoryBytes { continue }
            let island = (start &+ segment.memoryBytes &+ 15) & ~15
            let left = UInt64(Memory.pageBytes) &- (island & UInt64(Memory.pageBytes &- 1))
            if segment.flags & ProgramHeader.writable != 0 || left < 16 || left == UInt64(Memory.pageBytes)
                || !Memory.protect(island, 16, Process.changingCode)
            {
                return nil
            }
            let words = UnsafeMutableRawPointer(bitPattern: UInt(island))!
            words.storeBytes(of: 0xd61f_0200_5800_0050, as: UInt64.self)
            words.storeBytes(of: target, toByteOffset: 8, as: UInt64.self)
            return Memory.protectCode(island, 16) ? island : nil
        }
        return nil
    }
}

/// Forms of the entries of a procedure linkage table, and of the loader's code that they lead to.
enum ProcedureLinkage {
    /// adrp x16, page; ldr x17, [x16, #offset]; after `bti c` perhaps (AAELF64; bfd, gold, lld and mold write these).
    static func isEntry(_ address: UInt64, in image: UnsafePointer<Image>) -> Bool {
        let here = image.pointee.word32(address) == 0xd503_245f ? address &+ 4 : address
        guard let first = image.pointee.word32(here), let second = image.pointee.word32(here &+ 4) else { return false }
        return first & 0x9f00_001f == 0x9000_0010 && second & 0xffc0_03ff == 0xf940_0211
    }

    /// `_dl_fixup`, which `_dl_runtime_resolve` calls once it has saved the registers. nil: it does something else, as it does
    /// for auditors that want to see calls, and for LD_PROFILE (`_dl_runtime_profile`).
    static func fixup(of resolver: UInt64, in loader: UnsafePointer<Image>) -> UInt64? {
        // lsr x1, x1, #3; bl _dl_fixup
        for n in 0..<UInt64(48) where loader.pointee.word32(resolver &+ n &* 4) == 0xd343_fc21 {
            let address = resolver &+ n &* 4 &+ 4
            guard let branch = loader.pointee.word32(address), branch &>> 26 == 0x25 else { return nil }
            let target = address &+ UInt64(bitPattern: Int64(Int32(bitPattern: branch &<< 6) &>> 4))
            return loader.pointee.isCode(target) ? target : nil
        }
        return nil
    }
}

/// Form of the C compiler's start-up code (crt1.o, _start).
enum StartCode {
    /// It calls through the procedure linkage table, whose slots are bound in any case.
    static func slot(_ image: UnsafePointer<Image>) -> UInt64? { nil }
}
#endif
