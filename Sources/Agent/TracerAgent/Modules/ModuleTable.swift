// The inventory of loaded modules: the modules that are there at the start, and modules that the loader adds later. Their indices are
// those of the trace. The entry of a module that was unloaded is retired, and used again when the same file is loaded at the same
// address: a program may open and close a library for ever.
//
// ModuleLock is needed to change the inventory, and to read more of a module than its entry. Slow paths look up the module of an address
// without it: entries never move, an entry is complete before it is counted, and a module's addresses do not change while it is loaded.
// What an entry points to (program headers, tables) is unmapped with the module, so only the holder of the lock may follow a pointer:
// `index(of:)`, and the fields of Module and Image that are not pointers, may be used without it.
import CSupport
import CTraceLayout

struct Module: BitwiseCopyable {
    var image: Image
    var loader: UnsafeMutablePointer<loader_module>
    var path: CText // absolute where the loader knows it; the agent's copy
    var state: State
    var isStartup: Bool // the agent has seen it start with the program; never unloaded
    var inBaseNamespace: Bool
    /// ForeignConvention.swift: no slots lead to it through a stub …
    var isForeign = false
    /// … and its own slots stay as they are.
    var hasForeignCalls = false
    var isSanitizer = false // its functions must see who calls them
    var asksForCallers = false // some of them may want to (CallerQuestions.swift)
    var load: UInt32 // the load that brought it; 0: it was there when the agent began
    var seen: UInt32 = 0 // the change of the loader's lists at which it was in them
    var isRelocated = false // when the loader reported it
    var isAgain = false // its needs and its bindings are in the trace already
    var buildID: UInt64 = 0 // a hash; without a build-id one of what its file is; 0 neither
    /// In the present file, once there is one.
    var endRecord: UnsafeMutablePointer<trace_module_end_record>?
    /// Stand-ins for DT_INIT, DT_FINI and their arrays, in a module that was loaded later.
    var initializer: UnsafeMutablePointer<function_hook>?
    var finalizer: UnsafeMutablePointer<function_hook>?
    var initializers = StubTable()
    var finalizers = StubTable()
    var hasStubs = false
    var isSearched = true // the kernel's own is in no scope
    var lazy = LazyStub()

    enum State: UInt8 { case pending, bound, retired, ignored }
    var name: CText { baseName(path) }
}

/// Stands in for an array of a module that was loaded later.
struct StubTable: BitwiseCopyable {
    var address: UInt64 = 0 // address of our table; 0 none
    var count = 0
}

/// Stub of a module with slots that are bound at their first call (LazySlots.swift).
struct LazyStub: BitwiseCopyable {
    /// Hook of the stub that the third word leads to: its target is `_dl_runtime_resolve`, `instant` is `_dl_fixup`, `head` is
    /// added to the second argument of that, `function` is the module.
    var hook: UnsafeMutablePointer<function_hook>?
    var relocations: UInt64 = 0 // ours; 0 none
    var relocationBytes = 0
}

enum ModuleTable {
    nonisolated(unsafe) static var modules = Table<Module>()
    /// Filters of all modules, side by side: a search asks all of them.
    nonisolated(unsafe) static var filters = Table<BloomFilter>()
    /// Modules in which addresses were found, by their 16 KB: most slots of a process lead to a few modules, and small ones lie side by
    /// side. Threads overwrite each other's guesses; each is checked before it is believed.
    nonisolated(unsafe) private static var found = InlineArray<1024, UInt16>(repeating: 0)
    /// True if a module other than the program has a DT_RPATH, which dlopen uses for all that the module has loaded, directly or not
    /// (glibc elf/dl-load.c, _dl_map_object).
    nonisolated(unsafe) private(set) static var hasRpath = false
    /// True if the tables of a module cannot be read: its calls are not recorded.
    nonisolated(unsafe) private(set) static var hasUnreadable = false
    nonisolated(unsafe) private static var latestFound = 0
    nonisolated(unsafe) private static var textBuffer: UnsafeMutablePointer<UInt8>?
    nonisolated(unsafe) private static var textLeft = 0
    nonisolated(unsafe) private static var latestText = 0 // bytes of the last path

