// tracer replay: the call tree in the order of time.
import ArgumentParser
import TraceAnalysis
import TraceFormat

struct Replay: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the call tree in the order of time.",
        discussion: "Columns: seconds since the start of the trace, duration, function indented by its depth, module.")

    @OptionGroup var trace: TraceArgument
    @OptionGroup var display: DisplayOptions

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
        let trace = try trace.open()
        let table = FunctionTable(trace.metadata)
        let threads = try selected(trace)
        let end = TraceEnd(trace)
        final class Box { // escaping closures may not capture an inout
            var output: Output
            var lineCount = 0
            var labels: [UInt32: [UInt8]] = [:]

            init(_ output: Output) { self.output = output }

            /// "name() [module]".
            func label(_ function: UInt32, _ table: FunctionTable) -> [UInt8] {
                if let label = labels[function] { return label }
                let name = table.name(of: function)
                let label = Array(((name.name.hasSuffix(")") ? name.name : name.name + "()") + output.style.dim(" [\(name.module)]")).utf8)
                labels[function] = label
                return label
            }
        }
        let box = Box(display.output())
        for thread in threads {
            if limit > 0, box.lineCount >= limit { break }
            if threads.count > 1 {
                try box.output.line(box.output.style.bold("thread \(thread.tid) \(thread.name)"))
            }
            try trace.replay(thread: thread.index, until: end, deepest: depth, limit: limit == 0 ? 0 : limit - box.lineCount,
                             table) { [limit] line in
                let label = line.function.map { box.label($0, table) } ?? []
                let style = box.output.style
                try box.output.line { Self.write(line, label, trace, style, to: &$0) }
                box.lineCount += 1
                return limit == 0 || box.lineCount < limit
            }
        }
        if limit > 0, box.lineCount >= limit { try box.output.line(box.output.style.dim("… stopped after \(limit) lines: --limit 0")) }
        try box.output.finish()
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

    private static func write(_ line: ReplayLine, _ label: [UInt8], _ trace: TraceFile, _ style: TextStyle,
                              to text: inout [UInt8]) {
        var start = text.count
        if line.start < trace.firstTicks {
            text.append(UInt8(ascii: "-"))
            text.append(seconds: trace.timeScale.nanoseconds(from: line.start, to: trace.firstTicks))
        } else {
            text.append(seconds: trace.timeScale.nanoseconds(from: trace.firstTicks, to: line.start))
        }
        text.align(from: start, width: 13)
        text.append(spaces: 2)
        start = text.count
        if let end = line.end {
            text.append(column: trace.timeScale.nanoseconds(from: line.start, to: end.time))
        } else if line.kind == .entered {
            text.append("entered")
        }
        text.align(from: start, width: 11)
        text.append(spaces: 2 + 2 * min(line.depth, 100))
        switch line.kind {
        case .lost(let count): text.append(style.alarm("-- \(counted(count, "event")) lost --"))
        case .missing(let count): text.append(style.alarm("-- \(counted(count, "chunk")) of this thread missing --"))
        case .mark(let mark): text.append(style.bold("-- mark \(mark) --"))
        default: text.append(contentsOf: label)
        }
        let note = note(line)
        if line.isInherited {
            text.append("  " + style.alarm(note.map { "(entered before, \($0))" } ?? "(entered before)"))
        } else if let note {
            text.append("  " + style.alarm("(\(note))"))
        }
    }

    private static func note(_ line: ReplayLine) -> String? {
        switch (line.kind, line.end?.how) {
        case (.orphan, _): "returned; its entry is not in the file"
        case (.migrated, _): "began on another thread"
        case (_, .unwound): "left without returning"
        case (_, .lost): "its end is not in the file"
        case (_, .open): "still running"
        default: nil
        }
    }
}
