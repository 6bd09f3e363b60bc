// The inventory of loaded modules: those present at start, and those that the loader adds later. Indices are those of
// the trace. A module that was unloaded stays as a retired entry, and is that one again when the same file is loaded at
// the same place: a program may open and close a library for ever.
import CSupport
import CTraceLayout

struct Module: BitwiseCopyable {
    var image: Image
    var loader: UnsafeMutablePointer<loader_module>
    var path: CText // absolute where the loader knows it; kept by us
    var state: State
    var isStartup: Bool     // never unloaded
    var inBaseNamespace: Bool
    /// ForeignConvention.swift: nobody's slots lead to it through a stub …
    var isForeign = false
    /// … and its own slots stay as they are.
    var hasForeignCalls = false
    var isSanitizer = false // its functions must see who calls them
    var batch: UInt32       // the load that brought it; 0 at start
    var isRelocated = false // when the loader told of it
    var isAgain = false     // what it needs and is bound to is in the trace already
    var buildID: UInt64 = 0 // a hash; 0 none
    /// In the present file, once there is one.
    var endRecord: UnsafeMutablePointer<trace_module_end_record>?
    /// Of a module that was loaded later: what stands in for DT_INIT, DT_FINI and their arrays.
    var initializer: UnsafeMutablePointer<function_descriptor>?
    var finalizer: UnsafeMutablePointer<function_descriptor>?
    var initializers = StubTable()
    var finalizers = StubTable()
    var hasStubs = false

    enum State: UInt8 { case pending, bound, retired, ignored }
    var name: CText { baseName(path) }
}

enum ModuleTable {
    nonisolated(unsafe) static var modules = Table<Module>()
    /// One a module, side by side: a search asks all of them.
    nonisolated(unsafe) static var filters = Table<BloomFilter>()
    /// Where addresses were found, by their 16 KB: most slots of a process lead to a few modules, and small ones lie side by side.
    nonisolated(unsafe) private static var found = InlineArray<1024, UInt16>(repeating: 0)
    nonisolated(unsafe) private static var textRoom: UnsafeMutablePointer<UInt8>?
    nonisolated(unsafe) private static var textLeft = 0
    nonisolated(unsafe) private static var latestText = 0 // bytes of the last path

    /// Index of the live module that holds this address.
    static func index(of address: UInt64) -> Int? {
        let place = Int(truncatingIfNeeded: address &>> 14) & 1023
        let guess = Int(found[place])
        if guess < modules.count && holds(guess, address) { return guess }
        for n in 0..<modules.count where holds(n, address) {
            found[place] = UInt16(truncatingIfNeeded: n)
            return n
        }
        return nil
    }
    /// The first module in the loader's order, of those that are asked, that defines the symbol, and where.
    @inline(__always) static func definition(
        of query: SymbolQuery, from candidate: CallSlots.Candidate = CallSlots.Candidate(), where isAsked: (UnsafeMutablePointer<Module>) -> Bool = { _ in true }
    ) -> (module: Int, symbol: Int)? {
        var n = candidate.module >= 0 ? candidate.module : filters.first(from: 0, thatAdmits: query.name.gnuHash)
        while n < modules.count {
            let module = modules.pointer(n)
            if module.pointee.state != .retired, isAsked(module),
               let symbol = Image.find(query, in: &module.pointee.image, from: n == candidate.module ? candidate.symbol : 0) { return (n, symbol) }
            n = filters.first(from: n &+ 1, thatAdmits: query.name.gnuHash)
        }
        return nil
    }
    /// Valid until a module is added.
    static func module(of address: UInt64) -> UnsafeMutablePointer<Module>? {
        index(of: address).map { modules.pointer($0) }
    }
    @inline(__always) private static func holds(_ n: Int, _ address: UInt64) -> Bool {
        let module = modules.pointer(n)
        return module.pointee.state != .retired && module.pointee.image.contains(address)
    }

    static func index(of loader: UnsafeMutablePointer<loader_module>) -> Int? {
        for n in 0..<modules.count {
            let module = modules.pointer(n)
            if module.pointee.loader == loader && module.pointee.state != .retired
                && module.pointee.image.bias == loader.pointee.bias { return n }
        }
        return nil
    }

