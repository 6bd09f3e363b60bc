// Points the slots of a module at stubs: the ELF analogue of fishhook, one pass over its relocations.
//
// JUMP_SLOT is what a call through the PLT uses, always. GLOB_DAT is a function pointer unless the text proves
// otherwise (TextScan.swift). Everything else (R_*_64 data, IRELATIVE, COPY, TLSDESC, which may sit inside
// .rela.plt) is left alone.
import CSupport
import CTraceLayout

struct Rebinder {
    /// No module is added meanwhile, so these stay valid; copies of structures of this size are not free.
    private let index: Int
    private let module: UnsafeMutablePointer<Module>
    private let image: UnsafeMutablePointer<Image>
    var access: WriteAccess
    private var detail = trace_module_detail_record()

    /// The module must be relocated. Marks it as bound. `andThen`: what else is to be changed in it. Returns what was counted.
    static func bind(_ index: Int, andThen change: (inout WriteAccess) -> Void) -> trace_module_detail_record {
        let module = ModuleTable.modules.pointer(index)
        module.pointee.state = .bound
        let image = withUnsafeMutablePointer(to: &module.pointee.image) { $0 }
        var rebinder = Rebinder(index: index, module: module, image: image, access: WriteAccess(image, isRelocated: true))
        VersionNeeds.forget()
        Bindings.begin()
        rebinder.bindCallSlots()
        rebinder.bindData()
        change(&rebinder.access)
        rebinder.access.close()
        return rebinder.detail
    }

    private mutating func bindCallSlots() {
        var slots = CallSlots<GlobalScope>(image, isGlobal: module.pointee.isStartup), isAnyLazy = false
        for n in 0..<slots.count {
            let slot = slots.slot(n)
            if !slot.isCall { continue }
            var target = slot.value
            if slot.isLazy {
                detail.flags |= UInt32(TRACE_MODULE_LAZY)
                if slot.policy == .none { continue }
                guard let found = lazyTarget(slot.query, slot.candidate) else {
                    isAnyLazy = true
                    countLikelyTarget(slot.query)
                    continue
                }
                target = found
            }
            guard let owner = ModuleTable.index(of: target) else { continue }
            Bindings.add(toModule: owner, isCall: true)
            if slot.policy != .none && !slot.hasVariantConvention {
                rebind(slot.address, target, of: owner, slot.query.name, slot.policy)
            }
        }
        detail.jump_slots = UInt32(slots.count)
        if isAnyLazy { LazySlots.watch(index, &access) }
    }

    private mutating func bindData() {
        let first = image.pointee.relativeRelocationCount, end = image.pointee.dataRelocationCount
        detail.relative_relocations = UInt32(first)
        var owner = -1, low: UInt64 = 0, byteCount: UInt64 = 0 // the last one: most relocations are followed by one of the same module
        for n in first..<end {
            let relocation = image.pointee.dataRelocation(n)
            if n &+ 16 < end { image.pointee.prefetch(image.pointee.dataRelocation(n &+ 16).offset) }
            if relocation.symbol == 0 {
                detail.other_relocations &+= 1
                continue
            }
            detail.symbol_relocations &+= 1
            if relocation.type == Architecture.globalData || relocation.type == Architecture.word {
                guard let value = image.pointee.word64(image.pointee.bias &+ relocation.offset) else { continue }
                if value &- low >= byteCount {
                    guard let found = ModuleTable.index(of: value) else { continue }
                    let other = ModuleTable.modules.pointer(found)
                    (owner, low, byteCount) = (found, other.pointee.image.low, other.pointee.image.high &- other.pointee.image.low)
                }
                Bindings.add(toModule: owner, isCall: false)
            } else if let holder = holder(of: relocation.symbol) { // a copy, thread-local storage: no address of it is here
                Bindings.add(toModule: holder, isCall: false)
            }
        }
        bindStart()
        if !module.pointee.hasForeignCalls { bindCallOnlyData() }
    }

    /// The module whose definition a symbol has.
    private func holder(of symbolIndex: Int) -> Int? {
        guard let symbol = image.pointee.symbol(symbolIndex)?.pointee, let text = image.pointee.name(of: symbol) else { return nil }
        let query = SymbolQuery(name: Name(text), version: VersionNeeds.of(symbolIndex, image))
        return ModuleTable.definition(of: query) { $0 != module }?.module
    }

