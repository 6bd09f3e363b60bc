// The libraries of a process: who wants them, what they cost, and whether anything in the program uses them.
import Presentation
import TraceFormat

/// A library that one module names in DT_NEEDED and others use.
package struct NeedForOthers: Sendable, Equatable {
    package var library: String
    package var users: [String]
    /// Users that do not need it themselves, nor by way of what they need: without this need it might not be there.
    package var dependents: [String]
}

package struct StartupLibrary: Sendable {
    package var module: UInt32
    package var name: String
    package var path: String
    let detail: ModuleDetail
    /// Modules that name it in DT_NEEDED.
    package var neededBy: [String]
    /// Direct dependencies that it names, and that neither it nor another module has anything bound to.
    package var unusedNeeds: [String]
    /// Direct dependencies of which it uses nothing, and others do.
    package var needsForOthers: [NeedForOthers]
    /// Libraries that a module which needs this one links for others that do not name them. --as-needed omits them with lld and gold, which
    /// look at the references of object files alone; ld.bfd also looks at those of libraries (ld(1), --as-needed).
    package var fragile: [String]
    /// Slots of all other modules that lead here.
    package var boundFromOthers: UInt64
    /// Time in its constructors, without what other modules' constructors did inside.
    package var constructorTime: Nanoseconds
    package var constructorCount: Int
    /// Calls of its functions before ready.
    package var calls: UInt64

    /// Number of the load that brought it; nil: it was there at the start.
    package var load: UInt32? { detail.load }
    package var relocations: UInt64 {
        [detail.relativeRelocations, detail.symbolRelocations, detail.otherRelocations, detail.jumpSlots].reduce(0) { $0 + UInt64($1) }
    }
    /// Symbols that the loader looked up for it when it was loaded.
    package var lookups: UInt64 { UInt64(detail.symbolRelocations) + (detail.isLazy ? 0 : UInt64(detail.jumpSlots)) }
    /// Estimated cost of relocating it, in units of about 3 ns: one relocation that is an addition. A symbol lookup walks through the
    /// libraries before it and takes about 30 units.
    var relocationWeight: UInt64 { lookups &* 30 &+ (relocations &- lookups) &+ UInt64(detail.relrBytes) &* 4 }

    static func all(_ context: StartupContext, _ runs: [ConstructorRun], withExecutable: Bool = false) -> [StartupLibrary] {
        let records = context.trace.metadata.start, modules = context.trace.metadata.modules
        let executable = context.executable
        var numbers: [String: UInt32] = [:] // module numbers by DT_NEEDED name
        for detail in records.moduleDetails.values.sorted(by: { $0.module > $1.module }) {
            numbers[modules[detail.module]?.name ?? ""] = detail.module
            if !detail.soname.isEmpty { numbers[detail.soname] = detail.module }
        }
        var bound: [UInt32: Set<UInt32>] = [:], incoming: [UInt32: UInt64] = [:]
        for binding in records.bindings where binding.calls > 0 || binding.addresses > 0 {
            bound[binding.module, default: []].insert(binding.toModule)
            if binding.module != binding.toModule {
                incoming[binding.toModule, default: 0] += UInt64(binding.calls) + UInt64(binding.addresses)
            }
        }
        var neededBy: [UInt32: [String]] = [:]
        for detail in records.moduleDetails.values.sorted(by: { $0.module < $1.module }) {
            for name in detail.needed {
                if let needed = numbers[name] { neededBy[needed, default: []].append(context.moduleName(detail.module)) }
            }
        }
        let needs = Needs(records.moduleDetails, numbers, bound, context)
        var times: [UInt32: (UInt64, Int)] = [:]
        for run in runs {
            let known = times[run.module] ?? (0, 0)
            times[run.module] = (known.0 + run.selfTime.count, known.1 + 1)
        }
        return modules.values.sorted { $0.index < $1.index }.compactMap { module in
            guard withExecutable || module.index != executable, let detail = records.moduleDetails[module.index],
                module.loaded <= context.end || detail.load == nil
            else { return nil }
            return StartupLibrary(
                module: module.index, name: module.name, path: module.path, detail: detail, neededBy: neededBy[module.index] ?? [],
                unusedNeeds: needs.unused(of: detail), needsForOthers: needs.forOthers(of: detail),
                fragile: needs.fragile(besides: module.index), boundFromOthers: incoming[module.index] ?? 0,
                constructorTime: Nanoseconds(times[module.index]?.0 ?? 0), constructorCount: times[module.index]?.1 ?? 0,
                calls: context.calls.callsOfModule[module.index] ?? 0)
        }
    }
}

