// Makes the plan of one module: every function, and how its entry can be patched, or why it cannot.
//
// In this order: which functions there are; one pass over all code for what leads into the first bytes of any of them; the same of
// tables, stored addresses and handlers; and then, function by function, the cheapest patch under which no instruction that was
// replaced can be reached but through its beginning.
import CTraceLayout
import Dispatch
import ELF
import Glibc
import TraceFormat

public struct PlanOptions: Sendable {
    /// Patches functions that are shorter than a jump by int3.
    public var usesTraps = false
    public init(usesTraps: Bool = false) { self.usesTraps = usesTraps }
}

struct Planner {
    private let file: CodeFile
    private let code: ModuleCode
    private let frames: FrameTable
    private var list: FunctionList
    private let options: PlanOptions
    private let marks: EntryMarkTable
    private var bodies: [ScannedCode.Body] = []
    private var callers = Callers([], count: 0)
    private var lengths = CallLengths([], Callers([], count: 0))
    /// Targets of jumps and calls into the middle of functions, in order.
    private var middles: [UInt64] = []
    /// Addresses that are taken or exported; nil: no function has needed them so far.
    private var held: HeldAddresses?
    /// For each gap after an entry, how many of its bytes are in use.
    private var usedPadding: [Int: Int] = [:]
    private let needsLandingInstruction: Bool
    private var builder: PlanBuilder

    /// The module has V8, which asks the agent where return addresses are.
    private let answersForLabels: Bool

    init(_ file: CodeFile, _ code: ModuleCode, _ options: PlanOptions) {
        (self.file, self.code, self.options) = (file, code, options)
        frames = FrameTable(file)
        list = FunctionList(file, code, frames)
        answersForLabels = list.names.contains(where: KnownFunction.isLocationSetter)
        marks = EntryMarkTable(list.entries.count)
        builder = PlanBuilder(base: code.base)
        needsLandingInstruction = code.architecture == .arm && BranchTargets.areGuarded(file, code)
    }

    mutating func plan() -> PlanBuilder {
        scan()
        let whole = moduleReason()
        var planned = list.entries.indices.filter { !list.entries[$0].isPart }.map { plan($0, whole) }
        if code.architecture == .x86 { borrow(&planned) }
        for each in planned { builder.add(each.function, names: list.names[list.entries[each.index].names], sites: each.words) }
        return builder
    }

    private struct Planned {
        /// Its entry in the list.
        let index: Int
        var function = plan_function()
        /// Its call sites.
        var words: [UInt32] = []
        /// How many of its bytes, behind the five of its own patch, others have.
        var lent = 0
    }

    /// All of a module is left alone.
    private func moduleReason() -> Reason? {
        let name = file.path.split(separator: "/").last ?? ""
        let hasInterpreter = !file.programHeaders(.interpreter).isEmpty
        if !hasInterpreter, name.hasPrefix("ld-linux") || name.hasPrefix("ld-2.") { return .loader } // ld-2.31.so: glibc before 2.33
        // HotSpot, CoreCLR, Mono: compiled code leaves the stack pointer at its call into the run-time system, and is found again by the
        // return address below it (HotSpot's JavaFrameAnchor::make_walkable).
        if ["libjvm.so", "libcoreclr.so"].contains(String(name)) || name.hasPrefix("libmono") { return .generatedCaller }
        let isAgent = SharedLibrary(path: file.path)?.note(owner: TRACER_NOTE_OWNER, type: UInt32(TRACER_NOTE_VERSION)) != nil
        return isAgent ? .agent : nil
    }

    // MARK: - What leads where