    /// Index of the live module that holds this address.
    static func index(of address: UInt64) -> Int? {
        let bucket = Int(truncatingIfNeeded: address &>> 14) & 1023
        let guess = Int(found[bucket])
        if guess < modules.count && holds(guess, address) { return guess }
        for n in 0..<modules.count where holds(n, address) {
            found[bucket] = UInt16(truncatingIfNeeded: n)
            return n
        }
        return nil
    }
    /// The first module in the loader's order, of those that are asked, that defines the symbol, and where.
    @inline(__always) static func definition(
        of query: SymbolQuery, from candidate: SearchStart = SearchStart(),
        where isAsked: (UnsafeMutablePointer<Module>) -> Bool = { _ in true }
    ) -> (module: Int, symbol: Int)? {
        var n = candidate.module >= 0 ? candidate.module : filters.first(from: 0, thatAdmits: query.name.gnuHash)
        while n < modules.count {
            let module = modules.pointer(n)
            if module.pointee.state != .retired, module.pointee.isSearched, isAsked(module),
                let symbol = Image.find(query, in: &module.pointee.image, from: n == candidate.module ? candidate.symbol : 0)
            {
                return (n, symbol)
            }
            n = filters.first(from: n &+ 1, thatAdmits: query.name.gnuHash)
        }
        return nil
    }
    @inline(never) static func anyDefinition(of query: SymbolQuery) -> (module: Int, symbol: Int)? { definition(of: query) }
    static func module(of address: UInt64) -> UnsafeMutablePointer<Module>? {
        index(of: address).map { modules.pointer($0) }
    }
    @inline(__always) private static func holds(_ n: Int, _ address: UInt64) -> Bool {
        let module = modules.pointer(n)
        return module.pointee.state != .retired && module.pointee.image.contains(address)
    }

    /// The loader's list and this table have nearly the same order: it is looked for after the one that was found last, so that going
    /// through the list takes steps in proportion to its length.
    @inline(never) static func index(of loader: UnsafeMutablePointer<loader_module>) -> Int? {
        for _ in 0..<modules.count {
            latestFound = latestFound &+ 1 < modules.count ? latestFound &+ 1 : 0
            let module = modules.pointer(latestFound)
            if module.pointee.loader == loader && module.pointee.state != .retired
                && module.pointee.image.bias == loader.pointee.bias
            {
                return latestFound
            }
        }
        return nil
    }

    /// Adds a module of the loader's list. nil when it has nothing that could be traced.
    @inline(never) static func add(_ loader: UnsafeMutablePointer<loader_module>, isMain: Bool, load: UInt32, inBase: Bool) -> Int? {
        let dynamic = UInt64(UInt(bitPattern: loader.pointee.dynamic))
        let image =
            isMain
            ? Image(
                bias: loader.pointee.bias, dynamic: dynamic, programHeaders: Process.programHeaders,
                count: Process.programHeaderCount)
            : Image(bias: loader.pointee.bias, dynamic: dynamic)
        var module = Module(
            image: image, loader: loader, path: path(of: loader, isMain: isMain), state: .pending,
            isStartup: load == 0 && !Process.wasRunning, inBaseNamespace: inBase, load: load)
        module.buildID = buildIDHash(image)
        // Without a build-id its size and time tell a file from one that takes its place, later or between two loads.
        let file = module.buildID == 0 && module.path[0] == 0x2f ? FileStatus(following: module.path) : nil
        if let file { module.buildID = file.contentHash }
        if !isMain && image.hasRpath { hasRpath = true }
        if load == 0 && !Process.wasRunning && ArgumentPlan.isInUse { image.forEachConstantSegment(tracer_add_lasting_range) }
        if load != 0 || Process.wasRunning, let index = revive(module) {
            giveBackPath()
            return index
        }
        let isOurs = image.contains(tracer_code_low())
        if isOurs { Backtraces.image = own_image(low: image.low, high: image.high) }
        let isLoader = Process.loaderBase != 0 && image.low == Process.loaderBase
        let isVDSO = Process.vdsoImage != 0 && image.contains(Process.vdsoImage)
        module.isSearched = !isVDSO
        module.isSanitizer = SanitizerRuntime.isLibrary(module.path)
        if isOurs || isLoader || isVDSO || module.isSanitizer || !image.isUsable { module.state = .ignored }
        if !image.isUsable && !isOurs && !isLoader && !isVDSO { hasUnreadable = true }
        // A filter without a module is harmless, a module without a filter is not.
        if filters.count == modules.count && !filters.append(image.gnuHash.filter) || !modules.append(module) { return nil }
        let index = modules.count &- 1
        StackCopying.note(module: module.path)
        if module.state != .ignored { GeneratedCode.note(&modules.pointer(index).pointee.image) }
        MetadataWriter.module(module, UInt32(index), file)
        return index
    }

