// tracer info: what was recorded, where, under which settings, and what is missing.
import ArgumentParser
import Presentation
import TraceAnalysis

struct Info: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows what a trace holds: program, settings, modules, threads, counts, what is missing.",
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
        let run = try trace.open()
        var output = display.output()
        if run.files.count != 1 {
            let chosen = try trace.choice.process == nil ? nil : trace.choice.open(run)
            guard let only = chosen, only.count == 1 else { return try describe(run, &output) }
            return try describe(only[0], &output)
        }
        try describe(openTrace(run.files[0].path), &output)
    }

    private func describe(_ trace: TraceFile, _ output: inout Output) throws {
        let summary = Summary(trace, names: false)
        if json {
            try output.line(InfoOutput(trace, summary).json.text())
        } else {
            try describe(trace, summary, &output)
        }
        try output.finish()
        try finish(trace, ofCalls: false)
    }

    private func describe(_ run: TraceRun, _ output: inout Output) throws {
        let whole = try trace.choice.summary(run, names: false)
        guard let root = whole.processes.first else { throw CommandFailure(message: whole.warnings.first ?? "no trace in \(run.path)") }
        if json {
            try output.line(RunInfoOutput(whole).json.text())
            try output.finish()
            return try finish(whole)
        }
        func row(_ name: String, _ value: String?) throws { try Self.row(name, value, &output) }
        let files = whole.processes.flatMap { $0.images }, unfinished = whole.processes.count { $0.isUnfinished }
        try row("run", "\(run.path), \(counted(whole.processes.count, "process", "processes")), \(counted(files.count, "trace"))")
        try row("command line", whole.commandLine)
        try row("started", whole.startedAt)
        try row("duration", readable(whole.summary.duration))
        if trace.choice.process == nil {
            let isRecorded = run.files.allSatisfy { $0.header.session != 0 }
            try row(
                "status",
                root.exitStatus.map { String($0) }
                    ?? "unknown: \(isRecorded ? "still recording, or tracer record was killed" : "recorded without tracer record")")
        }
        if unfinished > 0 {
            try row("not finished", "\(counted(unfinished, "process", "processes")): still recording, or ended abruptly (killed)")
        }
        try row("files", readable(byteCount: whole.processes.reduce(0) { $0 &+ $1.byteCount }))
        try row("calls", grouped(whole.summary.calls))
        try row("filtered", "\(grouped(whole.summary.filteredByTime)) by time, \(grouped(whole.summary.filteredByDepth)) by depth")
        try row("dropped", grouped(whole.summary.dropped))
        for text in Set(files.flatMap { $0.notes }).sorted() { try row("note", text) }
        for file in files { if let loss = file.lossText { try row("lost", "\(file.path): \(loss)") } }
        try output.line("")
        for line in whole.processTree(width: output.width, style: output.style) { try output.line(line) }
        try output.finish()
        try finish(whole)
    }

    private static func row(_ name: String, _ value: String?, _ output: inout Output) throws {
        guard let value else { return }
        try output.line(output.style.dim(name + String(repeating: " ", count: max(16 - name.count, 1))) + value)
    }

    private func describe(_ trace: TraceFile, _ summary: Summary, _ output: inout Output) throws {
        func row(_ name: String, _ value: String?) throws { try Self.row(name, value, &output) }
        let header = trace.header
        try row("program", trace.program + (trace.programName == basename(trace.program) ? "" : ", called as \(trace.programName)"))
        try row("command line", trace.commandLine)
        try row("directory", trace.directory)
        try row("pid", "\(header.pid), parent \(header.parent_pid)")
        try row("started", trace.startedAt)
        try row("duration", readable(summary.duration))
        try row("state", trace.stateText)
        try row("exit status", trace.exitStatus.map { String($0) })
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
        try row("calls", grouped(summary.calls))
        try row(
            "events",
            "\(grouped(summary.events)): \(grouped(summary.completes)) complete, \(grouped(summary.enters)) enters, \(grouped(summary.exits)) exits"
        )
        try row("filtered", "\(grouped(summary.filteredByTime)) by time, \(grouped(summary.filteredByDepth)) by depth")
        try row("dropped", grouped(summary.dropped))
        for (name, count) in [
            ("children unrecorded", header.unrecorded_children), ("unwound", summary.unwound), ("orphan exits", summary.orphans),
            ("migrated", summary.migrations), ("unknown words", summary.unknownWords),
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
