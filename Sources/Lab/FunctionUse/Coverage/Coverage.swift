// Functions called and never called, in all traces together: by module, by source file, by class.
import EntryPlan
import Symbols
import TraceAnalysis

package struct CoveredModule: Sendable {
    package var name: String
    package var identity: ModuleIdentity
    package var recording: UsedModule.Recording
    package var functions: [CoveredFunction]
    package var sums: CoverageSums
}

package struct Coverage: Sendable {
    package let traces: [String]
    package let modules: [CoveredModule]
    /// One line each.
    package private(set) var complaints: [String]

    package init(
        _ traces: [TraceFile], symbolizer: Symbolizer, isWanted: (String) -> Bool = { _ in true }, progress: ReadingProgress? = nil
    ) {
        let use = FunctionUse(traces, symbolizer: symbolizer, progress: progress)
        self.traces = traces.map { $0.path }
        var complaints = use.complaints, modules: [CoveredModule] = []
        for module in use.modules where isWanted(module.name) {
            modules.append(Self.covered(module, symbolizer, &complaints))
        }
        self.modules = modules
        if !modules.isEmpty, modules.allSatisfy({ $0.recording == .slots }) {
            complaints.append(
                "only library calls were recorded, so the functions shown are those never called through a slot; record with --functions '*' to see all functions of the program"
            )
        }
        self.complaints = complaints
    }

    private static func covered(_ module: UsedModule, _ symbolizer: Symbolizer, _ complaints: inout [String]) -> CoveredModule {
        var reachedOnly: Set<UInt64>?
        let uncalled = Set(module.functions.lazy.filter { $0.isNeverCalled }.map { $0.address })
        if module.recording == .functions, !uncalled.isEmpty {
            do throws(PlanProblem) {
                reachedOnly = try CallGraph(path: module.identity.path).reachedOnly(from: uncalled)
            } catch {
                complaints.append("\(module.name): \(error.message); references to its functions are not known")
            }
        }
        let functions = module.functions.map { function in
            let name = function.name
            return CoveredFunction(
                name: name, symbols: function.symbols, module: module.name,
                source: symbolizer.source(at: function.address, in: module.identity),
                scope: NameScope.of(name, symbol: function.symbol), byteCount: function.byteCount, calls: function.calls,
                isLeast: function.isLeast, reason: function.reason,
                isOnlyFromUncalled: function.isNeverCalled ? reachedOnly?.contains(function.address) : nil)
        }
        return CoveredModule(
            name: module.name, identity: module.identity, recording: module.recording, functions: functions, sums: CoverageSums(functions))
    }

    /// Modules recorded by function, not only by calls through slots.
    package var wholeModules: [CoveredModule] { modules.filter { $0.recording == .functions } }

    package struct Group: Sendable {
        package var name: String
        package var module: String
        package var sums = CoverageSums()
    }

    /// Sums by source file, where DWARF has it, for files with functions never called: the most bytes of these first.
    package var files: [Group] { groups { $0.source?.path } }
    package var scopes: [Group] { groups { $0.scope.isEmpty ? nil : $0.scope } }

    private func groups(_ name: (CoveredFunction) -> String?) -> [Group] {
        struct Key: Hashable {
            var name: String, module: String
        }
        var found: [Key: Group] = [:]
        for module in wholeModules {
            for function in module.functions {
                guard let name = name(function) else { continue }
                found[Key(name: name, module: module.name), default: Group(name: name, module: module.name)].sums.add(function)
            }
        }
        return found.values.filter { $0.sums.neverCalled > 0 }.sorted {
            ($0.sums.neverCalledBytes, $1.name, $1.module) > ($1.sums.neverCalledBytes, $0.name, $0.module)
        }
    }

    package struct Unknown: Sendable {
        package var module: String
        package var reason: UnknownReason
        package var functions: Int
        package var examples: [String]
    }

    /// The most functions first.
    package var unknown: [Unknown] {
        modules.flatMap { module in
            let unknown = module.functions.filter { $0.calls == 0 && $0.reason != nil }
            return Dictionary(grouping: unknown, by: { $0.reason! }).map { reason, functions in
                Unknown(module: module.name, reason: reason, functions: functions.count, examples: functions.prefix(3).map { $0.name })
            }
        }.sorted { ($0.functions, $1.module, $1.reason.text) > ($1.functions, $0.module, $0.reason.text) }
    }

    /// The largest first.
    package var neverCalled: [CoveredFunction] {
        wholeModules.flatMap { $0.functions.filter { $0.isNeverCalled } }.sorted {
            ($0.byteCount, $1.name, $1.module) > ($1.byteCount, $0.name, $0.module)
        }
    }
}
