// Functions with an entry patch: their first bytes lead to a stub, and that to the trampolines. `tracer plan` has determined which bytes
// can be replaced, and by what (docs/internals/entry-patches.md); here a plan is applied to a module before any of its code runs: at the
// start, or when it has just been mapped; or, where the agent is attached, beside threads that run it (ChangedEntries.swift). A function
// gets an id at its first call.
import CSupport
import CTraceLayout

enum PatchedFunctions {
    /// Variables.functions; nil: nothing is patched.
    nonisolated(unsafe) static var wanted: CText?
    /// Variables.minimumSize.
    nonisolated(unsafe) static var minimumSize = Variables.minimumSize.standard

    /// Area of a module, by its index. `code` holds its stubs and relocated instructions, and is never given back: the module may be loaded
    /// again at the same address.
    private struct Area: BitwiseCopyable {
        var code: UInt64 = 0 // 0: none
        var codeBytes: UInt64 = 0
        var used: UInt64 = 0 // bytes in use
        var hooks: UInt64 = 0
        var describedFrom: UInt64 = 0 // for unwinders (RelocatedArea.swift)
        var descriptions: UInt64 = 0
        var base: UInt64 = 0 // base of the plan's addresses
        var replaced: UnsafeMutablePointer<ReplacedBytes>? // one for each hook, where they are to be put back
        var firstWritten: UInt64 = 0 // lowest address in the module at which something was written
        var entries: ChangedEntries? // changes while threads run (the agent is attached)
        var module = 0
        var chosen: UnsafeMutablePointer<UInt8>? // Work.chosen, of these entries
        var functionCount = 0, chosenCount: UInt32 = 0
        var choice: UInt8 = 0 // what its hooks were made for (CallChoice.swift)

        /// Returns true if it has stubs and changes for all that are chosen now.
        func serves(_ work: Work) -> Bool {
            guard entries != nil, module == work.index, base == work.base, choice == CallChoice.current,
                functionCount == work.plan.functionCount, let chosen
            else { return false }
            for n in 0..<functionCount where work.chosen[n] != 0 && chosen[n] == 0 { return false }
            return true
        }
    }
    /// Areas of other functions of a module, which were chosen when the agent was attached before. Each takes some of the few addresses that
    /// landings can have: who comes back to the same functions finds the same area.
    nonisolated(unsafe) private static var earlier = Table<Area>()
    nonisolated(unsafe) private static var areas = Table<Area>() // ModuleLock is held by who appends

    /// Returns true if the function records its calls itself, so that no slot needs to.
    @inline(__always) static func isPatched(_ address: UInt64, in module: Int) -> Bool {
        wanted != nil && module < areas.count && areas[module].code != 0
            && (Process.isAttached ? isChanged(address, module) : leadsToStub(address, module))
    }
    @inline(never) private static func isChanged(_ address: UInt64, _ module: Int) -> Bool {
        areas.pointer(module).pointee.entries?.leads(address) ?? false
    }
    @inline(never) private static func leadsToStub(_ address: UInt64, _ module: Int) -> Bool {
        let image = withUnsafePointer(to: &ModuleTable.modules.pointer(module).pointee.image) { $0 }
        guard let target = EntryPatch.target(of: address, in: image), target &- areas[module].code < areas[module].codeBytes,
            EntryPatch.isStub(target)
        else { return false }
        // A function that only jumps to a patched one begins as if it were one itself.
        return tracer_original(target).address &- address < 16
    }

    // MARK: - Patching

    /// At the start, before the first module.
    static func begin() {
        if wanted == nil {
            if CalledFunctions.areWanted {
                Message.warn { $0.append("TRACER_MODE=counts needs TRACER_FUNCTIONS, which selects the functions: nothing is recorded") }
            }
            return
        }
        if hasSanitizer {
            Message.warn { $0.append("the program uses a sanitizer: functions are recorded only through slots") }
            wanted = nil
        }
        FileJob.awaitEnd()
        isAlone = !Process.wasRunning && Process.isAlone
        if wanted != nil && !isAlone && !Process.isAttached {
            Message.warn {
                $0.append(
                    Process.wasRunning
                        ? "the program already runs: functions of modules that were loaded are recorded only through slots"
                        : "other threads already run, or /proc cannot be read: functions of loaded modules are recorded only through slots")
            }
        }
        if Process.isAttached && wanted != nil && !ExchangedCode.isPossible {
            Message.warn { $0.append("functions are recorded only through slots: an emulator does not exchange pages as the kernel does") }
            wanted = nil
        }
        SpecialFunction.answersUnwinders = wanted != nil
        if wanted != nil && !Process.isAttached { ReturnLocations.offer() }
        if wanted != nil && Process.wasRunning { GeneratedCode.expect() } // it may be there by now
        if wanted != nil { SpecialFunction.beginKeys() }
    }
    /// The agent is detached: the functions' code is as it was, and their stubs stay.
    static func end() {
        wanted = nil
        MemorySurvey.together {
            for n in 0..<areas.count where areas[n].entries?.mayBeInPlace ?? false {
                areas.pointer(n).pointee.entries!.putBack(in: ModuleTable.modules.pointer(n).pointee.image)
            }
            for n in 0..<earlier.count where earlier[n].entries!.mayBeInPlace { // the kernel has refused before
                earlier.pointer(n).pointee.entries!.putBack(in: ModuleTable.modules.pointer(earlier[n].module).pointee.image)
            }
        }
    }
    /// Some still lead to their stubs: there was no memory, or their code is locked or writable by now.
    static var areAnyLeft: Bool {
        for n in 0..<areas.count where areas[n].entries?.mayBeInPlace ?? false { return true }
        for n in 0..<earlier.count where earlier[n].entries!.mayBeInPlace { return true }
        return false
    }
    /// The module is no longer mapped.
    static func forget(_ index: Int) {
        if index < areas.count && areas[index].entries != nil { areas.pointer(index).pointee.entries!.forget() }
        for n in 0..<earlier.count where earlier[n].module == index { earlier.pointer(n).pointee.entries!.forget() }
    }
    /// True if the process has one thread, and that has not entered the program. Otherwise the code of modules may be running, which is
    /// not executable while it is patched, or be returned to in the middle of what is replaced.
    nonisolated(unsafe) private static var isAlone = true
    /// True if the program uses a sanitizer, which lists frames by frame pointers at each allocation and in its reports, labels included.
    private static var hasSanitizer: Bool {
        for n in 0..<ModuleTable.modules.count where ModuleTable.modules[n].isSanitizer { return true }
        for n in 0..<SanitizerRuntime.beginnings.count {
            let name = Name(CText(SanitizerRuntime.beginnings[n].utf8Start))
            if let found = ModuleTable.anyDefinition(of: SymbolQuery(name: name, version: VersionNeed())), found.module >= 0 { return true }
        }
        return false
    }