    /// Adds a module of the loader's list. nil when it has nothing that could be traced.
    static func add(_ loader: UnsafeMutablePointer<loader_module>, isMain: Bool, batch: UInt32, inBase: Bool) -> Int? {
        let dynamic = UInt64(UInt(bitPattern: loader.pointee.dynamic))
        let image = isMain
            ? Image(bias: loader.pointee.bias, dynamic: dynamic, programHeaders: agent.programHeaders,
                    count: agent.programHeaderCount)
            : Image(bias: loader.pointee.bias, dynamic: dynamic)
        var module = Module(image: image, loader: loader, path: path(of: loader, isMain: isMain), state: .pending,
                            isStartup: batch == 0, inBaseNamespace: inBase, batch: batch)
        module.buildID = buildIDHash(image)
        if batch != 0, let index = revive(module) {
            giveBackPath()
            return index
        }
        let isOurs = image.contains(tracer_code_low())
        let isLoader = agent.loaderBase != 0 && image.low == agent.loaderBase
        let isKernels = agent.kernelImage != 0 && image.contains(agent.kernelImage)
        module.isSanitizer = SanitizerRuntime.isLibrary(module.path)
        if isOurs || isLoader || isKernels || module.isSanitizer || !image.isUsable { module.state = .ignored }
        // A filter too many is harmless, a module without one is not.
        if filters.count == modules.count && !filters.append(image.gnuHash.filter) || !modules.append(module) { return nil }
        let index = modules.count &- 1
        StackCopying.note(module: module.path)
        Metadata.module(module, UInt32(index))
        return index
    }

    /// The retired entry of the same file at the same place.
    private static func revive(_ module: Module) -> Int? {
        if !module.image.isUsable { return nil }
        for n in 0..<modules.count {
            let old = modules.pointer(n)
            if old.pointee.state != .retired || old.pointee.image.bias != module.image.bias
                || old.pointee.image.low != module.image.low || old.pointee.image.high != module.image.high
                || old.pointee.buildID != module.buildID || !equal(old.pointee.path, module.path) { continue }
            old.pointee.image = module.image
            old.pointee.loader = module.loader
            old.pointee.state = old.pointee.isSanitizer ? .ignored : .pending
            old.pointee.inBaseNamespace = module.inBaseNamespace
            old.pointee.batch = module.batch
            old.pointee.isAgain = true
            old.pointee.isForeign = false
            old.pointee.hasForeignCalls = false
            filters[n] = module.image.gnuHash.filter
            Metadata.moduleEnd(UInt32(n), ticks: 0, &old.pointee.endRecord)
            return n
        }
        return nil
    }
    private static func buildIDHash(_ image: Image) -> UInt64 {
        var id: (UInt64, UInt64, UInt32) = (0, 0, 0) // room for the twenty bytes of an id
        _ = image.copyBuildID(&id)
        return id.0 ^ (id.1 &* 0x9e37_79b9_7f4a_7c15) ^ UInt64(id.2)
    }

    /// In a forked child: the records of its parent's file are not its own.
    static func forgetRecords() {
        for n in 0..<modules.count { modules.pointer(n).pointee.endRecord = nil }
    }

    /// The path that was copied last is not needed after all.
    private static func giveBackPath() {
        if latestText == 0 { return }
        textRoom! -= latestText
        textLeft &+= latestText
        latestText = 0
    }

    /// Our copy of the path: the loader frees its own when the module goes.
    private static func path(of loader: UnsafeMutablePointer<loader_module>, isMain: Bool) -> CText {
        let unknown = CText(StaticString("?").utf8Start)
        let given = loader.pointee.name.map { UnsafeRawPointer($0).assumingMemoryBound(to: UInt8.self) } ?? unknown
        let name = isMain ? agent.executable : given[0] == 0 ? CText(StaticString("[vdso]").utf8Start) : given
        let isRelative = name[0] != 0x2f && baseName(name) != name
        let needed = length(name) &+ 2 &+ (isRelative ? length(agent.directory) : 0)
        latestText = 0
        if needed > textLeft {
            let wanted = max(65536, (needed &+ 4095) & ~4095)
            guard let room = Memory.pages(wanted) else { return unknown }
            textRoom = room.assumingMemoryBound(to: UInt8.self)
            textLeft = wanted
        }
        var text = TextBuffer(textRoom!, capacity: textLeft)
        if isRelative {
            text.append(contentsOf: agent.directory)
            text.append(0x2f)
        }
        text.append(contentsOf: name)
        let start = CText(textRoom!)
        textRoom! += needed
        textLeft &-= needed
        latestText = needed
        return start
    }
}
