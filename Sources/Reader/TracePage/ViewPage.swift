// A trace as one HTML page that needs nothing else: style, script and data are in it.
//
// Anything thinner than a pixel on a large screen is summed up beforehand, so that the page stays small however long the
// trace: paths of the call tree below 1/20000 of the whole become one nameless node below their caller.
import CTraceLayout
import Presentation
import Symbols
import TraceAnalysis
import TraceFormat

package struct ViewPage: Sendable {
    /// Paths that take less of the whole are summed up.
    static let leastShare = 1.0 / 20_000
    /// Most paths that are kept, the largest.
    static let mostNodes = 120_000
    static let mostSlices = 60_000
    static let mostThreads = 64
    /// Most spans of states, and most waits with an explanation among them.
    package static let mostSpans = 40_000
    package static let mostWaits = 4000
    static let mostSamples = 60_000
    static let mostSampledNodes = 60_000
    static let mostConstructors = 2000
    static let mostMarks = 1000

    private let title: String
    private let facts: String
    private let executable: String
    private let losses: [String]
    private var notes: [String] = []
    private let duration: UInt64
    /// Range of time that the timelines show; nil: all of it.
    private let shown: Range<UInt64>?
    private let tree: CallTree
    private let rows: [FunctionSummary]
    let traces: [PageTrace]
    /// The threads of the timeline.
    let lanes: [Lane]
    private let threadCount: Int
    private let samples: [PageSamples.Process]
    private let startup: JSON
    /// CLOCK_MONOTONIC when the page's time begins.
    private let begun: UInt64
    /// True if the tool serves the page and answers its questions.
    package var isServed = false

    struct Lane: Sendable {
        /// Index in `traces`.
        var trace: Int
        var name: String
        /// Empty if there is one process.
        var process: String
        var timeline: CallTimeline
        /// nil where the kernel did not report the thread.
        var states: StateTimeline?
        /// How the process started, above the first of its threads.
        var stages = JSON.array([])
    }

    /// One process, or several of a run beside each other.
    /// - Parameters:
    ///   - commandLine: the run's
    ///   - window: the run's
    package init(_ files: [TraceFile], title commandLine: String? = nil, window: RunWindow? = nil, progress: ReadingProgress? = nil) {
        let isRun = files.count > 1, first = files[0]
        title = ViewPage.shortened(commandLine ?? (first.commandLine.isEmpty ? first.program : first.commandLine))
        let tree = progress.part(0, 0.2) { CallTree.reading(files, progress: progress) }
        self.tree = tree
        threadCount = files.reduce(0) { $0 + $1.threads.count }
        // The traces with the most in them, until there are threads enough; in the order of time.
        var threadsLeft = Self.mostThreads, chosen: [Int] = []
        for index in files.indices.sorted(by: { (files[$0].usedByteCount, $1) > (files[$1].usedByteCount, $0) }) where threadsLeft > 0 {
            chosen.append(index)
            threadsLeft -= files[index].threads.count
        }
        let symbolizer = Symbolizer()
        var traces = progress.part(0.2, 0.6) {
            progress.each(chosen.sorted(), weight: { files[$0].usedByteCount }) {
                PageTrace(files[$0], in: files, symbolizer, progress: progress)
            }
        }
        let begun = min(traces.map(\.begun).min() ?? 0, files.map { $0.header.first.monotonic_ns }.min() ?? .max)
        for index in traces.indices { traces[index].start = traces[index].begun - begun }
        PageTrace.connect(&traces)
        self.traces = traces
        let indexOfFile = Dictionary(uniqueKeysWithValues: chosen.sorted().enumerated().map { ($0.element, $0.offset) })
        samples = files.indices.map {
            PageSamples.Process(trace: files[$0], stacks: SampledStacks(files[$0], symbolizer), index: indexOfFile[$0])
        }.filter { $0.stacks.tree != nil }
        self.begun = begun
        // The page covers the time of the other processes, too.
        duration = max(
            traces.map { $0.moment($0.end) }.max() ?? 1,
            isRun
                ? zip(files, tree.processes).map { file, process in
                    (file.header.first.monotonic_ns - begun).addingReportingOverflow(process.duration.count)
                }.map { $0.overflow ? .max : $0.partialValue }.max() ?? 1 : 1)
        let hulls = traces.map { trace -> Range<UInt64> in
            let hull = trace.trace.window.hull.clamped(to: trace.origin..<trace.end)
            let low = min(hull.lowerBound, .max - 1)
            return low..<max(hull.upperBound, low + 1)
        }
        let isWhole = files.allSatisfy { $0.window.isWhole }
        let from = zip(traces, hulls).map { trace, hull in trace.moment(hull.lowerBound) }.min() ?? 0
        let to = zip(traces, hulls).map { trace, hull in trace.moment(hull.upperBound) }.max() ?? 1
        let low = min(from, UInt64.max - 1)
        shown = isWhole ? nil : low..<max(to, low + 1)
        let run = progress.part(0.6, 0.7) {
            RunSummary(files, path: first.path, window: window, states: .ofFunctions(.wall), progress: progress)
        }
        rows = run.summary.functions + run.summary.ownCodes
        let phrases = Losses(files)
        facts = [
            isRun ? counted(Set(files.map { $0.header.pid }).count, "process", "processes") : "pid \(first.header.pid)",
            first.startedAt, window?.text ?? readable(Nanoseconds(duration)), counted(tree.calls, "call"), counted(threadCount, "thread"),
            isRun || !phrases.state.isEmpty ? nil : tree.processes[0].endText,
        ].compactMap { $0 }.joined(separator: ", ")
        executable = first.metadata.modules.min { $0.key < $1.key }?.value.name ?? ""
        let unfinished = run.processes.count { $0.mayGoOn }
        let ends = unfinished > 0 ? ["\(counted(unfinished, "process", "processes")) not finished"] : []
        losses =
            phrases.lost + phrases.unrecorded + (isRun ? ends : phrases.state)
            + files.flatMap { file in file.warnings.map { isRun ? "\(file.path): \($0)" : $0 } }
        let shares = SliceShares.all(of: Self.mostSlices, among: traces.map(\.trace.wordCount))
        let lanesOfTraces = progress.part(0.7, 1) {
            progress.each(Array(traces.indices), weight: { traces[$0].trace.usedByteCount }) { index -> [Lane] in
                let trace = traces[index]
                let timelines = CallTimeline.all(
                    trace.trace, from: hulls[index].lowerBound, until: hulls[index].upperBound, mostThreads: Self.mostThreads,
                    mostSlices: shares[index], progress: progress)
                let states = ViewPage.states(
                    of: trace, in: hulls[index], Set(timelines.map { $0.thread }), share: traces.count, begun: begun)
                var lanes = timelines.map { timeline in
                    Lane(
                        trace: index, name: trace.trace.threadName(timeline.thread),
                        process: isRun ? "\(trace.trace.processName) \(trace.trace.header.pid)" : "", timeline: timeline,
                        states: states[timeline.thread])
                }
                if isRun, !lanes.isEmpty, let startup = trace.startup { lanes[0].stages = ViewPage.stages(startup, after: trace.start) }
                return lanes
            }
        }
        lanes = lanesOfTraces.flatMap { $0 }
        startup = isRun ? .null : traces[0].startup.map { ViewPage.startup($0) } ?? .null
        notes = phrases.filtered
        if let window { notes.append("\(window.text): other times are not shown") }
        if let threads = first.chosen { notes.append("threads \"\(threads.text)\": other threads are not shown") }
        noteWhatIsNotDrawn()
        notes += files.lazy.compactMap { $0.interpreterHint }.prefix(1)
    }

    private mutating func noteWhatIsNotDrawn() {
        if lanes.count < threadCount { notes.append("timeline: the \(lanes.count) busiest of \(threadCount) threads") }
        let short = lanes.reduce(0) { $0 &+ $1.timeline.bandCalls }
        if short > 0 { notes.append("timeline: \(counted(short, "short call")) drawn as bands, not one by one") }
        let deeper = lanes.reduce(0) { $0 &+ $1.timeline.deeper }
        if deeper > 0 { notes.append("timeline: \(counted(deeper, "call")) deeper than \(CallTimeline.mostLevels) levels are not drawn") }
        let states = lanes.compactMap { $0.states }
        let shortStates = states.reduce(0) { $0 + $1.short }, unexplained = states.reduce(0) { $0 + $1.unexplained }
        if shortStates > 0 { notes.append("timeline: \(counted(shortStates, "short state")) drawn as shares, not one by one") }
        if unexplained > 0 { notes.append("timeline: \(counted(unexplained, "short wait")) without a known reason") }
        let searches = traces.compactMap { $0.waits }, silent = searches.reduce(0) { $0 + $1.silentThreads }
        if silent > 0 { notes.append("timeline: \(counted(silent, "thread")) without a recorded call") }
        notes += searches.flatMap { $0.notes }
        guard traces.count == 1, let startup = traces[0].startup else { return }
        let constructors = startup.constructors.count - Self.mostConstructors, marks = startup.marks.count - Self.mostMarks
        if constructors > 0 { notes.append("timeline: \(counted(constructors, "short constructor")) not drawn") }
        if marks > 0 { notes.append("timeline: \(counted(marks, "mark")) after the first \(grouped(Self.mostMarks)) not drawn") }
    }

    /// Returns the states of threads, by thread of the trace.
    /// - Parameter share: number of traces that share what a page holds
    private static func states(
        of trace: PageTrace, in time: Range<UInt64>, _ threads: Set<UInt32>, share: Int, begun: UInt64
    ) -> [UInt32: StateTimeline] {
        guard let waits = trace.waits else { return [:] }
        let timelines = StateTimeline.all(
            waits, in: time, mostSpans: max(mostSpans / share, 1000), mostWaits: max(mostWaits / share, 100), of: threads, origin: begun)
        return Dictionary(timelines.map { ($0.thread, $0) }, uniquingKeysWith: { first, _ in first })
    }

    /// As `states` of schema.mjs, of the threads of these lanes.
    func states(of index: Int, in time: Range<UInt64>, lanes wanted: [Int], share: Int) -> [Int: String] {
        let trace = traces[index], time = time.clamped(to: trace.origin..<trace.end)
        let threads = Set(wanted.map { lanes[$0].timeline.thread })
        let found = Self.states(of: trace, in: time, threads, share: share, begun: begun)
        return Dictionary(uniqueKeysWithValues: wanted.map { ($0, text(found[lanes[$0].timeline.thread], of: index)) })
    }

    private func text(_ states: StateTimeline?, of trace: Int) -> String {
        PageStates.text(states, of: traces[trace]) { waker in
            lanes.firstIndex { lane in
                lane.timeline.thread == waker.thread
                    && waker.begun.map { traces[lane.trace].trace.header.first.monotonic_ns == $0 } ?? (lane.trace == trace)
            }
        }
    }

    private static func shortened(_ commandLine: String) -> String {
        var words = commandLine.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
        words[0] = basename(words[0])
        let text = String(words.joined(separator: " ").unicodeScalars.map { $0.value < 0x20 || $0.value == 0xfffd ? " " : Character($0) })
        return text.count > 120 ? text.prefix(119) + "…" : text
    }

    private static func nanoseconds(_ time: Nanoseconds, after start: UInt64 = 0) -> JSON { .unsigned(start &+ time.count) }

    private static func stages(_ timeline: StartupTimeline, after start: UInt64 = 0) -> JSON {
        .array(
            timeline.stretches.map { stretch in
                JSON.object([
                    ("name", .string(stretch.name)), ("at", .unsigned(start &+ stretch.time.lowerBound)),
                    ("length", .unsigned(stretch.length)), ("tracer", .unsigned(stretch.tracer)),
                ])
            })
    }

    /// Returns what stands above the threads: stages, the longest constructors, marks.
    private static func startup(_ timeline: StartupTimeline) -> JSON {
        let constructors = timeline.constructors.sorted { $1.total < $0.total }.prefix(mostConstructors).sorted { $0.start < $1.start }.map
        {
            run in
            JSON.object([
                ("name", .string(run.name.name)), ("module", .string(run.name.module)), ("at", nanoseconds(run.start)),
                ("length", nanoseconds(run.total)),
            ])
        }
        let marks = timeline.marks.prefix(mostMarks).map { JSON.object([("name", .string($0.name)), ("at", nanoseconds($0.at))]) }
        return .object([("stages", stages(timeline)), ("constructors", .array(constructors)), ("marks", .array(marks))])
    }

    package var html: String { Self.document(data) }
    /// What is served until there is the page: it says how far the trace has been read.
    package static var unfinished: String { PageTemplate.unfinished.filled([:]) }

    package static func document(_ data: PageData) -> String { PageTemplate.view.filled(["data": data.text]) }

    // MARK: - Data

    private var data: PageData {
        var functions = FunctionNumbers()
        let treeText = ViewTree([tree], least: Self.leastShare, most: Self.mostNodes, &functions).text
        let threads = lanes.map { lane in
            let timeline = lane.timeline, trace = traces[lane.trace]
            let life = timeline.life.map { (trace.moment($0.lowerBound), trace.moment($0.upperBound)) }
            return
                "{\"name\":\(JSON.string(lane.name).scriptText),\"tid\":\(timeline.tid),\"isMain\":\(timeline.tid == trace.trace.header.pid),\"process\":\(JSON.string(lane.process).scriptText),"
                + "\"begin\":\(life.map { "\($0.0)" } ?? "null"),\"end\":\(life.map { "\($0.1)" } ?? "null"),"
                + "\"own\":\(timeline.own.map { "\(trace.length($0))" } ?? "null"),\"stages\":\(lane.stages.scriptText),"
                + "\"states\":\(text(lane.states, of: lane.trace)),"
                + PageCalls.members(timeline, of: trace, &functions) + "}"
        }
        let samples = PageSamples(
            self.samples, begun: begun, duration: duration, least: Self.leastShare, mostNodes: Self.mostSampledNodes,
            mostMoments: Self.mostSamples,
            lane: { trace, tid in lanes.firstIndex { $0.trace == trace && $0.timeline.tid == tid } }, &functions)
        let table = PageCalls.rows(rows, &functions)
        return PageData(
            title: title, facts: facts, executable: executable, losses: losses, notes: notes, duration: duration, shown: shown,
            startup: startup, tree: treeText, threads: threads, threadCount: threadCount, samples: samples?.text ?? "null", table: table,
            functions: functions.text, isServed: isServed)
    }
}
