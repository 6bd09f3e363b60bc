// The start-up items of a timeline, for people and as JSON.
import Presentation

extension StartupTimeline {
    /// Returns what `startup --items` prints: all items, in the order in which they began.
    package func itemTable(style: TextStyle) -> String {
        guard !items.isEmpty else {
            return "no start-up item began before \(readyText): register items with TRACER_STARTUP_ITEM of tracer.h\n"
        }
        var lines = [style.bold("\(counted(UInt64(items.count), "start-up item")) before \(readyText)")]
        var table = TextTable(
            ["stage", "item", "thread", "start", "own", "total", "after", "waited"], leftAligned: [1, 2, 6, 7], names: [1])
        for item in items {
            table.add([
                String(item.label.stage), item.label.name, item.isOnMain ? "main" : String(item.tid), column(readable(item.start)),
                column(readable(item.own)), item.isOver ? column(readable(item.total)) : "not finished",
                item.label.after.joined(separator: ", "), item.waitText ?? "",
            ])
        }
        lines += table.lines(style)
        return lines.joined(separator: "\n") + "\n"
    }

    private var readyText: String {
        switch outcome {
        case .ready(let moment): "ready (\(moment.text))"
        case .neverReady: "the end: it was never ready"
        }
    }

    func itemLines(_ top: Int, _ style: TextStyle) -> [String] {
        guard !items.isEmpty else { return [] }
        let sorted = items.enumerated().sorted { ($1.element.own, $0.offset) < ($0.element.own, $1.offset) }.map(\.element)
        let shown = sorted.prefix(top)
        let width = min(shown.map { $0.label.name.count }.max() ?? 0, 48)
        var lines = [style.bold("Start-up items, by own time")]
        for item in shown {
            var facts: [String] = []
            if !item.isOver { facts.append(style.alarm("not finished")) }
            if !item.isOnMain { facts.append("on thread \(item.tid)") }
            if let wait = item.waitText { facts.append("waited \(wait)") }
            if let cost = recording(item.recording, of: item.own) { facts.append(cost) }
            if item.total.count > item.own.count + item.own.count / 10 { facts.append("total \(readable(item.total))") }
            lines.append(
                "  " + time(item.own) + "  " + ofWhole(item.own) + "  " + item.label.stageText + "  "
                    + rightFilled(item.label.name, facts.isEmpty ? 0 : width) + (facts.isEmpty ? "" : "  " + facts.joined(separator: ", ")))
        }
        if items.count > shown.count { lines.append(style.dim(leftFilled("", 23) + "\(grouped(UInt64(items.count - shown.count))) more")) }
        return lines
    }
}

extension StartupItem {
    /// "3.012 ms for config"
    fileprivate var waitText: String? { wait.map { "\(readable($0.duration)) for \($0.name)" } }

    var json: JSON {
        .object([
            ("stage", .signed(Int64(label.stage))), ("name", .string(label.name)), ("after", .array(label.after.map { .string($0) })),
            ("thread", .unsigned(UInt64(tid))), ("main_thread", .bool(isOnMain)), ("start_ns", .unsigned(start.count)),
            ("own_ns", .unsigned(own.count)), ("total_ns", .unsigned(total.count)), ("calls", .unsigned(calls)),
            ("recording_ns", .unsigned(recording.count)), ("ended", .bool(isOver)), ("waited_ns", .unsigned(wait?.duration.count ?? 0)),
            ("waited_for", .text(wait?.name)),
        ])
    }
}
