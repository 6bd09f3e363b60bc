import ArgumentParser
import Presentation
import TraceAnalysis
import TraceFormat

struct Replay: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows the call tree in time order.",
        discussion: """
            Columns: seconds since the start of the trace, duration, function indented by its depth, module.

            EXAMPLES
              tracer replay app.trace --thread main --depth 3
              # what ran then, with the enclosing calls
              tracer replay app.trace --from 1.2s --to 1.25s
              tracer replay app.trace --around handle_request --slowest 3
              # calls that were recorded with their arguments
              tracer replay app.trace --where 'open() < 0'
              tracer replay app.trace --json | jq 'select(.duration_ns > 1e6)'
            """)

    @OptionGroup var trace: TraceArgument
    @OptionGroup var names: NameOptions
    @OptionGroup var display: DisplayOptions

    @OptionGroup var threads: ThreadOption

    @OptionGroup var window: WindowOptions
    @OptionGroup var shortest: ShortestCall
    @OptionGroup var conditions: ConditionOption

    @Flag(help: "One JSON object per line: thread, depth, start and length, function, how it ended.")
    var json = false

    @Option(help: "Levels of the tree to show; 0 for all.")
    var depth = 0

    @OptionGroup var rows: RowOption
    private var limit: Int { rows.count ?? 0 }

    func validate() throws {
        if depth < 0 { throw ValidationError("--depth takes 0 (all) or a number of levels") }
    }

    func run() throws {
        let trace = try threads.narrow([window.narrow(trace.open(), least: shortest.least)])[0]
        try conditions.check([trace])
        let table = FunctionNames(trace.metadata), filter = CallFilter(conditions.conditions, table, trace.metadata)
        let chosen = trace.threads.sorted {
            ($0.tid == trace.header.pid ? 0 : 1, $0.index) < ($1.tid == trace.header.pid ? 0 : 1, $1.index)
        }
        let end = TraceEnd(trace)
        let shown = trace.window, hull = shown.hull, isWhole = shown.isWhole, isOfAll = conditions.conditions.isEmpty
        let output = display.output(), style = output.style
        var text = ReplayText(trace, table, until: end, names: names.style, DescriptorNames(trace, table), style), lineCount = 0
        for thread in chosen {
            if limit > 0, lineCount >= limit { break }
            let heading = chosen.count > 1 && !json ? style.bold("thread \(thread.tid) \(thread.name)") : nil
            if isWhole, isOfAll, let heading { try output.line(heading) }
            let linesBefore = lineCount
            var moment = 0 // index in the window; the next is set off by "--", as grep sets off the next match
            try trace.replay(
                thread: thread.index, until: end, deepest: depth, limit: limit == 0 || !isWhole || !isOfAll ? 0 : limit - lineCount, table
            ) { [limit = rows.count ?? 0, json] line in
                if !isWhole {
                    if line.start.raw >= hull.upperBound { return false }
                    if !shown.touches(line.start.raw, (line.end?.time ?? line.start).raw) { return true }
                }
                if !filter.holds(function: line.function, line.arguments, line.result) { return true }
                if json {
                    try output.line(text.json(line, of: thread))
                } else {
                    let index = shown.moment(at: line.start.raw)
                    if index > moment, lineCount > linesBefore { try output.line(style.dim("--")) }
                    moment = max(moment, index)
                    if !isWhole || !isOfAll, lineCount == linesBefore, let heading { try output.line(heading) }
                    try output.line { text.write(line, of: thread, to: &$0) }
                }
                lineCount += 1
                return limit == 0 || lineCount < limit
            }
        }
        if !isOfAll, lineCount == 0, !json {
            try output.line(style.dim("no call fulfils --where"))
        } else if !isWhole, lineCount == 0, !json {
            try output.line(style.dim("no recorded call was running then"))
        }
        if limit > 0, lineCount >= limit, !json { try output.line(style.dim("… stopped after \(limit) lines: --top 0")) }
        if !json, !trace.losses.isEmpty {
            try output.line(style.alarm("not in this list: \(trace.losses.joined(separator: ", "))"))
        }
        try output.finish()
        try finish(trace)
    }
}
