// The calls of a run for which conditions hold, by a value or by function.
import Presentation
import TraceFormat

/// A row a value.
package struct ValueReport: Sendable {
    package struct Row: Sendable {
        var key: ValueKey
        var figures: FunctionSummary
    }

    let subject: CallSubject
    let conditions: [CallCondition]
    /// Functions whose calls these are, by their names.
    let functions: [String]
    private(set) var rows: [Row] = []
    let calls: UInt64
    /// Sums of the values that are quantities; nil: none is.
    let numbers: NumberSums?
    /// Values of quantities in order, each with its calls; nil: not all are kept.
    private let quantities: [(number: Int128, calls: UInt64)]?
    package var isEmpty: Bool { rows.isEmpty }

    package init(
        _ traces: [TraceFile], by subject: CallSubject, of pattern: FunctionPattern?, where conditions: [CallCondition],
        workers: Int = TraceFile.cpuCount, progress: ReadingProgress? = nil
    ) {
        self.subject = subject
        self.conditions = conditions
        var sums: [ValueKey: CallSums] = [:], numbers = NumberSums(), functions: Set<String> = []
        _ = progress.each(traces, weight: \.usedByteCount) { trace in
            ChosenCalls.read(trace, subject, pattern, conditions, workers: workers, progress: progress) { sink, table in
                for (group, sum) in sink.sums {
                    guard let key = group.key else { continue }
                    let own = sums[key] == nil && sums.count >= ChosenCalls.mostValues ? .others : key
                    sums[own, default: CallSums()].add(sum.scaled(trace.timeScale))
                }
                numbers.add(sink.numbers)
                for row in sink.recordedRows { functions.insert(table.rows[Int(row) - 1].name) }
            }
        }
        self.functions = functions.sorted()
        self.numbers = numbers.count > 0 ? numbers : nil
        calls = sums.values.reduce(0) { $0 &+ $1.calls }
        rows = sums.map { key, sum in Row(key: key, figures: sum.summary(name: key.text)) }
        quantities =
            sums[.others] == nil
            ? sums.compactMap { key, sum in
                if case .value(let value, nil) = key, let number = value.number(nil) { (number, sum.calls) } else { nil }
            }.sorted { $0.number < $1.number } : nil
    }

    /// The value that this share of them does not exceed, by nearest rank; nil: not known.
    func percentile(_ percent: Double) -> Int128? {
        guard let numbers, let quantities else { return nil }
        let all = quantities.reduce(0) { $0 &+ $1.calls }
        guard all == numbers.count else { return nil } // some are values of another kind
        let rank = max((Double(all) * percent / 100).rounded(.up), 1)
        var before: UInt64 = 0
        for (number, calls) in quantities {
            before &+= calls
            if Double(before) >= rank { return number }
        }
        return nil
    }

    func sorted(by order: ReportOrder) -> [Row] {
        rows.sorted { a, b in
            if order == .name, case .value(let one, _) = a.key, case .value(let other, _) = b.key, let one = one.number(nil),
                let other = other.number(nil), one != other
            {
                return one < other
            }
            return order.comesFirst(a.figures, b.figures)
        }
    }
}

extension ValueKey {
    /// As in a table; a line and no more.
    var text: String {
        switch self {
        case .value(let value, let errno): value.text + (errno.map { " " + $0 } ?? "")
        case .noError: "(no error)"
        case .absent: "(the call has none)"
        case .unrecorded: "(not recorded)"
        case .unreadable: "(not readable)"
        case .hidden: "(hidden)"
        case .unavailable: "(not available)"
        case .others: "(other values)"
        }
    }
}

extension ChosenCalls {
    /// Passes what one trace has to `body`. Calls that lie partly in the trace's window count as a whole, if they begin in it.
    static func read(
        _ trace: TraceFile, _ subject: CallSubject?, _ pattern: FunctionPattern?, _ conditions: [CallCondition], workers: Int,
        progress: ReadingProgress?, _ body: (inout ChosenCalls, FunctionNames) -> Void
    ) {
        let table = FunctionNames(trace.metadata), choice = CallChoice(trace, table, subject, pattern, conditions)
        let whole = trace.narrowed(to: .whole)
        StreamWorker.read(whole, table, workers: workers, progress: progress) { ChosenCalls(table, choice, trace.timeScale) }.withSink {
            $0.settle()
            body(&$0, table)
        }
    }
}

/// A row a function.
package struct ChosenFunctions: Sendable {
    package private(set) var rows: [FunctionSummary] = []
    /// Calls for which the conditions hold, and for which they might.
    package private(set) var calls: UInt64 = 0, asked: UInt64 = 0

    package init(
        _ traces: [TraceFile], of pattern: FunctionPattern?, where conditions: [CallCondition], workers: Int = TraceFile.cpuCount,
        progress: ReadingProgress? = nil
    ) {
        struct Key: Hashable { var name: String, symbol: String, module: String }
        var sums: [Key: CallSums] = [:], durations = DurationCounts()
        for trace in traces {
            ChosenCalls.read(trace, nil, pattern, conditions, workers: workers, progress: progress) { sink, table in
                asked &+= sink.asked
                for (group, theirs) in sink.sums {
                    let row = table.rows[Int(group.row) - 1], key = Key(name: row.name, symbol: row.symbol, module: row.module)
                    var sum = sums[key] ?? CallSums()
                    sum.add(theirs.scaled(trace.timeScale))
                    durations.add(sink.durations, row: theirs.durationRow, to: &sum.durationRow)
                    sums[key] = sum
                }
            }
        }
        for (key, sum) in sums {
            let found =
                sum.durationRow == 0
                ? nil : durations.percentiles([50, 99], row: sum.durationRow, minimum: sum.minimum, maximum: sum.maximum)
            let percentiles = (found ?? []).map { Percentile(time: Nanoseconds($0.value), error: Nanoseconds($0.error)) }
            rows.append(sum.summary(name: key.name, symbol: key.symbol, module: key.module, percentiles))
            calls &+= sum.calls
        }
    }
}

extension RunSummary {
    /// Shows these calls alone.
    package mutating func choose(_ chosen: ChosenFunctions, where conditions: [CallCondition]) {
        choose(chosen.rows, calls: (chosen.calls, of: chosen.asked), where: conditions.map(\.text))
    }
}