    private mutating func scan() {
        let entries = list.entries
        bodies = Array(repeating: ScannedCode.Body(), count: entries.count)
        let finder = EntryFinder(code, frames, entries)
        defer { finder.free() }
        // In parts of about the same number of bytes.
        let partCount = max(1, min(sysconf(Int32(_SC_NPROCESSORS_ONLN)), 16))
        var cuts = [0]
        let total = entries.reduce(UInt64(0)) { $0 &+ ($1.end - $1.address) }
        var sum: UInt64 = 0
        for (index, entry) in entries.enumerated() {
            sum &+= entry.end - entry.address
            if cuts.count < partCount, sum >= total / UInt64(partCount) * UInt64(cuts.count) { cuts.append(index + 1) }
        }
        while cuts.count <= partCount { cuts.append(entries.count) }
        let results = UnsafeMutablePointer<ScannedCode>.allocate(capacity: partCount)
        results.initialize(repeating: ScannedCode(), count: partCount)
        defer {
            results.deinitialize(count: partCount)
            results.deallocate()
        }
        bodies.withUnsafeMutableBufferPointer { bodies in
            let shared = SharedScan(bodies: bodies, results: results, entries: entries, finder: finder, cuts: cuts)
            DispatchQueue.concurrentPerform(iterations: partCount) { part in
                switch shared.finder.code.architecture {
                case .x86: shared.scan(part, X86Scan.self)
                case .arm: shared.scan(part, ArmScan.self)
                }
            }
        }
        var bases: [UInt64] = []
        for part in 0..<partCount {
            bases += results[part].bases
            for reference in results[part].references { mark(reference) }
        }
        middles = (0..<partCount).flatMap { results[$0].middles }.sorted()
        measureCalls((0..<partCount).lazy.map { results[$0].transfers })
        markBareSymbols()
        markStored(bases)
        markHandlers()
        findParts()
        markAsked()
    }

    private mutating func measureCalls(_ parts: some Sequence<[Transfer]>) {
        for index in bodies.indices {
            let body = bodies[index]
            if body.isBroken || body.hasHiddenTargets || body.jumpsInside || body.runsOn { bodies[index].length.hasLoop = true }
        }
        let transfers = parts.joined().map { transfer in
            Transfer(
                source: transfer.source, target: UInt32(list.last(at: code.base + UInt64(transfer.target))), site: transfer.site)
        }
        callers = Callers(transfers, count: list.entries.count)
        lengths = CallLengths(bodies.map(\.length), callers)
    }

    /// Who calls a function that looks up the address that its caller returns to: `__builtin_return_address(1)`. What jumps there in a
    /// tail call has left its own caller to be asked.
    private mutating func markAsked() {
        var asking = Set(list.entries.indices.filter { bodies[$0].readsCallersFrame }.map { list.entries[$0].address })
        for _ in 0..<4 where !asking.isEmpty {
            var leading: Set<UInt64> = []
            for (index, entry) in list.entries.enumerated() {
                let bytes = code.code(at: entry.address), count = min(Int(clamping: entry.end - entry.address), bytes.count)
                forEachTransfer(entry.address, bytes, count) { target, isCall in
                    guard asking.contains(target), target != entry.address || isCall else { return }
                    if isCall { marks[index].isAsked = true } else { leading.insert(entry.address) }
                }
            }
            asking = leading
        }
    }

