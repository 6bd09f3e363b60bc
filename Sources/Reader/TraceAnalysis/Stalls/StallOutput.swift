// What `tracer stalls` shows: each member declared once for the JSON, its schema and the tables.
import Presentation
import TraceFormat

extension LoopTurn.End: JSONChoice {}

extension StallReport: Record {
    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("window", windowMeaning, \.window?.reported)
        Member("missing", "why the kernel has not reported when threads were off-CPU, and what allows it; null: it has", \.missing.first)
        Member("notes", "what could not be found out", \.notes)
        Member("min_ns", "turns of this length are stalls", \.least)
        Member("loops", "threads that have event loops, the one with the most turns first", \.loops)
        Member("count", "number of all stalls", \.count)
        Member("stalls", "the longest first") { report in report.rows { $0 } }
    }

    fileprivate func rows(_ spelt: @escaping (String) -> String) -> [StallRow] {
        stalls.map { StallRow(stall: $0, explanation: explanations[$0.process], spelt: spelt) }
    }
}

extension StallReport.Loops: Record {
    package static let members = declare {
        Member("thread", "name", \.name).column("thread", .text) { $0.title }
        Member("tid", \.tid)
        Member("pid", \.pid)
        Member("functions", "in which the loop waits", \.functions).column("waits in", .text) { $0.functions.joined(separator: ", ") }
        Member("waits", "of the loop", \.waits)
        Member("turns", "from the return of a wait to the next one; in a window of time those that it touches", \.lengths.count)
            .column("turns") { grouped($0.lengths.count) }
        Member("p50_ns", "at least half of the turns are not longer; exact") { $0.lengths.percentile(50) }
            .column("p50") { column(readable($0.lengths.percentile(50))) }
        Member("p99_ns", "at least 99 % of them are not longer; exact") { $0.lengths.percentile(99) }
            .column("p99") { column(readable($0.lengths.percentile(99))) }
        Member("longest_ns", \.lengths.longest).column("longest") { column(readable($0.lengths.longest)) }
        Member("stalls", "turns of min_ns or more", \.stalls).column("stalls") { grouped($0.stalls) }
    }
}

private struct StallRow: Record {
    let stall: StallReport.Stall
    let explanation: WaitExplanation
    /// How names are spelt in tables.
    let spelt: (String) -> String

    private var start: Int64 { explanation.time(stall.turn.begin) }
    private func time(_ ticks: UInt64?) -> Nanoseconds? { ticks.map { explanation.length($0) } }
    private func cell(_ ticks: UInt64?) -> String { time(ticks).map { $0.count == 0 ? "-" : column(readable($0)) } ?? "?" }

    static let members = declare {
        Member("thread", "name", \.stall.name).column("thread", .text) { $0.stall.title }
        Member("tid", \.stall.tid)
        Member("pid", \.explanation.search.trace.header.pid)
        Member("start_ns", "when the wait before the turn returned", \.start).column("at") { column(readable(signed: $0.start)) }
        Member("duration_ns", "wall time until the turn ended", \.stall.length).column("took") { column(readable($0.stall.length)) }
        Member(
            "ended",
            "what ended the turn. wait: the loop's next wait; left: the loop's function returned, or the thread ended; exit: the program ended itself, or executed another; open: the process, or what is recorded of it, ended first",
            \.stall.turn.ended)
        Member("running_ns", "on a CPU; null: the kernel has not reported it") { $0.time($0.stall.times?.running) }
            .column("running") { $0.cell($0.stall.times?.running) }
        Member("waiting_ns", "without context switches: in blocking calls of 10 us or more") { $0.time($0.stall.times?.waiting) }
            .column("waiting") { $0.cell($0.stall.times?.waiting) }
        Member("runnable_ns", "others had the CPUs; null: the kernel has not reported it") { $0.time($0.stall.times?.runnable) }
            .column("runnable") { $0.cell($0.stall.times?.runnable) }
        Member("unknown_ns", "records are missing; null: the kernel has not reported it") { $0.time($0.stall.times?.unknown) }
            .column("unknown") { $0.cell($0.stall.times?.unknown) }
        Member("own_ns", "no recorded call that the turn made was open: code that is not recorded, and the loop's own", \.stall.own)
            .column("own code") { $0.stall.own.count == 0 ? "-" : column(readable($0.stall.own)) }
        Member(
            "path",
            "the heaviest path of recorded calls that the turn made, outermost first: the outermost with the most time and, as long as there is one, the call in it that has more than half of its time",
            \.stall.path)
        Member("waits", "the longest ten of the turn, as in waits.json") { row in
            row.stall.waits.prefix(10).map { WaitRow(row.explanation, $0, row.spelt) }
        }
        Member.shown("what", "in", .name) { $0.what }
    }

