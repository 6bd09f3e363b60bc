// A summary as a table, and as the JSON object that `tracer report --json` promises.
import CTraceLayout
import Presentation
import TraceFormat

package enum ReportOrder: String, CaseIterable, Sendable {
    case selfTime = "self", total, calls, average = "avg", median = "p50", percentile99 = "p99", minimum = "min", maximum = "max", name

    package func comesFirst(_ a: FunctionSummary, _ b: FunctionSummary) -> Bool {
        switch self {
        case .selfTime: if a.selfTime != b.selfTime { return a.selfTime > b.selfTime }
        case .total: if a.total != b.total { return a.total > b.total }
        case .calls: if a.calls != b.calls { return a.calls > b.calls }
        case .average: if a.average != b.average { return longer(a.average, b.average) }
        case .median: if a.median != b.median { return longer(a.median, b.median) }
        case .percentile99: if a.percentile99 != b.percentile99 { return longer(a.percentile99, b.percentile99) }
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

    /// - Parameters:
    ///   - grouping: what a row stands for
    ///   - top: how many rows, 0 all
    ///   - width: columns of the terminal, nil where lines may be of any length
    ///   - names: how they are spelt; in full they are never cut
    ///   - places: where the functions are, and what other names they have
    package func table(
        _ trace: TraceFile, by order: ReportOrder, grouping: ReportGrouping = .function, isCorrected: Bool = false, top: Int,
        width: Int? = nil, names nameStyle: NameStyle = .usual, places: FunctionPlaces? = nil, headline: String? = nil,
        style: TextStyle
    ) -> String {
        let all = (functions + ownCodes).sorted(by: order.comesFirst)
        let rows = top > 0 ? Array(all.prefix(top)) : all
        var lines = [style.bold(headline ?? self.headline(trace)), ""]
        if rows.isEmpty {
            let isWhole = trace.window.isWhole
            lines.append(
                calls > 0 ? "no call matches the filter" : isWhole ? "no calls were recorded" : "no recorded call was running then")
        } else {
            let names: [String] =
                switch grouping {
                case .function: ["function", "module"] + (places?.hasLines == true ? ["source"] : [])
                case .module: ["module"]
                case .caller: ["caller", "function", "module"] + (places?.hasLines == true ? ["source"] : [])
                case .site: ["function", "called from"]
                case .thread, .process: [grouping.rawValue]
                }
            let kinds: [Figure] =
                grouping == .thread || grouping == .process
                ? [.calls, .total]
                : isCorrected
                    ? [.calls, .total, .correctedTotal, .selfTime, .correctedSelf]
                    : [.calls, .total, .selfTime] + (rows.contains { $0.recordingShare != nil } ? [.recording] : []) + [.average, .minimum]
                        + (grouping == .function || grouping == .site ? [.median, .percentile99] : []) + [.maximum]
            let isFull = nameStyle == .full
            let short = ShortNames(rows.flatMap { [$0.name, $0.caller ?? $0.site?.name ?? ""] }, nameStyle)
            let texts = rows.map { Self.names($0, grouping, short, places) }
            func table(_ kinds: [Figure]) -> TextTable {
                let isName = Set(names.indices.filter { names[$0] != "module" && names[$0] != "source" }.map { kinds.count + $0 })
                var table = TextTable(
                    kinds.map(\.rawValue) + names, leftAligned: Set(kinds.count..<kinds.count + names.count), names: isName)
                for (row, texts) in zip(rows, texts) {
                    table.add(kinds.map { figure($0, of: row, isMarked: kinds.contains(.median) && row.isSkewed) } + texts)
                }
                return table
            }
            // Figures give way before names are cut to where they say nothing; never the one that rows are sorted by.
            var shown = kinds, left: [Figure] = []
            for figure in [.recording, .minimum, .maximum, .percentile99, .median, .average] as [Figure] {
                let least = figure == .average ? 0 : Self.widthOfNames // a name that can be told is worth less than it
                guard let width, !isFull, shown.contains(figure), figure.order != order,
                    !table(shown).isReadable(within: width, least: least)
                else { continue }
                shown.removeAll { $0 == figure }
                left.append(figure)
            }
            // The shape is added only where all columns fit with names of up to 200 characters.
            if let width, left.isEmpty, shown.contains(.median), table(shown + [.shape]).isReadable(within: width, least: 200) {
                shown.append(.shape)
            }
            let hasMarked = shown.contains(.median) && rows.contains { $0.isSkewed }
            lines += table(shown).lines(style, width: isFull ? nil : width)
            if hasMarked { lines.append(style.dim("* far from the median (p50): calls of very different lengths")) }
            if rows.contains(where: { $0.isLeftOut }) {
                lines.append(style.dim("≥ short and called very often: later calls were suppressed; record --keep-hot keeps them"))
            }
            if !left.isEmpty { lines.append(style.dim("not shown for lack of columns: \(left.map(\.rawValue).joined(separator: ", "))")) }
        }
        if let note = places?.note { lines.append(style.dim(note)) }
        if rows.count < all.count { lines.append(style.dim("… \(grouped(UInt64(all.count - rows.count))) more: --top 0")) }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Columns that names keep, where they need as many.
    private static let widthOfNames = 24

    private enum Figure: String {
        case calls, total, selfTime = "self", correctedTotal = "corrected", correctedSelf = "corrected self"
        case recording, average, minimum, median = "p50", percentile99 = "p99", maximum
        case shape = "ns us ms s" // DurationShape.title

        var order: ReportOrder? {
            switch self {
            case .average: .average
            case .minimum: .minimum
            case .median: .median
            case .percentile99: .percentile99
            case .maximum: .maximum
            default: nil
            }
        }
    }

    private func figure(_ figure: Figure, of row: FunctionSummary, isMarked: Bool) -> String {
        let isUntimed = row.timedCalls == 0 && row.total.count == 0
        return switch figure {
        case .calls: row.name == FunctionNames.ownCode ? "-" : (row.isLeftOut ? "≥" : "") + grouped(row.calls)
        case .total: isUntimed ? "-" : column(readable(row.total))
        case .selfTime: isUntimed ? "-" : column(readable(signed: row.selfTime))
        case .recording: row.recordingShare.map { percent($0) } ?? ""
        case .correctedTotal: row.correctedTotal?.text ?? "-"
        case .correctedSelf: row.correctedSelf?.text ?? "-"
        case .average: (isMarked ? "* " : "") + time(row.average)
        case .minimum: time(row.minimum)
        case .median: time(row.median)
        case .percentile99: time(row.percentile99)
        case .maximum: time(row.maximum)
        case .shape: row.shape.text
        }
    }

    private static func names(
        _ row: FunctionSummary, _ grouping: ReportGrouping, _ short: ShortNames, _ places: FunctionPlaces?
    ) -> [String] {
        var name: String {
            let others = places?.folded(with: row.function).count ?? 0
            return short[row.name] + (others > 0 ? " +\(others)" : "")
        }
        let source = places.flatMap { $0.hasLines ? [$0.text(of: row.function)] : nil } ?? []
        return switch grouping {
        case .function: [Self.explained(name), row.module] + source
        case .caller: [Self.explained(short[row.caller ?? "?"]), name, row.module] + source
        case .site: [Self.explained(name), row.site?.text { short[$0] } ?? ""]
        case .module, .thread, .process: [row.name]
        }
    }

    /// The one call in which all of a program happens would top every list without a word of what it is.
    static func explained(_ name: String) -> String {
        name == "__libc_start_main" ? "__libc_start_main (main and the program's own code)" : name
    }

    private func time(_ time: Nanoseconds?) -> String { time.map { column(readable($0)) } ?? "-" }

    package func headline(_ trace: TraceFile) -> String {
        var parts = ["\(trace.programName) (pid \(trace.header.pid))", trace.windowText(until: end) ?? readable(duration)]
        if span.count > 0 { parts.append("in calls \(readable(inCalls)) of \(readable(span))") }
        parts += [counted(UInt64(threads.count), "thread"), counted(calls, "call")]
        let filtered = filteredByTime &+ filteredByDepth
        if filtered > 0 { parts.append("\(grouped(filtered)) filtered") }
        parts.append("\(grouped(dropped)) dropped")
        let missing = threads.reduce(UInt64(0)) { $0 &+ $1.missingChunks }
        if missing > 0 { parts.append("\(counted(missing, "chunk")) \(trace.isRing ? "overwritten" : "missing")") }
        if overwritten > 0 { parts.append("\(counted(overwritten, "chunk")) overwritten while reading") }
        switch trace.header.state {
        case UInt32(TRACE_RECORDING): parts.append("not finished")
        case UInt32(TRACE_STOPPED): parts.append(trace.stateText)
        default: break
        }
        return parts.joined(separator: ", ")
    }

    package func json(_ trace: TraceFile, _ places: FunctionPlaces? = nil) -> JSON {
        let threads = threads.map { thread in
            JSON.object([
                ("tid", .unsigned(UInt64(thread.tid))), ("name", .string(thread.name)), ("calls", .unsigned(thread.calls)),
                ("span_ns", .time(thread.span)), ("own_ns", .time(thread.own)),
            ])
        }
        return .object([
            ("schema", .unsigned(1)),
            ("program", .string(trace.program)),
            ("pid", .unsigned(UInt64(trace.header.pid))),
            ("duration_ns", .unsigned(duration.count)),
            ("window", trace.windowJSON(until: end)),
            ("in_calls_ns", .unsigned(inCalls.count)),
            ("events", .unsigned(events)),
            ("dropped", .unsigned(dropped)),
            ("filtered", .unsigned(filteredByTime &+ filteredByDepth)),
            ("threads", .array(threads)),
            ("modules", .array([.object([("name", .string(basename(trace.program))), ("own_ns", .unsigned(own.count))])])),
            ("functions", .array(functions(by: .selfTime).map { $0.json(places) })),
        ])
    }
}

extension FunctionSummary {
    func json(_ places: FunctionPlaces?) -> JSON {
        var fields: [(String, JSON)] = caller.map { [("caller", JSON.string($0))] } ?? []
        if let site { fields.append(("site", site.json)) }
        fields += [
            ("name", .string(name)), ("symbol", .string(symbol)), ("module", .string(module)), ("calls", .unsigned(calls)),
            ("total_ns", .unsigned(total.count)), ("self_ns", .signed(selfTime)), ("min_ns", .time(minimum)), ("max_ns", .time(maximum)),
            ("p50_ns", .time(median)), ("p99_ns", .time(percentile99)),
        ]
        if isLeftOut { fields.append(("left_out", .bool(true))) }
        fields.append(("recording_ns", .time(recording)))
        for (name, time) in [("corrected_self", correctedSelf), ("corrected_total", correctedTotal)] {
            guard let time else { continue }
            fields += [
                (name + "_ns", time.isKnown ? .signed(time.nanoseconds) : .null), (name + "_error_ns", .unsigned(time.error.count)),
                (name + "_most_ns", .signed(time.most)),
            ]
        }
        return .object(fields + (places?.members(of: function) ?? []))
    }
}

extension String {
    /// Every occurrence of `part`, of ASCII, by `other`.
    func replacing(_ part: String, _ other: String) -> String {
        TraceAnalysis.replacing(part, with: other, in: self)
    }
}