    /// In a forked child: another thread of the parent may have been patching.
    static func becomeChild() {
        MemorySurvey.becomeChild()
        PlanSource.becomeChild()
    }

    /// All modules, or some; `then` is told the number of each. ModuleLock is held, or nobody else is there; signals are blocked.
    static func patch(where isChosen: (UnsafeMutablePointer<Module>) -> Bool = { _ in true }, then: (Int) -> Void = { _ in }) {
        canMakeCode = nil
        MemorySurvey.together {
            for n in 0..<ModuleTable.modules.count where isChosen(ModuleTable.modules.pointer(n)) {
                patch(n)
                then(n)
            }
        }
        PlanSource.releaseKept()
    }
    private static func patch(_ index: Int) {
        guard let wanted else { return }
        while areas.count <= index { if !areas.append(Area()) { return } }
        let module = ModuleTable.modules.pointer(index)
        if module.pointee.state != .pending || module.pointee.load == 0 && !isAlone && !Process.isAttached
            || ReturnLocations.isUnanswered(module)
        {
            return
        }
        let isMain = module.pointee.image.contains(Process.entry)
        if !EntryFilter.mayMatch(wanted, in: module.pointee.name, isMain: isMain) { return }
        if module.pointee.image.hasTextRelocations { return refuse(module, "its code is changed when it is loaded (DT_TEXTREL)") }
        if module.pointee.isForeign { return refuse(module, "it is compiled by GHC, OCaml or Go, which do not use C's calling convention") }
        if ForeignConvention.isGo(module) { return refuse(module, "it is Go code, and Go moves stacks by the return addresses on them") }
        guard let identity = ModuleIdentity(module.pointee.image, path: module.pointee.path), let file = open(identity) else {
            // `tracer record` has made the plans that it knew of, and itself says which are missing.
            MetadataWriter.patched(module: UInt32(index), functions: 0, patched: 0)
            if TraceOutput.session == 0 && EntryFilter.names(wanted, module.pointee.name, isMain: isMain) {
                refuse(module, "there is no plan for it: `tracer plan` makes one")
            }
            return
        }
        var work: Work
        do {
            defer { file.close() } // before its functions are patched, which may take long: a fork of another thread would have it
            guard let source = PlanSource(file, inKept: true) else { return refuseDamaged(module) }
            guard identity.isOf(source.plan.header.pointee) else {
                source.release()
                return refuseDamaged(module)
            }
            guard let chosen = Memory.pages(max(source.plan.functionCount, 1)) else { return source.release() }
            work = Work(
                index: index, source: source, chosen: chosen.assumingMemoryBound(to: UInt8.self),
                base: module.pointee.image.bias &+ source.plan.header.pointee.base)
            work.choose(Choice(wanted: wanted, module: module.pointee.name, path: module.pointee.path, isMain: isMain))
        }
        defer { work.release() }
        if work.isDamaged { return refuseDamaged(module) }
        if work.matched == 0 { return }
        if work.count > 0 && !apply(&work, module) { return }
        MetadataWriter.patched(
            module: UInt32(index), functions: work.matched, patched: work.count &- work.left &- work.unrecorded,
            running: Process.isAttached ? work.left &+ 1 : 0)
        if work.left > 0 { reportLeft(work.left, of: work.count, module) }
    }
    @inline(never) private static func reportLeft(_ left: UInt32, of count: UInt32, _ module: UnsafeMutablePointer<Module>) {
        Message.warn {
            $0.append(decimal: UInt64(left))
            $0.append(" of ")
            $0.append(decimal: UInt64(count))
            $0.append(" functions of ")
            $0.append(contentsOf: module.pointee.name)
            $0.append(" are not recorded: their code cannot be changed while threads run")
        }
    }

    /// Choice of the functions of a module that the user wants.
    private struct Choice {
        private let wanted: CText
        private let module: CText
        let path: CText
        private let isMain: Bool
        /// True if all functions are chosen, whatever their names.
        let isAll: Bool

        init(wanted: CText, module: CText, path: CText, isMain: Bool) {
            self.wanted = wanted
            self.module = module
            self.path = path
            self.isMain = isMain
            isAll = NameFilter.admitsAll && EntryFilter.matchesAll(wanted, in: module, isMain: isMain)
        }
        /// True if the user names its address as linked, or this one of its names. A function without a name has its address as one.
        @inline(never) func admits(_ function: CText, at address: UInt64) -> Bool {
            EntryFilter.matches(wanted, function, at: address, in: module, isMain: isMain)
                && NameFilter.admits(function: function, at: address, path: path)
        }
    }

    /// State while one module is patched.
    private struct Work {
        let index: Int
        var source: PlanSource
        let chosen: UnsafeMutablePointer<UInt8> // one a function of the plan: 0, or isChosen or isAsked, and isNeighbour
        let base: UInt64
        var matched: UInt32 = 0 // functions of the plan that the user wants
        var count: UInt32 = 0 // how many of them are to be patched
        var codeBytes: UInt64 = 0
        var shapes: UInt32 = 0
        var landings: UInt32 = 0
        var left: UInt32 = 0 // how many of these cannot be patched beside running threads
        var unrecorded: UInt32 = 0 // how many only make room
        private(set) var stubs: UnsafeMutablePointer<UInt64>? // one a function of the plan, 0: it is not recorded by call sites
        var isDamaged = false // the plan's names are

