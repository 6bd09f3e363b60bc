// Calls of the functions of a program's modules, over several traces: each function of each module once, by its address in the file.
// Modules are distinguished by their build-ids; without one, by path and size in memory.
import ELF
import EntryPlan
import Presentation
import Symbols
import TraceAnalysis

package struct UsedFunction: Sendable {
    /// As linked.
    package var address: UInt64
    package var byteCount: UInt64
    /// Mangled, the one to show first; empty: it has no name.
    package var symbols: [String]
    package var calls: UInt64 = 0
    /// There were more calls than are recorded.
    package var isLeast = false
    /// Why it is not known whether it was called, where no call of it is; nil: it was not.
    package var reason: UnknownReason?

    package var isNeverCalled: Bool { calls == 0 && reason == nil }
    package var symbol: String { symbols.first ?? "" }
    package var name: String { symbols.first.map { demangled($0) } ?? "0x" + String(address, radix: 16) }
}

package struct UsedModule: Sendable {
    package enum Recording: String, JSONChoice, Sendable {
        /// Calls of all functions whose entries can be patched.
        case functions
        /// Only calls that go through slots.
        case slots
    }
    package var identity: ModuleIdentity
    /// Its file name; with the build-id where there are several of that name.
    package var name: String
    package var recording: Recording
    /// Sorted by address.
    package var functions: [UsedFunction]
}

