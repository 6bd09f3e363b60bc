// Finds the modules that are there at the start, and each one that is loaded later, before its constructors run; has their functions
// patched, their initializers led through stubs, and their slots bound.
//
// The loader calls its debugger hook (_dl_debug_state, r_debug.r_brk) after it has mapped new modules, and before (glibc until 2.40) or
// after (from 2.41 on) it relocates them; the hook is an empty function, and a jump to `tracer_loader_event` is written over it. There
// new modules are noted, and the slots of modules that are relocated already are bound. The slots of other modules are bound by the first
// initializer that runs, since that is after relocation. Everything here runs with the loader's lock held.
import CSupport

enum LoaderWatch {
    nonisolated(unsafe) private static var latestLoad: UInt32 = 0
    nonisolated(unsafe) private static var changeCount: UInt32 = 0
    nonisolated(unsafe) private static var pendingCount = 0
    /// 1: the thread that has the loader's lock is in the hook, and the lists are as they are.
    nonisolated(unsafe) private static var isInHook: UInt32 = 0

    /// In a forked child: another thread of the parent may have been in the hook.
    static func becomeChild() {
        isInHook = 0
        PatchedFunctions.becomeChild()
    }

    /// Modules that are there already, in the loader's order, which is the order of the global scope. Returns TRACE_FLAG_…. nil: where the
    /// agent is attached, which does not have the loader's lock, its lists cannot be read.
    static func begin() -> UInt32? {
        guard let debug = LoaderDebug.find() else { return UInt32(TRACE_FLAG_NO_HOOK) }
        return Process.wasRunning ? ModuleLock.locked { beginLate(debug) } : beginAtStart(debug)
    }
    private static func beginAtStart(_ debug: UnsafeMutablePointer<loader_debug>) -> UInt32 {
        MetadataWriter.collect()
        defer { MetadataWriter.keepCollected() }
        var flags = addPresent(debug)
        if isAfterOthers { flags |= UInt32(TRACE_FLAG_LATE) }
        var slots = 0
        for n in 0..<ModuleTable.modules.count where ModuleTable.modules.pointer(n).pointee.state == .pending {
            slots &+= ModuleTable.modules.pointer(n).pointee.image.jumpRelocationCount
        }
        FunctionTable.expect(slots)
        Lock.isAlone = isSingleThreaded
        defer { Lock.isAlone = false }
        GlobalDefinitions.expect(slots)
        PatchedFunctions.begin()
        PatchedFunctions.patch()
        for n in 0..<ModuleTable.modules.count where ModuleTable.modules.pointer(n).pointee.state == .pending { bind(n) }
        ScanCache.end()
        if !openHook(debug) { flags |= UInt32(TRACE_FLAG_NO_HOOK) }
        return flags
    }
    /// Into a program that runs. Its modules are treated as if they had been loaded later: the loader binds their lazy slots, in the scope
    /// of each; they may be unloaded; and nothing of them has begun that could still be timed. The hook comes first: from then on whoever
    /// wants to change the loader's lists waits for ModuleLock.
    private static func beginLate(_ debug: UnsafeMutablePointer<loader_debug>) -> UInt32? {
        var flags = UInt32(TRACE_FLAG_NO_START)
        let isOpen = openHook(debug)
        if Process.isAttached && !(isOpen && isSettled(debug)) {
            LoaderHook.close()
            return nil
        }
        if !isOpen { flags |= UInt32(TRACE_FLAG_NO_HOOK) }
        ChangedSlots.mayChange = true
        retireChanged(debug)
        flags |= addPresent(debug)
        PatchedFunctions.begin()
        PatchedFunctions.patch() // if the agent is attached
        for n in 0..<ModuleTable.modules.count where ModuleTable.modules.pointer(n).pointee.state == .pending { pendingCount &+= 1 }
        bindPending { !$0.pointee.isSeenUnrelocated }
        // What is left another thread is just relocating, if nobody holds the loader's lock for us. Else the next event finds it.
        for _ in 0..<mostWaits where pendingCount > 0 && Process.isAttached && tracer_load_32(&isInHook) == 0 {
            Memory.pause(lookPause)
            bindPending { !$0.pointee.isSeenUnrelocated }
        }
        return flags
    }
    private static func addPresent(_ debug: UnsafeMutablePointer<loader_debug>) -> UInt32 {
        var loaded = LoaderModules(debug), isMain = true
        while let module = loaded.next() {
            if !loaded.isInBase && !Process.wasRunning { break } // LD_AUDIT's
            if ModuleTable.index(of: module) == nil { _ = ModuleTable.add(module, isMain: isMain, load: 0, inBase: loaded.isInBase) }
            isMain = false
        }
        let flags = ForeignConvention.mark()
        CallerQuestions.mark()
        return flags
    }
    /// After detaching: modules that have been unloaded since are retired, others are bound anew.
    private static func retireChanged(_ debug: UnsafeMutablePointer<loader_debug>) {
        if ModuleTable.modules.count == 0 { return }
        pendingCount = 0
        changeCount &+= 1
        var loaded = LoaderModules(debug)
        while let module = loaded.next() {
            guard let index = ModuleTable.index(of: module), ModuleTable.isSame(index, module) else { continue }
            let known = ModuleTable.modules.pointer(index)
            known.pointee.seen = changeCount
            known.pointee.isAgain = true
            if known.pointee.state == .bound { known.pointee.state = .pending }
        }
        for n in 0..<ModuleTable.modules.count where ModuleTable.modules.pointer(n).pointee.seen != changeCount { retire(n) }
    }
    /// Nobody is changing the loader's lists, and nobody will: who wants to waits in the hook. False: somebody takes seconds.
    private static func isSettled(_ debug: UnsafeMutablePointer<loader_debug>) -> Bool {
        for _ in 0..<mostLooks {
            if tracer_load_32(&isInHook) != 0 || isConsistent(debug) { return true }
            Memory.pause(lookPause)
        }
        return false
    }
    private static let mostLooks = 20_000, mostWaits = 1000, lookPause = 100_000 // nanoseconds
    private static func isConsistent(_ debug: UnsafeMutablePointer<loader_debug>) -> Bool {
        var namespace: UnsafeMutablePointer<loader_debug>? = debug
        while let current = namespace {
            if tracer_load_state(current) != 0 { return false }
            namespace = current.pointee.version > 1 ? current.pointee.next : nil
        }
        return true
    }
    private static func openHook(_ debug: UnsafeMutablePointer<loader_debug>) -> Bool {
        LoaderHook.open(debug.pointee.hook, in: Image(bias: debug.pointee.loader_base, dynamic: 0))
    }
    /// The loader has one module only that it initializes before all others: the last one marked for it (glibc elf/dl-load.c,
    /// dl_initfirst). libpthread is, before glibc 2.34. When it is not the agent, most constructors have run.
    private static var isAfterOthers: Bool {
        var isOurs = true
        for n in 0..<ModuleTable.modules.count where ModuleTable.modules.pointer(n).pointee.image.isInitFirst {
            isOurs = ModuleTable.modules.pointer(n).pointee.image.contains(tracer_code_low())
        }
        return !isOurs
    }
    /// True if glibc says that the process has one thread (2.32, sys/single_threaded.h); false where it says nothing. The agent may
    /// also be loaded into a process that has threads already.
    private static var isSingleThreaded: Bool {
        let query = SymbolQuery(name: Name(CText(StaticString("__libc_single_threaded").utf8Start)), version: VersionNeed())
        guard let found = ModuleTable.anyDefinition(of: query) else { return false }
        let image = withUnsafePointer(to: &ModuleTable.modules.pointer(found.module).pointee.image) { $0 }
        guard let symbol = image.pointee.symbol(found.symbol)?.pointee else { return false }
        let address = image.pointee.bias &+ symbol.value
        return image.pointee.isReadable(address, 1) && UnsafePointer<UInt8>(bitPattern: UInt(address))!.pointee != 0
    }
    /// The loader is about to change its lists (state 1 or 2), or has changed them. It waits while they are being read.
    static func event(_ recorder: ThreadRecorder, _ stackPointer: UInt64, since entered: UInt64, within initializer: UInt32) {
        guard let debug = LoaderDebug.find() else { return }
        tracer_store_release_32(&isInHook, 1)
        defer { tracer_store_release_32(&isInHook, 0) }
        if debug.pointee.state != 0 {
            ModuleLock.locked { if debug.pointee.state == 2 { ModuleLock.isUnloading = true } } // RT_DELETE
            Loads.opened(entered)
            return
        }
        ModuleLock.locked {
            ModuleLock.isUnloading = false
            changed(debug, recorder, stackPointer, since: entered, within: initializer)
        }
    }
    private static func changed(
        _ debug: UnsafeMutablePointer<loader_debug>, _ recorder: ThreadRecorder, _ stackPointer: UInt64,
        since entered: UInt64, within initializer: UInt32
    ) {
        retireMissing(debug)
        bindPending { !$0.pointee.isSeenUnrelocated } // modules that an earlier dlopen brought without initializers
        latestLoad &+= 1
        var first = -1
        var loaded = LoaderModules(debug)
        while let module = loaded.next() {
            if ModuleTable.index(of: module) != nil { continue }
            let index = note(module, loaded.isInBase)
            if first < 0 { first = index }
        }
        if first >= 0 {
            TraceOutput.flags |= ForeignConvention.mark()
            CallerQuestions.mark()
            TraceOutput.header.pointee.flags = TraceOutput.flags
            PatchedFunctions.patch(where: { $0.pointee.load == latestLoad }, then: { _ = ChosenCalls.leaveOut(in: $0) })
        }
        bindPending { $0.pointee.isRelocated }
        if first >= 0 {
            Loads.mapped(latestLoad, ModuleTable.modules[first].path, recorder, stackPointer, entered, within: initializer)
        } else {
            latestLoad &-= 1
            Loads.forgetOpened()
        }
    }