        static let isChosen: UInt8 = 1
        static let isAsked: UInt8 = 2 // if its code does not say otherwise, by its name
        /// A function of PLAN_NEIGHBOUR that is chosen has bytes of it. Without another bit it is not recorded, and leads to its relocated
        /// instructions.
        static let isNeighbour: UInt8 = 4

        var keepsChosen = false // the area has it

        var plan: PlanContent { source.plan }

        func release() {
            if !keepsChosen { Memory.release(chosen, max(plan.functionCount, 1)) }
            Memory.release(stubs, plan.functionCount &* MemoryLayout<UInt64>.stride)
            source.release()
        }

        /// Notes where the stubs of functions with call sites will be, the first of all at `code`. False: there is no memory for it.
        mutating func placeStubs(from code: UInt64) -> Bool {
            if plan.siteCount == 0 { return true }
            guard let pages = Memory.pages(plan.functionCount &* MemoryLayout<UInt64>.stride) else { return false }
            let stubs = pages.bindMemory(to: UInt64.self, capacity: plan.functionCount)
            var address = code
            for n in 0..<plan.functionCount where chosen[n] != 0 {
                if PlanContent.isByCalls(plan.function(n)) { stubs[n] = address }
                address = address &+ bytes(plan.function(n).pointee)
            }
            self.stubs = stubs
            return true
        }
        /// Returns the stub of a function with call sites, by its address less the base; nil: it is not chosen.
        func stub(of address: UInt32) -> UInt64? {
            guard let stubs, let n = plan.number(at: address), stubs[n] != 0 else { return nil }
            return stubs[n]
        }
        /// Calls `body` with each call site of a chosen function, the function's stub, and its number.
        func forEachSite(_ body: (_ word: UInt64, _ stub: UInt64, _ number: Int) -> Void) {
            guard let stubs else { return }
            for k in 0..<plan.siteCount {
                let site = plan.site(k), stub = stubs[Int(site.function)]
                if stub != 0 { body(base &+ UInt64(site.word), stub, Int(site.function)) }
            }
        }
        /// Returns true if all calls of the function are where the plan says.
        func hasSites(_ n: Int, _ image: UnsafePointer<Image>) -> Bool {
            for k in plan.sites(of: n) {
                let target = base &+ UInt64(plan.function(n).pointee.address)
                if !EntryPatch.leads(base &+ UInt64(plan.site(k).word), to: target, in: image) { return false }
            }
            return true
        }