/// What modules name in DT_NEEDED and have nothing bound to.
private struct Needs {
    private let details: [UInt32: ModuleDetail]
    private let numbers: [String: UInt32]
    private let bound: [UInt32: Set<UInt32>]
    private let context: StartupContext
    private var users: [UInt32: [UInt32]] = [:]

    init(_ details: [UInt32: ModuleDetail], _ numbers: [String: UInt32], _ bound: [UInt32: Set<UInt32>], _ context: StartupContext) {
        (self.details, self.numbers, self.bound, self.context) = (details, numbers, bound, context)
        for (module, used) in bound.sorted(by: { $0.key < $1.key }) where context.trace.metadata.modules[module]?.isOfAgent == false {
            for library in used where library != module { users[library, default: []].append(module) }
        }
    }

    /// Not the loader, which every program needs.
    private func notUsed(by detail: ModuleDetail) -> [(name: String, module: UInt32)] {
        guard let used = bound[detail.module], !used.isEmpty else { return [] } // nothing noted: nothing concluded
        return detail.needed.compactMap { name in
            guard let module = numbers[name], !name.hasPrefix("ld-linux"), !name.hasPrefix("ld64"), !used.contains(module) else {
                return nil
            }
            return (name, module)
        }
    }

    func unused(of detail: ModuleDetail) -> [String] {
        notUsed(by: detail).filter { users[$0.module] == nil }.map { $0.name }
    }

    func forOthers(of detail: ModuleDetail) -> [NeedForOthers] {
        notUsed(by: detail).compactMap { name, module in
            guard let users = users[module] else { return nil }
            return NeedForOthers(
                library: name, users: users.map { context.moduleName($0) },
                dependents: users.filter { !needs($0, module, without: detail.module) }.map { context.moduleName($0) })
        }
    }

    func fragile(besides library: UInt32) -> [String] {
        let needers = details.values.filter { detail in detail.needed.contains { numbers[$0] == library } }
        let all = needers.flatMap { forOthers(of: $0).filter { !$0.dependents.isEmpty }.map { $0.library } }
        return Set(all).sorted()
    }

    /// Returns true if `module` needs the library, directly or not, and not by way of `other`.
    private func needs(_ module: UInt32, _ library: UInt32, without other: UInt32) -> Bool {
        var waiting = [module], known: Set<UInt32> = [module, other]
        while let next = waiting.popLast() {
            for needed in details[next]?.needed.compactMap({ numbers[$0] }) ?? [] {
                if needed == library { return true }
                if known.insert(needed).inserted { waiting.append(needed) }
            }
        }
        return false
    }
}

