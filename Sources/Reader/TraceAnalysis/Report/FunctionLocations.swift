// Source positions and further names of the functions in a report's rows, from the modules' files.
import ELF
import Presentation
import Symbols

/// A function as reports distinguish them.
package struct ReportedFunction: Sendable, Hashable {
    /// For people.
    package var name: String
    /// As in the file.
    package var symbol: String
    package var module: String
}

extension FunctionSummary {
    package var function: ReportedFunction { ReportedFunction(name: name, symbol: symbol, module: module) }
}

/// Not for use by two threads at once.
package final class FunctionLocations {
    private struct Location: Hashable {
        var linked: UInt64
        var module: ModuleIdentity
    }

    private let symbolizer = Symbolizer()
    private var locations: [ReportedFunction: Set<Location>] = [:]
    /// Modules whose own functions are recorded: what a slot leads to is called by the slot's name.
    private var patched: Set<ModuleIdentity> = []
    /// True if lines are asked for.
    package let hasLines: Bool
    private var without: Set<String> = [], changed: Set<String> = []

    package init(_ traces: some Sequence<TraceFile>, lines: Bool) {
        hasLines = lines
        for trace in traces {
            let metadata = trace.metadata
            let recorded = metadata.patched.filter { $0.value.patched > 0 }
            for index in recorded.keys { if let module = metadata.modules[index] { patched.insert(module.identity) } }
            for function in metadata.functions.values where lines || function.module.map({ recorded[$0] != nil }) ?? false {
                guard let module = function.module.flatMap({ metadata.modules[$0] }), function.address != 0 else { continue }
                let named = FunctionNames.named(function, metadata, symbolizer)
                let key = ReportedFunction(
                    name: named.rawName.isEmpty ? FunctionNames.displayName(named, metadata) : "", symbol: named.rawName,
                    module: module.name)
                locations[key, default: []].insert(Location(linked: function.address &- module.loadBias, module: module.identity))
            }
        }
    }

    private func locations(of function: ReportedFunction) -> [Location] {
        var key = function
        if !function.symbol.isEmpty { key.name = "" } // the symbol distinguishes them
        return locations[key]?.sorted { ($0.linked, $0.module.path) < ($1.linked, $1.module.path) } ?? []
    }

    /// Several where static functions of one name are one row. None without DWARF.
    package func sources(of function: ReportedFunction) -> [SourceLocation] {
        guard hasLines else { return [] }
        var found: [SourceLocation] = []
        for location in locations(of: function) {
            if let source = symbolizer.source(at: location.linked, in: location.module) {
                if !found.contains(source) { found.append(source) }
            } else if !symbolizer.hasDebugInformation(of: location.module) {
                if ChangedFiles.shared.modules.contains(location.module) {
                    changed.insert(function.module)
                } else {
                    without.insert(function.module)
                }
            }
        }
        return found
    }

    /// Other functions that the linker has folded with it (identical code folding), demangled. Aliases that C libraries make by adding
    /// underscores are not among them.
    package func folded(with function: ReportedFunction) -> [String] {
        var found: [String] = []
        for location in locations(of: function) where patched.contains(location.module) {
            for symbol in symbolizer.names(at: location.linked, in: location.module) where symbol != function.symbol {
                let name = demangled(symbol)
                if name != function.name, !found.contains(name), !Self.isAlias(symbol, function.symbol) { found.append(name) }
            }
        }
        return found
    }

    private static func isAlias(_ one: String, _ other: String) -> Bool {
        func core(_ name: String) -> Substring { name.drop { $0 == "_" } }
        return core(one) == core(other)
    }

    /// Note on modules that lines were asked for but that have no debug information; nil: none.
    package var note: String? {
        let reasons = [
            (without, "their debug information (DWARF) was not found"), (changed, "their files are not the traced ones any more"),
        ]
        let texts = reasons.compactMap { names, reason in
            names.isEmpty ? nil : "no lines for \(listed(names.sorted(), most: 4)): \(reason)"
        }
        return texts.isEmpty ? nil : texts.joined(separator: "; ")
    }

    /// "slow.cpp:12", "slow.cpp:12 +1" of two functions.
    package func text(of function: ReportedFunction) -> String {
        let found = sources(of: function)
        return found.first.map { "\($0.fileName):\($0.line)" + (found.count > 1 ? " +\(found.count - 1)" : "") } ?? ""
    }
}