        mutating func choose(_ choice: Choice) {
            if !(choice.isAll && TriggerList.text == nil) && !source.readNames() {
                isDamaged = true
                return
            }
            var keys = plan.keys, hasNeighbours = false
            for n in 0..<plan.functionCount {
                let function = plan.function(n)
                defer { keys += Int(function.pointee.name_count) }
                if isTooSmall(function) || !choice.isAll && !matches(function, choice) { continue }
                matched &+= 1
                let tactic = UInt32(function.pointee.tactic)
                if tactic == PLAN_NONE.rawValue || tactic == PLAN_TRAP.rawValue || !isOrdinary(function, keys) { continue }
                chosen[n] = isOfContexts(function, keys) ? Work.isAsked : Work.isChosen
                hasNeighbours = hasNeighbours || tactic == PLAN_NEIGHBOUR.rawValue
                add(function)
            }
            if hasNeighbours && !Process.isAttached { chooseNeighbours() }
        }
        @inline(never) private mutating func chooseNeighbours() {
            for n in 0..<plan.functionCount where chosen[n] != 0 {
                let function = plan.function(n).pointee
                if UInt32(function.tactic) != PLAN_NEIGHBOUR.rawValue { continue }
                guard let other = plan.neighbour(of: function) else {
                    isDamaged = true
                    return
                }
                if chosen[other] == 0 {
                    unrecorded &+= 1
                    add(plan.function(other))
                }
                chosen[other] |= Work.isNeighbour
            }
        }
        private mutating func add(_ function: UnsafePointer<plan_function>) {
            count &+= 1
            codeBytes = codeBytes &+ bytes(function.pointee)
            if function.pointee.instruction_count > 0 { shapes &+= 1 }
            if PlanContent.isByLanding(function.pointee) { landings &+= 1 }
        }
        @inline(__always) private func isTooSmall(_ function: UnsafePointer<plan_function>) -> Bool {
            function.pointee.byte_count < minimumSize && UInt32(function.pointee.flags) & UInt32(PLAN_FUNCTION_LEAF) != 0
        }
        func bytes(_ function: plan_function) -> UInt64 {
            (EntryPatch.stubBytes(function) &+ EntryPatch.relocatedBytes(function) &+ EntryPatch.alignment &- 1)
                & ~(EntryPatch.alignment &- 1)
        }
        @inline(never) private func matches(_ function: UnsafePointer<plan_function>, _ choice: Choice) -> Bool {
            let address = plan.header.pointee.base &+ UInt64(function.pointee.address)
            return function.pointee.name_count == 0
                ? TextBuffer.with(address: address) { choice.admits($0, at: address) }
                : plan.someName(of: function) { choice.admits($0, at: address) }
        }
        /// Returns true if the function is an ordinary one. Others are recorded only through slots, whose stubs handle them specially.
        private mutating func isOrdinary(_ function: UnsafePointer<plan_function>, _ keys: UnsafePointer<UInt32>) -> Bool {
            if !mayBeSpecial(function, keys) && !isMarked(function) && !mayHaveArguments(function, keys) { return true }
            isDamaged = isDamaged || !source.readNames()
            return !plan.someName(of: function) { HookPolicy.named(Name($0)) != .record }
        }
        private func mayBeSpecial(_ function: UnsafePointer<plan_function>, _ keys: UnsafePointer<UInt32>) -> Bool {
            for k in 0..<Int(function.pointee.name_count) where SpecialFunction.mayBe(keys[k]) { return true }
            return false
        }
        private func mayHaveArguments(_ function: UnsafePointer<plan_function>, _ keys: UnsafePointer<UInt32>) -> Bool {
            for k in 0..<Int(function.pointee.name_count) where ArgumentPlan.mayHave(keys[k]) { return true }
            return false
        }
        /// Returns the name and the program of a function whose arguments are recorded; nil: they are not.
        @inline(never) func arguments(
            _ function: UnsafePointer<plan_function>, _ keys: UnsafePointer<UInt32>, _ module: UnsafeMutablePointer<Module>
        ) -> (name: Name, program: UInt16)? {
            if !mayHaveArguments(function, keys) { return nil }
            var found: (Name, UInt16)?
            let image = withUnsafePointer(to: &module.pointee.image) { $0 }
            let address = base &+ UInt64(function.pointee.address) &- image.pointee.bias
            _ = plan.someName(of: function) { text in // `isOrdinary` has read them
                let name = Name(text)
                let program = ArgumentPlan.program(of: name, at: address, in: module.pointee.buildID) { FunctionHome.isOne(of: $0, image) }
                if program != 0 { found = (name, program) }
                return program != 0
            }
            return found
        }
        /// Returns the name of a function that has a trigger, and the number of that; nil: it has none.
        @inline(never) func trigger(_ function: UnsafePointer<plan_function>, _ path: CText) -> (name: Name, number: UInt8)? {
            if TriggerList.text == nil { return nil } // otherwise `choose` has read the names
            var found: (Name, UInt8)?
            _ = plan.someName(of: function) { text in
                let number = TriggerList.number(function: text, path: path)
                if number != 0 { found = (Name(text), number) }
                return number != 0
            }
            return found
        }
        /// The plan says that its calls have an object.
        private func isMarked(_ function: UnsafePointer<plan_function>) -> Bool {
            UInt32(function.pointee.flags) & UInt32(PLAN_FUNCTION_OBJECT) != 0
        }
        private func isOfContexts(_ function: UnsafePointer<plan_function>, _ keys: UnsafePointer<UInt32>) -> Bool {
            for k in 0..<Int(function.pointee.name_count) where keys[k] & PLAN_NAME_OF_CONTEXTS != 0 { return true }
            return false
        }
        /// Reads the code: a function that captures its caller's context is not ordinary, either.
        @inline(never) mutating func ask(_ n: Int, _ image: UnsafePointer<Image>) {
            let function = plan.function(n)
            if chosen[n] & Work.isAsked == 0 || !ContextCapture.captures(base &+ UInt64(function.pointee.address), image) { return }
            chosen[n] &= Work.isNeighbour
            if chosen[n] != 0 {
                unrecorded &+= 1
                return
            }
            count &-= 1
            codeBytes = codeBytes &- bytes(function.pointee)
            if function.pointee.instruction_count > 0 { shapes &-= 1 }
            if PlanContent.isByLanding(function.pointee) { landings &-= 1 }
        }
        /// Returns the name and the record flags of a function whose calls have an object; nil: they have none.
        @inline(never) func object(_ function: UnsafePointer<plan_function>, _ keys: UnsafePointer<UInt32>, _ image: UnsafePointer<Image>)
            -> (
                Name, UInt32
            )?
        {
            let isMarked = isMarked(function)
            if !isMarked && !mayBeSpecial(function, keys) { return nil }
            var found: (Name, UInt32)?
            _ = plan.someName(of: function) { text in // `isOrdinary` has read them
                let name = Name(text)
                let flags = isMarked ? CallObjects.ofFirstArgument : CallObjects.withoutOpening(CallObjects.flags(of: name, in: image))
                if flags != 0 { found = (name, flags) }
                return flags != 0
            }
            return found
        }
    }

    /// False if nothing is patched; a line says why.
    private static func apply(_ work: inout Work, _ module: UnsafeMutablePointer<Module>) -> Bool {
        let plan = work.plan, image = module.pointee.image
        let old = areas[work.index]
        if !mayMakeCode() || !Trampolines.preparePatched(isFiltered: Limits.hasTimeFilter || Process.isAttached)
            || !ReturnLabels.beginPatched()
        {
            _ = Message.refuseCode()
            return false
        }
        if Process.isAttached { return applyBesideThreads(&work, module) }
        if !openText(image, Memory.readWrite) {
            refuse(module, "its code cannot be made writable (SELinux execmod)")
            return false
        }
        defer {
            if !openText(image, nil) {
                Message.warn { $0.append("a module's code cannot be made executable again: the program will not run") }
            }
        }
        if !isAsPlanned(&work, withUnsafePointer(to: &module.pointee.image) { $0 }) {
            return refuseChanged(module)
        }
        if work.count == 0 { return true }
        // The same file at the same address as before: it has stubs.
        let isAgain = old.code != 0 && old.used == work.codeBytes && old.base == work.base
        guard var area = isAgain ? old : makeFilledArea(&work, module) else { return false }
        if isAgain && !work.placeStubs(from: area.code) {
            refuse(module, "there is no memory for it")
            return false
        }
        var address = area.code, count = 0, first = UInt64.max
        // First the sites: some are among bytes that are replaced, and stay so when these are put back.
        work.forEachSite { word, stub, _ in
            EntryPatch.lead(word, to: stub)
            first = min(first, word)
        }
        for n in 0..<plan.functionCount where work.chosen[n] != 0 {
            let function = plan.function(n).pointee, isByCalls = PlanContent.isByCalls(plan.function(n))
            if let replaced = area.replaced {
                let entry = work.base &+ UInt64(function.address) &+ UInt64(function.patch)
                replaced[count] = ReplacedBytes(
                    address: entry, original: UnsafePointer(bitPattern: UInt(entry))!, count: EntryPatch.writtenBytes(function))
                // Its calls go on leading past the recorder.
                if isByCalls || work.chosen[n] & Work.isNeighbour != 0 { replaced[count].state = .isOver }
                CalledFunctions.isReplaced(hook(count, of: area))
            }
            if !isByCalls {
                let skipped = work.chosen[n] == Work.isNeighbour ? EntryPatch.stubBytes(function) : 0
                EntryPatch.redirect(function, base: work.base, to: address &+ skipped)
                first = min(first, work.base &+ UInt64(function.address))
            }
            address = address &+ work.bytes(function)
            count &+= 1
        }
        area.firstWritten = first
        area.chosenCount = work.count
        areas[work.index] = area
        return true
    }

