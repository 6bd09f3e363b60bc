// Points the slots of a module at stubs: the ELF analogue of fishhook, one pass over its relocations.
//
// JUMP_SLOT is what a call through the PLT uses, always. GLOB_DAT is a function pointer unless the text proves
// otherwise (TextScan.swift). Everything else (R_*_64 data, IRELATIVE, COPY, TLS descriptors, which may sit inside
// .rela.plt) is left alone.
import CSupport
import CTraceLayout

struct Rebinder {
    /// No module is added meanwhile, so these stay valid; copies of structures of this size are not free.
    private let module: UnsafeMutablePointer<Module>
    private let image: UnsafeMutablePointer<Image>
    var access: WriteAccess
    private var detail = trace_module_detail_record()

    /// The module must be relocated. Marks it as bound.
    static func bind(_ index: Int) {
        let module = ModuleTable.modules.pointer(index)
        module.pointee.state = .bound
        let image = withUnsafeMutablePointer(to: &module.pointee.image) { $0 }
        var rebinder = Rebinder(module: module, image: image, access: WriteAccess(image, isRelocated: true))
        VersionNeeds.forget()
        Bindings.begin()
        rebinder.bindCallSlots()
        rebinder.bindData()
        if module.pointee.isStartup { InitializerStubs.replaceAtStart(index, &rebinder.access) }
        if !module.pointee.isAgain { Bindings.write(from: index) }
        Metadata.detail(&rebinder.detail, module, index)
        rebinder.access.close()
    }

    private mutating func bindCallSlots() {
        var slots = CallSlots(image, isGlobal: module.pointee.isStartup)
        for n in 0..<slots.count {
            let slot = slots.slot(n)
            if !slot.isCall { continue }
            var target = slot.value
            if slot.isLazy {
                detail.flags |= UInt32(TRACE_MODULE_LAZY)
                if slot.treatment == .untouched { continue }
                guard let found = lazyTarget(slot.query, slot.candidate) else { continue }
                target = found
            }
            guard let owner = ModuleTable.index(of: target) else { continue }
            Bindings.add(toModule: owner, isCall: true)
            if slot.treatment != .untouched && !slot.hasVariantConvention {
                rebind(slot.address, target, of: owner, slot.query.name, slot.treatment)
            }
        }
        detail.jump_slots = UInt32(slots.count)
    }

