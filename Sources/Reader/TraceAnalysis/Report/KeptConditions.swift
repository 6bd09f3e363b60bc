// Conditions that calls of certain functions had to fulfil to be recorded (`tracer record --when`).
import Presentation

/// Functions by their conditions: malloc(size >= 1M).
package struct KeptConditions: Equatable, Sendable {
    private var functions: [String: Set<String>] = [:]

    var isEmpty: Bool { functions.isEmpty }
    mutating func add(_ function: String, _ conditions: [String]) {
        if !conditions.isEmpty { functions[conditions.joined(separator: ", "), default: []].insert(function) }
    }
    mutating func add(_ other: KeptConditions) { functions.merge(other.functions) { $0.union($1) } }

    private static let mostNames = 4
    package var text: String? {
        if isEmpty { return nil }
        let parts = functions.sorted { $0.key < $1.key }.map { condition, names in
            let names = names.sorted(), rest = names.count - Self.mostNames
            return names.prefix(Self.mostNames).joined(separator: ", ") + (rest > 0 ? " and \(rest) more" : "") + ": \(condition)"
        }
        return "recorded only if their values were so: \(parts.joined(separator: "; "))"
    }
}

extension TraceFile {
    package var keptConditions: KeptConditions { keptConditions { _ in true } }
    /// Conditions of functions with such names.
    func keptConditions(of isWanted: (String) -> Bool) -> KeptConditions {
        var all = KeptConditions()
        for recorded in metadata.recordedPrototypes {
            for name in recorded.prototype.names where isWanted(name) { all.add(demangled(name), recorded.conditions) }
        }
        return all
    }
}

extension RunSummary {
    /// nil: there were none.
    var keptConditionsNote: String? {
        var all = KeptConditions()
        for process in processes { for image in process.images { all.add(image.keptConditions) } }
        return all.text
    }
}