    /// Stubs, and all that belongs to them. nil: it cannot be had; a line says why.
    private static func makeFilledArea(_ work: inout Work, _ module: UnsafeMutablePointer<Module>) -> Area? {
        guard let area = makeArea(work, module.pointee.image) else {
            refuse(module, "there is no free address space for stubs near it")
            return nil
        }
        if !work.placeStubs(from: area.code) {
            refuse(module, "there is no memory for it")
            return nil
        }
        if fill(area, work, module) { return area }
        _ = Message.refuseCode()
        return nil
    }

    /// Threads may be running the module's code, or come back to any of it.
    private static func applyBesideThreads(_ work: inout Work, _ module: UnsafeMutablePointer<Module>) -> Bool {
        let image = withUnsafePointer(to: &module.pointee.image) { $0 }
        let isServed = askByNames(&work, image) && (areas[work.index].serves(work) || exchangeArea(work))
        if !isServed {
            if !isAsPlanned(&work, image) { return refuseChanged(module) }
            if work.count == 0 { return true }
            if !makeEntries(&work, module) { return false }
        }
        let area = areas.pointer(work.index), plan = work.plan, chosen = work.chosen, base = work.base
        if area.pointee.chosenCount == work.count {
            area.pointee.entries!.choose { _ in true }
        } else {
            area.pointee.entries!.choose { function in
                plan.number(at: UInt32(truncatingIfNeeded: function &- base)).map { chosen[$0] != 0 } ?? false
            }
        }
        // If nothing has to be made of the code, the copies are looked at that are made anyway: to touch it maps its pages, which are then
        // taken away again.
        var planned = PlannedCode(plan: plan, image: image, base: base)
        let count = area.pointee.entries!.put(in: image.pointee, isServed ? withUnsafeMutablePointer(to: &planned) { $0 } : nil)
        if !planned.isWhole {
            area.pointee.entries!.putBack(in: image.pointee)
            return refuseChanged(module)
        }
        work.left = work.count &- count
        return true
    }
    /// False: what is in the module is not what its plan is of.
    @inline(never) private static func askByNames(_ work: inout Work, _ image: UnsafePointer<Image>) -> Bool {
        for n in 0..<work.plan.functionCount where work.chosen[n] & Work.isAsked != 0 {
            if !EntryPatch.fits(work.plan.function(n).pointee, in: image, base: work.base) { return false }
            work.ask(n, image)
        }
        return true
    }
    /// Makes stubs, and chooses what is to change so that the functions lead there. False: a line says why not.
    @inline(never) private static func makeEntries(_ work: inout Work, _ module: UnsafeMutablePointer<Module>) -> Bool {
        guard var area = makeFilledArea(&work, module) else { return false }
        area.entries = chooseEntries(work, area, withUnsafePointer(to: &module.pointee.image) { $0 })
        if area.entries == nil {
            refuse(module, "there is no memory for it")
            return false
        }
        area.module = work.index
        area.chosen = work.chosen
        area.functionCount = work.plan.functionCount
        area.chosenCount = work.count
        area.choice = CallChoice.current
        work.keepsChosen = true
        if areas[work.index].entries != nil { _ = earlier.append(areas[work.index]) }
        areas[work.index] = area
        return true
    }
    @inline(never) private static func refuseChanged(_ module: UnsafeMutablePointer<Module>) -> Bool {
        refuse(module, "its code differs from its plan: something has changed it")
        return false
    }
    /// Takes an earlier area of the module that has all that is chosen. False: there is none.
    private static func exchangeArea(_ work: Work) -> Bool {
        for n in 0..<earlier.count where earlier[n].serves(work) {
            let area = earlier[n]
            earlier[n] = areas[work.index]
            areas[work.index] = area
            return true
        }
        return false
    }
    /// nil: there is no memory.
    private static func chooseEntries(_ work: Work, _ area: Area, _ image: UnsafePointer<Image>) -> ChangedEntries? {
        let plan = work.plan
        var sites = 0
        work.forEachSite { _, _, _ in sites = sites &+ 1 }
        guard var landings = Landings() else { return nil }
        defer { landings.release() }
        guard var entries = ChangedEntries(capacity: Int(work.count) &+ sites, of: image.pointee) else { return nil }
        work.forEachSite { word, stub, number in
            entries.addSite(word, to: stub, function: work.base &+ UInt64(plan.function(number).pointee.address))
        }
        var n = plan.functionCount, stub = area.code &+ area.used
        while n > 0 {
            n = n &- 1
            if work.chosen[n] == 0 { continue }
            let function = plan.function(n)
            stub = stub &- work.bytes(function.pointee)
            if PlanContent.isByCalls(function) { continue }
            _ = entries.addEntry(function.pointee, base: work.base, to: stub, in: image, &landings)
        }
        entries.finish()
        if landings.publish() { return entries }
        entries.release()
        return nil
    }

    /// True if written memory may be executed afterwards: else the module's code, once it is writable, could never run again
    /// (PR_SET_MDWE, seccomp, SELinux execmem). Asked once for all modules that are patched together.
    nonisolated(unsafe) private static var canMakeCode: Bool?
    private static func mayMakeCode() -> Bool {
        if let canMakeCode { return canMakeCode }
        guard let page = Memory.pages(Memory.pageBytes) else { return false }
        defer { Memory.release(page, Memory.pageBytes) }
        let isCode = Memory.protectCode(UInt64(UInt(bitPattern: page)), UInt64(Memory.pageBytes))
        canMakeCode = isCode
        return isCode
    }

