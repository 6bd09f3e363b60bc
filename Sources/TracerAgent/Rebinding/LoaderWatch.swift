// Sees every module that is loaded later, before its constructors run. The loader calls its debugger hook
// (_dl_debug_state, r_debug.r_brk) after it has mapped new modules, and before (glibc until 2.40) or after (from 2.41 on)
// it relocates them; the hook is an empty function, and a jump to `tracer_loader_event` is written over it. There new
// modules are noted, their initializers are led through stubs, and the slots of those that are seen to be relocated are
// rebound. Of the others the slots are rebound by the first initializer that runs, since that is after relocation.
// Everything here runs with the loader's lock held.
import CSupport

enum LoaderWatch {
    nonisolated(unsafe) private static var batch: UInt32 = 0
    nonisolated(unsafe) private static var pendingCount = 0

    /// Modules that are there already, in the loader's order, which is the order of the global scope. Returns TRACE_FLAG_….
    static func begin() -> UInt32 {
        guard let debug = optional(tracer_loader_debug()) else { return UInt32(TRACE_FLAG_NO_HOOK) }
        var flags: UInt32 = 0
        var entry = debug.pointee.first
        var isMain = true
        while let module = entry {
            _ = ModuleTable.add(module, isMain: isMain, batch: 0, inBase: true)
            isMain = false
            entry = module.pointee.next
        }
        if ForeignConvention.mark() { flags |= UInt32(TRACE_FLAG_FOREIGN) }
        if isLate { flags |= UInt32(TRACE_FLAG_LATE) }
        var slots = 0
        for n in 0..<ModuleTable.modules.count where ModuleTable.modules.pointer(n).pointee.state == .pending {
            slots &+= ModuleTable.modules.pointer(n).pointee.image.jumpRelocationCount
        }
        FunctionTable.expect(slots)
        agent.isAlone = isSingleThreaded
        defer { agent.isAlone = false }
        for n in 0..<ModuleTable.modules.count where ModuleTable.modules.pointer(n).pointee.state == .pending { Rebinder.bind(n) }
        if !patchHook(debug.pointee.hook) { flags |= UInt32(TRACE_FLAG_NO_HOOK) }
        return flags
    }
    /// The loader has one module only that it initializes before all others: the last one marked for it (glibc elf/dl-load.c,
    /// dl_initfirst). libpthread is, before glibc 2.34. When it is not ours, most constructors have run.
    private static var isLate: Bool {
        var isOurs = true
        for n in 0..<ModuleTable.modules.count where ModuleTable.modules.pointer(n).pointee.image.isInitFirst {
            isOurs = ModuleTable.modules.pointer(n).pointee.image.contains(tracer_code_low())
        }
        return !isOurs
    }
    /// What glibc says (2.32, sys/single_threaded.h); false where it says nothing. The agent may also be loaded into a process
    /// that has threads already.
    private static var isSingleThreaded: Bool {
        let query = SymbolQuery(name: Name(CText(StaticString("__libc_single_threaded").utf8Start)), version: VersionNeed())
        guard let found = ModuleTable.definition(of: query) else { return false }
        let image = withUnsafePointer(to: &ModuleTable.modules.pointer(found.module).pointee.image) { $0 }
        guard let symbol = image.pointee.symbol(found.symbol)?.pointee else { return false }
        let address = image.pointee.bias &+ symbol.value
        return image.pointee.isReadable(address, 1) && UnsafePointer<UInt8>(bitPattern: UInt(address))!.pointee != 0
    }
    private static func optional(_ debug: UnsafeMutablePointer<loader_debug>?) -> UnsafeMutablePointer<loader_debug>? {
        debug
    }