    private static func retireMissing(_ debug: UnsafeMutablePointer<loader_debug>) {
        changeCount &+= 1
        var loaded = LoaderModules(debug)
        while let module = loaded.next() {
            if let index = ModuleTable.index(of: module) { ModuleTable.modules.pointer(index).pointee.seen = changeCount }
        }
        for n in 0..<ModuleTable.modules.count {
            let module = ModuleTable.modules.pointer(n)
            if module.pointee.state == .retired || module.pointee.isStartup || module.pointee.seen == changeCount { continue }
            if module.pointee.state == .pending { pendingCount &-= 1 }
            retire(n)
        }
    }
    private static func retire(_ n: Int) {
        let module = ModuleTable.modules.pointer(n)
        if module.pointee.state == .retired { return }
        module.pointee.state = .retired
        ModuleTable.filters[n] = BloomFilter() // the old one is no longer mapped
        module.pointee.lazy.giveBack()
        ChangedSlots.forget(module.pointee.image.low, module.pointee.image.high)
        GatedSlots.forget(module.pointee.image.low, module.pointee.image.high)
        PatchedFunctions.forget(n)
        ReturnLabels.forget(module.pointee.image.low, module.pointee.image.high)
        InstrumentedTable.forget(module.pointee.image.low, module.pointee.image.high)
        MetadataWriter.moduleEnd(UInt32(n), ticks: Clock.ticks(), &module.pointee.endRecord)
    }
    /// What the agent has changed for the loader and the program's calls is as it was, once `first` is done. False: the loader's lists cannot
    /// be read, and nothing has changed.
    static func end(_ first: () -> Void) -> Bool {
        guard let debug = LoaderDebug.find() else { return false }
        return ModuleLock.locked {
            if !isSettled(debug) { return false }
            retireMissing(debug) // a thread that has unmapped some may wait in the hook
            first()
            ChangedSlots.putBack()
            PatchedFunctions.end()
            LoaderHook.close()
            return true
        }
    }