    /// Returns true if each of the functions has the bytes that the plan says. Pages that are going to be written become the process's
    /// own copies first, some at once by one system call: a page fault to read each and another to write to it cost more than the copy,
    /// and the bytes of one that has just been copied need not be waited for.
    private static func isAsPlanned(_ work: inout Work, _ image: UnsafePointer<Image>) -> Bool {
        let plan = work.plan, page = UInt64(Memory.pageBytes), most = page &* 32
        var first = 0
        while first < plan.functionCount {
            var next = first, low: UInt64 = 0, high: UInt64 = 0
            while next < plan.functionCount {
                if work.chosen[next] != 0 && !PlanContent.isByCalls(plan.function(next)) {
                    let function = plan.function(next).pointee, entry = work.base &+ UInt64(function.address) &+ UInt64(function.patch)
                    let last = entry &+ UInt64(function.replaced) &- 1
                    if !image.pointee.isCode(entry) || !image.pointee.isCode(last) { return false }
                    if high == 0 {
                        low = entry & ~(page &- 1)
                    } else if entry >= high &+ page || last &- low >= most {
                        break
                    }
                    high = (last & ~(page &- 1)) &+ page
                }
                next &+= 1
            }
            if high > low && !Process.isAttached { Memory.populate(UnsafeMutableRawPointer(bitPattern: UInt(low))!, Int(high &- low)) }
            for n in first..<next where work.chosen[n] != 0 {
                let ahead = min(n &+ 8, plan.functionCount &- 1) // each is a cache miss
                tracer_prefetch(UnsafeRawPointer(bitPattern: UInt(work.base &+ UInt64(plan.function(ahead).pointee.address))))
                let fits =
                    PlanContent.isByCalls(plan.function(n))
                    ? work.hasSites(n, image) : EntryPatch.fits(plan.function(n).pointee, in: image, base: work.base)
                if !fits { return false }
                work.ask(n, image)
            }
            first = next
        }
        return true
    }

    /// Writes stubs, relocated instructions and hooks, before any call can reach them.
    private static func fill(_ area: Area, _ work: Work, _ module: UnsafeMutablePointer<Module>) -> Bool {
        let plan = work.plan
        var address = area.code, hook = area.hooks
        var relocated = RelocatedArea(
            at: area.describedFrom, work.count, work.shapes, code: area.code..<area.code &+ area.used, hooks: area.hooks, base: work.base,
            descriptions: area.descriptions)
        var keys = plan.keys
        for n in 0..<plan.functionCount {
            let function = plan.function(n).pointee
            defer { keys += Int(function.name_count) }
            if work.chosen[n] == 0 { continue }
            let stub = UnsafeMutableRawPointer(bitPattern: UInt(address))!
            EntryPatch.writeStub(at: stub, hook: hook, function)
            relocated.add(function, plan)
            let isWritten = EntryPatch.writeRelocated(
                at: stub + Int(EntryPatch.stubBytes(function)), function, plan, base: work.base
            ) { work.stub(of: $0) }
            if !isWritten { return false }
            let entry = UnsafeMutablePointer<function_hook>(bitPattern: UInt(hook))!
            entry.pointee.target = UnsafeRawPointer(stub + Int(EntryPatch.stubBytes(function)))
            entry.pointee.head = UInt64(function.address)
            entry.pointee.function = UInt32(work.index) | lengthBits(function)
            entry.pointee.kind = UInt8(KIND_UNNAMED)
            entry.pointee.instant = Trampolines.patchedSet.special // FUNCTION_ENTER
            if !CalledFunctions.areWanted && work.chosen[n] != Work.isNeighbour {
                nameIfObject(entry, work, plan.function(n), keys, module)
            }
            address = address &+ work.bytes(function)
            hook = hook &+ UInt64(FUNCTION_BYTES)
        }
        if !Memory.protectCode(area.code, area.codeBytes) { return false }
        relocated.publish()
        return true
    }

    /// What the plan says of the length of its calls, for its hook until it has an id.
    private static func lengthBits(_ function: plan_function) -> UInt32 {
        let flags = UInt32(function.flags)
        return (flags & UInt32(PLAN_FUNCTION_BOUNDED) != 0 ? UNNAMED_BOUNDED : 0)
            | (flags & UInt32(PLAN_FUNCTION_WAITS) != 0 ? UNNAMED_WAITS : 0)
    }

    /// Gives a function whose calls have an object, or whose arguments are recorded, an id at once, since its name is known now, and a record
    /// of its own. It keeps the special entry, and is recorded however often it is called.
    @inline(never) private static func nameIfObject(
        _ hook: UnsafeMutablePointer<function_hook>, _ work: Work, _ function: UnsafePointer<plan_function>,
        _ keys: UnsafePointer<UInt32>, _ module: UnsafeMutablePointer<Module>
    ) {
        let image = withUnsafePointer(to: &module.pointee.image) { $0 }
        let arguments = work.arguments(function, keys, module), object = work.object(function, keys, image)
        let watched = work.trigger(function, module.pointee.path)
        guard let name = watched?.name ?? arguments?.name ?? object?.0 else { return }
        let flags = object?.1 ?? 0
        let address = work.base &+ UInt64(function.pointee.address)
        guard
            let id = FunctionTable.locked({
                FunctionTable.number(
                    address, module: UInt32(work.index), flags: flags, name: name, trigger: watched?.number ?? 0)
            })
        else { return }
        hook.pointee.head = Event.head(.enter, id)
        hook.pointee.function = id
        hook.pointee.kind = UInt8(KIND_PATCHED)
        hook.pointee.argument = CallObjects.argument(flags)
        let program = arguments?.program ?? 0
        if program == 0 && watched == nil { return }
        hook.pointee.counter = program
        if watched == nil && ArgumentPlan.isPlain(program) {
            hook.pointee.argument |= UInt8(FUNCTION_HAS_VALUES)
        } else {
            hook.pointee.kind = UInt8(KIND_PATCHED_ARGUMENTS)
            hook.pointee.argument = 0 // no call goes past Swift
        }
        if program != 0 { FunctionTable.locked { ArgumentPlan.use(program, object: CallObjects.argument(flags)) } }
    }

