// The account as lcov's tracefile (geninfo(1), "TRACEFILE FORMAT"): functions, and of lines those on which functions begin.
import TraceAnalysis

package enum Lcov {
    /// Functions of modules that were recorded whole, without those of which nobody knows, or has no line.
    package static func text(_ coverage: Coverage) -> String {
        var byFile: [String: [CoveredFunction]] = [:]
        for module in coverage.wholeModules {
            for function in module.functions where function.calls > 0 || function.reason == nil {
                if let source = function.source { byFile[source.path, default: []].append(function) }
            }
        }
        var text = "TN:\n"
        for (path, functions) in byFile.sorted(by: { $0.key < $1.key }) {
            text += "SF:\(path)\n"
            // One name once: what several modules have, or a template on each of its lines.
            var rows: [String: (line: Int, calls: UInt64)] = [:], lines: [Int: UInt64] = [:]
            for function in functions {
                guard let line = function.source?.line else { continue }
                let name = symbol(function)
                rows[name] = (line, (rows[name]?.calls ?? 0) &+ function.calls)
                lines[line, default: 0] &+= function.calls
            }
            let sorted = rows.sorted { ($0.value.line, $0.key) < ($1.value.line, $1.key) }
            for (name, row) in sorted { text += "FN:\(row.line),\(name)\n" }
            for (name, row) in sorted { text += "FNDA:\(row.calls),\(name)\n" }
            text += "FNF:\(sorted.count)\nFNH:\(sorted.count { $0.value.calls > 0 })\n"
            for (line, calls) in lines.sorted(by: { $0.key < $1.key }) { text += "DA:\(line),\(calls)\n" }
            text += "LF:\(lines.count)\nLH:\(lines.values.count { $0 > 0 })\nend_of_record\n"
        }
        return text
    }

    /// The one that gcov has: of the constructors C1 and C2, of the destructors D1 and D2, that are one function, the second.
    private static func symbol(_ function: CoveredFunction) -> String {
        guard let first = function.symbols.first else { return function.name }
        return function.symbols.filter { $0.utf8.count == first.utf8.count }.max() ?? first
    }

    /// How many functions are skipped for want of a line.
    package static func withoutLine(_ coverage: Coverage) -> Int {
        coverage.wholeModules.reduce(0) { $0 + $1.functions.count { $0.source == nil && ($0.calls > 0 || $0.reason == nil) } }
    }
}
