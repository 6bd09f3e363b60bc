// One id, one hook and one stub for each target function. The same function has one id whichever module calls
// it; two names of one address (memcpy and memmove) are two functions to their callers and have two ids.
import CSupport
import CTraceLayout

enum FunctionTable {
    struct Entry {
        var target: UInt64
        var name: UInt64 // hash
        var module: UInt32
        var hook: UInt32
        var byteCount: UInt32 = 0 // aarch64: of the code, where its symbol says so
        var policy: HookPolicy
        var isEntryOnly = false // each call is recorded by its entry alone
        var trigger: UInt8 = 0 // its number, from 1 on (Triggers.swift)
        var choice = CallChoice.current // what its hook was made for

        func contains(_ address: UInt64) -> Bool { address &- target < UInt64(byteCount) }
    }
    nonisolated(unsafe) private static var entries = Table<Entry>() // indexed by id; 0 stands for none
    /// Open addressing, by name; ids, 0 = empty. A quarter full at most, since each collision costs a cache miss.
    nonisolated(unsafe) private static var slots: UnsafeMutablePointer<UInt32>?
    nonisolated(unsafe) private static var slotCount = 0
    nonisolated(unsafe) private static var isFull = false

    static func entry(_ id: UInt32) -> Entry { entries[Int(id)] }

    /// Slots are bound with the loader's lock held; names that the program gives come from any thread.
    nonisolated(unsafe) private static var lock = Lock()
    /// In a forked child: another thread of the parent may have held it. What the parent writes into its blocks is in the child's
    /// copies as well, so the child begins others.
    static func becomeChild() {
        lock = Lock()
        forgetBlocks()
    }
    /// Another file begins.
    static func forgetBlocks() {
        lock.lock()
        defer { lock.unlock() }
        for n in 0..<blocks.count { blocks[n] = Block() }
    }

    /// The stub that a slot with this target must hold. nil if the table is full, or the function is not recorded.
    static func stub(target: UInt64, name: Name, module: Int, of definer: HookPolicy.Definer, policy: HookPolicy) -> UInt64? {
        lock.lock()
        defer { lock.unlock() }
        guard let slot = find(target, name.hash, UInt32(module)) else { return nil }
        if slots![slot] != 0 { return Stubs.address(of: Int(entries[Int(slots![slot])].hook)) }
        guard let hooking = policy.hooking(of: name, at: target, in: definer) else { return nil }
        let program =
            hooking.mayHaveArguments
            ? ArgumentPlan.program(of: name, at: target &- definer.image.pointee.bias, in: definer.identity) {
                FunctionHome.isOne(of: $0, definer.image)
            } : 0
        let trigger =
            hooking.mayHaveArguments || hooking.policy == .raising ? TriggerList.number(function: name.text, path: definer.path) : 0
        guard let index = Stubs.take(hooking.isOrdinary && program == 0 && trigger == 0 ? .call : .special) else { return nil }
        var entry = Entry(
            target: target, name: name.hash, module: UInt32(module), hook: UInt32(index),
            byteCount: UInt32(truncatingIfNeeded: hooking.byteCount), policy: hooking.policy, isEntryOnly: hooking.isEntryOnly)
        entry.trigger = trigger
        guard let id = add(entry, at: slot) else { return nil }
        let hook = tracer_function(index)!
        let called = hooking.isSubstituted ? hooking.policy.replacement(of: target, name, in: definer.image) : target
        hook.pointee.target = UnsafeRawPointer(bitPattern: UInt(called))
        hook.pointee.function = id
        hook.pointee.instant = Event.head(.complete, id)
        hook.pointee.head = Event.head(.enter, id)
        hook.pointee.argument = CallObjects.argument(hooking.object)
        hook.pointee.kind = hooking.kind
        if (program != 0 || trigger != 0) && hooking.kind == UInt8(KIND_CALL) {
            if trigger == 0 && ArgumentPlan.isPlain(program) {
                hook.pointee.argument |= UInt8(FUNCTION_HAS_VALUES)
            } else {
                hook.pointee.kind = UInt8(KIND_ARGUMENTS)
            }
        }
        if trigger != 0 && hooking.kind == UInt8(KIND_APART) { hook.pointee.kind = UInt8(KIND_INSPECT) } // at every call
        hook.pointee.counter = program
        MetadataWriter.function(id, module: UInt32(module), address: target, flags: hooking.recordFlags, name: name)
        ArgumentPlan.use(program, object: 0)
        if trigger != 0 { Triggers.noteWatched() }
        return Stubs.address(of: index)
    }