    #if arch(x86_64)
    /// `ret` (or endbr64 first) and the padding behind it become `jmp *0(%rip)` and the address: fourteen bytes.
    private static func patchHook(_ hook: UInt64) -> Bool {
        guard hook != 0, let place = UnsafeMutableRawPointer(bitPattern: UInt(hook)), hook & 15 == 0 else { return false }
        let first = place.load(as: UInt32.self)
        let returns = first & 0xff == 0xc3 || (first == 0xfa1e_0ff3 && place.load(fromByteOffset: 4, as: UInt8.self) == 0xc3)
        if !returns || !isPadding(place.assumingMemoryBound(to: UInt8.self), from: first & 0xff == 0xc3 ? 1 : 5, to: 14) || !Memory.protect(hook, 16, Memory.readWrite) { return false }
        place.storeBytes(of: 0x25ff, as: UInt16.self)
        place.storeBytes(of: 0, toByteOffset: 2, as: UInt32.self)
        place.storeBytes(of: tracer_address_loader_event(), toByteOffset: 6, as: UInt64.self)
        return Memory.protect(hook, 16, Memory.readExecute)
    }

    /// Nothing but the instructions with which assemblers fill the space before a function: of another loader the next
    /// function may follow at once. Intel SDM volume 2B, NOP: 90 and 0F 1F /0, both with prefixes; CC: int3.
    private static func isPadding(_ code: UnsafePointer<UInt8>, from: Int, to: Int) -> Bool {
        var n = from
        while n < to {
            while code[n] == 0x66 || code[n] == 0x2e { n &+= 1 }
            if code[n] == 0x90 || code[n] == 0xcc {
                n &+= 1
                continue
            }
            if code[n] != 0x0f || code[n &+ 1] != 0x1f { return false }
            let operand = code[n &+ 2], mode = operand &>> 6
            if mode == 3 || mode == 0 && operand & 7 == 5 { return false } // not what an assembler writes
            n &+= 3 &+ (operand & 7 == 4 ? 1 : 0) &+ (mode == 1 ? 1 : mode == 2 ? 4 : 0)
        }
        return true
    }
    #elseif arch(arm64)
    /// `ret` (or `bti c` first) becomes a branch to `tracer_loader_event`, or, where that is out of reach (128 MB), to an
    /// island behind the code of the loader: what is left of the last page of its segment belongs to nobody.
    private static func patchHook(_ hook: UInt64) -> Bool {
        guard hook != 0, hook & 3 == 0, let place = UnsafeMutablePointer<UInt32>(bitPattern: UInt(hook)) else { return false }
        let ret: UInt32 = 0xd65f_03c0, bti: UInt32 = 0xd503_245f
        let first = place[0] == bti ? 1 : 0
        if place[first] != ret { return false }
        let from = hook &+ UInt64(first) &* 4
        var target = tracer_address_loader_event()
        if !isNear(from, target) {
            guard let island = makeIsland(hook, target), isNear(from, island) else { return false }
            target = island
        }
        if !Memory.protect(hook, 8, Memory.readWrite) { return false }
        place[first] = 0x1400_0000 | UInt32(truncatingIfNeeded: Int64(bitPattern: target &- from) &>> 2) & 0x3ff_ffff
        return Memory.protectCode(hook, 8)
    }
    private static func isNear(_ from: UInt64, _ to: UInt64) -> Bool { to &- from &+ 1 &<< 27 < 1 &<< 28 }

    /// ldr x16, +8; br x16; the address.
    private static func makeIsland(_ hook: UInt64, _ target: UInt64) -> UInt64? {
        guard let image = ModuleTable.module(of: hook)?.pointee.image else { return nil }
        for n in 0..<image.segmentCount {
            let segment = image.segment(n)
            let start = image.bias &+ segment.address
            if segment.type != ProgramHeader.load || hook &- start >= segment.memoryBytes { continue }
            let island = (start &+ segment.memoryBytes &+ 15) & ~15
            let left = UInt64(agent.pageBytes) &- (island & UInt64(agent.pageBytes &- 1))
            if segment.flags & ProgramHeader.writable != 0 || left < 16 || left == UInt64(agent.pageBytes)
                || !Memory.protect(island, 16, Memory.readWrite) { return nil }
            let words = UnsafeMutableRawPointer(bitPattern: UInt(island))!
            words.storeBytes(of: 0xd61f_0200_5800_0050, as: UInt64.self)
            words.storeBytes(of: target, toByteOffset: 8, as: UInt64.self)
            return Memory.protectCode(island, 16) ? island : nil
        }
        return nil
    }
    #endif