    /// Counts the likely module for the binding record alone: which one the loader will find is not known before it looks.
    @inline(never) private func countLikelyTarget(_ query: SymbolQuery) {
        let own = module.pointee.load
        if let found = ModuleTable.definition(of: query, where: { $0.pointee.load == 0 || $0.pointee.load == own }) {
            Bindings.add(toModule: found.module, isCall: true)
        }
    }

    /// The start-up code of an executable calls libc's start of main through a slot, and does nothing else with it. So
    /// the text need not be searched for that: the slot is in the first instructions.
    private mutating func bindStart() {
        guard let slot = StartCode.slot(image) else { return }
        for n in image.pointee.relativeRelocationCount..<image.pointee.dataRelocationCount {
            let relocation = image.pointee.dataRelocation(n)
            if relocation.type != Architecture.globalData || image.pointee.bias &+ relocation.offset != slot { continue }
            guard let (slot, value, _, text) = resolve(relocation) else { return }
            let name = Name(text)
            if HookPolicy.named(name) == .start, let owner = ModuleTable.index(of: value) {
                rebind(slot, value, of: owner, name, .start)
            }
            return
        }
    }

    private mutating func bindCallOnlyData() {
        var low = UInt64.max, high: UInt64 = 0
        let bias = image.pointee.bias
        forEachGlobalData { relocation in
            low = min(low, bias &+ relocation.offset)
            high = max(high, bias &+ relocation.offset)
        }
        guard low <= high, let slots = CallOnlySlots(low: low, high: high) else { return }
        defer { slots.release() }
        var any = false
        forEachGlobalData { relocation in
            slots.add(bias &+ relocation.offset)
            if !any { any = functionSlot(relocation) != nil }
        }
        if !any { return }
        if ScanCache.recall(slots, module) {
            detail.flags |= UInt32(TRACE_MODULE_REMEMBERED)
        } else {
            // Whatever they hold in this process: what is found is then the module's alone. Only if one of them is called must
            // the text be searched twice, and most modules call one that is never touched (__gmon_start__).
            slots.removeAll()
            forEachGlobalData { relocation in
                if mayBeFunction(relocation) { slots.add(bias &+ relocation.offset) }
            }
            slots.scan(image.pointee, at: module.pointee.path)
            ScanCache.remember(slots)
            detail.flags |= UInt32(TRACE_MODULE_SEARCHED)
        }
        // An unwinder may keep the address of what it asks (libunwind 1.8, local_addr_space.iterate_phdr_function), and compares it with
        // nothing: its slots for that lead to ours whatever it does with them.
        let asks = module.pointee.inBaseNamespace && UnwinderQuestions.asks(withUnsafePointer(to: &module.pointee.image) { $0 })
        for n in image.pointee.relativeRelocationCount..<image.pointee.dataRelocationCount {
            let relocation = image.pointee.dataRelocation(n)
            if relocation.type != Architecture.globalData { continue }
            let isCallOnly = slots.isCallOnly(bias &+ relocation.offset)
            guard isCallOnly || asks,
                let (slot, value, name, policy) = functionSlot(relocation), isCallOnly || UnwinderQuestions.isQuestion(name.text),
                let owner = ModuleTable.index(of: value),
                !ProcedureLinkage.isEntry(value, in: &ModuleTable.modules.pointer(owner).pointee.image)
            else { continue }
            rebind(slot, value, of: owner, name, policy)
        }
    }

    @inline(__always) private func forEachGlobalData(_ body: (Relocation) -> Void) {
        for n in image.pointee.relativeRelocationCount..<image.pointee.dataRelocationCount {
            let relocation = image.pointee.dataRelocation(n)
            if relocation.type == Architecture.globalData && (image.pointee.bias &+ relocation.offset) & 7 == 0 { body(relocation) }
        }
    }