    /// The id of a name that the program gave to spans or marks, by the flags that say which. nil when the table is full.
    static func named(_ name: Name, flags: some BinaryInteger) -> UInt32? {
        lock.lock()
        defer { lock.unlock() }
        let flags = UInt32(truncatingIfNeeded: flags)
        guard let slot = find(UInt64(flags), name.hash, .max) else { return nil } // no code is at such an address
        if slots![slot] != 0 { return slots![slot] }
        let entry = Entry(target: UInt64(flags), name: name.hash, module: .max, hook: 0, policy: .record)
        guard let id = add(entry, at: slot) else { return nil }
        MetadataWriter.function(id, module: .max, address: 0, flags: flags, name: name)
        return id
    }

    /// The id for those calls of a function that are recorded by their entry alone. nil when the table is full.
    static func entryOnly(of function: UInt32) -> UInt32? {
        lock.lock()
        defer { lock.unlock() }
        let known = entries[Int(function)], name: UInt64 = 1 // the hash of none
        guard let slot = find(known.target, name, known.module) else { return nil }
        if slots![slot] != 0 { return slots![slot] }
        guard let id = add(Entry(target: known.target, name: name, module: known.module, hook: .max, policy: .record), at: slot) else {
            return nil
        }
        MetadataWriter.function(id, module: known.module, address: known.target, flags: UInt32(TRACE_FUNCTION_ENTRY_ONLY), name: Name())
        HotFunctions.add(id, entryOf: function)
        return id
    }

    /// An id for a function that is not called through a slot; `locked` is held. nil when the table is full.
    /// - Parameter low: the module's lowest address
    static func number(_ target: UInt64, module: Int, low: UInt64) -> UInt32? {
        while blocks.count <= module { if !blocks.append(Block()) { return nil } }
        let block = blocks.pointer(module)
        if block.pointee.used == block.pointee.count && !begin(block, module) { return nil }
        tracer_store_release_32(block.pointee.offsets! + Int(block.pointee.used), UInt32(truncatingIfNeeded: target &- low))
        let id = block.pointee.first &+ block.pointee.used
        entries.pointer(Int(id)).pointee.target = target
        block.pointee.used &+= 1
        return id
    }
    /// The same with a record of its own, for a function with flags; `locked` is held.
    static func number(_ target: UInt64, module: UInt32, flags: UInt32, name: Name, trigger: UInt8 = 0) -> UInt32? {
        if !hasNone { return nil }
        let id = UInt32(entries.count)
        let entry = Entry(target: target, name: 0, module: module, hook: .max, policy: .record, trigger: trigger)
        if id >= Event.functionReach || !entries.append(entry) { return nil }
        numberedCount &+= 1
        MetadataWriter.function(id, module: module, address: target, flags: flags, name: name)
        if trigger != 0 { Triggers.noteWatched() }
        return id
    }
    /// Ids of functions of a module that share one record: four bytes each, and their names are in the module's file.
    private struct Block: BitwiseCopyable {
        var offsets: UnsafeMutablePointer<UInt32>?
        var first: UInt32 = 0
        var used: UInt32 = 0
        var count: UInt32 = 0
    }
    nonisolated(unsafe) private static var blocks = Table<Block>() // the latest block of each module, by its index
    private static let firstBlock: UInt32 = 64, largestBlock: UInt32 = 4096

    private static func begin(_ block: UnsafeMutablePointer<Block>, _ module: Int) -> Bool {
        let count = min(max(block.pointee.count &* 2, firstBlock), largestBlock)
        if !hasNone || UInt32(entries.count) &+ count > Event.functionReach { return false }
        let first = UInt32(entries.count)
        for _ in 0..<count {
            if !entries.append(Entry(target: 0, name: 0, module: UInt32(module), hook: .max, policy: .record)) { return false }
            numberedCount &+= 1
        }
        guard let offsets = MetadataWriter.functions(first, module: UInt32(module), count: count) else { return false }
        block.pointee = Block(offsets: offsets, first: first, used: 0, count: count)
        return true
    }
    /// Id 0 is taken.
    private static var hasNone: Bool {
        entries.count > 0 || entries.append(Entry(target: 0, name: 0, module: 0, hook: 0, policy: .record))
    }
    /// Number of ids in blocks: they are in no slot of the table.
    nonisolated(unsafe) private static var numberedCount = 0
    static func locked<Result>(_ body: () -> Result) -> Result {
        lock.lock()
        defer { lock.unlock() }
        return body()
    }

