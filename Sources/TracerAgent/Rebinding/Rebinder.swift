// Points the slots of a module at stubs: the ELF analogue of fishhook, one pass over its relocations.
//
// JUMP_SLOT is what a call through the PLT uses, always. GLOB_DAT is a function pointer unless the text proves
// otherwise (TextScan.swift). Everything else (R_*_64 data, IRELATIVE, COPY, TLS descriptors, which may sit inside
// .rela.plt) is left alone.
import CSupport

struct Rebinder {
    private let index: Int
    private let module: Module
    private let image: Image
    private var relroIsOpen = false

    /// The module must be relocated. Marks it as bound.
    static func bind(_ index: Int) {
        ModuleTable.modules.pointer(index).pointee.state = .bound
        var rebinder = Rebinder(index: index, module: ModuleTable.modules[index], image: ModuleTable.modules[index].image)
        rebinder.bindCallSlots()
        rebinder.bindCallOnlyData()
        if rebinder.relroIsOpen {
            Memory.protect(rebinder.image.relroLow, rebinder.image.relroHigh &- rebinder.image.relroLow, Memory.readOnly)
        }
    }

    private mutating func bindCallSlots() {
        for n in 0..<image.jumpRelocationCount {
            let relocation = image.jumpRelocation(n)
            if relocation.type != Machine.jumpSlot || relocation.symbol == 0 { continue }
            guard let (slot, value, symbol, name) = resolve(relocation) else { continue }
            let hash = gnuHash(name)
            let treatment = SpecialFunction.treatment(of: name, hash: hash)
            if treatment == .untouched { continue }
            if isLazy(value, symbol) {
                guard let target = lazyTarget(relocation.symbol, symbol, name, hash) else { continue }
                rebind(slot, target, name, treatment)
            } else {
                rebind(slot, value, name, treatment)
            }
        }
    }

    private mutating func bindCallOnlyData() {
        var low = UInt64.max, high: UInt64 = 0
        forEachFunctionSlot { slot, _, _, _ in
            if slot < low { low = slot }
            if slot > high { high = slot }
        }
        guard low <= high, var slots = CallOnlySlots(low: low, high: high) else { return }
        forEachFunctionSlot { slot, _, name, _ in slots.add(slot, isGlue: equal(name, literal: "__libc_start_main")) }
        slots.scan(module)
        for n in image.relativeRelocationCount..<image.dataRelocationCount {
            guard let (slot, value, name, treatment) = functionSlot(image.dataRelocation(n)), slots.isCallOnly(slot)
            else { continue }
            rebind(slot, value, name, treatment)
        }
        slots.release()
    }

    private func forEachFunctionSlot(_ body: (UInt64, UInt64, CText, Treatment) -> Void) {
        for n in image.relativeRelocationCount..<image.dataRelocationCount {
            if let (slot, value, name, treatment) = functionSlot(image.dataRelocation(n)) {
                body(slot, value, name, treatment)
            }
        }
    }

    /// A GLOB_DAT slot that holds the address of a function of some module, and not of a PLT entry.
    private func functionSlot(_ relocation: Relocation) -> (UInt64, UInt64, CText, Treatment)? {
        if relocation.type != Machine.globalData || relocation.symbol == 0 { return nil }
        guard let (slot, value, symbol, name) = resolve(relocation),
              symbol.type == Symbol.function || symbol.type == Symbol.notype || symbol.type == Symbol.indirectFunction,
              let owner = ModuleTable.module(of: value), owner.pointee.image.isCode(value),
              !ProcedureLinkage.isEntry(value, owner.pointee.image) else { return nil }
        let treatment = SpecialFunction.treatment(of: name, hash: gnuHash(name))
        return treatment == .untouched ? nil : (slot, value, name, treatment)
    }

    /// Slot address, what it holds now, symbol and name; nil when it is not to be touched.
    private func resolve(_ relocation: Relocation) -> (UInt64, UInt64, Symbol, CText)? {
        let slot = image.bias &+ relocation.offset
        guard slot & 7 == 0, let value = image.word64(slot), value != 0, // a weak function that nobody defines
              let symbol = image.symbol(relocation.symbol)?.pointee, let name = image.name(of: symbol) else { return nil }
        return (slot, value, symbol, name)
    }

