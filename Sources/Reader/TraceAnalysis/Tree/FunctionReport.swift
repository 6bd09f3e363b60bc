// All that a trace knows of one function, or of several that a glob matches taken together: how long its calls took and how that is
// spread, the slowest of them, its callers and what it calls; for one process, or for all processes of a run together.
import Presentation
import TraceFormat

package struct FunctionReport: Sendable {
    /// Calls whose length in nanoseconds is in `range`.
    package struct Bar: Sendable, Equatable {
        package var range: Range<UInt64>
        package var calls: UInt64
    }

    /// One call.
    package struct Call: Sendable {
        package var name: String, module: String
        /// Since the beginning of the first process.
        package var start: Nanoseconds
        package var length: Nanoseconds
        /// `length` by state; nil: the kernel has reported no context switches.
        package var states: StateTimes?
        package var pid: UInt32
        package var tid: UInt32?
        package var threadName: String
        /// File that a call of dlopen loaded, as it was asked for; nil if it loaded none, and for other calls.
        package var file: String?
        /// True if its end is in the trace.
        package var isOver: Bool
    }

    package let functions: [ReportedFunction]
    /// Their sums in one.
    package let sums: FunctionSummary
    /// What the times of calls are.
    package let time: CallTime
    /// Twice as long each, from the shortest call's to the longest one's.
    package let histogram: [Bar]
    package let slowest: [Call]
    package let callers: CallTree
    package let callees: CallTree
    fileprivate let program: String, pid: UInt32
    private let isRun: Bool

    package init?(
        _ trace: TraceFile, _ pattern: FunctionPattern, time: CallTime = .wall, slowest: Int = 10, workers: Int = TraceFile.cpuCount,
        progress: ReadingProgress? = nil
    ) {
        self.init([trace], pattern, time: time, slowest: slowest, workers: workers, progress: progress)
    }

    /// nil when no call of a matching function is there.
    /// - Parameters:
    ///   - traces: at least one
    ///   - time: that of the figures; by state they are known as well
    ///   - slowest: how many single calls
    package init?(
        _ traces: [TraceFile], _ pattern: FunctionPattern, time: CallTime = .wall, slowest: Int = 10, workers: Int = TraceFile.cpuCount,
        progress: ReadingProgress? = nil
    ) {
        program = traces[0].program
        pid = traces[0].header.pid
        isRun = traces.count > 1
        self.time = time
        let states = StateReading.ofFunctions(time), tree = CallTree.reading(traces, states: states, workers: workers, progress: progress)
        let chosen = tree.functions(matching: pattern).filter { !tree.functions[$0].isOwnCode }
        guard !chosen.isEmpty else { return nil }
        var known: Set<ReportedFunction> = []
        functions = chosen.map { tree.functions[$0] }.map {
            ReportedFunction(name: LoadedFiles.withoutFile($0.name, symbol: $0.symbol), symbol: $0.symbol, module: $0.module)
        }.filter { known.insert($0).inserted }
            .sorted { ($0.name, $0.module, $0.symbol) < ($1.name, $1.module, $1.symbol) }
        callers = tree.callers(of: chosen)
        callees = tree.below(chosen)
        let total = Nanoseconds(callees.nodes[0].total) // only the tree knows which calls lie within another of them
        var all = RunSums(), counts: [Int: UInt64] = [:], only: FunctionSummary?
        for trace in traces {
            let table = FunctionNames(trace.metadata), spans = ThreadSpans(trace), scale = trace.timeScale
            func take(_ accumulator: borrowing Accumulator, _ row: Int, _ times: SplitTimes?) {
                accumulator.forEachDuration(row, scale) { counts[Self.power($0), default: 0] += UInt64($1) }
                if traces.count > 1 {
                    all.add(accumulator, times, row, trace)
                } else { // in its ticks, as a report of one trace has them
                    let nobody = FunctionNames.Row(name: "", symbol: "", module: "", isEntryOnly: false)
                    only = accumulator.summary(row, nobody, scale, CallCost(trace))
                    only?.counted = accumulator.counted(row)?.time(accumulator.sums[row], trace)
                    if let times { only?.show(times.inNanoseconds(scale), as: time) }
                }
            }
            if let clocks = StateClocks(trace, states) {
                let read = StreamWorker.read(trace, table, workers: workers) { SplitSums(clocks, spans) { Accumulator(table, spans) } }
                read.withSink { split in
                    var row = 0
                    split.withEach { row = $0.together(table, pattern) }
                    let times = split.times(of: row)
                    split.with(time) { take($0, row, times) }
                }
            } else {
                let read = StreamWorker.read(trace, table, workers: workers) { Accumulator(table, spans) }
                read.withSink { take($0, $0.together(table, pattern), nil) }
            }
        }
        let several = all.functions(of: time).first
        var summary =
            only ?? several
            ?? FunctionSummary(name: "", symbol: "", module: "", calls: 0, timedCalls: 0, total: total, selfTime: 0)
        summary.total = total
        summary.states?.total = callees.nodes[0].states.total
        if tree.time == nil { summary.states = nil }
        sums = summary
        histogram = Self.bars(counts)
        self.slowest = Self.slowest(slowest, by: time, of: traces, pattern, workers: workers)
    }

    private static func slowest(
        _ count: Int, by time: CallTime, of traces: [TraceFile], _ pattern: FunctionPattern, workers: Int
    ) -> [Call] {
        let origin = traces.map { $0.header.first.monotonic_ns }.min() ?? 0
        let calls = traces.flatMap { trace -> [Call] in
            let search = CallSearch(trace, pattern, .longest(count, time), states: .ofFunctions(time), workers: workers)
            let tids = Dictionary(trace.threads.map { ($0.index, $0.tid) }) { first, _ in first }
            let files = LoadedFiles(trace)
            let begin = trace.header.first.monotonic_ns - origin
            return search.calls.map { call in
                let name = search.name(of: call), length = trace.timeScale.nanoseconds(call.length)
                return Call(
                    name: name.name, module: name.module,
                    start: Nanoseconds(begin &+ trace.timeScale.nanoseconds(from: trace.firstTicks, to: Ticks(call.start)).count),
                    length: length,
                    states: search.hasStates ? call.states.inNanoseconds(trace.timeScale, whole: Int64(clamping: length.count)) : nil,
                    pid: trace.header.pid, tid: tids[call.thread],
                    threadName: trace.threadName(call.thread),
                    file: files.file(name.name, thread: call.thread, from: call.start, to: call.end), isOver: call.isOver)
            }
        }
        if traces.count == 1 { return calls }
        func shown(_ call: Call) -> Int64 { call.states?[time] ?? Int64(clamping: call.length.count) }
        return Array(calls.sorted { (shown($1), $0.start) < (shown($0), $1.start) }.prefix(count))
    }

    /// Number of bits that a duration takes; 0 for 0.
    private static func power(_ duration: UInt64) -> Int { 64 - duration.leadingZeroBitCount }

    private static func bars(_ counts: [Int: UInt64]) -> [Bar] {
        guard let low = counts.keys.min(), let high = counts.keys.max() else { return [] }
        return (low...high).map { bits in
            // From a power of two up to the next.
            let begin: UInt64 = bits == 0 ? 0 : 1 << UInt64(bits - 1)
            return Bar(range: begin..<(bits == 0 ? 1 : begin &<< 1 == 0 ? .max : begin << 1), calls: counts[bits] ?? 0)
        }
    }
}

