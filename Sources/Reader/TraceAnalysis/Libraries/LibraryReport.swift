// The libraries of a whole run: what each costs, which ones nothing uses, and which symbols lead elsewhere than they were
// meant to because two libraries define them.
import ELF
import Symbols
import TraceFormat

package struct LibraryReport: Sendable {
    /// Symbols that both define. The loader takes the first in its order for everybody.
    package struct Duplicates: Sendable, Equatable {
        /// Module whose definitions are taken, and the one whose are passed over.
        package var taken: String
        package var passedOver: String
        /// Modules that use one of them and were linked with the one that is passed over, or are it.
        package var users: [String]
        package var symbols: [String]
    }

    /// A library of which the program needs little.
    package struct FewFunctions: Sendable, Equatable {
        package struct Called: Sendable, Equatable {
            package var name: String
            package var calls: UInt64
        }
        package var library: String
        /// The most called first.
        package var functions: [Called]
        package static let most = 3
    }

    package let program: String
    package let libraries: [StartupLibrary]
    /// Direct dependencies of the executable that nothing is bound to.
    package let unusedByProgram: [String]
    /// Calls of dlsym, which finds functions without a slot that is bound to them.
    package let nameLookups: UInt64
    /// Direct dependencies of the executable that it has nothing bound to, and others have.
    package let programNeedsForOthers: [NeedForOthers]
    package let duplicates: [Duplicates]
    /// Libraries of which `FewFunctions.most` functions or fewer were called, as far as calls were recorded.
    package let few: [FewFunctions]
    /// Modules whose files are not here any more, or have changed: they may define symbols twice unseen.
    package let unread: [String]

    package init(_ trace: TraceFile, symbolizer: Symbolizer) throws(StartupError) {
        let records = trace.metadata.start
        guard let agent = records.phase(.agent) else { throw .noStart(trace) }
        let end = TraceEnd(trace).ticks
        let context = StartupContext(
            trace: trace, clock: StartupClock(trace, origin: agent.usage.ticks), names: CodeNames(trace.metadata, symbolizer),
            calls: StartupCalls(trace, until: end, main: nil), end: end)
        program = basename(trace.program)
        let all = StartupLibrary.all(context, ConstructorRun.all(context), withExecutable: true)
        libraries = all.filter { $0.module != context.executable }
        let executable = all.first { $0.module == context.executable }
        unusedByProgram = executable?.unusedNeeds ?? []
        nameLookups = context.calls.lookups
        programNeedsForOthers = executable?.needsForOthers ?? []
        few = Self.few(trace, libraries, context.names)
        (duplicates, unread) = Self.duplicates(trace, symbolizer, context.executable)
    }

    private static func few(_ trace: TraceFile, _ libraries: [StartupLibrary], _ names: CodeNames) -> [FewFunctions] {
        var called: [UInt32: [UInt32: UInt64]] = [:] // calls by module and function
        for (id, calls) in CallCounts(trace).calls {
            guard let function = trace.metadata.functions[id], !function.isSpan, !function.isMark, let module = function.module else {
                continue
            }
            called[module, default: [:]][id] = calls
        }
        return libraries.compactMap { library in
            guard let functions = called[library.module], !isLoader(library.name) else { return nil }
            // A function with two ids, such as a slot's and its own, counts once.
            let sums = Dictionary(functions.map { (names.function($0.key).name, $0.value) }) { $0 &+ $1 }
            guard sums.count <= FewFunctions.most else { return nil }
            return FewFunctions(
                library: library.name,
                functions: sums.sorted { ($0.value, $1.key) > ($1.value, $0.key) }.map { .init(name: $0.key, calls: $0.value) })
        }
    }

    private static func duplicates(_ trace: TraceFile, _ symbolizer: Symbolizer, _ executable: UInt32?) -> ([Duplicates], [String]) {
        let details = trace.metadata.start.moduleDetails
        // In the order in which the loader looks: those of the start, by their position in its list.
        let modules = trace.sortedModules.filter { module in
            details[module.index].map { $0.load == nil } ?? false && !isLoader(module.name)
        }
        var symbols: [UInt32: DynamicSymbols] = [:], unread: [String] = []
        for module in modules {
            symbols[module.index] = symbolizer.dynamicSymbols(of: module.identity, isExecutable: module.index == executable)
            if symbols[module.index] == nil, !module.path.isEmpty { unread.append(module.name) }
        }
        var definers: [String: [Module]] = [:]
        for module in modules {
            for name in symbols[module.index]?.definitions.keys ?? [:].keys { definers[name, default: []].append(module) }
        }
        struct Pair: Hashable { var taken: UInt32, passedOver: UInt32 }
        var found: [Pair: (users: Set<UInt32>, symbols: [String])] = [:]
        for (name, all) in definers where all.count > 1 {
            let first = all[0], version = symbols[first.index]!.definitions[name]!
            for other in all.dropFirst() {
                // Versions of their own keep them apart.
                let theirs = symbols[other.index]!.definitions[name]!
                guard version == theirs || version.isEmpty || theirs.isEmpty else { continue }
                let users = modules.filter { module in
                    guard symbols[module.index]?.references.contains(name) == true, module.index != first.index else { return false }
                    let needed = details[module.index]?.needed ?? []
                    return module.index == other.index
                        || names(other, details).contains { needed.contains($0) }
                            && !names(first, details).contains { needed.contains($0) }
                }
                guard !users.isEmpty else { continue }
                let pair = Pair(taken: first.index, passedOver: other.index)
                found[pair, default: ([], [])].users.formUnion(users.map { $0.index })
                found[pair]!.symbols.append(name)
            }
        }
        func name(_ index: UInt32) -> String { trace.metadata.modules[index]?.name ?? "?" }
        let result = found.sorted { ($0.key.taken, $0.key.passedOver) < ($1.key.taken, $1.key.passedOver) }.map { pair, what in
            Duplicates(
                taken: name(pair.taken), passedOver: name(pair.passedOver), users: what.users.sorted().map { name($0) },
                symbols: what.symbols.sorted())
        }
        return (result, unread)
    }

    private static func isLoader(_ name: String) -> Bool {
        name.hasPrefix("ld-linux") || name.hasPrefix("ld64") || name.hasPrefix("libtracer") || name.hasPrefix("linux-vdso")
    }

    private static func names(_ module: Module, _ details: [UInt32: ModuleDetail]) -> Set<String> {
        Set([module.name, details[module.index]?.soname ?? ""].filter { !$0.isEmpty })
    }
}