    /// An unbound slot leads back into its own module's PLT: to an entry that pushes the relocation's number, or, from
    /// mold, to the one first entry of all. So what it holds is not the address of the symbol.
    private func isLazy(_ value: UInt64, _ symbol: Symbol) -> Bool {
        image.contains(value) && !(symbol.section != 0 && value == image.bias &+ symbol.value)
    }

    /// Where the loader would bind the slot. Only among modules that cannot go away before this one; everything else
    /// is left to the loader.
    private func lazyTarget(_ symbolIndex: Int, _ symbol: Symbol, _ name: CText, _ hash: UInt32) -> UInt64? {
        if !module.inBaseNamespace { return nil }
        let query = SymbolQuery(name: name, gnuHash: hash, version: image.versionNeed(ofSymbol: symbolIndex))
        let global = definition(query) { $0.pointee.isStartup }
        if module.isStartup { return global }
        // A module that was opened later looks in the global scope first and in its own after it, unless it was
        // opened with RTLD_DEEPBIND: bound by us only when both orders give the same answer.
        let local = definition(query) { $0.pointee.batch == module.batch }
        if let global, let local { return global == local ? global : nil }
        return global ?? local
    }

    private func definition(_ query: SymbolQuery, _ isInScope: (UnsafeMutablePointer<Module>) -> Bool) -> UInt64? {
        for n in 0..<ModuleTable.modules.count {
            let other = ModuleTable.modules.pointer(n)
            if other.pointee.state == .retired || !other.pointee.filter.admits(query.gnuHash)
                || !other.pointee.image.isUsable || !isInScope(other) { continue }
            guard let found = other.pointee.image.find(query), let symbol = other.pointee.image.symbol(found)?.pointee
            else { continue }
            let address = other.pointee.image.bias &+ symbol.value
            if !other.pointee.image.isCode(address) { return nil }
            return symbol.type == Symbol.indirectFunction ? tracer_call_resolver(address) : address
        }
        return nil
    }

    private mutating func rebind(_ slot: UInt64, _ target: UInt64, _ name: CText, _ treatment: Treatment) {
        guard let owner = ModuleTable.index(of: target) else { return }
        let other = ModuleTable.modules.pointer(owner)
        if !other.pointee.image.isCode(target) || other.pointee.image.contains(tracer_code_low()) { return } // our own
        if !NameFilter.admits(function: name, module: other.pointee.name) { return }
        guard openForWriting(slot), let stub = FunctionTable.stub(target: target, name: name, module: owner,
                                                                  treatment: treatment) else { return }
        tracer_store_release_64(UnsafeMutablePointer(bitPattern: UInt(slot))!, stub)
        agent.boundSlots &+= 1
    }

    /// The loader made the RELRO part of the image read-only; one change of protection for all slots in it.
    private mutating func openForWriting(_ slot: UInt64) -> Bool {
        if slot >= image.relroLow && slot < image.relroHigh {
            if relroIsOpen { return true }
            relroIsOpen = Memory.protect(image.relroLow, image.relroHigh &- image.relroLow, Memory.readWrite)
            return relroIsOpen
        }
        for n in 0..<image.segmentCount {
            let segment = image.segment(n)
            if segment.type == ProgramHeader.load && slot &- (image.bias &+ segment.address) < segment.memoryBytes {
                return segment.flags & ProgramHeader.writable != 0
            }
        }
        return false
    }
}

/// What the entries of a procedure linkage table look like (x86-64 psABI 5.2; bfd, gold, lld and mold write these).
enum ProcedureLinkage {
    #if arch(x86_64)
    private static let endbranch: UInt32 = 0xfa1e_0ff3

    /// A jump through a slot of the same image: the function is elsewhere.
    static func isEntry(_ address: UInt64, _ image: Image) -> Bool {
        var place = address
        if image.word32(place) == endbranch { place = place &+ 4 }
        if let word = image.word32(place), word & 0xff == 0xf2 { place = place &+ 1 } // bnd
        guard let word = image.word32(place), word & 0xffff == 0x25ff, let displacement = image.word32(place &+ 2)
        else { return false }
        let slot = place &+ 6 &+ UInt64(bitPattern: Int64(Int32(bitPattern: displacement)))
        return image.contains(slot, 8)
    }
    #endif
}