    /// Stubs with their relocated instructions after each, and hooks, in pages as near to the module as there is address space.
    private static func makeArea(_ work: Work, _ image: Image) -> Area? {
        let page = UInt64(Memory.pageBytes)
        func whole(_ bytes: UInt64) -> UInt64 { (bytes &+ page &- 1) & ~(page &- 1) }
        let codeBytes = whole(work.codeBytes), hookBytes = UInt64(work.count) &* UInt64(FUNCTION_BYTES)
        let describedBytes = RelocatedArea.bytes(work.count, work.shapes, work.landings),
            filled = whole(codeBytes &+ hookBytes &+ describedBytes)
        let known = descriptions(near: image)
        // If address space is scarce, without descriptions: an unwinder then ends in relocated instructions.
        let withDescriptions = known == nil ? mapNear(image, filled &+ RelocatedArea.descriptionBytes) : nil
        guard let start = withDescriptions ?? mapNear(image, filled) else { return nil }
        let address = UnsafeMutableRawPointer(bitPattern: UInt(start))!
        Memory.preferLargePages(address, Int(filled))
        Memory.populate(address, Int(filled))
        var area = Area(
            code: start, codeBytes: codeBytes, used: work.codeBytes, hooks: start &+ codeBytes,
            describedFrom: start &+ codeBytes &+ hookBytes, descriptions: known ?? (withDescriptions == nil ? 0 : start &+ filled),
            base: work.base)
        if CalledFunctions.areWanted {
            let byteCount = Int(work.count) &* MemoryLayout<ReplacedBytes>.stride
            area.replaced = Memory.pages(byteCount)?.bindMemory(to: ReplacedBytes.self, capacity: Int(work.count))
        }
        return area
    }
    /// Returns the descriptions of an earlier area that any area of this module will reach.
    private static func descriptions(near image: Image) -> UInt64? {
        for n in 0..<areas.count {
            let address = areas[n].descriptions
            if address == 0 { continue }
            let distance = address > image.low ? address &+ RelocatedArea.descriptionBytes &- image.low : image.high &- address
            if distance < Int32.max && distance &+ EntryPatch.reach < Int32.max { return address }
        }
        return nil
    }
    private static func hook(_ n: Int, of area: Area) -> UnsafeMutablePointer<function_hook> {
        UnsafeMutablePointer(bitPattern: UInt(area.hooks))! + n
    }
    /// Returns the original first bytes of a function that has an id, and its module. nil: they were not kept.
    static func replaced(_ hook: UnsafeMutablePointer<function_hook>) -> (UnsafeMutablePointer<ReplacedBytes>, Int)? {
        let module = Int(FunctionTable.entry(hook.pointee.function).module)
        let area = areas[module]
        guard let replaced = area.replaced else { return nil }
        return (replaced + (Int(UInt64(UInt(bitPattern: hook)) &- area.hooks) / Int(FUNCTION_BYTES)), module)
    }
    /// Returns the lowest address at which bytes of a module were replaced; 0: they are not kept.
    static func firstReplaced(in module: Int) -> UInt64 { areas[module].replaced == nil ? 0 : areas[module].firstWritten }
    /// In small steps as well where large ones find nothing: space may lie between them. After a program its heap begins, which sbrk makes
    /// longer as far as nothing is mapped in its way (mm/mmap.c, brk): addresses there come last, and then the farthest first.
    private static func mapNear(_ image: Image, _ bytes: UInt64) -> UInt64? {
        let end = UInt64(bitPattern: Int64(SystemCall.call(SystemCall.brk, 0, 0, 0, 0, 0, 0)))
        let isHeapAfter = end >= image.high && end &- image.low < EntryPatch.reach
        return mapNear(image, bytes, isHeapAfter, step: 1 &<< 22)
            ?? mapNear(image, bytes, isHeapAfter, step: max(EntryPatch.reach / 2048, 65536)) ?? (isHeapAfter ? mapFar(image, bytes) : nil)
    }
    /// Alignment to the largest page; to one of two megabytes for an area that can fill it.
    private static func granule(_ bytes: UInt64) -> UInt64 { bytes < 1 &<< 22 ? 65536 : 1 &<< 21 }
    @inline(never) private static func mapNear(_ image: Image, _ bytes: UInt64, _ isHeapAfter: Bool, step: UInt64) -> UInt64? {
        let granule = granule(bytes)
        var distance = granule
        while image.high &- image.low &+ bytes &+ distance < EntryPatch.reach {
            if image.low > bytes &+ distance &+ granule,
                let found = Memory.pages(at: (image.low &- bytes &- distance) & ~(granule &- 1), Int(bytes))
            {
                return found
            }
            if !isHeapAfter, let found = Memory.pages(at: (image.high &+ distance &+ granule &- 1) & ~(granule &- 1), Int(bytes)) {
                return found
            }
            distance = distance < step ? distance &* 2 : distance &+ step
        }
        return nil
    }
    private static func mapFar(_ image: Image, _ bytes: UInt64) -> UInt64? {
        let granule = granule(bytes)
        var address = (image.low &+ EntryPatch.reach &- bytes &- granule) & ~(granule &- 1)
        while address > image.high {
            if let found = Memory.pages(at: address, Int(bytes)) { return found }
            address = address &- granule
        }
        return nil
    }

