// A summary as a table, and as the JSON object that `tracer report --json` promises.
import CTraceLayout
import TraceFormat

public enum ReportOrder: String, CaseIterable, Sendable {
    case selfTime = "self", total, calls, average = "avg", minimum = "min", maximum = "max", name

    func comesFirst(_ a: FunctionSummary, _ b: FunctionSummary) -> Bool {
        switch self {
        case .selfTime: if a.selfTime != b.selfTime { return a.selfTime > b.selfTime }
        case .total: if a.total != b.total { return a.total > b.total }
        case .calls: if a.calls != b.calls { return a.calls > b.calls }
        case .average: if a.average != b.average { return longer(a.average, b.average) }
        case .minimum: if a.minimum != b.minimum { return longer(a.minimum, b.minimum) }
        case .maximum: if a.maximum != b.maximum { return longer(a.maximum, b.maximum) }
        case .name: break
        }
        if self != .name, a.calls != b.calls { return a.calls > b.calls }
        return (a.name, a.module, a.symbol) < (b.name, b.module, b.symbol) // the same order in every run
    }

    /// Unknown lengths come last.
    private func longer(_ a: Nanoseconds?, _ b: Nanoseconds?) -> Bool { (a?.count ?? 0, a == nil ? 0 : 1) > (b?.count ?? 0, b == nil ? 0 : 1) }
}

extension Summary {
    public func functions(by order: ReportOrder) -> [FunctionSummary] { functions.sorted(by: order.comesFirst) }

    /// - Parameters:
    ///   - grouping: what a row stands for
    ///   - top: how many rows, 0 all
    ///   - width: columns of the terminal, nil where lines may be of any length
    public func table(_ trace: TraceFile, by order: ReportOrder, grouping: ReportGrouping = .function, isCorrected: Bool = false, top: Int, width: Int? = nil,
                      style: TextStyle) -> String {
        let all = functions(by: order)
        let rows = top > 0 ? Array(all.prefix(top)) : all
        var lines = [style.bold(headline(trace)), ""]
        if rows.isEmpty {
            lines.append(calls == 0 ? "no calls were recorded" : "no call matches the filter")
        } else {
            let names: [String] = switch grouping {
            case .function: ["function", "module"]
            case .module: ["module"]
            case .caller: ["caller", "function", "module"]
            case .thread: ["thread"]
            }
            let times = grouping == .thread ? ["calls", "total"]
                : isCorrected ? ["calls", "total", "corrected", "self", "corrected"]
                : ["calls", "total", "self", "average", "minimum", "maximum"]
            var table = TextTable(times + names, leftAligned: Set(times.count ..< times.count + names.count))
            for row in rows {
                let isUntimed = row.timedCalls == 0 && row.total.count == 0
                let total = isUntimed ? "-" : column(readable(row.total)), own = isUntimed ? "-" : column(readable(signed: row.selfTime))
                let figures = isCorrected
                    ? [grouped(row.calls), total, time(row.correctedTotal), own, row.correctedSelf.map { column(readable(signed: $0)) } ?? "-"]
                    : [grouped(row.calls), total, own, time(row.average), time(row.minimum), time(row.maximum)]
                table.add(figures.prefix(times.count) + Self.names(row, grouping))
            }
            lines += table.lines(style, width: width)
        }
        if rows.count < all.count { lines.append(style.dim("… \(grouped(UInt64(all.count - rows.count))) more: --top 0")) }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func names(_ row: FunctionSummary, _ grouping: ReportGrouping) -> [String] {
        switch grouping {
        case .function: [Self.explained(row.name), row.module]
        case .caller: [Self.explained(row.caller ?? "?"), row.name, row.module]
        case .module, .thread: [row.name]
        }
    }

    /// The one call in which all of a program happens would top every list without a word of what it is.
    static func explained(_ name: String) -> String {
        name == "__libc_start_main" ? "__libc_start_main (main and the program's own code)" : name
    }

    private func time(_ time: Nanoseconds?) -> String { time.map { column(readable($0)) } ?? "-" }

    func headline(_ trace: TraceFile) -> String {
        var parts = ["\(basename(trace.program)) (pid \(trace.header.pid))", readable(duration),
                     counted(UInt64(threads.count), "thread"), counted(calls, "call")]
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

    public func json(_ trace: TraceFile) -> JSON {
        .object([
            ("schema", .unsigned(1)),
            ("program", .string(trace.program)),
            ("pid", .unsigned(UInt64(trace.header.pid))),
            ("duration_ns", .unsigned(duration.count)),
            ("events", .unsigned(events)),
            ("dropped", .unsigned(dropped)),
            ("filtered", .unsigned(filteredByTime &+ filteredByDepth)),
            ("threads", .array(threads.map {
                .object([("tid", .unsigned(UInt64($0.tid))), ("name", .string($0.name)), ("calls", .unsigned($0.calls))])
            })),
            ("functions", .array(functions(by: .selfTime).map {
                .object(($0.caller.map { [("caller", JSON.string($0))] } ?? []) + [("name", .string($0.name)), ("symbol", .string($0.symbol)), ("module", .string($0.module)), ("calls", .unsigned($0.calls)),
                         ("total_ns", .unsigned($0.total.count)), ("self_ns", .signed($0.selfTime)),
                         ("min_ns", .time($0.minimum)), ("max_ns", .time($0.maximum)), ("p50_ns", .time($0.median)),
                         ("p99_ns", .time($0.percentile99))]
                    + ($0.correctedSelf.map { [("corrected_self_ns", JSON.signed($0))] } ?? [])
                    + ($0.correctedTotal.map { [("corrected_total_ns", JSON.unsigned($0.count))] } ?? []))
            })),
        ])
    }
}

extension String {
    /// Every occurrence of `part`, of ASCII, by `other`.
    func replacing(_ part: String, _ other: String) -> String {
        TraceAnalysis.replacing(part, with: other, in: self)
    }
}