    /// Returns the slot of this target and name, or the empty one for it. The same address may have been another module's.
    private static func find(_ target: UInt64, _ hash: UInt64, _ module: UInt32) -> Int? {
        if !hasNone { return nil }
        if (entries.count &- numberedCount &+ 1) &* 4 > slotCount && !growSlots(slotCount == 0 ? 4096 : slotCount &* 4) { return nil }
        var slot = Name.bucket(hash) & (slotCount &- 1)
        while slots![slot] != 0 {
            let known = entries.pointer(Int(slots![slot]))
            if known.pointee.target == target && known.pointee.name == hash && known.pointee.module == module
                && known.pointee.choice == CallChoice.current
            {
                break
            }
            slot = (slot &+ 1) & (slotCount &- 1)
        }
        return slot
    }
    private static func add(_ entry: Entry, at slot: Int) -> UInt32? {
        let id = UInt32(entries.count)
        if id >= Event.functionReach || !entries.append(entry) { return nil }
        slots![slot] = id
        return id
    }

    /// A stub without an id, whose hook the caller fills in: of an initializer, or of libc's start of main.
    static func stub(kind: some BinaryInteger) -> (stub: UInt64, hook: UnsafeMutablePointer<function_hook>)? {
        guard let index = Stubs.take(.special) else { return nil }
        let hook = tracer_function(index)!
        hook.pointee.kind = UInt8(truncatingIfNeeded: kind)
        return (Stubs.address(of: index), hook)
    }

    /// A stub without an id: its calls are measured, not recorded. The hook says of which function.
    static func calibrationStub(_ hook: inout UnsafeMutablePointer<function_hook>?) -> (@convention(c) () -> Void)? {
        guard let index = Stubs.take(.call) else { return nil }
        hook = tracer_function(index)
        guard let hook else { return nil }
        hook.pointee.head = Event.head(.enter, 0)
        hook.pointee.kind = UInt8(KIND_CALL)
        return unsafeBitCast(UnsafeRawPointer(bitPattern: UInt(Stubs.address(of: index))), to: (@convention(c) () -> Void)?.self)
    }

    /// Prefetches the slot where the functions of this name are.
    @inline(__always) static func prefetch(_ name: Name) {
        if slotCount > 0 { tracer_prefetch(slots! + Name.bucket(name.hash) & (slotCount &- 1)) }
    }
    /// Prefetches the function that is there.
    @inline(__always) static func prefetchFunction(_ name: Name) {
        if slotCount == 0 { return }
        let id = slots![Name.bucket(name.hash) & (slotCount &- 1)]
        if id != 0 { tracer_prefetch(entries.pointer(Int(id))) }
    }
    /// Reserves space before the modules that are there at the start are bound. `count`: their slots, and so at most as many functions.
    static func expect(_ count: Int) {
        var wanted = 4096
        while wanted < count &* 4 && wanted < 1 << 18 { wanted = wanted &* 2 }
        if slotCount == 0 { _ = growSlots(wanted) }
        Stubs.expect(count)
    }
    private static func growSlots(_ wanted: Int) -> Bool {
        guard let buffer = Memory.pages(wanted &* 4) else { return false }
        Memory.populate(buffer, wanted &* 4)
        let fresh = buffer.assumingMemoryBound(to: UInt32.self)
        for id in 1..<max(entries.count, 1) where entries[id].hook != .max {
            var slot = Name.bucket(entries[id].name) & (wanted &- 1)
            while fresh[slot] != 0 { slot = (slot &+ 1) & (wanted &- 1) }
            fresh[slot] = UInt32(id)
        }
        Memory.release(slots, slotCount &* 4)
        slots = fresh
        slotCount = wanted
        return true
    }
}

extension HookPolicy {
    /// Returns the agent's function that stands in for the one at `target`, and calls it; `target`: there is none.
    func replacement(of target: UInt64, _ name: Name, in owner: UnsafePointer<Image>) -> UInt64 {
        self == .execution ? Executions.target(target, name, in: owner) : Backtraces.target(target, name, in: owner)
    }
}