package struct FunctionUse: Sendable {
    /// Executables first, then by name.
    package private(set) var modules: [UsedModule] = []
    /// One line each: what of the modules is not here, what is there twice.
    package private(set) var complaints: [String] = []
    /// Children that ran in their parent's memory: what they called is not recorded (TracerAgent, SharedMemory.swift).
    private var vforkCount: UInt64 = 0

    package init(_ traces: [TraceFile], symbolizer: Symbolizer, progress: ReadingProgress? = nil) {
        var tallies: [ModuleKey: ModuleTally] = [:]
        for trace in traces {
            let counts = CallCounts(trace, progress: progress)
            Self.add(trace, counts, to: &tallies)
            let isWhole = trace.metadata.patched.values.contains { $0.patched > 0 }
            for function in trace.metadata.functions.values where isWhole && ["vfork", "__vfork"].contains(function.rawName) {
                vforkCount &+= counts.calls[function.id] ?? 0
            }
        }
        let ordered = tallies.sorted {
            ($0.value.isMain ? 0 : 1, $0.value.module.name, $0.key.text) < ($1.value.isMain ? 0 : 1, $1.value.module.name, $1.key.text)
        }
        for (_, tally) in ordered { add(tally, symbolizer) }
        distinguishVersions()
        if vforkCount > 0, modules.contains(where: { $0.recording == .functions }) {
            complaints.append(
                "calls made in \(counted(vforkCount, "child", "children")) of vfork are not recorded: functions called only there are shown as never called"
            )
        }
    }

    private static func add(_ trace: TraceFile, _ counts: CallCounts, to tallies: inout [ModuleKey: ModuleTally]) {
        let metadata = trace.metadata, recorded = RecordedFunctions(trace)
        let hasGaps = trace.hasGaps, main = trace.executableModule?.index
        var keys: [UInt32: ModuleKey] = [:]
        for module in metadata.modules.values.sorted(by: { $0.index < $1.index }) {
            let key = ModuleKey(module)
            keys[module.index] = key
            let isNew = tallies[key]?.traces.last?.trace.path != trace.path // loaded again: it is the same trace
            tallies[key, default: ModuleTally(module)].add(module, isMain: module.index == main)
            if isNew { tallies[key]!.traces.append(ModuleTally.Appearance(trace: trace, module: module, recorded: recorded)) }
        }
        for function in metadata.functions.values where !function.isSpan && !function.isMark && function.address != 0 {
            guard let index = function.module, let module = metadata.modules[index], let key = keys[index] else { continue }
            let count = counts.calls[function.id] ?? 0
            var sums = tallies[key]!.functions[function.address &- module.loadBias] ?? FunctionTally()
            sums.calls &+= count
            // A forked process begins with those that its parent had called. Nothing distinguishes them where that is all that is known.
            let isCalled = function.isThereByCall && (hasGaps || trace.hasStart || trace.hasCountsAlone)
            if isCalled { sums.isCalled = true }
            if metadata.suppressed[function.id] != nil && !metadata.isCounted(function.id) || hasGaps && count > 0 || isCalled && count == 0
            {
                sums.isLeast = true
            }
            if hasGaps && !function.isThereByCall && count == 0 { sums.mayBeMissed = true }
            if !function.rawName.isEmpty && !function.rawName.hasPrefix("0x") { sums.add(symbol: function.rawName) }
            tallies[key]!.functions[function.address &- module.loadBias] = sums
        }
    }

    private mutating func add(_ tally: ModuleTally, _ symbolizer: Symbolizer) {
        let module = tally.module
        let isWhole = tally.traces.contains { $0.isWhole }
        if !isWhole && tally.functions.isEmpty { return } // the vDSO, libraries of which nothing is known but that they are there
        var used: [UInt64: UsedFunction] = [:]
        var recording = UsedModule.Recording.slots
        if isWhole {
            if let path = tally.paths.first(where: {
                symbolizer.hasFile(
                    of: ModuleIdentity(path: $0, buildID: module.buildID, spanBytes: module.identity.spanBytes, file: module.file))
            }) {
                do throws(PlanProblem) {
                    let planned = try PlannedModule(path: path)
                    let reasons = tally.reasons(planned.functions)
                    recording = .functions
                    for (function, reason) in zip(planned.functions, reasons) {
                        used[function.address] = UsedFunction(
                            address: function.address, byteCount: function.byteCount, symbols: function.symbols, reason: reason)
                    }
                } catch {
                    complaints.append("\(module.name): \(error.message); only its called functions are shown")
                }
            } else {
                let identity = module.buildID.isEmpty ? "" : " (build-id \(hexadecimal(module.buildID)))"
                complaints.append(
                    "\(module.name): \(module.path)\(identity) was not found: only its called functions are shown")
            }
        }
        for (address, sums) in tally.functions {
            if recording == .slots, used[address] == nil {
                if isWhole && !sums.hasCalls { continue } // its file is not here: nothing is said of what was not called
                let symbol = symbolizer.function(at: address, in: module.identity)
                let isItself = symbol?.address == address
                let name = sums.symbol ?? (isItself ? symbol?.name : nil)
                used[address] = UsedFunction(
                    address: address, byteCount: isItself ? symbol?.byteCount ?? 0 : 0, symbols: name.map { [$0] } ?? [])
            }
            guard var function = used[address] else { continue } // within a function, or in a linkage stub
            function.calls = max(sums.calls, sums.isCalled ? 1 : 0)
            // Its own module may have called it, or somebody by its address.
            function.isLeast = sums.isLeast || recording == .slots || function.reason == .otherCalls
            if function.calls > 0 {
                function.reason = nil
            } else if sums.mayBeMissed {
                function.reason = .lost
            }
            used[address] = function
        }
        modules.append(
            UsedModule(
                identity: module.identity, name: module.name, recording: recording,
                functions: used.values.sorted { $0.address < $1.address }))
    }

    /// Adds the build-id (or the path) to the names of modules that have several versions: each is counted by itself.
    private mutating func distinguishVersions() {
        for (name, same) in Dictionary(grouping: modules.indices, by: { modules[$0].name }).sorted(by: { $0.key < $1.key })
        where same.count > 1 {
            for index in same {
                let identity = modules[index].identity
                modules[index].name +=
                    identity.buildID.isEmpty ? " (\(identity.path))" : " (\(hexadecimal(Array(identity.buildID.prefix(4)))))"
            }
            let versions = same.map { modules[$0].name }.joined(separator: ", ")
            complaints.append("the traces have \(same.count) versions of \(name), each counted separately: \(versions)")
        }
    }
}

extension TraceFile {
    /// Calls of a function that the file knows may be missing in it.
    fileprivate var hasGaps: Bool {
        !Losses([self]).lost.isEmpty || filteredCalls > 0
    }
}
