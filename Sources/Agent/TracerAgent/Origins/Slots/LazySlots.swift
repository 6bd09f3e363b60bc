// Slots that are bound at their first call. Where such a slot leads is the loader's own decision, when it is called: it knows
// the scopes (RTLD_GLOBAL, RTLD_DEEPBIND, namespaces), notes that the caller needs the module of the target, notifies auditors,
// and runs IFUNC resolvers. So these slots stay as they are. What is changed is the word that they use: a lazy slot leads to
// the module's procedure linkage table, and that jumps through the third word of DT_PLTGOT to `_dl_runtime_resolve` (glibc
// sysdeps/*/dl-trampoline.*; psABI, "Procedure Linkage Table"). It leads to `tracer_lazy` instead, which calls the same
// `_dl_fixup` on the program's stack, and stores a stub of the function that it names into the slot.
//
// `_dl_fixup` stores what it finds where the relocation says. A thread that is calling through the slot just then would go past
// the stub. So it is given relocations of ours, which say the same of the symbol and have another offset: it learns which one by
// its distance from the module's first (reloc_arg, elf/dl-runtime.c), forwards, in 32 bits.
import CSupport

enum LazySlots {
    // MARK: - When a module is bound, or goes. ModuleLock is held, or nobody else is there.

    /// Some slots of the module are lazy. Of their table ld.bfd puts what the loader uses into the RELRO part.
    static func watch(_ index: Int, _ access: inout WriteAccess) {
        let module = ModuleTable.modules.pointer(index)
        let image = withUnsafeMutablePointer(to: &module.pointee.image) { $0 }
        let table = image.pointee.linkageTable
        if let hook = module.pointee.lazy.hook { // from an earlier attach
            if image.pointee.word64(table &+ 16) == UInt64(UInt(bitPattern: hook.pointee.target)), access.open(table &+ 16) {
                ChangedSlots.store(Stubs.stub(of: hook), at: table &+ 16, insteadOf: UInt64(UInt(bitPattern: hook.pointee.target)))
            }
            return
        }
        guard table & 7 == 0, image.pointee.isData(table &+ 16),
            image.pointee.word64(table &+ 8) == UInt64(UInt(bitPattern: module.pointee.loader)),
            let resolver = image.pointee.word64(table &+ 16), let loader = ModuleTable.module(of: resolver),
            loader.pointee.image.low == Process.loaderBase, let fixup = ProcedureLinkage.fixup(of: resolver, in: &loader.pointee.image),
            access.open(table &+ 16), let hook = takeHook()
        else { return }
        module.pointee.lazy.hook = hook
        module.pointee.lazy.copyRelocations(image, above: loader.pointee.image.high)
        hook.pointee.target = UnsafeRawPointer(bitPattern: UInt(resolver))
        hook.pointee.instant = fixup
        hook.pointee.function = UInt32(index)
        let first = module.pointee.lazy.relocations
        hook.pointee.head = first == 0 ? 0 : (first &- image.pointee.jumpRelocations) / Architecture.fixupUnit
        ChangedSlots.store(Stubs.stub(of: hook), at: table &+ 16, insteadOf: resolver)
    }

    /// True once it is known what `tracer_lazy` must save. CPUID traps to the hypervisor (five VM exits), and most processes never need
    /// the answer.
    nonisolated(unsafe) private static var isPrepared = false
    /// Hooks of modules that are gone, linked by `instant`.
    nonisolated(unsafe) fileprivate static var free: UnsafeMutablePointer<function_hook>?
    private static func takeHook() -> UnsafeMutablePointer<function_hook>? {
        if let hook = free {
            free = UnsafeMutablePointer(bitPattern: UInt(hook.pointee.instant))
            return hook
        }
        if !isPrepared { tracer_prepare_lazy() }
        isPrepared = true
        return Stubs.take(.lazy).flatMap { tracer_function($0) }
    }