    /// Its index, or -1.
    private static func note(_ loader: UnsafeMutablePointer<loader_module>, _ inBase: Bool) -> Int {
        guard let index = ModuleTable.add(loader, isMain: false, load: latestLoad, inBase: inBase) else { return -1 }
        if ModuleTable.modules[index].state == .pending {
            pendingCount &+= 1
            let module = ModuleTable.modules.pointer(index)
            let relocation = RelocationState(module.pointee.image)
            module.pointee.isRelocated = relocation == .done
            if relocation != .unknown { InitializerStubs.replaceLater(module, index, isRelocated: module.pointee.isRelocated) }
        }
        return index
    }

    /// An initializer or a finalizer of a module that was loaded later is about to run. The loader initializes nothing before all
    /// that it loads together is relocated, and finalizes nothing that it has not initialized (glibc elf/dl-open.c,
    /// dl_open_worker; l_init_called). But exit() finalizes without the loader's lock until glibc 2.40 (elf/dl-fini.c), while
    /// another thread may be anywhere in dlopen: then nothing is known of any other module.
    @inline(never) static func runs(of index: Int, isFinalizer: Bool) {
        if pendingCount == 0 { return }
        let load = ModuleTable.modules.pointer(index).pointee.load
        ModuleLock.locked {
            if isFinalizer {
                let module = ModuleTable.modules.pointer(index)
                bindPending { $0 == module }
            } else {
                bindPending { $0.pointee.load <= load }
            }
        }
    }
    /// dlopen has returned with what it loaded, also modules without initializers. Other modules may be being unloaded.
    static func isLoaded(_ load: UInt32) {
        if pendingCount == 0 { return }
        ModuleLock.locked { bindPending { $0.pointee.load == load && !$0.pointee.isSeenUnrelocated } }
    }

