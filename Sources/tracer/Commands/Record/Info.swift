import ArgumentParser
import ELF
import Presentation
import TraceAnalysis

struct Info: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows what a trace holds: program, settings, modules, threads, counts, what is missing.",
        usage: "tracer info [options] [FILE]",
        discussion: """
            For a run with several processes: who started whom, what they executed, for how long, and the exit status. A \
            status of - means still being recorded, or killed; ? means that only the parent process knows it.

            EXAMPLES
              tracer info app.trace
              tracer info tracer.make.4711
              tracer info tracer.make.4711 --process 4720   # all about that process
            """)

    @OptionGroup var trace: RunArgument
    @OptionGroup var display: DisplayOptions

    @Flag(help: "One JSON object.")
    var json = false

    func run() throws {
        let run = try trace.open(), whole = try summary(of: run)
        guard !whole.processes.isEmpty else { throw CommandFailure(whole.warnings.first ?? "no trace in \(run.path)") }
        let output = display.output()
        if json { try output.line(whole.info.text()) } else { try describe(whole, of: run, output) }
        try output.finish()
        try finish(whole, ofCalls: false)
    }

    /// The run; a process that was chosen by itself, if it has one trace.
    private func summary(of run: TraceRun) throws -> RunSummary {
        if trace.choice.process != nil {
            let chosen = try trace.choice.open(run)
            if chosen.count == 1 { return RunSummary(chosen, path: run.path, names: false) }
        }
        if run.files.count == 1 { return RunSummary(run, names: false) }
        return try trace.choice.summary(run, names: false)
    }

    private func describe(_ whole: RunSummary, of run: TraceRun, _ output: Output) throws {
        func row(_ name: String, _ value: String?) throws {
            guard let value else { return }
            try output.line(output.style.dim(name + String(repeating: " ", count: max(16 - name.count, 1))) + value)
        }
        let summary = whole.summary, images = whole.processes.flatMap { $0.images }
        if let trace = whole.only {
            try row("program", trace.program + (trace.programName == basename(trace.program) ? "" : ", called as \(trace.programName)"))
        } else {
            try row(
                "run",
                "\(printable(run.path)), \(counted(whole.processes.count, "process", "processes")), \(counted(images.count, "trace"))")
        }
        try row("command line", whole.commandLine)
        if let trace = whole.only {
            try row("title", trace.title)
            try row("directory", trace.directory)
            try row("pid", "\(trace.header.pid), parent \(trace.header.parent_pid)")
        }
        try row("started", whole.startedAt)
        try row("duration", readable(summary.duration))
        if let trace = whole.only { try describeRecording(of: trace, row) } else { try describeEnds(of: whole, run, row) }
        try row("calls", grouped(summary.calls))
        if whole.only != nil {
            try row(
                "events",
                "\(grouped(summary.events)): \(grouped(summary.completes)) complete, \(grouped(summary.enters)) enters, \(grouped(summary.exits)) exits"
            )
        }
        let byCondition = summary.filteredByCondition == 0 ? "" : ", \(grouped(summary.filteredByCondition)) by condition"
        try row("filtered", "\(grouped(summary.filteredByTime)) by time, \(grouped(summary.filteredByDepth)) by depth" + byCondition)
        try row("dropped", grouped(summary.dropped))
        try row("waits", whole.agentWaits.count == 0 ? nil : "\(whole.agentWaits.text), until the agent had space for calls")
        try row(
            "not recorded", whole.unrecorded.isEmpty ? nil : "\(grouped(whole.unrecorded.processCount)): \(whole.unrecorded.reasonsText)")
        if let trace = whole.only { return try describeContents(of: trace, summary, row) }
        for text in Set(images.flatMap { $0.notes }).sorted() { try row("note", text) }
        for image in images { if let loss = image.lossText { try row("lost", "\(image.path): \(loss)") } }
        try output.line("")
        try output.lines(whole.processTree(width: output.width, style: output.style))
    }

    /// "143: killed by signal 15 (SIGTERM)"
    private func status(_ status: Int32?, _ end: ProcessEnd?) -> String? {
        guard let status else { return nil }
        if let end, case .killed = end { return "\(status): \(end.text)" }
        return String(status)
    }

    private func describeEnds(of whole: RunSummary, _ run: TraceRun, _ row: (String, String?) throws -> Void) throws {
        if trace.choice.process == nil {
            let isRecorded = run.files.allSatisfy { $0.header.session != 0 }
            try row(
                "status",
                status(whole.processes[0].exitStatus, whole.processes[0].end)
                    ?? "unknown: \(isRecorded ? "still recording, or tracer record was killed" : "recorded without tracer record")")
        }
        let unfinished = whole.processes.count { $0.mayGoOn }
        if unfinished > 0 {
            try row("not finished", "\(counted(unfinished, "process", "processes")): still recording, or ended abruptly (killed)")
        }
        try row("files", readable(byteCount: whole.processes.reduce(0) { $0 &+ $1.byteCount }))
    }

    private func describeRecording(of trace: TraceFile, _ row: (String, String?) throws -> Void) throws {
        let header = trace.header
        try row("state", trace.stateText)
        try row("exit status", status(trace.exitStatus, trace.processEnd))
        try row(
            "file",
            "\(readable(byteCount: trace.usedByteCount)), format version \(header.version), \(trace.architectureText), mode \(trace.modeText)"
                + (header.size_limit > 0 ? ", limit \(readable(byteCount: header.size_limit))" : ""))
        try row(
            "clock",
            "\(trace.clockText), \(grouped(UInt64(trace.ticksPerSecond.rounded()))) ticks/s"
                + (trace.timeScale.isKnown ? "" : " (unknown)"))
        try row("agent start", trace.startCost.map { readable($0) })
        try row("cost of a call", trace.leafCost.map { "\(readable($0)) ±\(percent(trace.costError))" })
        try row("kernel", trace.kernelText)
        try row("minimum time", trace.minimumTime.map { readable($0) })
        try row("maximum depth", header.maximum_depth > 0 ? "\(header.maximum_depth)" : nil)
    }

    private func describeContents(of trace: TraceFile, _ summary: Summary, _ row: (String, String?) throws -> Void) throws {
        for (name, count) in [
            ("children unrecorded", trace.header.unrecorded_children), ("unwound", summary.unwound), ("orphan exits", summary.orphans),
            ("too deep", summary.tooDeep), ("migrated", summary.migrations), ("unknown words", summary.unknownWords),
        ]
        where count > 0 {
            try row(name, grouped(count))
        }
        try row("chunks", "\(trace.chunkCount - trace.metadataChunkCount) of events, \(trace.metadataChunkCount) of metadata")
        try row("functions", grouped(UInt64(trace.metadata.functions.count)))
        for text in trace.flagTexts + [trace.interpreterHint].compactMap({ $0 }) { try row("note", text) }
        for text in trace.settings { try row("setting", text) }
        for text in trace.messages { try row("message", text) }
        for thread in summary.threads {
            try row(
                "thread",
                "\(thread.tid) \(thread.name.isEmpty ? "?" : thread.name): \(counted(thread.calls, "call")), \(counted(UInt64(thread.chunks), "chunk"))"
                    + (thread.missingChunks > 0 ? ", \(thread.missingChunks) missing" : "")
                    + (thread.openFrames > 0 ? ", \(thread.openFrames) still open" : ""))
        }
        for module in trace.sortedModules {
            try row(
                "module",
                "0x\(String(module.addresses.lowerBound, radix: 16))-0x\(String(module.addresses.upperBound, radix: 16)) "
                    + "\(module.buildID.isEmpty ? "no build-id" : hexadecimal(module.buildID)) \(module.path)"
                    + (module.unloaded == nil ? "" : " (unloaded)"))
        }
    }
}