    private mutating func bindData() {
        let first = image.pointee.relativeRelocationCount, end = image.pointee.dataRelocationCount
        detail.relative_relocations = UInt32(first)
        for n in first..<end {
            let relocation = image.pointee.dataRelocation(n)
            if relocation.symbol == 0 {
                detail.other_relocations &+= 1
                continue
            }
            detail.symbol_relocations &+= 1
            if relocation.type == Machine.globalData || relocation.type == Machine.word {
                if let value = image.pointee.word64(image.pointee.bias &+ relocation.offset), let owner = ModuleTable.index(of: value) {
                    Bindings.add(toModule: owner, isCall: false)
                }
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

    /// The start-up code of an executable calls libc's start of main through a slot, and does nothing else with it. So
    /// the text need not be searched for that: the slot is in the first instructions.
    private mutating func bindStart() {
        guard let slot = StartCode.slot(image) else { return }
        for n in image.pointee.relativeRelocationCount..<image.pointee.dataRelocationCount {
            let relocation = image.pointee.dataRelocation(n)
            if relocation.type != Machine.globalData || image.pointee.bias &+ relocation.offset != slot { continue }
            guard let (slot, value, _, text) = resolve(relocation) else { return }
            let name = Name(text)
            if SpecialFunction.treatment(of: name) == .start, let owner = ModuleTable.index(of: value) {
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
            guard let (slot, _, _, _) = functionSlot(relocation) else { return }
            slots.add(slot)
            any = true
        }
        if !any { return }
        slots.scan(module)
        for n in image.pointee.relativeRelocationCount..<image.pointee.dataRelocationCount {
            let relocation = image.pointee.dataRelocation(n)
            guard relocation.type == Machine.globalData, slots.isCallOnly(bias &+ relocation.offset),
                  let (slot, value, name, treatment) = functionSlot(relocation), let owner = ModuleTable.index(of: value),
                  !ProcedureLinkage.isEntry(value, ModuleTable.modules.pointer(owner)) else { continue }
            rebind(slot, value, of: owner, name, treatment)
        }
    }

    @inline(__always) private func forEachGlobalData(_ body: (Relocation) -> Void) {
        for n in image.pointee.relativeRelocationCount..<image.pointee.dataRelocationCount {
            let relocation = image.pointee.dataRelocation(n)
            if relocation.type == Machine.globalData && (image.pointee.bias &+ relocation.offset) & 7 == 0 { body(relocation) }
        }
    }

    /// A GLOB_DAT slot that holds the address of a function of some module. It may be that of a PLT entry: to know, the
    /// function's code must be read, a page fault for each, and few slots come so far that it matters.
    private func functionSlot(_ relocation: Relocation) -> (UInt64, UInt64, Name, Treatment)? {
        if relocation.type != Machine.globalData || relocation.symbol == 0 { return nil }
        guard let (slot, value, symbol, text) = resolve(relocation),
              symbol.type == Symbol.function || symbol.type == Symbol.notype || symbol.type == Symbol.indirectFunction,
              !symbol.hasVariantConvention, let owner = ModuleTable.module(of: value), owner.pointee.image.isCode(value)
        else { return nil }
        let name = Name(text)
        let treatment = SpecialFunction.treatment(of: name)
        return treatment == .untouched || treatment == .start ? nil : (slot, value, name, treatment)
    }

    /// Slot address, what it holds now, symbol and name; nil when it is not to be touched.
    @inline(__always) private func resolve(_ relocation: Relocation) -> (UInt64, UInt64, Symbol, CText)? {
        let slot = image.pointee.bias &+ relocation.offset
        guard slot & 7 == 0, let value = image.pointee.word64(slot), value != 0, // a weak function that nobody defines
              let symbol = image.pointee.symbol(relocation.symbol)?.pointee,
              let name = image.pointee.name(of: symbol) else { return nil }
        return (slot, value, symbol, name)
    }

    /// Where the loader would bind the slot. Only among modules that cannot go away before this one; everything else
    /// is left to the loader.
    private func lazyTarget(_ query: SymbolQuery, _ candidate: CallSlots.Candidate) -> UInt64? {
        if !module.pointee.inBaseNamespace { return nil }
        let global = GlobalDefinitions.find(query) { definition(query, candidate, inBatch: 0) }
        if module.pointee.isStartup { return global }
        // A module that was opened later looks in the global scope first and in its own after it, unless it was
        // opened with RTLD_DEEPBIND: bound by us only when both orders give the same answer.
        let local = definition(query, CallSlots.Candidate(), inBatch: module.pointee.batch)
        if let global, let local { return global == local ? global : nil }
        return global ?? local
    }

    /// Batch 0 is the global scope.
    @inline(never) private func definition(_ query: SymbolQuery, _ candidate: CallSlots.Candidate, inBatch batch: UInt32) -> UInt64? {
        guard let found = ModuleTable.definition(of: query, from: candidate, where: { $0.pointee.batch == batch }) else { return nil }
        let image = withUnsafePointer(to: &ModuleTable.modules.pointer(found.module).pointee.image) { $0 }
        guard let symbol = image.pointee.symbol(found.symbol)?.pointee else { return nil }
        let address = image.pointee.bias &+ symbol.value
        if !image.pointee.isCode(address) { return nil }
        return symbol.type == Symbol.indirectFunction ? tracer_call_resolver(address) : address
    }

    private mutating func rebind(_ slot: UInt64, _ target: UInt64, of owner: Int, _ name: Name, _ namedTreatment: Treatment) {
        let other = ModuleTable.modules.pointer(owner)
        if !other.pointee.image.isCode(target) || other.pointee.image.contains(tracer_code_low()) { return } // our own
        if namedTreatment == .start { return hookStart(slot, target) }
        if other.pointee.isForeign { return }
        var treatment = FunctionHome.treatment(namedTreatment, of: name, in: other)
        if module.pointee.hasForeignCalls { return rebindForSafety(slot, target, treatment) }
        let isWanted = agent.settings.ready != nil && Ready.isWanted(name.text, other)
        if !isWanted && !NameFilter.admits(function: name.text, module: other) { return rebindForSafety(slot, target, treatment) }
        if isWanted && treatment == .ordinary { treatment = .ready }
        // A sanitizer's own functions must see who calls them, and stand in for some that are looked at.
        guard access.open(slot), let stub = FunctionTable.stub(target: target, name: name, module: owner, treatment: treatment,
                                                               isEntryOnly: other.pointee.isSanitizer)
        else { return }
        tracer_store_release_64(UnsafeMutablePointer(bitPattern: UInt(slot))!, stub)
        agent.boundSlots &+= 1
    }

    private mutating func rebindForSafety(_ slot: UInt64, _ target: UInt64, _ treatment: Treatment) {
        guard SafetyHooks.isNeeded(treatment), access.open(slot), let stub = SafetyHooks.stub(target: target, treatment: treatment)
        else { return }
        tracer_store_release_64(UnsafeMutablePointer(bitPattern: UInt(slot))!, stub)
    }

    /// Only in the executable: what else calls it is not what calls main.
    private mutating func hookStart(_ slot: UInt64, _ target: UInt64) {
        guard image.pointee.contains(agent.entry), access.open(slot),
              let (stub, descriptor) = FunctionTable.stub(kind: KIND_START) else { return }
        descriptor.pointee.target = UnsafeRawPointer(bitPattern: UInt(target))
        tracer_store_release_64(UnsafeMutablePointer(bitPattern: UInt(slot))!, stub)
    }
}

/// The answers of the global scope so far: every library asks it for malloc. Its modules stay, so an answer does too.
enum GlobalDefinitions {
    private struct Entry {
        var name: UInt64 // hash; the other one and that of the version
        var gnuHash: UInt32, version: UInt32
        var target: UInt64 // 0: nobody defines it

        @inline(__always) func answers(_ query: SymbolQuery) -> Bool {
            name == query.name.hash && gnuHash == query.name.gnuHash && version == query.version.hash
        }
    }
    private static let count = 4096 // each name has one place; a later one takes it
    nonisolated(unsafe) private static var room: UnsafeMutableRawPointer?

    @inline(__always) static func find(_ query: SymbolQuery, _ search: () -> UInt64?) -> UInt64? {
        guard let entry = entry(query) else { return search() }
        if !entry.pointee.answers(query) {
            entry.pointee = Entry(name: query.name.hash, gnuHash: query.name.gnuHash, version: query.version.hash, target: search() ?? 0)
        }
        return entry.pointee.target == 0 ? nil : entry.pointee.target
    }
    @inline(__always) static func isKnown(_ query: SymbolQuery) -> Bool { entry(query)?.pointee.answers(query) ?? false }

    @inline(__always) private static func entry(_ query: SymbolQuery) -> UnsafeMutablePointer<Entry>? {
        if room == nil { room = Memory.pages(count &* MemoryLayout<Entry>.stride) }
        let place = (Name.place(query.name.hash) ^ Int(query.version.hash)) & (count &- 1)
        return room.map { $0.assumingMemoryBound(to: Entry.self) + place }
    }
}

/// What the C compiler's start-up code (crt1.o, _start) looks like.
enum StartCode {
    #if arch(x86_64)
    /// The slot of `call *slot(%rip)` among the instructions at the entry of the executable.
    static func slot(_ image: UnsafePointer<Image>) -> UInt64? {
        if !image.pointee.isCode(agent.entry) { return nil }
        for n in 0..<64 {
            let place = agent.entry &+ UInt64(n)
            guard image.pointee.word16(place) == 0x15ff, let displacement = image.pointee.word32(place &+ 2) else { continue }
            return place &+ 6 &+ UInt64(bitPattern: Int64(Int32(bitPattern: displacement)))
        }
        return nil
    }
    #elseif arch(arm64)
    /// It calls through the procedure linkage table, whose slots are bound in any case.
    static func slot(_ image: UnsafePointer<Image>) -> UInt64? { nil }
    #endif
}

/// What the entries of a procedure linkage table look like.
enum ProcedureLinkage {
    #if arch(x86_64) // psABI 5.2; bfd, gold, lld and mold write these
    private static let endbranch: UInt32 = 0xfa1e_0ff3

    /// A jump through a slot of the same image: the function is elsewhere.
    static func isEntry(_ address: UInt64, _ module: UnsafeMutablePointer<Module>) -> Bool {
        let image = withUnsafeMutablePointer(to: &module.pointee.image) { $0 }
        var place = address
        if image.pointee.word32(place) == endbranch { place = place &+ 4 }
        if let word = image.pointee.word32(place), word & 0xff == 0xf2 { place = place &+ 1 } // bnd
        guard let word = image.pointee.word32(place), word & 0xffff == 0x25ff,
              let displacement = image.pointee.word32(place &+ 2)
        else { return false }
        let slot = place &+ 6 &+ UInt64(bitPattern: Int64(Int32(bitPattern: displacement)))
        return image.pointee.contains(slot, 8)
    }
    #elseif arch(arm64)
    /// adrp x16, page; ldr x17, [x16, #offset]; after `bti c` perhaps (AAELF64; bfd, gold, lld and mold write these).
    static func isEntry(_ address: UInt64, _ module: UnsafeMutablePointer<Module>) -> Bool {
        let image = withUnsafeMutablePointer(to: &module.pointee.image) { $0 }
        let place = image.pointee.word32(address) == 0xd503_245f ? address &+ 4 : address
        guard let first = image.pointee.word32(place), let second = image.pointee.word32(place &+ 4) else { return false }
        return first & 0x9f00_001f == 0x9000_0010 && second & 0xffc0_03ff == 0xf940_0211
    }
    #endif
}