    @inline(never) private static func bindPending(where isRelocated: (UnsafeMutablePointer<Module>) -> Bool) {
        if pendingCount == 0 || !ChangedSlots.mayChange { return }
        for n in 0..<ModuleTable.modules.count {
            let module = ModuleTable.modules.pointer(n)
            if module.pointee.state != .pending || !isRelocated(module) { continue }
            pendingCount &-= 1
            bind(n)
        }
        ScanCache.end()
    }
    /// The module is relocated: its slots are led to stubs, and its bindings and details are written.
    @inline(never) private static func bind(_ index: Int) {
        let module = ModuleTable.modules.pointer(index)
        var detail = Rebinder.bind(index) { if module.pointee.isStartup { InitializerStubs.replaceAtStart(index, &$0) } }
        GatedSlots.leaveOut(in: index)
        if !module.pointee.isAgain { Bindings.write(from: index) }
        if !module.pointee.isAgain || module.pointee.load != 0 { MetadataWriter.detail(&detail, module, index) }
    }
}

/// The loader's modules, namespace by namespace (glibc elf/link.h, r_debug_extended).
private struct LoaderModules {
    private var namespace: UnsafeMutablePointer<loader_debug>?
    private var following: UnsafeMutablePointer<loader_module>?
    /// The module that `next` gave last is in the program's own namespace.
    private(set) var isInBase = true

    init(_ debug: UnsafeMutablePointer<loader_debug>) { (namespace, following) = (debug, debug.pointee.first) }

    @inline(never) mutating func next() -> UnsafeMutablePointer<loader_module>? {
        while following == nil, let current = namespace {
            namespace = current.pointee.version > 1 ? current.pointee.next : nil
            following = namespace?.pointee.first
            isInBase = false
        }
        let module = following
        following = module?.pointee.next
        return module
    }
}

extension Module {
    /// True if the module has a part that the loader protects after relocation, and it shows that this has not happened yet.
    var isSeenUnrelocated: Bool { image.relroLow != image.relroHigh && RelocationState(image) == .notYet }
}
