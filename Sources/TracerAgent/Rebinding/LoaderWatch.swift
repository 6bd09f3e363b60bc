// Sees every module that is loaded later, before its constructors run. The loader calls its debugger hook
// (_dl_debug_state, r_debug.r_brk) after it has mapped new modules and before it relocates them; the hook is an empty
// function, and a jump to `tracer_loader_event` is written over it. There new modules are noted, and their
// constructors are led through stubs. The first of these that runs does so after relocation: that is the moment at
// which the slots of all new modules are rebound. Everything here runs with the loader's lock held.
import CSupport

enum LoaderWatch {
    nonisolated(unsafe) private static var batch: UInt32 = 0
    nonisolated(unsafe) private static var pendingCount = 0

    /// Modules that are there already, in the loader's order, which is the order of the global scope.
    static func begin() {
        guard let debug = optional(tracer_loader_debug()) else { return }
        var entry = debug.pointee.first
        var isMain = true
        while let module = entry {
            _ = ModuleTable.add(module, isMain: isMain, batch: 0, inBase: true)
            isMain = false
            entry = module.pointee.next
        }
        for n in 0..<ModuleTable.modules.count where ModuleTable.modules[n].state == .pending { Rebinder.bind(n) }
        if !patchHook(debug.pointee.hook) { agent.flags |= UInt32(TRACE_FLAG_NO_HOOK) }
    }
    private static func optional(_ debug: UnsafeMutablePointer<loader_debug>?) -> UnsafeMutablePointer<loader_debug>? {
        debug
    }

    #if arch(x86_64)
    /// `ret` and fifteen bytes of padding (or endbr64 first) become `jmp *0(%rip)` and the address.
    private static func patchHook(_ hook: UInt64) -> Bool {
        guard hook != 0, let place = UnsafeMutableRawPointer(bitPattern: UInt(hook)), hook & 15 == 0 else { return false }
        let first = place.load(as: UInt32.self)
        let returns = first & 0xff == 0xc3 || (first == 0xfa1e_0ff3 && place.load(fromByteOffset: 4, as: UInt8.self) == 0xc3)
        if !returns || !Memory.protect(hook, 16, Memory.readWrite) { return false }
        place.storeBytes(of: 0x25ff, as: UInt16.self)
        place.storeBytes(of: 0, toByteOffset: 2, as: UInt32.self)
        place.storeBytes(of: tracer_address_loader_event(), toByteOffset: 6, as: UInt64.self)
        return Memory.protect(hook, 16, Memory.readExecute)
    }
    #elseif arch(arm64)
    /// `ret` (or `bti c` first) becomes `b tracer_loader_event` where that is within 128 MB, as it is unless something
    /// large was mapped between the loader and this library; else, over twelve bytes of padding, an indirect branch.
    private static func patchHook(_ hook: UInt64) -> Bool {
        guard hook != 0, hook & 3 == 0, let place = UnsafeMutablePointer<UInt32>(bitPattern: UInt(hook)) else { return false }
        let ret: UInt32 = 0xd65f_03c0, bti: UInt32 = 0xd503_245f
        let first = place[0] == bti ? 1 : 0
        if place[first] != ret { return false }
        let from = hook &+ UInt64(first) &* 4
        let distance = Int64(bitPattern: tracer_address_loader_event() &- from)
        let isNear = distance >= -(1 &<< 27) && distance < 1 &<< 27
        if !isNear && (hook & 15 != 0 || first != 0 || !isPadding(place + 1, 3)) { return false }
        if !Memory.protect(hook, 16, Memory.readWrite) { return false }
        if isNear {
            place[first] = 0x1400_0000 | UInt32(truncatingIfNeeded: distance &>> 2) & 0x3ff_ffff
        } else {
            place[0] = 0x5800_0050 // ldr x16, +8
            place[1] = 0xd61f_0200 // br x16
            UnsafeMutableRawPointer(place + 2).storeBytes(of: tracer_address_loader_event(), as: UInt64.self)
        }
        return Memory.protectCode(hook, 16)
    }
    private static func isPadding(_ words: UnsafeMutablePointer<UInt32>, _ count: Int) -> Bool {
        for n in 0..<count where words[n] != 0 && words[n] != 0xd503_201f { return false } // nop
        return true
    }
    #endif

