// What `tracer report --by argument:NAME`, `--by result` and `--by errno` show: each member declared once for JSON, its schema, CSV and the
// table.
import Presentation

package struct ValueOutput {
    private let run: RunSummary
    private let report: ValueReport
    private let rows: [ValueRow]

    /// - Parameter run: of at least one process
    package init(_ run: RunSummary, _ report: ValueReport, by order: ReportOrder) {
        self.run = run
        self.report = report
        let total = report.rows.reduce(0) { $0 &+ $1.figures.total.count }
        rows = report.sorted(by: order).map { ValueRow(row: $0, whole: total) }
    }
}

extension ValueOutput: Record {
    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("program", "path; of a run that which was started") { $0.run.processes[0].images[0].program }
        Member("pid") { $0.run.processes[0].images[0].pid }
        Member("window", windowMeaning, \.run.reportedWindow)
        Member("by", "the argument's name; result or errno", \.report.subject.name)
        Member("functions", "those whose calls are shown", \.report.functions)
        Member("where", "conditions that hold for these calls") { $0.report.conditions.map(\.text) }
        Member("calls", "that began, in a window those that began in it; their times are whole", \.report.calls)
        Member("numbers", "of integers that count or measure something; null: none is one") { output in
            output.report.numbers.map { ValueNumbers(report: output.report, sums: $0) }
        }
        Member("values", "rows, in the order of --sort", \.rows)
    }
}

private struct ValueNumbers: Record {
    var report: ValueReport
    var sums: NumberSums

    static let members = declare {
        Member("calls", "that have one", \.sums.count)
        Member("sum") { WholeNumber($0.sums.sum) }
        Member("min") { WholeNumber($0.sums.minimum) }
        Member("max") { WholeNumber($0.sums.maximum) }
        Member("p50", "by nearest rank, exact; null where there are too many values to keep all") {
            $0.report.percentile(50).map(WholeNumber.init)
        }
        Member("p90") { $0.report.percentile(90).map(WholeNumber.init) }
        Member("p99") { $0.report.percentile(99).map(WholeNumber.init) }
        Member("histogram", "from one power of two to the next, without gaps") { numbers in
            numbers.sums.histogram.map { ValueBar(range: $0.range, calls: $0.calls) }
        }
    }
}

private struct ValueBar: Record {
    var range: ClosedRange<Int128>
    var calls: UInt64

    static let members = declare {
        Member("from") { WholeNumber($0.range.lowerBound) }
        Member("to", "inclusive") { WholeNumber($0.range.upperBound) }
        Member("calls", \.calls)
    }
}

/// A sum, or a value: any that 64 bits hold, with or without a sign, is exact.
private struct WholeNumber: JSONValue {
    var value: Int128
    init(_ value: Int128) { self.value = value }

    static var form: JSONForm { .signed }
    var json: JSON {
        if let signed = Int64(exactly: value) { return .signed(signed) }
        if let unsigned = UInt64(exactly: value) { return .unsigned(unsigned) }
        return .number(Double(value))
    }
}

private struct ValueRow: Record {
    /// Why a row has no value.
    enum Missing: String, JSONChoice {
        case absent, unrecorded, unreadable, hidden, unavailable, others
        case noError = "no_error"
    }
    var row: ValueReport.Row
    /// Total of all rows, in nanoseconds.
    var whole: UInt64

    private var value: ArgumentValue? { if case .value(let value, _) = row.key { value } else { nil } }
    private var errno: String? { if case .value(_, let errno) = row.key { errno } else { nil } }
    private var missing: Missing? {
        switch row.key {
        case .value: nil
        case .noError: .noError
        case .absent: .absent
        case .unrecorded: .unrecorded
        case .unreadable: .unreadable
        case .hidden: .hidden
        case .unavailable: .unavailable
        case .others: .others
        }
    }
    private var share: Double? { whole > 0 ? Double(row.figures.total.count) / Double(whole) : nil }