    /// The loader is about to change its lists (state 1 or 2), or has changed them.
    static func event(_ recorder: ThreadRecorder, _ place: UInt64, since entered: UInt64) {
        guard let debug = optional(tracer_loader_debug()) else { return }
        if debug.pointee.state != 0 {
            Loads.opened(entered)
            return
        }
        retireMissing(debug)
        bindPending() // what an earlier dlopen brought without initializers
        batch &+= 1
        var first = -1
        forEachModule(debug) { module, inBase in
            if ModuleTable.index(of: module) != nil { return }
            let index = note(module, inBase)
            if first < 0 { first = index }
        }
        if first >= 0 && ForeignConvention.mark() {
            agent.flags |= UInt32(TRACE_FLAG_FOREIGN)
            TraceFile.header.pointee.flags = agent.flags
        }
        bindPending(onlyRelocated: true)
        if first >= 0 {
            Loads.mapped(batch, ModuleTable.modules[first].path, recorder, place, entered)
        } else {
            batch &-= 1
            Loads.forgetOpened()
        }
    }

    private static func forEachModule(_ debug: UnsafeMutablePointer<loader_debug>,
                                      _ body: (UnsafeMutablePointer<loader_module>, Bool) -> Void) {
        var namespace: UnsafeMutablePointer<loader_debug>? = debug
        while let current = namespace {
            var entry = current.pointee.first
            while let module = entry {
                body(module, current == debug)
                entry = module.pointee.next
            }
            namespace = current.pointee.version > 1 ? current.pointee.next : nil
        }
    }

    private static func retireMissing(_ debug: UnsafeMutablePointer<loader_debug>) {
        for n in 0..<ModuleTable.modules.count {
            let module = ModuleTable.modules.pointer(n)
            if module.pointee.state == .retired || module.pointee.isStartup { continue }
            var isThere = false
            forEachModule(debug) { entry, _ in
                if entry == module.pointee.loader && entry.pointee.bias == module.pointee.image.bias { isThere = true }
            }
            if isThere { continue }
            if module.pointee.state == .pending { pendingCount &-= 1 }
            module.pointee.state = .retired
            ModuleTable.filters[n] = BloomFilter() // the old one is no longer mapped
            ReturnLabels.forget(module.pointee.image.low, module.pointee.image.high)
            Metadata.moduleEnd(UInt32(n), ticks: Clock.ticks(), &module.pointee.endRecord)
        }
    }

    /// Its index, or -1.
    private static func note(_ loader: UnsafeMutablePointer<loader_module>, _ inBase: Bool) -> Int {
        guard let index = ModuleTable.add(loader, isMain: false, batch: batch, inBase: inBase) else { return -1 }
        if ModuleTable.modules[index].state == .pending {
            pendingCount &+= 1
            let module = ModuleTable.modules.pointer(index)
            let relocation = RelocationState(module.pointee.image)
            module.pointee.isRelocated = relocation == .done
            if relocation != .unknown { InitializerStubs.replaceLater(module, index, isRelocated: module.pointee.isRelocated) }
        }
        return index
    }

    /// When an initializer of a module that was loaded later is about to run, all of its batch are relocated. Before, only
    /// those that were seen to be.
    @inline(never) static func bindPending(onlyRelocated: Bool = false) {
        if pendingCount == 0 { return }
        for n in 0..<ModuleTable.modules.count {
            let module = ModuleTable.modules.pointer(n)
            if module.pointee.state != .pending || onlyRelocated && !module.pointee.isRelocated { continue }
            pendingCount &-= 1
            InitializerStubs.fill(module)
            Rebinder.bind(n)
        }
    }
}