    /// The loader has changed its lists.
    static func event() {
        guard let debug = optional(tracer_loader_debug()), debug.pointee.state == 0 else { return }
        retireMissing(debug)
        bindPending() // what an earlier dlopen brought without constructors
        batch &+= 1
        forEachModule(debug) { module, inBase in
            if ModuleTable.index(of: module) == nil { note(module, inBase) }
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
            Metadata.moduleEnd(UInt32(n))
        }
    }

    private static func note(_ loader: UnsafeMutablePointer<loader_module>, _ inBase: Bool) {
        guard let index = ModuleTable.add(loader, isMain: false, batch: batch, inBase: inBase),
              ModuleTable.modules[index].state == .pending else { return }
        pendingCount &+= 1
        let module = ModuleTable.modules.pointer(index)
        reuseTable(of: module, before: index)
        replaceInitializer(module)
        replaceArray(module)
    }

    /// A library that is opened and closed a thousand times gets its first table back.
    private static func reuseTable(of module: UnsafeMutablePointer<Module>, before index: Int) {
        var n = index &- 1
        while n >= 0 {
            let old = ModuleTable.modules.pointer(n)
            if old.pointee.state == .retired && old.pointee.constructors != 0 && equal(old.pointee.path, module.pointee.path) {
                module.pointee.constructors = old.pointee.constructors
                module.pointee.constructorCount = old.pointee.constructorCount
                module.pointee.initializer = old.pointee.initializer
                old.pointee.constructors = 0
                return
            }
            n &-= 1
        }
    }

    /// DT_INIT. The loader adds the load bias to what the entry says (glibc elf/dl-init.c, call_init).
    private static func replaceInitializer(_ module: UnsafeMutablePointer<Module>) {
        guard let entry = module.pointee.image.dynamicEntry(DynamicTag.initializer) else { return }
        var stub: UInt64 = 0
        if let known = module.pointee.initializer {
            stub = UInt64(UInt(bitPattern: tracer_stub(tracer_function_index(known))))
        } else if let fresh = FunctionTable.constructorStub() {
            module.pointee.initializer = fresh.descriptor
            stub = fresh.stub
        } else { return }
        module.pointee.originalInitializer = entry.pointee.value
        module.pointee.initializer!.pointee.target =
            UnsafeRawPointer(bitPattern: UInt(module.pointee.image.bias &+ entry.pointee.value))
        entry.pointee.value = stub &- module.pointee.image.bias
    }

    /// DT_INIT_ARRAY: the entry is led to a table of stubs. The array itself is not relocated yet, so what each stub
    /// leads to is filled in by `bindPending`.
    private static func replaceArray(_ module: UnsafeMutablePointer<Module>) {
        guard let entry = module.pointee.image.dynamicEntry(DynamicTag.initArray),
              let size = module.pointee.image.dynamicEntry(DynamicTag.initArrayBytes) else { return }
        let count = Int(size.pointee.value / 8)
        let original = module.pointee.image.bias &+ entry.pointee.value
        guard count > 0, count < 65536, module.pointee.image.contains(original, size.pointee.value) else { return }
        if module.pointee.constructors == 0 || module.pointee.constructorCount != count {
            guard let room = Memory.pages(Memory.wholePages(count &* 8)) else { return }
            let table = room.assumingMemoryBound(to: UInt64.self)
            for n in 0..<count {
                guard let (stub, _) = FunctionTable.constructorStub() else { return }
                table[n] = stub
            }
            module.pointee.constructors = UInt64(UInt(bitPattern: room))
            module.pointee.constructorCount = count
        }
        module.pointee.originalArray = original
        entry.pointee.value = module.pointee.constructors &- module.pointee.image.bias
    }

    /// A constructor of a module that was loaded later is about to run: all of its batch are relocated.
    static func bindPending() {
        if pendingCount == 0 { return }
        pendingCount = 0
        for n in 0..<ModuleTable.modules.count {
            let module = ModuleTable.modules.pointer(n)
            if module.pointee.state != .pending { continue }
            if module.pointee.originalArray != 0 { fillTable(module) }
            Rebinder.bind(n)
        }
    }

    private static func fillTable(_ module: UnsafeMutablePointer<Module>) {
        let table = UnsafePointer<UInt64>(bitPattern: UInt(module.pointee.constructors))!
        for n in 0..<module.pointee.constructorCount {
            let stub = UnsafePointer<UInt8>(bitPattern: UInt(table[n]))!
            let target = module.pointee.image.word64(module.pointee.originalArray &+ UInt64(n) &* 8) ?? 0
            tracer_function(tracer_stub_index(stub)).pointee.target = UnsafeRawPointer(bitPattern: UInt(target))
        }
    }
}
