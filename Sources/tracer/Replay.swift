// tracer replay: the call tree in the order of time.
import ArgumentParser
import TraceAnalysis
import TraceFormat

struct Replay: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the call tree in the order of time.",
        discussion: "Columns: seconds since the start of the trace, duration, function indented by its depth, module.")

    @Argument(help: "The trace.", completion: .file(extensions: ["trace"]))
    var file: String

    @Option(help: ArgumentHelp("Only this thread.", valueName: "main|TID|NAME"))
    var thread: String?

    @Option(help: "Levels of the tree to show; 0 for all.")
    var depth = 0

    @Option(help: "Lines to show; 0 for all.")
    var limit = 0

    func validate() throws {
        if depth < 0 { throw ValidationError("--depth takes 0 (all) or a number of levels") }
        if limit < 0 { throw ValidationError("--limit takes 0 (all) or a number of lines") }
    }

    func run() throws {
        let trace = try openTrace(file)
        let table = FunctionTable(trace.metadata)
        let threads = try selected(trace)
        let end = TraceEnd(trace)
        final class Box { // escaping closures may not capture an inout
            var output = Output()
            var lineCount = 0
            var labels: [UInt32: String] = [:]

            /// "name() [module]".
            func label(_ function: UInt32, _ table: FunctionTable) -> String {
                if let label = labels[function] { return label }
                let name = table.name(of: function)
                let label = (name.name.hasSuffix(")") ? name.name : name.name + "()") + output.style.dim(" [\(name.module)]")
                labels[function] = label
                return label
            }
        }
        let box = Box()
        for thread in threads {
            if limit > 0, box.lineCount >= limit { break }
            if threads.count > 1 {
                try box.output.line(box.output.style.bold("thread \(thread.tid) \(thread.name)"))
            }
            try trace.replay(thread: thread.index, until: end, deepest: depth, limit: limit == 0 ? 0 : limit - box.lineCount,
                             table) { [limit] line in
                try box.output.line(Self.text(line, line.function.map { box.label($0, table) } ?? "", trace, box.output.style))
                box.lineCount += 1
                return limit == 0 || box.lineCount < limit
            }
        }
        if limit > 0, box.lineCount >= limit { try box.output.line(box.output.style.dim("… stopped after \(limit) lines: --limit 0")) }
        try box.output.flush()
        try finish(trace)
    }

    private func selected(_ trace: TraceFile) throws -> [TraceFile.ThreadID] {
        let all = trace.threads.sorted { ($0.tid == trace.header.pid ? 0 : 1, $0.index) < ($1.tid == trace.header.pid ? 0 : 1, $1.index) }
        guard let thread else { return all }
        let chosen = all.filter {
            String($0.tid) == thread || $0.name == thread || thread == "main" && $0.tid == trace.header.pid
        }
        if chosen.isEmpty {
            let known = all.map { "\($0.tid) \($0.name)" }.joined(separator: ", ")
            throw CommandFailure(message: "no thread \"\(thread)\" in \(trace.path); it has \(known.isEmpty ? "none" : known)")
        }
        return chosen
    }

    private static func text(_ line: ReplayLine, _ label: String, _ trace: TraceFile, _ style: TextStyle) -> String {
        var duration = "", note = ""
        var what = label
        if let end = line.end {
            duration = column(readable(trace.timeScale.nanoseconds(from: line.start, to: end.time)))
            switch end.how {
            case .returned: break
            case .unwound: note = "left without returning"
            case .lost: note = "its end is not in the file"
            case .open: note = "still running"
            }
        }
        switch line.kind {
        case .call: break
        case .entered: duration = "entered"
        case .orphan: note = "returned; its entry is not in the file"
        case .migrated: note = "began on another thread"
        case .lost(let count): what = style.alarm("-- \(counted(count, "event")) lost --")
        case .missing(let count): what = style.alarm("-- \(counted(count, "chunk")) of this thread missing --")
        case .mark(let mark): what = style.bold("-- mark \(mark) --")
        }
        if line.isInherited { note = note.isEmpty ? "entered before" : "entered before, \(note)" }
        let isEarly = line.start < trace.firstTicks
        let time = isEarly ? "-" + secondsText(trace.timeScale.nanoseconds(from: line.start, to: trace.firstTicks))
            : secondsText(trace.timeScale.nanoseconds(from: trace.firstTicks, to: line.start))
        return right(time, 13) + "  " + right(duration, 11) + "  " + String(repeating: "  ", count: min(line.depth, 100)) + what
            + (note.isEmpty ? "" : "  " + style.alarm("(\(note))"))
    }

    private static func right(_ text: String, _ width: Int) -> String {
        String(repeating: " ", count: max(width - text.utf8.count, 0)) + text
    }
}
