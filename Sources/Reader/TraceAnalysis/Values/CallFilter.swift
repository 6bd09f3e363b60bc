// The calls of a trace for which conditions hold.
import Presentation

package struct CallFilter: Sendable {
    /// A condition that can hold for no call of the trace.
    package struct Problem: Error, Sendable { package var message: String }

    package let conditions: [CallCondition]
    private let metadata: Metadata
    private let rowOfFunction: [UInt32]
    /// Conditions that speak of each row, by their indices.
    private let conditionsOfRow: [[Int]]

    /// - Parameter conditions: one that names a function speaks of its calls alone
    package init(_ conditions: [CallCondition], _ table: FunctionNames, _ metadata: Metadata) {
        self.conditions = conditions
        self.metadata = metadata
        rowOfFunction = table.rowOfFunction
        let patterns = conditions.map { $0.function.map { FunctionPattern($0) } }
        conditionsOfRow =
            [[]]
            + table.rows.map { row in
                patterns.indices.filter { patterns[$0]?.matches(name: row.name, symbol: row.symbol, module: row.module) ?? true }
            }
    }

    /// Throws when a condition cannot hold in any of the traces, and says why.
    package static func check(_ conditions: [CallCondition], _ traces: [TraceFile]) throws(Problem) {
        let prototypes = traces.flatMap(\.metadata.recordedPrototypes)
        for condition in conditions {
            let pattern = condition.function.map { FunctionPattern($0) }
            let meant = prototypes.filter { $0.isMeant(by: pattern) }
            let having = meant.filter { $0.has(condition.subject) }
            if having.isEmpty {
                let function = condition.function.map { " of \($0)" } ?? ""
                let known = RecordedPrototype.known(meant.isEmpty ? prototypes : meant, meant.isEmpty ? pattern : nil)
                throw Problem(message: "no call\(function) is recorded with \(condition.subject.meaning)\(known)")
            }
            let problems = having.map { $0.problem(condition) }
            if let problem = problems[0], problems.allSatisfy({ $0 != nil }) { throw Problem(message: "`\(condition.text)`: \(problem)") }
        }
    }

    func mayHold(_ row: UInt32) -> Bool { conditions.isEmpty || Int(row) < conditionsOfRow.count && !conditionsOfRow[Int(row)].isEmpty }

    /// True if conditions speak of the row's calls and all of them hold; of a filter without conditions always.
    func holds(_ row: UInt32, _ arguments: RecordedValues?, _ result: RecordedValues?) -> Bool {
        if conditions.isEmpty { return true }
        guard mayHold(row), let prototype = (arguments ?? result).flatMap({ metadata.prototype($0) }) else { return false }
        let named = metadata.arguments(arguments, result), end = metadata.result(result)
        return conditionsOfRow[Int(row)].allSatisfy { prototype.holds(conditions[$0], named, end) }
    }

    /// The same of a function's id.
    package func holds(function: UInt32?, _ arguments: RecordedValues?, _ result: RecordedValues?) -> Bool {
        guard let function, Int(function) < rowOfFunction.count else { return conditions.isEmpty }
        return holds(rowOfFunction[Int(function)], arguments, result)
    }
}

extension CallSubject {
    /// As in "no call is recorded with …".
    package var meaning: String {
        switch self {
        case .argument(let name): "an argument \(name)"
        case .result: "its result"
        case .errno: "errno"
        }
    }
}

extension RecordedPrototype {
    /// True if it may be that of a function that a pattern matches: the prototype does not say the module.
    package func isMeant(by pattern: FunctionPattern?) -> Bool {
        guard let pattern else { return true }
        return prototype.names.contains { pattern.matches(symbol: $0) }
    }

    /// "; there are open(path, flags, mode), read(…)", or how to record them. If one of them is what was probably meant, it alone.
    package static func known(_ prototypes: [RecordedPrototype], _ meant: FunctionPattern? = nil) -> String {
        if prototypes.isEmpty { return ": record with tracer record --arguments 'NAME,…'" }
        func name(_ recorded: RecordedPrototype) -> String { nameParts(demangled(recorded.prototype.names[0])).head }
        let nearest = meant?.nearest(prototypes.map(name))
        var texts: [String] = []
        for recorded in prototypes where nearest == nil || name(recorded) == nearest {
            let text = name(recorded) + "(" + recorded.prototype.parameters.map(\.name).joined(separator: ", ") + ")"
            if !texts.contains(text) { texts.append(text) }
        }
        return "; there \(texts.count == 1 ? "is" : "are") \(listed(texts, most: 6))"
    }
}
