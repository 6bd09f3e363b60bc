// A summary as a table.
import Presentation

package enum ReportOrder: String, CaseIterable, Sendable {
    case selfTime = "self", total, calls, average = "avg", median = "p50", percentile99 = "p99", minimum = "min", maximum = "max", name

    package func comesFirst(_ a: FunctionSummary, _ b: FunctionSummary) -> Bool {
        switch self {
        case .selfTime: if a.selfTime != b.selfTime { return a.selfTime > b.selfTime }
        case .total: if a.total != b.total { return a.total > b.total }
        case .calls: if a.calls != b.calls { return a.calls > b.calls }
        case .average: if a.average != b.average { return longer(a.average, b.average) }
        case .median: if a.median != b.median { return longer(a.median?.time, b.median?.time) }
        case .percentile99: if a.percentile99 != b.percentile99 { return longer(a.percentile99?.time, b.percentile99?.time) }
        case .minimum: if a.minimum != b.minimum { return longer(a.minimum, b.minimum) }
        case .maximum: if a.maximum != b.maximum { return longer(a.maximum, b.maximum) }
        case .name: break
        }
        if self != .name, a.calls != b.calls { return a.calls > b.calls }
        return (a.name, a.module, a.symbol) < (b.name, b.module, b.symbol) // the same order in every run
    }

    /// Unknown lengths come last.
    private func longer(_ a: Nanoseconds?, _ b: Nanoseconds?) -> Bool {
        (a?.count ?? 0, a == nil ? 0 : 1) > (b?.count ?? 0, b == nil ? 0 : 1)
    }
}

extension Summary {
    package func functions(by order: ReportOrder) -> [FunctionSummary] { functions.sorted(by: order.comesFirst) }

    /// The one call in which all of a program happens would top every list without a word of what it is.
    static func explained(_ name: String) -> String {
        name == "__libc_start_main" ? "__libc_start_main (main and the program's own code)" : name
    }
}

extension RunSummary {
    /// - Parameters:
    ///   - grouping: what a row stands for
    ///   - top: how many rows, 0 all
    ///   - width: columns of the terminal, nil where lines may be of any length
    ///   - names: how they are spelt; in full they are never cut
    ///   - locations: where the functions are, and what other names they have
    package func table(
        by order: ReportOrder, grouping: ReportGrouping = .function, isCorrected: Bool = false, top: Int, width: Int? = nil,
        names nameStyle: NameStyle = .usual, locations: FunctionLocations? = nil, style: TextStyle
    ) -> String {
        let all = (summary.functions + summary.ownCodes).sorted(by: order.comesFirst)
        let rows = top > 0 ? Array(all.prefix(top)) : all
        var lines = [style.bold(headline)] + notes(style) + [""]
        if rows.isEmpty {
            let isWhole = only?.window.isWhole ?? true
            lines.append(
                conditionNote != nil
                    ? "no call fulfils --where"
                    : summary.calls > 0
                        ? "no call matches the filter" : isWhole ? "no calls were recorded" : "no recorded call was running then")
        } else {
            let isFull = nameStyle == .full
            let columns = ReportColumns(
                rows, of: summary.selfTime, grouping, isCorrected: isCorrected, nameStyle, locations, width: isFull ? nil : width, by: order
            )
            lines += columns.table.lines(style, width: isFull ? nil : width)
            if columns.isShown("p50_ns"), rows.contains(where: { $0.isSkewed }) {
                lines.append(style.dim("* far from the median (p50): calls of very different lengths"))
            }
            if windowText != nil, columns.isShown("average") {
                lines.append(style.dim("total and self also have parts of calls that lie partly in the window; average to maximum do not"))
            }
            let notes = SuppressionMark.notes(
                isSuppressed: rows.contains { $0.isSuppressed }, isCounted: rows.contains { $0.isCounted },
                holdsSuppressed: rows.contains { $0.holdsSuppressed })
            lines += notes.map(style.dim)
            if !columns.hidden.isEmpty {
                lines.append(style.dim("not shown for lack of columns: \(columns.hidden.joined(separator: ", "))"))
            }
        }
        if let note = locations?.note { lines.append(style.dim(note)) }
        if rows.count < all.count { lines.append(style.dim("… \(grouped(UInt64(all.count - rows.count))) more: --top 0")) }
        return lines.joined(separator: "\n") + "\n"
    }
}

extension RunSummary {
    /// Lines above a table that say what its times are.
    func notes(_ style: TextStyle) -> [String] {
        (conditionNote.map { [$0] } ?? []) + (time.note.map { [style.dim($0)] } ?? []) + stateNotes.map(style.alarm)
            + ([agentWaitNote, pauseNote, choiceNote, keptConditionsNote].compactMap { $0 }.map { style.dim($0) })
    }

    /// What a reader of these times has to know of the threads' states.
    private var stateNotes: [String] {
        guard let states = summary.states else { return [] }
        var notes: [String] = []
        let busy = states.running &+ states.runnable
        if time == .wall, states.runnable > 0, Double(states.runnable) >= Self.leastRunnable * Double(busy) {
            let share = percent(Double(states.runnable) / Double(busy))
            notes.append(
                "\(share) of the time in which threads could run, \(readable(signed: states.runnable)), others had the CPUs: --time running leaves it out"
            )
        }
        if time != .wall || !notes.isEmpty, Double(summary.unknownState.count) >= Self.leastUnknown * Double(states.whole) {
            notes.append("\(readable(summary.unknownState)) of the threads' time has no record of its state, and counts as running")
        }
        return notes
    }

    /// Share of the time in which threads could run that others had the CPUs: from here on wall times are of the machine, too. On an idle
    /// machine it is 1 or 2%.
    private static let leastRunnable = 0.1
    /// Share of all time that is not worth a line: kernel events begin and end a little beside the program.
    private static let leastUnknown = 0.001
}

extension String {
    /// Every occurrence of `part`, of ASCII, by `other`.
    func replacing(_ part: String, _ other: String) -> String {
        TraceAnalysis.replacing(part, with: other, in: self)
    }
}