    /// Returns true if the module's own symbol for the reference may be a function's.
    private func mayBeFunction(_ relocation: Relocation) -> Bool {
        guard relocation.symbol != 0, let symbol = image.pointee.symbol(relocation.symbol)?.pointee,
            symbol.type == Symbol.function || symbol.type == Symbol.notype || symbol.type == Symbol.indirectFunction,
            !symbol.hasVariantConvention, let text = image.pointee.name(of: symbol)
        else { return false }
        return HookPolicy.named(Name(text)).isForAnySlot
    }

    /// A GLOB_DAT slot that holds the address of a function of some module. It may be the address of a PLT entry. Only
    /// the function's code would show that, a page fault for each, and it matters for few slots.
    private func functionSlot(_ relocation: Relocation) -> (UInt64, UInt64, Name, HookPolicy)? {
        if relocation.type != Architecture.globalData || relocation.symbol == 0 { return nil }
        guard let (slot, value, symbol, text) = resolve(relocation),
            symbol.type == Symbol.function || symbol.type == Symbol.notype || symbol.type == Symbol.indirectFunction,
            !symbol.hasVariantConvention, let owner = ModuleTable.module(of: value), owner.pointee.image.isCode(value)
        else { return nil }
        let name = Name(text)
        let policy = HookPolicy.named(name)
        return policy.isForAnySlot ? (slot, value, name, policy) : nil
    }

    /// Slot address, what it holds now, symbol and name; nil when it is not to be touched.
    @inline(__always) private func resolve(_ relocation: Relocation) -> (UInt64, UInt64, Symbol, CText)? {
        let slot = image.pointee.bias &+ relocation.offset
        guard slot & 7 == 0, let value = image.pointee.word64(slot), value != 0, // a weak function that nobody defines
            let symbol = image.pointee.symbol(relocation.symbol)?.pointee,
            let name = image.pointee.name(of: symbol)
        else { return nil }
        return (slot, value, symbol, name)
    }

    /// Returns where the loader would bind a slot of a module that is there at the start: load 0 is the global scope, which comes
    /// first, and nothing can be put before it there. All other slots the loader binds at the first call (LazySlots.swift).
    private func lazyTarget(_ query: SymbolQuery, _ candidate: SearchStart) -> UInt64? {
        if !module.pointee.isStartup || !module.pointee.inBaseNamespace { return nil }
        return GlobalDefinitions.find(query) { globalDefinition(query, candidate) }
    }

    @inline(never) private func globalDefinition(_ query: SymbolQuery, _ candidate: SearchStart) -> UInt64? {
        guard let found = ModuleTable.definition(of: query, from: candidate, where: { $0.pointee.load == 0 }) else { return nil }
        let image = withUnsafePointer(to: &ModuleTable.modules.pointer(found.module).pointee.image) { $0 }
        guard let symbol = image.pointee.symbol(found.symbol)?.pointee else { return nil }
        let address = image.pointee.bias &+ symbol.value
        if !image.pointee.isCode(address) { return nil }
        return symbol.type == Symbol.indirectFunction ? tracer_call_resolver(address) : address
    }

    @inline(never) private mutating func rebind(_ slot: UInt64, _ target: UInt64, of owner: Int, _ name: Name, _ policy: HookPolicy) {
        if policy == .start { return module.pointee.isStartup ? hookStart(slot, target) : () }
        if !access.open(slot) { return }
        guard let stub = Rebinder.stub(of: target, in: owner, name, policy, calledBy: module) else { return }
        ChangedSlots.store(stub, at: slot, insteadOf: target)
    }