extension Accumulator {
    /// Moves what the functions did into one row, and returns which; 0, which is no function's, where they did nothing.
    fileprivate mutating func together(_ table: FunctionNames, _ pattern: FunctionPattern) -> Int {
        var first = 0
        for row in 1..<max(table.rowCount, 1) {
            let function = table.rows[row - 1]
            guard pattern.matches(name: function.name, symbol: function.symbol, module: function.module) else { continue }
            if first > 0 { merge(row, into: first) } else { first = row }
        }
        return first
    }

    /// In nanoseconds.
    fileprivate func forEachDuration(_ row: Int, _ scale: TimeScale, _ body: (UInt64, UInt32) -> Void) {
        guard row > 0, sums[row].durationRow != 0 else { return }
        durations.forEach(row: sums[row].durationRow) { body(scale.nanoseconds($0).count, $1) }
    }
}

extension FunctionReport {
    /// - Parameter title: of the trace
    package func lines(
        title: String, least: Double, width: Int?, names: NameStyle, locations: FunctionLocations, style: TextStyle,
        _ body: (String) throws -> Void
    ) throws {
        try body(style.bold(title))
        if let note = time.note { try body(style.dim(note)) }
        try body("")
        let short = ShortNames(functions.map(\.name), names)
        for function in functions.prefix(10) {
            let source = locations.text(of: function)
            try body("\(short[function.name]) \(style.dim("[\(function.module)]"))" + (source.isEmpty ? "" : "  " + source))
            let others = locations.folded(with: function)
            if !others.isEmpty {
                let other = ShortNames(others, names)
                try body(style.dim("also, folded by the linker: ") + others.map { other[$0] }.joined(separator: ", "))
            }
        }
        if let note = locations.note { try body(style.dim(note)) }
        if functions.count > 10 {
            try body(style.dim("… \(grouped(UInt64(functions.count - 10))) more functions; the figures are for all together"))
        }
        func spelt(_ time: Nanoseconds?) -> String { time.map { readable($0) } ?? "-" }
        try body(
            "\(sums.callsMark)\(counted(sums.calls, "call")), total \(sums.totalText), self \(sums.selfText)"
        )
        if let states = sums.states { try body("total: \(states.total.text); self: \(states.selfTime.text)") }
        let (median, percentile99) = (sums.median?.text ?? "-", sums.percentile99?.text ?? "-")
        try body(
            "per call: average \(spelt(sums.average)), minimum \(spelt(sums.minimum)), p50 \(median), p99 \(percentile99), "
                + "maximum \(spelt(sums.maximum))" + (sums.isSkewed ? style.alarm("  the average is far from the median") : ""))
        try histogramLines(width ?? 80, style, body)
        try slowestLines(short, style, body)
        let options = CallTree.TextOptions(least: least, deepest: 2, width: names == .full ? nil : width)
        for (name, whole) in [("who calls it", callers), ("what it calls", callees)] {
            let tree = whole.named(names)
            guard let root = tree.roots.first else { continue }
            try body("")
            try body(style.bold(name))
            try body(style.dim(CallTree.columns(options)))
            try tree.lines(root, options, style, body)
            if name == "who calls it", !tree.hasCallers { try body(style.dim(CallTree.unrecordedCallers)) }
        }
        for note in callees.suppressionNotes { try body(style.dim(note)) }
    }

