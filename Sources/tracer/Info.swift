// tracer info: what was recorded, where, under which settings, and what is missing.
import ArgumentParser
import TraceAnalysis

struct Info: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows what a trace holds: program, settings, modules, threads, counts, what is missing.")

    @OptionGroup var trace: TraceArgument
    @OptionGroup var display: DisplayOptions

    @Flag(help: "One JSON object.")
    var json = false

    func run() throws {
        let trace = try trace.open()
        let summary = Summary(trace, names: false)
        var output = display.output()
        if json {
            try output.line(trace.infoJSON(summary).text())
        } else {
            try describe(trace, summary, &output)
        }
        try output.finish()
        try finish(trace)
    }

    private func describe(_ trace: TraceFile, _ summary: Summary, _ output: inout Output) throws {
        func row(_ name: String, _ value: String?) throws {
            guard let value else { return }
            try output.line(output.style.dim(name + String(repeating: " ", count: max(16 - name.count, 1))) + value)
        }
        let header = trace.header
        try row("program", trace.program)
        try row("command line", trace.commandLine)
        try row("directory", trace.directory)
        try row("pid", "\(header.pid), parent \(header.parent_pid)")
        try row("started", trace.startedAt)
        try row("duration", readable(summary.duration))
        try row("state", trace.stateText)
        try row("file", "\(readable(byteCount: trace.byteCount)), format version \(header.version), \(trace.machineText), mode \(trace.modeText)"
            + (header.size_limit > 0 ? ", limit \(readable(byteCount: header.size_limit))" : ""))
        try row("clock", "\(trace.clockText), \(grouped(UInt64(trace.ticksPerSecond.rounded()))) ticks/s"
            + (trace.timeScale.isKnown ? "" : " (unknown)"))
        try row("agent start", trace.startCost.map { readable($0) })
        try row("cost of a call", trace.leafCost.map { readable($0) })
        try row("minimum time", trace.minimumTime.map { readable($0) })
        try row("maximum depth", header.maximum_depth > 0 ? "\(header.maximum_depth)" : nil)
        try row("calls", grouped(summary.calls))
        try row("events", "\(grouped(summary.events)): \(grouped(summary.completes)) complete, \(grouped(summary.enters)) enters, \(grouped(summary.exits)) exits")
        try row("filtered", "\(grouped(summary.filteredByTime)) by time, \(grouped(summary.filteredByDepth)) by depth")
        try row("dropped", grouped(summary.dropped))
        for (name, count) in [("unwound", summary.unwound), ("lost", summary.lost), ("orphan exits", summary.orphans),
                              ("migrated", summary.migrations), ("marks", summary.marks), ("unknown words", summary.unknownWords)]
        where count > 0 {
            try row(name, grouped(count))
        }
        try row("chunks", "\(trace.chunkCount - trace.metadataChunkCount) of events, \(trace.metadataChunkCount) of metadata")
        try row("functions", grouped(UInt64(trace.metadata.functions.count)))
        for text in trace.flagTexts { try row("note", text) }
        for text in trace.settings { try row("setting", text) }
        for text in trace.environment { try row("environment", text) }
        for text in trace.messages { try row("message", text) }
        for thread in summary.threads {
            try row("thread", "\(thread.tid) \(thread.name.isEmpty ? "?" : thread.name): \(counted(thread.calls, "call")), \(counted(UInt64(thread.chunks), "chunk"))"
                + (thread.missingChunks > 0 ? ", \(thread.missingChunks) missing" : "")
                + (thread.openFrames > 0 ? ", \(thread.openFrames) still open" : ""))
        }
        for module in trace.sortedModules {
            try row("module", "0x\(String(module.addresses.lowerBound, radix: 16))-0x\(String(module.addresses.upperBound, radix: 16)) "
                + "\(module.buildID.isEmpty ? "no build-id" : hexadecimal(module.buildID)) \(module.path)"
                + (module.unloaded == nil ? "" : " (unloaded)"))
        }
    }
}
