// A run's headline and its processes, as text.
import CTraceLayout
import Presentation

extension RunSummary {
    /// The program that was started: its command as the processes' tree begins with it.
    package var commandLine: String { processes.first.map { $0.images[0].commandLine } ?? "?" }
    private var shortCommandLine: String { processes.first.map { $0.images[0].shortCommandLine } ?? "?" }

    package var headline: String {
        var parts = [title, windowText ?? readable(summary.duration)]
        if summary.span.count > 0 { parts.append("in calls \(readable(summary.inCalls)) of \(readable(summary.span))") }
        parts += [counted(summary.threads.count, "thread"), counted(summary.calls, "call")]
        if summary.onlyCounted > 0 { parts.append("\(grouped(summary.onlyCounted)) of them only counted") }
        if summary.filtered > 0 { parts.append("\(grouped(summary.filtered)) filtered") }
        parts.append("\(grouped(summary.dropped)) dropped")
        let missing = summary.threads.reduce(UInt64(0)) { $0 &+ $1.missingChunks }
        if missing > 0 {
            let isRing = processes.contains { $0.images.contains { $0.isRing } }
            parts.append("\(counted(missing, "chunk")) \(isRing ? "overwritten" : "missing")")
        }
        if summary.tooDeep > 0 { parts.append("\(counted(summary.tooDeep, "call")) of unknown length: too many calls were open") }
        if summary.overwritten > 0 { parts.append("\(counted(summary.overwritten, "chunk")) overwritten while reading") }
        if let text = unrecorded.countText { parts.append(text) }
        parts += endTexts
        return parts.joined(separator: ", ")
    }

    private var title: String {
        if let only { return "\(only.processName) (pid \(only.header.pid))" }
        let images = processes.reduce(0) { $0 + $1.images.count }
        return "\(shortened(shortCommandLine, 60)): \(counted(processes.count, "process", "processes"))"
            + (images > processes.count ? " (\(counted(images, "trace")))" : "")
    }

    /// How the trace ended; of several how the program that was started did, and how many processes have not finished.
    private var endTexts: [String] {
        if let only { return [only.endText].compactMap { $0 } }
        var texts: [String] = []
        if let root = processes.first, let end = root.end, end != .exited(status: 0) {
            texts.append("\(root.name): \(end.text)")
        }
        let count = processes.count { $0.mayGoOn }
        return texts + (count > 0 ? ["\(count) not finished"] : [])
    }

    /// A row for each process.
    package func processTable(by order: ReportOrder, top: Int, width: Int?, style: TextStyle) -> String {
        let sorted = processes.sorted { a, b in
            switch order {
            case .calls: if a.calls != b.calls { return a.calls > b.calls }
            case .name: if a.name != b.name { return a.name < b.name }
            default:
                let times = (a.states?[time] ?? Int64(clamping: a.duration.count), b.states?[time] ?? Int64(clamping: b.duration.count))
                if time != .wall, times.0 != times.1 { return times.0 > times.1 }
                if a.duration != b.duration { return b.duration < a.duration }
            }
            return a.pid < b.pid
        }
        let rows = top > 0 ? Array(sorted.prefix(top)) : sorted
        let table = TextTable(rows, RunProcess.columns(figures + ["command"]))
        var lines = [style.bold(headline)] + notes(style) + [""] + table.lines(style, width: width)
        if rows.count < sorted.count { lines.append(style.dim("… \(grouped(sorted.count - rows.count)) more: --top 0")) }
        if let text = unrecorded.text { lines.append(text) }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Who started whom, for `tracer info`.
    package func processTree(width: Int?, style: TextStyle) -> [String] {
        TextTable(processes, RunProcess.columns(figures + ["tree"])).lines(style, width: width)
    }

    private var figures: [String] {
        let times = time == .wall ? ["in_calls_ns", "duration_ns"] : ["in_calls_\(time.rawValue)_ns", "\(time.rawValue)_ns"]
        return ["calls"] + times + ["status", "pid"]
    }

    /// What the run of an interpreter does not show; nil of other programs.
    package var interpreterHint: String? {
        guard let images = processes.first?.images else { return nil }
        return images[0].interpreterHint ?? images[images.count - 1].interpreterHint
    }

    package var startedAt: String? {
        processes.first.flatMap { $0.images[0].startedAt == 0 ? nil : UTC(nanoseconds: $0.images[0].startedAt).iso8601 }
    }
}

extension ProcessImage {
    /// Without the directory of the program.
    var shortCommandLine: String {
        guard commandLine.hasPrefix("/"), let first = commandLine.split(separator: " ", maxSplits: 1).first else { return commandLine }
        return basename(String(first)) + commandLine.dropFirst(first.count)
    }
}

extension RunProcess {
    /// Commands that the process ran, one program after the other.
    var commands: String {
        var texts: [String] = []
        for image in images {
            let text = image.title ?? image.shortCommandLine
            if texts.last != text { texts.append(text) }
        }
        // Commands before the last are cut short: often its parent still runs the same, in a line of its own.
        return texts.enumerated().map { index, text in
            shortened(text.split(whereSeparator: \.isNewline).joined(separator: " "), index == texts.count - 1 ? 120 : 32)
        }.joined(separator: " → ")
    }
}