    private func histogramLines(_ width: Int, _ style: TextStyle, _ body: (String) throws -> Void) throws {
        guard let most = histogram.map(\.calls).max(), most > 0 else { return }
        try body("")
        let title =
            switch time {
            case .wall: "how long the calls took"
            case .running: "how long the calls were on a CPU"
            case .waiting: "how long the calls waited"
            }
        try body(style.bold(title))
        let all = histogram.reduce(0) { $0 &+ $1.calls }
        let barWidth = max(min(width - 46, 50), 10)
        for (index, bar) in histogram.enumerated() {
            // A gap of several bars gets one line.
            if bar.calls == 0, histogram[index - 1].calls == 0 || histogram[index + 1].calls == 0 {
                if histogram[index - 1].calls > 0 { try body(style.dim("         …")) }
                continue
            }
            let from = leftFilled(column(readable(Nanoseconds(bar.range.lowerBound))), 10)
            let to = leftFilled(column(readable(Nanoseconds(bar.range.upperBound))), 10)
            // One call is to be seen beside a million.
            let length = bar.calls == 0 ? 0 : max(Int((Double(bar.calls) / Double(most) * Double(barWidth)).rounded()), 1)
            try body(
                "\(from) … \(to)  \(rightFilled(String(repeating: "#", count: length), barWidth)) \(leftFilled(grouped(bar.calls), 11))  "
                    + leftFilled(percent(bar.calls, of: all), 6))
        }
    }