    /// Returns the value for a slot with this target. nil: the target.
    static func stub(of target: UInt64, _ name: Name, calledBy module: UnsafeMutablePointer<Module>) -> UInt64? {
        let policy = HookPolicy.named(name)
        guard policy.isForAnySlot, let owner = ModuleTable.index(of: target) else { return nil }
        return stub(of: target, in: owner, name, policy, calledBy: module)
    }
    @inline(never) private static func stub(
        of target: UInt64, in owner: Int, _ name: Name, _ policy: HookPolicy,
        calledBy module: UnsafeMutablePointer<Module>
    ) -> UInt64? {
        let other = ModuleTable.modules.pointer(owner)
        let definer = HookPolicy.Definer(
            image: withUnsafePointer(to: &other.pointee.image) { $0 }, path: other.pointee.path, identity: other.pointee.buildID,
            inBaseNamespace: other.pointee.inBaseNamespace, isForeign: other.pointee.isForeign,
            isSanitizer: other.pointee.isSanitizer, asksForCallers: other.pointee.asksForCallers)
        let caller = HookPolicy.Caller(
            image: withUnsafePointer(to: &module.pointee.image) { $0 }, path: module.pointee.path,
            inBaseNamespace: module.pointee.inBaseNamespace, hasForeignCalls: module.pointee.hasForeignCalls)
        let decision = policy.decision(
            on: name, at: target, in: definer, calledBy: caller, isPatched: PatchedFunctions.isPatched(target, in: owner))
        switch decision {
        case .keep: return nil
        case .substitute(let policy): return substitute(policy, for: name, at: target, in: definer, calledBy: caller)
        case .watch(let policy): return SafetyHooks.stub(target: target, policy: policy)
        case .hook(let policy): return FunctionTable.stub(target: target, name: name, module: owner, of: definer, policy: policy)
        }
    }
    /// Returns the agent's function in place of this one. nil: there is none.
    @inline(never) private static func substitute(
        _ policy: HookPolicy, for name: Name, at target: UInt64, in definer: HookPolicy.Definer, calledBy caller: HookPolicy.Caller
    ) -> UInt64? {
        switch policy {
        case .unwinderQuery: return UnwinderQuestions.substitute(for: name, at: target, askedBy: caller.image)
        case .instrumentation: return InstrumentedFunctions.substitute(for: name)
        default:
            let ours = policy.replacement(of: target, name, in: definer.image)
            return ours == target ? nil : ours
        }
    }

    /// Only for the slot of the executable: other modules that call it do not call main.
    private mutating func hookStart(_ slot: UInt64, _ target: UInt64) {
        guard image.pointee.contains(Process.entry), access.open(slot),
            let (stub, hook) = FunctionTable.stub(kind: KIND_START)
        else { return }
        hook.pointee.target = UnsafeRawPointer(bitPattern: UInt(target))
        tracer_store_release_64(UnsafeMutablePointer(bitPattern: UInt(slot))!, stub)
    }
}

/// Cache of lookups in the global scope (every library looks up malloc). Its modules stay, and so do the definitions.
enum GlobalDefinitions {
    private struct Entry {
        var name: UInt64 // hash; the other one and that of the version
        var gnuHash: UInt32, version: UInt32
        var target: UInt64 // 0: nobody defines it

        @inline(__always) func answers(_ query: SymbolQuery) -> Bool {
            name == query.name.hash && gnuHash == query.name.gnuHash && version == query.version.hash
        }
    }
    nonisolated(unsafe) private static var count = 128 // direct-mapped: a later name replaces an earlier one
    nonisolated(unsafe) private static var table: UnsafeMutableRawPointer?

    /// Makes the table, before the first lookup, for this many slots: all its pages at once, since each would cost a page fault.
    static func expect(_ slots: Int) {
        while count < slots &* 2 && count < 4096 { count = count &* 2 }
        let bytes = count &* MemoryLayout<Entry>.stride
        table = Memory.pages(bytes)
        if let table { Memory.populate(table, bytes) }
    }

    @inline(__always) static func find(_ query: SymbolQuery, _ search: () -> UInt64?) -> UInt64? {
        guard let entry = entry(query) else { return search() }
        if !entry.pointee.answers(query) {
            entry.pointee = Entry(name: query.name.hash, gnuHash: query.name.gnuHash, version: query.version.hash, target: search() ?? 0)
        }
        return entry.pointee.target == 0 ? nil : entry.pointee.target
    }
    @inline(__always) static func isKnown(_ query: SymbolQuery) -> Bool { entry(query)?.pointee.answers(query) ?? false }

    @inline(__always) static func prefetch(_ query: SymbolQuery) { tracer_prefetch(entry(query)) }

    @inline(__always) private static func entry(_ query: SymbolQuery) -> UnsafeMutablePointer<Entry>? {
        let bucket = (Name.bucket(query.name.hash) ^ Int(query.version.hash)) & (count &- 1)
        return table.map { $0.assumingMemoryBound(to: Entry.self) + bucket }
    }
}
