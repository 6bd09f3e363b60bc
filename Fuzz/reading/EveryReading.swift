// What fuzzing asks of the reader: every command's reading of a trace.
import Presentation
import Symbols
import TraceAnalysis
import TraceFormat
import TracePage

/// Reads the file at the path as all commands do, whatever its bytes are. What takes longer is done in part: which part depends on the
/// number alone.
package func readAsEveryCommand(path: String, number: Int) {
    guard let trace = try? TraceFile(path: path) else { return }
    let run = RunSummary([trace], path: path, workers: 1)
    _ = run.table(by: .selfTime, top: 3, style: TextStyle(isColoured: false))
    _ = ReportOutput(run, nil).json.text()
    _ = run.info.text()
    _ = CallCounts(trace, after: trace.firstTicks, workers: 1).pairs.count
    _ = trace.readyMoment(symbol: nil)
    let table = FunctionNames(trace.metadata)
    for thread in trace.threads.prefix(4) {
        try? trace.replay(thread: thread.index, until: TraceEnd(trace), deepest: 0, limit: 0, window: 16, table) { _ in true }
    }
    try? trace.dump(table) { _ in }
    consume(trace, number: number % 12)
}

/// What takes longer: one of them for each input, always the same.
private func consume(_ trace: TraceFile, number: Int) {
    let plain = TextStyle(isColoured: false)
    switch number {
    case 0..<3:
        let symbolizer = Symbolizer(debugDirectories: [])
        guard let timeline = try? StartupTimeline(trace, symbolizer: symbolizer) else { return }
        _ = timeline.table(style: plain)
        _ = timeline.json.text()
        _ = LaunchCalls.untilReady(trace, timeline, symbolizer)
        guard let report = try? LibraryReport(trace, symbolizer: symbolizer) else { return }
        _ = report.table(style: plain)
        _ = report.json.text()
    case 3:
        _ = SampleReport([trace], symbolizer: Symbolizer(debugDirectories: []), workers: 1).json.text()
        let tree = CallTree(trace, workers: 1)
        for root in tree.roots { tree.lines(root, .init(), plain) { _ in } }
        _ = tree.json.text()
        _ = tree.merged(.processes).callers(of: [1]).rows(by: .function)
        let sites = SiteReport([trace], workers: 1)
        _ = sites.json.text()
        _ = sites.lines(width: 80, names: .usual, style: plain)
        _ = TreeDiff(before: [tree], after: [tree], isCorrected: true).text(top: 3, width: 80, plain)
        let split = CallTree(trace, states: .ofFunctions(.running), workers: 1)
        _ = TreeDiff(before: [split], after: [split]).json.text()
        _ = RunSummary([trace], path: "", workers: 1, states: .ofFunctions(.waiting)).table(by: .selfTime, top: 3, style: plain)
    case 4:
        // Twice: of several processes of a run each may be who another one waited for.
        let waits = WaitReport([trace, trace], workers: 1)
        _ = WaitOutput(waits, limit: 0).json.text()
        _ = waits.lines(limit: 3, width: 80, names: .usual, style: plain)
        let stalls = StallReport([trace, trace], threads: ThreadPattern("*"), least: Nanoseconds(0), limit: 3, workers: 1)
        _ = stalls.json.text()
        _ = stalls.lines(width: 80, names: .usual, style: plain)
        let files = FileOutput(FileReport([trace, trace], workers: 1), order: .time, limit: 3) { _ in true }
        _ = files.json.text()
        _ = files.lines(width: 80, style: plain)
        let threads = ThreadReport([trace], workers: 1)
        _ = threads.json.text()
        _ = threads.lines(width: 80, style: plain)
        let page = ViewPage([trace])
        _ = page.html
        for question in ViewPage.Question.allCases { _ = page.answer(question, 1000..<UInt64.max, lanes: [0, 1, 2]) }
    default:
        let formats = ExportFormat.allCases
        try? Export([trace], workers: 1).write(formats[number % formats.count], to: { _ in })
    }
}
