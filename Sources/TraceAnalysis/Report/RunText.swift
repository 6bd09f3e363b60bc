// The processes of a run, as text and as JSON.
import CTraceLayout
import Presentation

extension RunSummary {
    /// The program that was started: its command as the processes' tree begins with it.
    package var commandLine: String { processes.first.map { $0.images[0].commandLine } ?? "?" }
    private var shortCommandLine: String { processes.first.map { $0.images[0].shortCommandLine } ?? "?" }

    package var headline: String {
        let images = processes.reduce(0) { $0 + $1.images.count }
        var parts = [
            "\(shortened(shortCommandLine, 60)): \(counted(processes.count, "process", "processes"))"
                + (images > processes.count ? " (\(counted(images, "trace")))" : ""), windowText ?? readable(summary.duration),
        ]
        if summary.span.count > 0 { parts.append("in calls \(readable(summary.inCalls)) of \(readable(summary.span))") }
        parts += [counted(summary.threads.count, "thread"), counted(summary.calls, "call")]
        let filtered = summary.filteredByTime &+ summary.filteredByDepth
        if filtered > 0 { parts.append("\(grouped(filtered)) filtered") }
        parts.append("\(grouped(summary.dropped)) dropped")
        let missing = summary.threads.reduce(UInt64(0)) { $0 &+ $1.missingChunks }
        if missing > 0 {
            let isRing = processes.contains { $0.images.contains { $0.isRing } }
            parts.append("\(counted(missing, "chunk")) \(isRing ? "overwritten" : "missing")")
        }
        if summary.overwritten > 0 { parts.append("\(counted(summary.overwritten, "chunk")) overwritten while reading") }
        let unfinished = processes.count { $0.isUnfinished }
        if unfinished > 0 { parts.append("\(unfinished) not finished") }
        return parts.joined(separator: ", ")
    }

    /// A row for each process.
    package func processTable(by order: ReportOrder, top: Int, width: Int?, style: TextStyle) -> String {
        let sorted = processes.sorted { a, b in
            switch order {
            case .calls: if a.calls != b.calls { return a.calls > b.calls }
            case .name: if basename(a.program) != basename(b.program) { return basename(a.program) < basename(b.program) }
            default: if a.duration != b.duration { return b.duration < a.duration }
            }
            return a.pid < b.pid
        }
        let rows = top > 0 ? Array(sorted.prefix(top)) : sorted
        var table = TextTable(["calls", "in calls", "time", "status", "pid", "command"], leftAligned: [5])
        for process in rows { table.add(cells(process, indented: false)) }
        var lines = [style.bold(headline), ""] + table.lines(style, width: width)
        if rows.count < sorted.count { lines.append(style.dim("… \(grouped(sorted.count - rows.count)) more: --top 0")) }
        return lines.joined(separator: "\n") + "\n"
    }

    /// Who started whom, for `tracer info`.
    package func processTree(width: Int?, style: TextStyle) -> [String] {
        var table = TextTable(["calls", "in calls", "time", "status", "pid", "command"], leftAligned: [5])
        for process in processes { table.add(cells(process, indented: true)) }
        return table.lines(style, width: width)
    }

    private func cells(_ process: RunProcess, indented: Bool) -> [String] {
        [
            grouped(process.calls), column(readable(process.inCalls)), column(readable(process.duration)),
            process.exitStatus.map { String($0) } ?? (process.isUnfinished ? "-" : "?"), String(process.pid),
            (indented ? String(repeating: "  ", count: min(process.depth, 30)) : "") + process.commands,
        ]
    }

    package func json(_ root: TraceFile, _ places: FunctionPlaces? = nil) -> JSON {
        guard case .object(let members) = summary.json(root, places) else { return .null }
        let modules = summary.ownCodes.map { JSON.object([("name", .string($0.module)), ("own_ns", .unsigned($0.total.count))]) }
        let threads = summary.threads.map { thread in
            JSON.object([
                ("pid", .unsigned(UInt64(thread.pid))), ("tid", .unsigned(UInt64(thread.tid))), ("name", .string(thread.name)),
                ("calls", .unsigned(thread.calls)), ("span_ns", .time(thread.span)), ("own_ns", .time(thread.own)),
            ])
        }
        return .object(
            members.map { name, value in
                switch name {
                case "modules": (name, .array(modules))
                case "threads": (name, .array(threads))
                case "window": (name, windowJSON)
                default: (name, value)
                }
            }
                + [("calls", .unsigned(summary.calls)), ("processes", processesJSON)])
    }

    package var processesJSON: JSON { .array(processes.map { $0.json }) }

    /// For `tracer info --json`.
    package var infoJSON: JSON {
        .object([
            ("schema", .unsigned(1)), ("run", .string(path)), ("command", .string(commandLine)),
            ("started_at", startedAt.map { .string($0) } ?? .null), ("duration_ns", .unsigned(summary.duration.count)),
            ("calls", .unsigned(summary.calls)), ("filtered_by_time", .unsigned(summary.filteredByTime)),
            ("filtered_by_depth", .unsigned(summary.filteredByDepth)), ("dropped", .unsigned(summary.dropped)),
            ("used_bytes", .unsigned(processes.reduce(0) { $0 &+ $1.byteCount })), ("processes", processesJSON),
            ("warnings", .array(warnings.map { .string($0) })),
        ])
    }

    package var startedAt: String? {
        processes.first.flatMap { $0.images[0].startedAt == 0 ? nil : UTC(nanoseconds: $0.images[0].startedAt).iso8601 }
    }
}

extension Summary {
    /// The report of one trace: a run of one process.
    package func runJSON(_ trace: TraceFile, _ places: FunctionPlaces? = nil) -> JSON {
        guard case .object(let members) = json(trace, places) else { return .null }
        let processes = RunProcess.processes(of: [ProcessImage(trace, self)])
        return .object(members + [("calls", .unsigned(calls)), ("processes", .array(processes.map { $0.json }))])
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
            let text = image.shortCommandLine
            if texts.last != text { texts.append(text) }
        }
        // Commands before the last are cut short: often its parent still runs the same, in a line of its own.
        return texts.enumerated().map { place, text in
            shortened(text.split(whereSeparator: \.isNewline).joined(separator: " "), place == texts.count - 1 ? 120 : 32)
        }.joined(separator: " → ")
    }

    package var json: JSON {
        .object([
            ("pid", .unsigned(UInt64(pid))), ("ppid", .unsigned(UInt64(parentPid))), ("program", .string(program)),
            ("command", .string(commandLine)), ("calls", .unsigned(calls)), ("filtered", .unsigned(filtered)),
            ("dropped", .unsigned(dropped)),
            ("in_calls_ns", .unsigned(inCalls.count)), ("duration_ns", .unsigned(duration.count)),
            ("status", exitStatus.map { .signed(Int64($0)) } ?? .null), ("is_finished", .bool(!isUnfinished)),
            (
                "images",
                .array(
                    images.map { image in
                        .object([
                            ("program", .string(image.program)), ("command", .string(image.commandLine)), ("calls", .unsigned(image.calls)),
                            ("file", .string(image.path)),
                        ])
                    })
            ),
        ])
    }
}