    /// "on_request 298 ms → parse → strtod 290 ms"
    private var what: String {
        guard let first = stall.path.first, first.total >= stall.own.count else { return "own code" }
        func text(_ step: StallReport.Step) -> String { "\(spelt(step.function.name)) \(readable(Nanoseconds(step.total)))" }
        let most = 5
        var names = stall.path.map { spelt($0.function.name) }
        names[0] = text(first)
        names[names.count - 1] = text(stall.path[stall.path.count - 1])
        if names.count > most { names.replaceSubrange(2..<names.count - 2, with: ["… \(names.count - 4) more"]) }
        return names.joined(separator: " → ")
    }

    /// What is said below the row.
    var details: [String] {
        let all = stall.waits.prefix(3).map { index in
            let wait = explanation.search.waits[index]
            let parts = ["waited \(readable(explanation.length(wait.duration))): \(explanation.what(wait, spelt))"]
            return (parts + explanation.details(index, spelt)).joined(separator: "; ")
        }
        return all + [end].compactMap { $0 }
    }

    private var end: String? {
        switch stall.turn.ended {
        case .wait: nil
        case .left: "the last turn: then the loop was left"
        case .exit: "the last turn: then the program ended itself, or executed another"
        case .open:
            "the last turn: it had not ended" + (explanation.search.trace.endText.map { " (\($0))" } ?? " when the process did")
        }
    }
}

extension StallReport.Step: Record {
    static let members = declare {
        Member("function", \.function.name)
        Member("module", \.function.module)
        Member("calls", "that began in the turn", \.calls)
        Member("total_ns", "from entry to exit, as far as that lies in the turn") { Nanoseconds($0.total) }
        Member("self_ns", "without the recorded calls made from it", \.selfTime)
    }
}

// MARK: - Text

extension StallReport {
    /// - Parameter width: columns of the terminal; nil: lines may be of any length
    package func lines(width: Int?, names nameStyle: NameStyle, style: TextStyle) -> [String] {
        let all = stalls.flatMap { $0.path.map(\.function.name) } + explanations.flatMap(\.search.names)
        let short = ShortNames(all, nameStyle)
        var lines = wrapped(headline, width: width, indentation: 6).map { style.bold($0) }
        if let text = missing.first, !stalls.isEmpty {
            lines.append(style.alarm("no context switches: \(text); waiting is the time in blocking calls of 10 us or more"))
        }
        for text in notes { lines.append(style.alarm(text)) }
        if loops.count > 1 {
            let columns = Loops.columns(["turns", "p50_ns", "p99_ns", "longest_ns", "stalls", "thread", "functions"])
            lines += [""] + TextTable(loops, columns).lines(style, width: width)
        }
        if stalls.isEmpty { return lines }
        let hasUnknown = stalls.contains { $0.times?.unknown ?? 0 > 0 }
        let columns = StallRow.columns(
            ["duration_ns", "start_ns", "running_ns", "waiting_ns", "runnable_ns"] + (hasUnknown ? ["unknown_ns"] : []) + ["own_ns"]
                + (loops.count > 1 ? ["thread"] : []) + ["what"])
        let rows = rows { short[$0] }, table = TextTable(rows, columns).lines(style, width: width)
        lines += ["", table[0]]
        for (line, row) in zip(table.dropFirst(), rows) {
            lines.append(line)
            lines += row.details.flatMap { wrapped("    " + $0, width: width, indentation: 6) }.map { style.dim($0) }
        }
        return lines + (rows.count < count ? [style.dim("    and \(counted(count - rows.count, "shorter one"))")] : [])
    }

    /// "app/4711: 1,203 turns of an event loop (epoll_wait), p50 1.2 ms, p99 48 ms, longest 312 ms; 3 of 100 ms or more, window …"
    private var headline: String {
        let turns = loops.reduce(0) { $0 + $1.lengths.count }
        let slow = "\(count == 0 ? "none" : grouped(count)) of \(readable(least)) or more" + (window.map { ", \($0.text)" } ?? "")
        guard loops.count == 1, let one = loops.first else {
            return "\(counted(loops.count, "thread")) with event loops: \(counted(turns, "turn")), \(slow)"
        }
        let lengths = one.lengths
        let figures =
            turns == 0
            ? ""
            : ", p50 \(readable(lengths.percentile(50))), p99 \(readable(lengths.percentile(99))), longest \(readable(lengths.longest))"
        return "\(one.title): \(counted(turns, "turn")) of an event loop (\(one.functions.joined(separator: ", ")))\(figures); \(slow)"
    }
}