    /// End of the last pages: the next ones come after it, if that is free.
    nonisolated(unsafe) private static var nextPages: UInt64 = 0
    /// Pages at a higher address, not too far: modules that are loaded later usually lie below the loader. Above an executable is its heap,
    /// which begins at a distance (arch_randomize_brk) and goes up: there they are in between, or so high that only the largest heap would
    /// meet them, whose malloc then goes on elsewhere. nil: there are none.
    fileprivate static func pages(_ bytes: Int, above image: UnsafeMutablePointer<Image>, _ loaderEnd: UInt64) -> UInt64? {
        let low = image.pointee.jumpRelocations
        func isRight(_ address: UInt64) -> Bool { address > low && address &+ UInt64(bytes) &- low < Architecture.fixupUnit &<< 32 }
        func map(_ wanted: UInt64) -> UInt64? { isRight(wanted) ? Memory.pages(at: wanted, bytes) : nil }
        var address = nextPages
        if address == 0 || !isRight(address) { address = (loaderEnd &+ 65535) & ~65535 }
        var distance: UInt64 = 65536
        while distance <= 1 &<< 24 { // far above is the stack of the first thread
            if isRight(address), let found = map(address) {
                nextPages = found &+ UInt64(bytes)
                return found
            }
            address = ((loaderEnd &+ 65535) & ~65535) &+ distance
            distance = distance &* 2
        }
        if image.pointee.contains(Process.entry) {
            let heapEnd = UInt64(SystemCall.call(SystemCall.brk, 0)), imageEnd = (image.pointee.high &+ 65535) & ~65535
            distance = 65536
            while imageEnd &+ distance &+ UInt64(bytes) <= heapEnd {
                if let found = map(imageEnd &+ distance) { return found }
                distance = distance &* 2
            }
            if let found = map(imageEnd &+ (Architecture.fixupUnit &<< 32) / 4 &* 3) { return found }
        }
        // In a process that the kernel maps from below (personality(2), ADDR_COMPAT_LAYOUT; an emulator's), stacks and heaps of threads lie
        // above the loader.
        address = (max(loaderEnd, low &+ 1) &+ 65535) & ~65535
        for _ in 0..<mostMappings where isRight(address) {
            if let end = growing(around: address) ?? ProcessMaps.mapping(around: address)?.upperBound {
                address = (end &+ 65535) & ~65535
            } else if let found = map(address) {
                nextPages = found &+ UInt64(bytes)
                return found
            } else {
                address = address &+ 65536
            }
        }
        guard let anywhere = Memory.pages(bytes) else { return nil }
        let start = UInt64(UInt(bitPattern: anywhere))
        if isRight(start) { return start }
        Memory.release(anywhere, bytes)
        return nil
    }

    private static let mostMappings = 128
    /// Returns the end of what the address is in: the space below the first thread's stack, on which its arguments are, or above the heap of
    /// brk(2). nil: it is in neither.
    private static func growing(around address: UInt64) -> UInt64? {
        let stack = Process.mainStackHigh, heap = UInt64(SystemCall.call(SystemCall.brk, 0)), reach: UInt64 = 1 &<< 30
        if stack &- address < reach { return stack }
        return address &- heap < reach ? heap &+ reach : nil
    }

    // MARK: - The first call

    /// Returns what the slot leads to from now on. The loader has found the target, so its module stays as long as the caller's does.
    static func bind(_ index: Int, _ slot: Int, _ target: UInt64) -> UInt64 {
        ModuleLock.locked {
            let module = ModuleTable.modules.pointer(index)
            guard slot >= 0, slot < module.pointee.image.jumpRelocationCount else { return target }
            let relocation = module.pointee.image.jumpRelocation(slot)
            let address = module.pointee.image.bias &+ relocation.offset
            guard address & 7 == 0, module.pointee.image.isData(address) else { return target }
            let image = withUnsafeMutablePointer(to: &module.pointee.image) { $0 }
            var value = target
            if ChangedSlots.mayChange, let symbol = module.pointee.image.symbol(relocation.symbol)?.pointee,
                let text = module.pointee.image.name(of: symbol)
            {
                value = Rebinder.stub(of: target, Name(text), calledBy: module) ?? target
            }
            if value == target {
                tracer_store_release_64(UnsafeMutablePointer(bitPattern: UInt(address))!, target)
            } else {
                ChangedSlots.store(value, at: address, insteadOf: target)
                GatedSlots.leaveOut(relocation, in: image)
                value = image.pointee.word64(address) ?? value
            }
            return value
        }
    }
}

extension LazyStub {
    /// The module is no longer mapped.
    mutating func giveBack() {
        guard let hook else { return }
        if relocations != 0 {
            let start = relocations & ~UInt64(Memory.pageBytes &- 1)
            Memory.release(UnsafeMutableRawPointer(bitPattern: UInt(start)), relocationBytes)
        }
        hook.pointee.instant = UInt64(UInt(bitPattern: LazySlots.free))
        LazySlots.free = hook
        self = LazyStub()
    }

    fileprivate mutating func copyRelocations(_ image: UnsafeMutablePointer<Image>, above loaderEnd: UInt64) {
        let count = image.pointee.jumpRelocationCount
        let bytes = Memory.wholePages((count &+ 1) &* MemoryLayout<Relocation>.stride)
        guard let start = LazySlots.pages(bytes, above: image, loaderEnd) else { return }
        // A whole number of relocations after the module's own.
        let stride = UInt64(MemoryLayout<Relocation>.stride), past = (start &- image.pointee.jumpRelocations) % stride
        relocations = past == 0 ? start : start &+ stride &- past
        relocationBytes = bytes
        let copies = UnsafeMutablePointer<Relocation>(bitPattern: UInt(relocations))!
        for n in 0..<count {
            var relocation = image.pointee.jumpRelocation(n)
            // Other relocations in there (R_*_TLSDESC) are never asked for by a call.
            if relocation.type == Architecture.jumpSlot { relocation.offset = tracer_address_lazy_sink() &- image.pointee.bias }
            copies[n] = relocation
        }
    }
}