    /// Direct calls and jumps. On x86-64 every byte may begin one: what is none hardly leads to a function's first byte.
    private func forEachTransfer(_ address: UInt64, _ bytes: UnsafeRawBufferPointer, _ count: Int, _ body: (UInt64, Bool) -> Void) {
        switch code.architecture {
        case .x86:
            for offset in 0..<max(count - 1, 0) {
                let byte = bytes[offset], isFar = byte & 0xfe == 0xe8 || byte == 0x0f && bytes[offset + 1] & 0xf0 == 0x80
                let length = isFar ? (byte == 0x0f ? 6 : 5) : 2
                guard isFar || byte == 0xeb || byte & 0xf0 == 0x70, offset + length <= count else { continue }
                let distance =
                    isFar
                    ? Int64(bytes.loadUnaligned(fromByteOffset: offset + length - 4, as: Int32.self))
                    : Int64(Int8(bitPattern: bytes[offset + 1]))
                body(address &+ UInt64(offset + length) &+ UInt64(bitPattern: distance), byte == 0xe8)
            }
        case .arm:
            for offset in stride(from: 0, to: count - 3, by: 4) {
                let site = address &+ UInt64(offset)
                switch ArmInstruction(bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self)) {
                case .call(let distance): body(site &+ UInt64(bitPattern: distance), true)
                case .branch(let distance): body(site &+ UInt64(bitPattern: distance), false)
                default: break
                }
            }
        }
    }

    fileprivate static func bytes(_ code: ModuleCode, _ low: UInt64, _ high: UInt64) -> UnsafeRawBufferPointer {
        let bytes = code.code(at: low)
        return UnsafeRawBufferPointer(rebasing: bytes.prefix(Int(clamping: high - low)))
    }

    /// Calls `body` with each entry among whose watched bytes the address is, and its distance.
    private func forEachWatching(_ address: UInt64, _ body: (Int, Int) -> Void) {
        var index = list.last(at: address)
        while index >= 0, address - list.entries[index].address < EntryMarks.watched {
            body(index, Int(address - list.entries[index].address))
            index -= 1
        }
    }

    private func mark(_ reference: EntryReference) {
        let target = code.base + UInt64(reference.target), site = code.base + UInt64(reference.site)
        let source = Int(reference.source)
        forEachWatching(target) { index, offset in
            let bit = UInt16(1) << UInt16(offset)
            switch reference.kind {
            case .call, .codeAddress:
                if offset == 0 { marks[index].isReferenced = true } else { marks[index].direct |= bit }
                if offset == 0, reference.kind == .codeAddress { marks[index].isHeld = true }
            case .guess:
                if offset > 0 { marks[index].direct |= bit } else { marks[index].isHeld = true }
            case .jump, .conditional:
                if source == index {
                    marks[index].own |= bit
                } else if offset > 0 {
                    marks[index].direct |= bit
                } else if !isTailCall(site, list.entries[source]) { // it is one if the stack is as a caller leaves it
                    marks[index].isJumpedInto = true
                } else if reference.kind == .jump {
                    marks[index].isJumpedTo = true
                } else {
                    marks[index].isBranchedTo = true
                }
            }
        }
    }

    private func isTailCall(_ site: UInt64, _ source: FunctionEntry) -> Bool {
        guard let function = source.frames.flatMap({ site - $0.address < $0.byteCount ? $0 : nil }) ?? frames.function(containing: site),
            let row = frames.row(of: function, at: Int(site - function.address))
        else { return true }
        if row == code.architecture.rowAtEntry { return true }
        guard code.architecture == .x86 else { return row.isExpression || row.register != 31 }
        if row.isExpression { return true }
        if row.register == 7 { return false }
        // Compilers that do not describe the ends of functions: after leave or pop %rbp it is one.
        let before = code.code(at: site &- 1).load(0, as: UInt8.self)
        return before == 0xc9 || before == 0x5d
    }

    private func markBareSymbols() {
        for address in list.bareSymbols {
            forEachWatching(address) { index, offset in if offset > 0 { marks[index].direct |= 1 << UInt16(offset) } }
        }
        for entry in list.entries {
            forEachWatching(entry.address) { index, offset in if offset > 0 { marks[index].direct |= 1 << UInt16(offset) } }
        }
    }

    private mutating func markStored(_ bases: [UInt64]) {
        var resolvers: [Int] = []
        func store(_ target: UInt64) {
            forEachWatching(target) { index, offset in
                if offset == 0 { marks[index].isReferenced = true } else { marks[index].stored |= 1 << UInt16(offset) }
            }
        }
        StoredAddresses.forEach(file, code) { target, isResolver in
            store(target)
            if isResolver, case let index = list.last(at: target), index >= 0, list.entries[index].address == target {
                resolvers.append(index)
            }
        }
        for index in resolvers { list.markResolver(index) }
        var sorted = bases.sorted(), count = 0
        for base in sorted where count == 0 || sorted[count - 1] != base {
            sorted[count] = base
            count += 1
        }
        sorted.removeLast(sorted.count - count)
        StoredAddresses.forEachDistance(from: sorted, code) { target in
            // Numbers that are no table may lead to a function's beginning, and a table of functions does.
            forEachWatching(target) { index, offset in
                if offset > 0 { marks[index].stored |= 1 << UInt16(offset) } else { marks[index].isHeld = true }
            }
        }
    }

    private func markHandlers() {
        for function in frames.functions where function.lsda != nil {
            LandingPads.forEach(of: function, code) { address in
                forEachWatching(address) { index, offset in marks[index].landing |= 1 << UInt16(offset) }
            }
        }
    }

    /// Marks entries of a stripped file that have a description of their own, but are parts of other functions.
    private mutating func findParts() {
        for (index, entry) in list.entries.enumerated() where entry.names.isEmpty && !entry.isPart {
            guard let function = entry.frames else { continue }
            let isFrameless = frames.row(of: function, at: 0) == code.architecture.rowAtEntry
            if !isFrameless && !frames.isSignalFrame(function) || isLinkageStub(entry)
                || !marks[index].isReferenced && isPart(marks[index], bodies[index])
            {
                list.markPart(index)
            }
        }
    }

    /// True if an entry that nobody calls nor has the address of is a part: by who jumps to it, and where it goes itself.
    private func isPart(_ mark: EntryMarks, _ body: ScannedCode.Body) -> Bool {
        mark.landing != 0 || mark.isJumpedInto || mark.isBranchedTo && !mark.isJumpedTo || body.jumpsInside || body.runsOn
    }

    /// In a file without sections: all that it does is to jump through a slot.
    private func isLinkageStub(_ entry: FunctionEntry) -> Bool {
        guard code.architecture == .x86 else { return false }
        let bytes = code.code(at: entry.address), kept = X86Relocator.kept(code, entry.address, count: 16)
        let isBound = bytes.load(kept, as: UInt8.self) == 0xf2
        return bytes.load(kept + (isBound ? 1 : 0), as: UInt16.self) == 0x25ff && file.sections.isEmpty
    }

    // MARK: - Function by function

    private mutating func plan(_ index: Int, _ whole: Reason?) -> Planned {
        let entry = list.entries[index]
        var planned = Planned(index: index), function = plan_function()
        function.address = UInt32(entry.address - code.base)
        function.byte_count = UInt32(clamping: entry.end - entry.address)
        var reason = whole ?? fixedReason(index)
        if reason == nil {
            switch code.architecture {
            case .x86: reason = planX86(index, &function)
            case .arm: reason = planArm(index, &function)
            }
        }
        if let why = reason, why.isOfBytes {
            reason = planOtherwise(index, &function, &planned.words, why)
        }
        if entry.isResolver { function.flags |= UInt8(PLAN_FUNCTION_RESOLVER) }
        if let reason {
            function.tactic = Tactic.none.rawValue
            function.reason = reason.rawValue
        }
        planned.function = function
        return planned
    }

    private func fixedReason(_ index: Int) -> Reason? {
        let entry = list.entries[index], body = bodies[index], mark = marks[index]
        if entry.address == file.entry, file.type == 2 || !file.programHeaders(.interpreter).isEmpty { return .entryPoint }
        for name in list.names[entry.names] {
            if let reason = KnownFunction.reason(name) { return reason }
            if !answersForLabels && KnownFunction.isCallbackOfGeneratedCode(name) { return .generatedCaller }
        }
        if let function = entry.frames {
            if frames.isSignalFrame(function) { return .signalReturn }
            if let row = frames.row(of: function, at: 0), row != code.architecture.rowAtEntry { return .frameAtEntry }
        }
        if entry.isInside { return .inside }
        if body.isBroken { return .notCode }
        if mark.isJumpedInto { return .jumpedInto }
        if isRunInto(index) { return .fallsInto }
        if body.hasHiddenTargets { return .hiddenTargets }
        if body.readsReturnAddress { return .asksCaller }
        if mark.isAsked { return .askedByCallee }
        return nil
    }

    /// The code before it goes on in it, with more on the stack than a caller leaves. (Else it is as good as a tail call.)
    private func isRunInto(_ index: Int) -> Bool {
        guard isReachedFromAbove(index) else { return false }
        let entry = list.entries[index], end = min(list.entries[index - 1].end, entry.address)
        guard let function = frames.function(containing: end - 1) else { return true }
        return frames.row(of: function, at: Int(end - 1 - function.address)) != code.architecture.rowAtEntry
    }

    /// The code before it goes on in it.
    private func isReachedFromAbove(_ index: Int) -> Bool {
        guard index > 0, bodies[index - 1].runsOn, !bodies[index - 1].isBroken else { return false }
        let entry = list.entries[index], end = min(list.entries[index - 1].end, entry.address)
        return entry.address - end < 16 && X86Scan.isPadding(Self.bytes(code, end, entry.address))
    }

    /// Why the bytes [patch, patch + count) of the function cannot be replaced at once.
    private func reason(_ index: Int, patch: Int, count: Int) -> Reason? {
        let mark = marks[index]
        func mask(_ low: Int, _ high: Int) -> UInt16 { UInt16(truncatingIfNeeded: (1 << high) - (1 << low)) }
        if mark.own & mask(patch, patch + 1) != 0 || patch > 0 && mark.own & 1 != 0 { return .loop }
        if mark.landing & mask(patch, patch + count) != 0 { return .landingPad }
        if (mark.direct | mark.own) & mask(patch + 1, patch + count) != 0 { return .jumpInto }
        if mark.stored & mask(patch + 1, patch + count) != 0 { return .tableInto }
        return nil
    }

    /// Free bytes after the entry: padding that nothing runs into.
    private func padding(after index: Int) -> Range<UInt64> {
        let entry = list.entries[index], end = entry.end
        let next = index + 1 < list.entries.count ? list.entries[index + 1].address : end
        guard next > end, next - end < 4096, !bodies[index].runsOn, !bodies[index].isBroken, !entry.isInside else { return end..<end }
        let bytes = Self.bytes(code, end, next)
        guard UInt64(bytes.count) == next - end, X86Scan.isPadding(bytes) else { return end..<end }
        return end + UInt64(usedPadding[index] ?? 0)..<next
    }

    private mutating func planX86(_ index: Int, _ function: inout plan_function) -> Reason? {
        let entry = list.entries[index], count = Int(entry.end - entry.address)
        let patch = X86Relocator.kept(code, entry.address, count: count)
        function.patch = UInt8(patch)
        let nops = X86Relocator.nops(code, entry.address, count: count, patch: patch)
        if nops > 0, reason(index, patch: patch, count: 5) == nil {
            function.tactic = Tactic.nops.rawValue
            function.replaced = 5
            var relocated = RelocatedCode()
            relocated.resume = patch + nops
            keep(index, &function, relocated)
            return nil
        }
        var first: Reason?
        for (tactic, wanted) in [(Tactic.jump5, 5), (.jump2, 2), (.trap, 1)] {
            if tactic == .trap && !options.usesTraps { break }
            let relocated = X86Relocator.relocate(code, entry.address, count: count, patch: patch, wanted: wanted)
            var why: Reason?
            let beyond = patch + wanted - count
            if beyond > 0 { // padding must follow
                let free = padding(after: index)
                if !relocated.isEnded || (usedPadding[index] ?? 0) > 0 || Int(free.upperBound - free.lowerBound) < beyond {
                    why = .tooShort
                }
            }
            why = why ?? obstacle(index, patch: patch, wanted: wanted, relocated)
            if why == nil, tactic == .jump2 {
                guard let landing = takeLanding(near: index, from: entry.address + UInt64(patch + 2), beyond: max(beyond, 0)) else {
                    first = first ?? .tooShort
                    continue
                }
                function.setLanding(landing, code)
            } else if why == nil, beyond > 0 {
                usedPadding[index] = (usedPadding[index] ?? 0) + beyond
            }
            if why == nil {
                function.tactic = tactic.rawValue
                function.replaced = UInt8(wanted)
                keep(index, &function, relocated)
                return nil
            }
            first = first ?? (why == .endsOpen ? .tooShort : why)
        }
        return first
    }

    /// Why the instructions that cover `wanted` bytes of the function from `patch` on cannot be replaced by their copies.
    private func obstacle(_ index: Int, patch: Int, wanted: Int, _ relocated: RelocatedCode) -> Reason? {
        let entry = list.entries[index]
        if let why = reason(index, patch: patch, count: wanted) { return why }
        if relocated.reason != .no { return relocated.reason }
        // A call must not return into the patched bytes, unless it is the last instruction: nothing is run after it.
        return relocated.isCall && relocated.resume < min(patch + wanted, Int(entry.end - entry.address)) ? .returnsInto : nil
    }

    /// Takes five bytes of padding in reach of a jump of two bytes, whose displacement counts from `origin`.
    private mutating func takeLanding(near index: Int, from origin: UInt64, beyond: Int) -> UInt64? {
        if beyond > 0 { usedPadding[index] = (usedPadding[index] ?? 0) + beyond } // bytes that the short jump itself takes
        var candidates: [Int] = []
        var other = index
        while other < list.entries.count, list.entries[other].end < origin + 128 {
            candidates.append(other)
            other += 1
        }
        other = index - 1
        while other >= 0, list.entries[other].end + 128 + 4096 > origin {
            candidates.append(other)
            other -= 1
            if candidates.count > 64 { break }
        }
        for other in candidates {
            let free = padding(after: other)
            // From below, whichever is in reach first.
            var at = free.lowerBound
            if at + 128 < origin { at = origin - 128 }
            guard free.lowerBound <= at, at + 5 <= free.upperBound, at <= origin + 127 else { continue }
            usedPadding[other] = Int(at + 5 - list.entries[other].end)
            return at
        }
        if beyond > 0 { usedPadding[index]! -= beyond }
        return nil
    }

    // MARK: - Bytes of a neighbour

    /// Plans functions that are still refused, or recorded where they are called directly alone, by a short jump to bytes that the patch of
    /// a neighbour leaves unused: behind a jump of five bytes whatever was moved with the first instructions is executed no more. That
    /// patch has to be in place first, and to stay.
    private mutating func borrow(_ planned: inout [Planned]) {
        for n in planned.indices {
            let function = planned[n].function, index = planned[n].index
            let isHeld = function.tactic == Tactic.calls.rawValue && UInt32(function.flags) & UInt32(PLAN_FUNCTION_HELD) != 0
            guard isHeld || Reason(rawValue: function.reason)?.isOfBytes ?? false else { continue }
            let entry = list.entries[index], count = Int(entry.end - entry.address), patch = Int(function.patch)
            guard count >= patch + 2, fixedReason(index) == nil else { continue }
            let relocated = X86Relocator.relocate(code, entry.address, count: count, patch: patch, wanted: 2)
            guard obstacle(index, patch: patch, wanted: 2, relocated) == nil,
                let landing = takeBytes(near: n, from: entry.address + UInt64(patch + 2), &planned)
            else { continue }
            var own = planned[n].function
            own.tactic = Tactic.neighbour.rawValue
            (own.replaced, own.reason) = (2, Reason.no.rawValue)
            own.flags &= UInt8(PLAN_FUNCTION_RESOLVER)
            own.setLanding(landing, code)
            keep(index, &own, relocated)
            planned[n].function = own
            planned[n].words = []
        }
    }

    /// Takes five bytes of a neighbour in reach of a jump of two bytes, whose displacement counts from `origin`.
    private mutating func takeBytes(near n: Int, from origin: UInt64, _ planned: inout [Planned]) -> UInt64? {
        let reach = origin - min(origin, 128)...origin + 127, longest = UInt64(PLAN_RELOCATED_MOST_BYTES)
        var near = Array(
            planned[..<n].indices.reversed().prefix { code.base + UInt64(planned[$0].function.address) + longest >= reach.lowerBound })
        near += planned[(n + 1)...].indices.prefix { code.base + UInt64(planned[$0].function.address) <= reach.upperBound }
        for other in near {
            if let bytes = takeBytes(of: other, in: reach, &planned) { return bytes }
        }
        return nil
    }
    /// Takes the five bytes behind the patch of a function, and behind those that are lent already; more of its instructions are moved if need be.
    private mutating func takeBytes(of n: Int, in reach: ClosedRange<UInt64>, _ planned: inout [Planned]) -> UInt64? {
        var function = planned[n].function
        let index = planned[n].index, entry = list.entries[index], patch = Int(function.patch)
        let offset = patch + 5 + planned[n].lent, wanted = offset + 5 - patch, bytes = entry.address + UInt64(offset)
        guard [Tactic.nops.rawValue, Tactic.jump5.rawValue, Tactic.whole.rawValue].contains(function.tactic), reach.contains(bytes),
            entry.address + UInt64(patch + wanted) <= entry.end, list.last(at: bytes) == index
        else { return nil }
        if function.tactic != Tactic.whole.rawValue, function.tactic != Tactic.jump5.rawValue || Int(function.resume) < patch + wanted {
            let relocated = X86Relocator.relocate(
                code, entry.address, count: Int(entry.end - entry.address), patch: patch, wanted: wanted)
            guard relocated.resume >= patch + wanted, relocated.resume - patch < 16,
                relocated.bytes.count <= Int(PLAN_RELOCATED_MOST_BYTES),
                relocated.originals(patch: patch).count <= Int(PLAN_MOST_INSTRUCTIONS) * MemoryLayout<plan_instruction>.size,
                obstacle(index, patch: patch, wanted: wanted, relocated) == nil
            else { return nil }
            function.tactic = Tactic.jump5.rawValue
            function.flags &= UInt8(PLAN_FUNCTION_RESOLVER)
            keep(index, &function, relocated)
            planned[n].function = function
        } else if function.tactic == Tactic.jump5.rawValue, reason(index, patch: patch, count: wanted) != nil {
            return nil
        }
        planned[n].lent += 5
        return bytes
    }

    private mutating func planArm(_ index: Int, _ function: inout plan_function) -> Reason? {
        let entry = list.entries[index]
        let bytes = code.code(at: entry.address)
        guard entry.end - entry.address >= 4, let word = bytes.load(0, as: UInt32.self) else { return .notCode }
        var patch = 0
        if word == ArmInstruction.branchTarget || word == ArmInstruction.anyTarget {
            patch = 4
        } else if needsLandingInstruction, word == ArmInstruction.signA || word == ArmInstruction.signB {
            patch = 4
            function.flags |= UInt8(PLAN_FUNCTION_SIGNED)
        }
        function.patch = UInt8(patch)
        if patch + 4 > Int(entry.end - entry.address) { return .tooShort }
        if let why = reason(index, patch: patch, count: 4) { return why }
        let relocated = ArmRelocator.relocate(code, entry.address, patch: patch)
        if relocated.reason != .no { return relocated.reason }
        function.tactic = (bytes.load(patch, as: UInt32.self) == ArmInstruction.nop ? Tactic.nops : .word).rawValue
        function.replaced = 4
        keep(index, &function, relocated)
        return nil
    }

    // MARK: - Functions whose first bytes cannot be moved by themselves

    /// Plans a function whose first bytes cannot be replaced alone: by its call sites where nothing else can call it, since its code then
    /// stays where it is; else as a whole, which pointers lead to as well; else by its call sites, although there may be other calls. nil: it
    /// is done; else why not.
    /// - Parameters:
    ///   - words: gets the displacements (x86-64) or instructions (aarch64) of the call sites, relative to the base
    ///   - why: why its first bytes cannot be replaced alone
    private mutating func planOtherwise(_ index: Int, _ function: inout plan_function, _ words: inout [UInt32], _ why: Reason) -> Reason? {
        let sites = callSites(of: index), isReached = !sites.isShort && !sites.words.isEmpty
        if !isReached || sites.isHeld, planWhole(index, &function) { return nil }
        guard isReached else { return sites.isShort ? .shortJump : why }
        let entry = list.entries[index]
        words = sites.words
        (function.tactic, function.patch, function.replaced) = (Tactic.calls.rawValue, 0, 0)
        function.flags = sites.isHeld ? UInt8(PLAN_FUNCTION_HELD) : 0
        keep(index, &function, code.architecture == .x86 ? RelocatedCode() : ArmRelocator.jump(to: entry.address, code))
        return nil
    }

    private mutating func findHeld() -> HeldAddresses {
        let held = held ?? HeldAddresses(file, code, list)
        self.held = held
        return held
    }

    /// Moves all of a function, so that its own jumps into the replaced bytes lead to their copies. False: it is not done.
    private mutating func planWhole(_ index: Int, _ function: inout plan_function) -> Bool {
        let entry = list.entries[index], count = Int(entry.end - entry.address), patch = Int(function.patch), mark = marks[index]
        let replaced = code.architecture == .x86 ? 5 : 4
        // Exception handlers, and whoever enters in the middle, go on in the original, whose jumps to the first byte would be calls.
        let inside = UInt16(truncatingIfNeeded: 1 << min(count, 16) - 1 << min(patch + 1, 16))
        guard !bodies[index].runsOn, !bodies[index].hasHiddenTargets, entry.frames?.lsda == nil,
            (mark.landing | mark.direct | mark.stored) & inside == 0, !isEnteredInside(entry)
        else { return false }
        func isEntry(_ target: UInt64) -> Bool {
            let index = list.last(at: target)
            return index >= 0 && list.entries[index].address == target && !list.entries[index].isPart
        }
        let relocated =
            code.architecture == .x86
            ? X86Relocator.whole(code, entry.address, count: count, patch: patch, isEntry: isEntry)
            : ArmRelocator.whole(code, entry.address, count: count, patch: patch, isEntry: isEntry)
        guard let relocated else { return false }
        function.tactic = Tactic.whole.rawValue
        function.replaced = UInt8(replaced)
        keep(index, &function, relocated)
        return true
    }

    /// Other code jumps behind the first byte, or data has an address from there.
    private mutating func isEnteredInside(_ entry: FunctionEntry) -> Bool {
        let next = bisect(middles.count) { middles[$0] <= entry.address }
        if next < middles.count, middles[next] < entry.end { return true }
        return findHeld().containsAny(in: entry.address + 1..<entry.end)
    }

    /// The direct calls of a function, and jumps to it from others.
    private struct CallSites {
        /// Their displacements (x86-64) or instructions (aarch64), relative to the base: in order, each once.
        var words: [UInt32] = []
        /// There may be other calls.
        var isHeld = false
        /// One has too few bits to lead to a stub.
        var isShort = false
    }

    private mutating func callSites(of index: Int) -> CallSites {
        var sites = CallSites(), found: [UInt32] = []
        sites.isHeld = marks[index].isHeld || isReachedFromAbove(index)
        for call in callers[index] {
            let source = Int(call.source), site = code.base + UInt64(call.site)
            if bodies[source].isBroken { // what begins an instruction there is a guess
                sites.isHeld = true
                continue
            }
            if isIteration(site, source, index) { continue }
            let word: UInt64?
            switch code.architecture {
            case .x86: word = X86Relocator.displacement(at: site, code)
            case .arm: word = ArmRelocator.isLong(at: site, code) ? site : nil
            }
            if let word { found.append(UInt32(word - code.base)) } else { sites.isShort = true }
        }
        found.sort()
        for word in found where sites.words.last != word { sites.words.append(word) } // functions may overlap
        sites.isHeld = sites.isHeld || findHeld().contains(list.entries[index].address)
        return sites
    }

    /// A jump from the part of a function that the compiler has put elsewhere (NAME.cold) to its first byte: no call, as one from within.
    private func isIteration(_ site: UInt64, _ source: Int, _ index: Int) -> Bool {
        guard list.entries[source].isPart, !isCall(site) else { return false }
        return list.names[list.entries[source].names].contains { part in
            list.names[list.entries[index].names].contains { name in
                part.count > name.count && part[name.count] == UInt8(ascii: ".") && part.prefix(name.count).elementsEqual(name)
            }
        }
    }

    private func isCall(_ site: UInt64) -> Bool {
        let bytes = code.code(at: site)
        if code.architecture == .arm, let word = bytes.load(0, as: UInt32.self) { return word & 0xfc00_0000 == 0x9400_0000 }
        return bytes.load(0, as: UInt8.self) == 0xe8
    }

    private mutating func keep(_ index: Int, _ function: inout plan_function, _ relocated: RelocatedCode) {
        let entry = list.entries[index]
        function.resume = UInt8(relocated.resume)
        if relocated.isEnded { function.flags |= UInt8(PLAN_FUNCTION_RELOCATED_END) }
        if !bodies[index].leadsElsewhere { function.flags |= UInt8(PLAN_FUNCTION_LEAF) }
        if lengths.isBounded[index] { function.flags |= UInt8(PLAN_FUNCTION_BOUNDED) }
        if lengths.mayWait[index] { function.flags |= UInt8(PLAN_FUNCTION_WAITS) }
        let site = entry.address + UInt64(function.patch)
        withUnsafeMutableBytes(of: &function.original) { $0.copyBytes(from: code.code(at: site).prefix(Int(function.replaced))) }
        if code.architecture == .x86, function.replaced > 0 {
            function.starts = X86Relocator.starts(code, site, count: relocated.resume - Int(function.patch))
        }
        builder.addRelocated(relocated, to: &function)
    }
}