/// A dlopen, or a load inside libc, before ready.
package struct LibraryLoad: Sendable {
    package var number: UInt32
    /// As it was asked for.
    package var path: String
    package var modules: [String]
    /// nil: not known.
    package var caller: String?
    /// The constructor that made it.
    package var constructor: String?
    package var tid: UInt32
    package var start: Nanoseconds
    /// Without the agent's own work.
    package var total: Nanoseconds
    /// Estimated cost of recording the calls in it, contained in `total`.
    package var recording: Nanoseconds
    /// The return of dlopen was seen. Otherwise `total` reaches to the last thing that was seen of it.
    package var isEndKnown: Bool
    /// Time in constructors of the modules that it brought, and in everything that they called.
    package var constructors: Nanoseconds
    /// Time in which another thread's dlopen had the loader's lock, and for the most of it which library that one opened.
    package var lockWait: Nanoseconds
    package var lockHolder: String?
    package var isOver: Bool
    /// nil: the kernel has not reported it.
    package internal(set) var offCPU: OffCPUTime?
    let ticks: Range<UInt64>

    /// Finding, mapping and relocating.
    package var loading: Nanoseconds { total.without(constructors).without(lockWait) }
    package var name: String { path.isEmpty ? modules.first ?? "?" : basename(path) }

    static func all(_ context: StartupContext, _ runs: [ConstructorRun]) -> [LibraryLoad] {
        let records = context.trace.metadata.start, clock = context.clock
        let named = Dictionary(runs.map { ($0.number, $0.name.name) }, uniquingKeysWith: { first, _ in first })
        return records.loads.compactMap { load -> LibraryLoad? in
            let begin = context.begin(of: load)
            guard begin <= context.end else { return nil }
            let own = records.initializers.filter { $0.load == load.number && $0.begin.ticks <= context.end }
            let ranges = own.map { $0.begin.ticks.raw..<max(min($0.end?.usage.ticks ?? context.end, context.end).raw, $0.begin.ticks.raw) }
            let whole = begin.raw..<max(begin.raw, context.end.raw)
            let constructors = TimeWindow(ranges.map { $0.clamped(to: whole) }).moments.reduce(UInt64(0)) {
                $0 &+ clock.netTicks(Ticks($1.lowerBound), Ticks($1.upperBound), on: load.thread)
            }
            let end = context.end(of: load), others = Self.others(of: load, from: begin, context)
            let lockWait = TimeWindow(others.map { $0.held }).moments.reduce(UInt64(0)) {
                $0 &+ clock.netTicks(Ticks($1.lowerBound), Ticks($1.upperBound), on: load.thread)
            }
            let calls = context.calls.calls(on: load.thread, from: begin, to: min(end, context.end))
            let total = clock.net(begin, min(end, context.end), on: load.thread), inside = clock.scale.nanoseconds(constructors)
            return LibraryLoad(
                number: load.number, path: load.path,
                modules: records.moduleDetails.values.filter { $0.wasBrought(by: load.number) }.map { $0.module }.sorted().map {
                    context.moduleName($0)
                },
                caller: load.callerModule.map { context.moduleName($0) }, constructor: load.initializer.flatMap { named[$0] },
                tid: context.tid(load.thread), start: clock.since(begin), total: total,
                recording: context.recording(calls),
                isEndKnown: load.end != nil,
                // The agent notes its work when that is over: some of it may be in the whole and in no part.
                constructors: inside, lockWait: min(clock.scale.nanoseconds(lockWait), total.without(inside)),
                lockHolder: others.max { $0.held.upperBound - $0.held.lowerBound < $1.held.upperBound - $1.held.lowerBound }.map {
                    $0.path.isEmpty ? "?" : basename($0.path)
                },
                isOver: end <= context.end, ticks: begin.raw..<max(begin.raw, min(end, context.end).raw))
        }
    }

    /// Loads of other threads that had the loader's lock after this one was asked for and before it had that lock itself.
    private static func others(of load: Load, from begin: Ticks, _ context: StartupContext) -> [(path: String, held: Range<UInt64>)] {
        let waiting = begin.raw..<max(begin.raw, min(load.opened ?? load.mapped.ticks, context.end).raw)
        return context.trace.metadata.start.loads.compactMap { other in
            let from = (other.opened ?? other.mapped.ticks).raw
            let held = (from..<max(from, context.end(of: other).raw)).clamped(to: waiting)
            return other.thread == load.thread || held.isEmpty ? nil : (path: other.path, held: held)
        }
    }
}