    /// The retired entry of the same file at the same address.
    private static func revive(_ module: Module) -> Int? {
        if !module.image.isUsable { return nil }
        for n in 0..<modules.count {
            let old = modules.pointer(n)
            if old.pointee.state != .retired || old.pointee.image.bias != module.image.bias
                || old.pointee.image.low != module.image.low || old.pointee.image.high != module.image.high
                || old.pointee.buildID != module.buildID || !equal(old.pointee.path, module.path)
            {
                continue
            }
            // A thread that reads the entry without the lock meanwhile, and took it for a live one, reads what it would have read before:
            // file and address are the same.
            old.pointee.image = module.image
            old.pointee.loader = module.loader
            old.pointee.inBaseNamespace = module.inBaseNamespace
            old.pointee.load = module.load
            old.pointee.isAgain = true
            old.pointee.isForeign = false
            old.pointee.hasForeignCalls = false
            filters[n] = module.image.gnuHash.filter
            old.pointee.state = old.pointee.isSanitizer ? .ignored : .pending
            MetadataWriter.moduleEnd(UInt32(n), ticks: 0, &old.pointee.endRecord)
            return n
        }
        return nil
    }
    /// Returns true if the module that the loader has is the one of the entry, whatever has been unloaded and loaded unseen.
    static func isSame(_ index: Int, _ loader: UnsafeMutablePointer<loader_module>) -> Bool {
        let module = modules.pointer(index)
        if module.pointee.image.contains(Process.entry) { return true }
        let image = Image(bias: loader.pointee.bias, dynamic: UInt64(UInt(bitPattern: loader.pointee.dynamic)))
        guard image.low == module.pointee.image.low, image.high == module.pointee.image.high else { return false }
        let id = buildIDHash(image)
        if id != 0 { return id == module.pointee.buildID }
        guard let name = loader.pointee.name.map({ UnsafeRawPointer($0).assumingMemoryBound(to: UInt8.self) }) else { return true }
        return name[0] == 0 || equal(baseName(name), module.pointee.name)
    }
    private static func buildIDHash(_ image: Image) -> UInt64 {
        var id: (UInt64, UInt64, UInt32) = (0, 0, 0) // space for the twenty bytes of an id
        _ = image.copyBuildID(&id)
        return arguments_module_id(id.0, id.1, id.2)
    }

    /// In a forked child: the records of its parent's file are not its own.
    static func forgetRecords() {
        for n in 0..<modules.count { modules.pointer(n).pointee.endRecord = nil }
    }

    /// Frees the path that was copied last.
    private static func giveBackPath() {
        if latestText == 0 { return }
        textBuffer! -= latestText
        textLeft &+= latestText
        latestText = 0
    }

    /// Copies the path: the loader frees its own when the module is unloaded.
    private static func path(of loader: UnsafeMutablePointer<loader_module>, isMain: Bool) -> CText {
        let unknown = CText(StaticString("?").utf8Start)
        let given = loader.pointee.name.map { UnsafeRawPointer($0).assumingMemoryBound(to: UInt8.self) } ?? unknown
        let name = isMain ? Process.executable : given[0] == 0 ? CText(StaticString("[vdso]").utf8Start) : given
        let isRelative = name[0] != 0x2f && baseName(name) != name
        let needed = length(name) &+ 2 &+ (isRelative ? length(Process.directory) : 0)
        latestText = 0
        if needed > textLeft {
            let wanted = max(65536, (needed &+ 4095) & ~4095)
            guard let buffer = Memory.pages(wanted) else { return unknown }
            textBuffer = buffer.assumingMemoryBound(to: UInt8.self)
            textLeft = wanted
        }
        var text = TextBuffer(textBuffer!, capacity: textLeft)
        if isRelative {
            text.append(contentsOf: Process.directory)
            text.append(0x2f)
        }
        text.append(contentsOf: name)
        let start = CText(textBuffer!)
        textBuffer! += needed
        textLeft &-= needed
        latestText = needed
        return start
    }
}