extension plan_function {
    /// Notes the place of the long jump that its short one leads to.
    fileprivate mutating func setLanding(_ address: UInt64, _ code: ModuleCode) {
        landing = UInt32(address - code.base)
        withUnsafeMutableBytes(of: &landing_original) { $0.copyBytes(from: code.code(at: address).prefix(5)) }
    }
}

/// A scan in several threads, each of which writes to elements of its own.
private struct SharedScan: @unchecked Sendable {
    let bodies: UnsafeMutableBufferPointer<ScannedCode.Body>, results: UnsafeMutablePointer<ScannedCode>
    let entries: [FunctionEntry], finder: EntryFinder, cuts: [Int]

    func scan<Scan: CodeScan>(_ part: Int, _: Scan.Type) {
        var scan = Scan(finder), reach: UInt64 = 0
        for index in cuts[part]..<cuts[part + 1] {
            bodies[index] = scan.scan(entries[index], index)
            reach = max(reach, entries[index].end)
            // Code of which nothing says that it is a function's.
            let next = index + 1 < entries.count ? entries[index + 1].address : reach
            if next > reach, next - reach < 1 << 24, !X86Scan.isPadding(Planner.bytes(finder.code, reach, next)) {
                scan.guessAll(reach, next, -1)
            }
        }
        results[part] = scan.finder.found
    }
}

/// aarch64: whether an indirect branch must find a `bti` (GNU_PROPERTY_AARCH64_FEATURE_1_BTI, aaelf64).
enum BranchTargets {
    static func areGuarded(_ file: CodeFile, _ code: ModuleCode) -> Bool {
        for segment in file.programHeaders(.property) {
            let bytes = code.content(at: segment.address)
            guard let names = bytes.load(0, as: UInt32.self), let count = bytes.load(4, as: UInt32.self), names == 4, count < 4096 else {
                continue
            }
            var offset = 16
            while offset < 16 + Int(count), let type = bytes.load(offset, as: UInt32.self),
                let size = bytes.load(offset + 4, as: UInt32.self), size < 4096
            {
                if type == 0xc000_0000 { return (bytes.load(offset + 8, as: UInt32.self) ?? 0) & 1 != 0 }
                offset += 8 + (Int(size) + 7) & ~7
            }
        }
        return false
    }
}