    static let members = declare {
        Member("value", "as in the lines of tracer replay --json; null: NULL, or see missing", .any) { $0.value?.json ?? .null }
        Member("text", "the same as tables show it") { $0.row.key.text }
        Member("errno", "of a result that means failure") { $0.errno }
        Member(
            "missing",
            "why there is no value: absent, the call does not have the argument; unrecorded, the call was left or its values are not in the trace; unreadable, a pointer that led nowhere; hidden; unavailable, of a type that is not recorded or at an unknown place; others, too many values for a row each; no_error, the call has not failed",
            \.missing)
        Member("calls", \.row.figures.calls).column("calls") { grouped($0.row.figures.calls) }
        Member("total_ns", "from entry to exit; a call within another one of this row counts once", \.row.figures.total)
            .column("total") { $0.time(\.total) }
        Member("self_ns", "without the recorded calls made from them", \.row.figures.selfTime)
            .column("self") { $0.row.figures.timedCalls == 0 ? "-" : column(readable(signed: $0.row.figures.selfTime)) }
        Member("share", "total_ns as a part of that of all rows; null: all are 0", \.share)
            .column("share") { $0.share.map { percent($0) } ?? "-" }
        Member("average_ns", "of one call; null where none has a known length", \.row.figures.average)
            .column("average") { $0.time(\.average) }
        Member("min_ns", \.row.figures.minimum)
        Member("max_ns", \.row.figures.maximum).column("longest") { $0.time(\.maximum) }
    }

    private func time(_ figure: KeyPath<FunctionSummary, Nanoseconds>) -> String { time(row.figures[keyPath: figure]) }
    private func time(_ figure: KeyPath<FunctionSummary, Nanoseconds?>) -> String {
        row.figures[keyPath: figure].map { time($0) } ?? "-"
    }
    private func time(_ time: Nanoseconds) -> String { row.figures.timedCalls == 0 ? "-" : column(readable(time)) }
}

// MARK: - Text

extension ValueOutput {
    /// - Parameters:
    ///   - top: how many rows, 0 all
    ///   - width: columns of the terminal; nil: lines may be of any length
    package func lines(top: Int, width: Int?, style: TextStyle) -> [String] {
        var lines = [style.bold(run.headline)]
        let values = rows.count { if case .value = $0.row.key { true } else { false } }
        lines.append(
            "\(report.subject.name) of \(listed(report.functions, most: 6)): \(counted(report.calls, "call")), \(counted(values, "value"))")
        if !report.conditions.isEmpty { lines.append("where " + report.conditions.map(\.text).joined(separator: " and ")) }
        if let numbers = report.numbers { lines += self.lines(of: numbers, width ?? 80, style) }
        let shown = top > 0 ? Array(rows.prefix(top)) : rows
        let name = Column<ValueRow>(report.subject.name, .text) { $0.row.key.text }
        lines.append("")
        lines += TextTable(shown, ValueRow.columns(["calls", "total_ns", "self_ns", "share", "average_ns", "max_ns"]) + [name]).lines(
            style, width: width)
        if shown.count < rows.count { lines.append(style.dim("… \(grouped(rows.count - shown.count)) more: --top 0")) }
        return lines
    }

    private func lines(of numbers: NumberSums, _ width: Int, _ style: TextStyle) -> [String] {
        let average = Double(numbers.sum) / Double(numbers.count)
        let percentiles = [50, 90, 99].compactMap { rank in report.percentile(Double(rank)).map { "p\(rank) \(grouped($0))" } }
        let figures =
            ["sum \(grouped(numbers.sum))", "average \(grouped(Int128(average.rounded())))", "minimum \(grouped(numbers.minimum))"]
            + percentiles
            + ["maximum \(grouped(numbers.maximum))"]
        var lines = [figures.joined(separator: ", ")]
        let bars = numbers.histogram, most = bars.map(\.calls).max() ?? 0
        guard bars.count > 1, most > 0 else { return lines }
        lines.append("")
        let places = bars.flatMap { [grouped($0.range.lowerBound), grouped($0.range.upperBound)] }.map(\.count).max() ?? 0
        let barWidth = max(min(width - 2 * places - 28, 50), 10)
        for (n, bar) in bars.enumerated() {
            // A gap of several bars gets one line.
            if bar.calls == 0, bars[n - 1].calls == 0 || bars[n + 1].calls == 0 {
                if bars[n - 1].calls > 0 { lines.append(style.dim(leftFilled("…", places))) }
                continue
            }
            // One call is to be seen beside a million.
            let length = bar.calls == 0 ? 0 : max(Int((Double(bar.calls) / Double(most) * Double(barWidth)).rounded()), 1)
            lines.append(
                "\(leftFilled(grouped(bar.range.lowerBound), places)) … \(leftFilled(grouped(bar.range.upperBound), places))  "
                    + "\(rightFilled(String(repeating: "#", count: length), barWidth)) \(leftFilled(grouped(bar.calls), 11))  "
                    + leftFilled(percent(bar.calls, of: numbers.count), 6))
        }
        return lines
    }
}