    private func slowestLines(_ short: ShortNames, _ style: TextStyle, _ body: (String) throws -> Void) throws {
        guard !slowest.isEmpty else { return }
        try body("")
        try body(style.bold("slowest calls" + (time == .wall ? "" : ", by \(time.rawValue) time")))
        let hasStates = slowest.contains { $0.states != nil }
        try body(
            style.dim(
                "  seconds        length" + (hasStates ? "    running    waiting   runnable" : "") + (isRun ? "  process" : "") + "  thread"
            ))
        for call in slowest {
            let states = hasStates ? [call.states?.running, call.states?.waiting, call.states?.runnable] : []
            let thread = call.tid.map { "\($0) \(call.threadName)" } ?? "?"
            try body(
                leftFilled(secondsText(call.start), 13)
                    + leftFilled(column(readable(call.length)), 11)
                    + states.map { leftFilled($0.map { column(readable(signed: $0)) } ?? "-", 11) }.joined() + "  "
                    + (isRun ? leftFilled(String(call.pid), 7) + "  " : "") + thread
                    + (functions.count > 1 ? "  " + short[call.name] : "")
                    + (call.file.map { "  " + $0 } ?? "")
                    + (call.isOver ? "" : style.alarm("  (its end is not in the trace)")))
        }
    }
}

/// What `tracer report FUNCTION --json` prints.
package struct FunctionOutput: Record {
    private let report: FunctionReport
    private let window: RunWindow?
    private let locations: FunctionLocations

    /// - Parameter window: that of the run
    package init(_ report: FunctionReport, _ window: RunWindow?, _ locations: FunctionLocations) {
        self.report = report
        self.window = window
        self.locations = locations
    }

    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("program", \.report.program)
        Member("pid", \.report.pid)
        Member("window", windowMeaning, \.window?.reported)
        Member("functions", "that the name or glob means, taken together below") { output in
            output.report.functions.map { LocatedFunction(function: $0, locations: output.locations) }
        }
        Member("time", timeMeaning, \.report.time.rawValue)
        Member("calls", \.report.sums.calls)
        Member("total_ns", \.report.sums.total)
        Member("self_ns", \.report.sums.selfTime)
        SplitTimes.members { $0.report.sums.states }
        Member("min_ns", \.report.sums.minimum)
        Member("max_ns", \.report.sums.maximum)
        Percentile.members("p50", \.report.sums.median)
        Percentile.members("p99", \.report.sums.percentile99)
        CountedTime.members { $0.report.sums.counted }
        Member.optional("left_out", leftOutMeaning) { $0.report.sums.isSuppressed ? true : nil }
        Member.optional("self_holds_left_out", heldMeaning) { $0.report.sums.holdsSuppressed ? true : nil }
        Member("histogram", "of the lengths of calls", \.report.histogram)
        Member("slowest", "single calls, the longest first by the time that is shown", \.report.slowest)
        Member("callers", "upside down: the function, below it its callers", .file("tree.json"), \.report.callers.json)
        Member("callees", "the function, below it what it calls", .file("tree.json"), \.report.callees.json)
    }
}

extension FunctionReport.Bar: Record {
    package static let members = declare {
        Member("from_ns", \.range.lowerBound)
        Member("to_ns", "exclusive", \.range.upperBound)
        Member("calls", \.calls)
    }
}

extension FunctionReport.Call: Record {
    package static let members = declare {
        Member("start_ns", "since the beginning of the trace, of a run since that of its first process", \.start)
        Member("duration_ns", "from entry to exit, whichever time is shown", \.length)
        Member.optional("running_ns", "what of it its thread was on a CPU; missing where the kernel has reported no context switches") {
            $0.states?.running
        }
        Member.optional("waiting_ns") { $0.states?.waiting }
        Member.optional("runnable_ns", "others had the CPUs") { $0.states?.runnable }
        Member("pid", \.pid)
        Member("tid", \.tid)
        Member("function", \.name)
        Member("module", \.module)
        Member("file", "what a call of dlopen brought", \.file)
        Member("is_over", "its end is in the trace", \.isOver)
    }
}