    /// Gives the module's code this protection; nil: the one that its segments have.
    private static func openText(_ image: Image, _ protection: Int?) -> Bool {
        for n in 0..<image.segmentCount {
            let segment = image.segment(n)
            if segment.type != ProgramHeader.load || segment.flags & ProgramHeader.executable == 0 { continue }
            let low = image.bias &+ segment.address
            if protection == nil { tracer_code_written(low, low &+ segment.memoryBytes) }
            let own =
                Int(segment.flags & ProgramHeader.readable != 0 ? 1 : 0) | Int(segment.flags & ProgramHeader.writable != 0 ? 2 : 0) | 4
            if !Memory.protect(low, segment.memoryBytes, protection ?? own) { return false }
        }
        return true
    }

    @inline(never) private static func refuseDamaged(_ module: UnsafeMutablePointer<Module>) {
        refuse(module, "its plan is damaged or has another version: `tracer plan` makes a new one")
    }
    private static func refuse(_ module: UnsafeMutablePointer<Module>, _ reason: StaticString) {
        Message.warn {
            $0.append("the functions of ")
            $0.append(contentsOf: module.pointee.name)
            $0.append(" are not recorded: ")
            $0.append(reason)
        }
    }

    /// $XDG_CACHE_HOME/tracer/plans/BUILD-ID.plan, as `tracer plan` names it.
    private static func open(_ identity: ModuleIdentity) -> CachedFile? {
        var found: CachedFile?
        var buffer = InlineArray<4096, UInt8>(repeating: 0)
        var span = buffer.mutableSpan
        span.withUnsafeMutableBufferPointer {
            var path = TextBuffer($0.baseAddress!, capacity: 4096)
            guard let user = CacheHome.user, CacheHome.append(to: &path) else { return }
            path.append("/tracer/plans")
            if path.isFull { return }
            guard let folder = FileStatus(at: CText(path.start)), folder.isFolder(of: user) else { return }
            path.append(0x2f)
            identity.appendName(to: &path)
            if !path.isFull { found = CachedFile(CText(path.start), of: user, atMost: Int(PLAN_MOST_BYTES)) }
        }
        return found
    }

    // MARK: - What there is

    /// The hooks of a module's functions, side by side, and the base of its plan's addresses. nil: none of its functions is patched.
    static func hooks(of module: Int) -> (first: UnsafeMutablePointer<function_hook>, count: Int, base: UInt64)? {
        guard wanted != nil, module < areas.count, areas[module].code != 0, ModuleTable.modules[module].state != .retired else {
            return nil
        }
        let area = areas[module]
        return (hook(0, of: area), Int(area.chosenCount), area.base)
    }
    /// The plan of a module that is loaded, with all names. nil: it is not there.
    static func namedPlan(of index: Int) -> PlanSource? {
        let module = ModuleTable.modules.pointer(index)
        guard let identity = ModuleIdentity(module.pointee.image, path: module.pointee.path), let file = open(identity) else { return nil }
        defer { file.close() }
        guard var source = PlanSource(file) else { return nil }
        if identity.isOf(source.plan.header.pointee) && source.readNames() { return source }
        source.release()
        return nil
    }

    // MARK: - First calls

    /// Gives the function an id. False: there is none, and it is not recorded.
    static func number(_ hook: UnsafeMutablePointer<function_hook>) -> Bool {
        FunctionTable.locked {
            if hook.pointee.kind != UInt8(KIND_UNNAMED) { return true } // another thread was faster
            let index = Int(hook.pointee.function & ~(UNNAMED_BOUNDED | UNNAMED_WAITS))
            let isBounded = hook.pointee.function & UNNAMED_BOUNDED != 0, mayWait = hook.pointee.function & UNNAMED_WAITS != 0
            let low = ModuleTable.modules.pointer(index).pointee.image.low
            guard let id = FunctionTable.number(areas[index].base &+ hook.pointee.head, module: index, low: low) else { return false }
            hook.pointee.head = Event.head(.enter, id)
            hook.pointee.function = id
            hook.pointee.kind = UInt8(KIND_PATCHED)
            if CalledFunctions.areWanted {
                CalledFunctions.isNumbered(hook)
            } else {
                if hook.pointee.instant != tracer_address_pass() { // else it is left out meanwhile (GatedFunctions.swift)
                    tracer_store_release_64(&hook.pointee.instant, Trampolines.patchedSet.enter)
                }
                if !mayWait { HotFunctions.add(id, hook, isBounded: isBounded) }
            }
            return true
        }
    }
}

/// Variables.functions: FUNCTION of the program itself, or MODULE!FUNCTION; globs, separated by ':'. FUNCTION may be an address, 0x….
enum EntryFilter {
    static func mayMatch(_ list: CText, in module: CText, isMain: Bool) -> Bool {
        NameFilter.forEachPattern(list) { start, bang, _ in bang < 0 ? isMain : Glob.matches(start, bang, module) }
    }
    /// Returns true if the list names the module itself, and not only by a glob.
    static func names(_ list: CText, _ module: CText, isMain: Bool) -> Bool {
        NameFilter.forEachPattern(list) { start, bang, _ in
            if bang < 0 { return isMain }
            for n in 0..<bang where start[n] == 0x2a { return false }
            return Glob.matches(start, bang, module)
        }
    }
    /// Every function of the module.
    static func matchesAll(_ list: CText, in module: CText, isMain: Bool) -> Bool {
        NameFilter.forEachPattern(list) { start, bang, end in
            if end &- bang != 2 || start[end &- 1] != 0x2a { return false } // MODULE!*, or *; bang is -1 there
            return bang < 0 ? isMain : Glob.matches(start, bang, module)
        }
    }
    static func matches(_ list: CText, _ function: CText, at address: UInt64, in module: CText, isMain: Bool) -> Bool {
        NameFilter.forEachPattern(list) { start, bang, end in
            if bang < 0 ? !isMain : !Glob.matches(start, bang, module) { return false }
            return NameFilter.names(start + (bang &+ 1), end &- bang &- 1, function, at: address)
        }
    }
}
