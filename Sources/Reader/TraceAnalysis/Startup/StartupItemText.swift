// The start-up items of a timeline, for people and as JSON.
import Presentation

extension StartupTimeline {
    /// Returns what `startup --items` prints: all items, in the order in which they began.
    package func itemTable(style: TextStyle) -> String {
        guard !items.isEmpty else {
            return "no start-up item began before \(readyText): register items with TRACER_STARTUP_ITEM of tracer.h\n"
        }
        var lines = [style.bold("\(counted(UInt64(items.count), "start-up item")) before \(readyText)")]
        let columns = ["stage", "name", "thread", "start_ns", "own_ns", "total_ns", "after", "waited_ns"]
        lines += TextTable(items, StartupItem.columns(columns)).lines(style)
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
        let width = min(shown.map { $0.registration.name.count }.max() ?? 0, 48)
        var lines = [style.bold("Start-up items, by own time")]
        for item in shown {
            var facts: [String] = []
            if !item.isOver { facts.append(style.alarm("not finished")) }
            if !item.isOnMain { facts.append("on thread \(item.tid)") }
            if let wait = item.waitText { facts.append("waited \(wait)") }
            if let cost = recording(item.recording, of: item.own) { facts.append(cost) }
            if item.total.count > item.own.count + item.own.count / 10 { facts.append("total \(readable(item.total))") }
            lines.append(
                "  " + time(item.own) + "  " + ofWhole(item.own) + "  " + item.registration.stageText + "  "
                    + rightFilled(item.registration.name, facts.isEmpty ? 0 : width)
                    + (facts.isEmpty ? "" : "  " + facts.joined(separator: ", ")))
        }
        if items.count > shown.count { lines.append(style.dim(leftFilled("", 23) + "\(grouped(UInt64(items.count - shown.count))) more")) }
        return lines
    }
}

extension StartupItem: Record {
    package static let members = declare {
        Member("stage") { Int64($0.registration.stage) }.column("stage") { String($0.registration.stage) }
        Member("name", \.registration.name).column("item", .name) { $0.registration.name }
        Member("after", "names of the items that it comes after", \.registration.after).column("after", .text) {
            $0.registration.after.joined(separator: ", ")
        }
        Member("thread", \.tid).column("thread", .text) { $0.isOnMain ? "main" : String($0.tid) }
        Member("main_thread", \.isOnMain)
        Member("start_ns", \.start).column("start") { column(readable($0.start)) }
        Member("own_ns", "without the items that it ran itself", \.own).column("own") { column(readable($0.own)) }
        Member("total_ns", \.total).column("total") { $0.isOver ? column(readable($0.total)) : "not finished" }
        Member("tracer_ns", "the tracer's own time in it, which is not in total_ns", \.tracer)
        Member("calls", "recorded calls on its thread", \.calls)
        Member("recording_ns", \.recording)
        Member("ended", "before the program was ready", \.isOver)
        Member("waited_ns", "how long its thread had nothing to do until the last item that it comes after had ended") {
            $0.wait?.duration ?? Nanoseconds(0)
        }.column("waited", .text) { $0.waitText ?? "" }
        Member("waited_for", "that last item; null: it did not wait") { $0.wait?.name }
    }

    /// "3.012 ms for config"
    fileprivate var waitText: String? { wait.map { "\(readable($0.duration)) for \($0.name)" } }
}
