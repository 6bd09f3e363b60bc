// A part of the time that a trace spans: --from and --to, or the moments in which calls of a function were open.
import ArgumentParser
import Presentation
import TraceAnalysis
import TraceFormat

/// "1.5s", "20ms", "1.5" (seconds) or "10%", from the beginning of the trace.
struct TimePoint: ExpressibleByArgument {
    private enum Measure { case length(Nanoseconds), share(Double) }
    private let measure: Measure

    init?(argument: String) {
        if argument.hasSuffix("%") {
            guard let percent = Percentage(argument: argument) else { return nil }
            measure = .share(percent.share)
        } else {
            guard let length = TimeLength(argument: argument) else { return nil }
            measure = .length(length.nanoseconds)
        }
    }

    static func read(_ text: String) throws -> TimePoint {
        if let point = TimePoint(argument: text) { return point }
        throw ValidationError("it takes a time since the start of the trace: 1.25 (seconds), 1250ms, 40%")
    }

    func nanoseconds(of whole: Nanoseconds) -> UInt64 {
        switch measure {
        case .length(let length): length.count
        case .share(let share): UInt64(exactly: (Double(whole.count) * share).rounded()) ?? .max
        }
    }
}

/// "5ms", "0.25" (seconds).
struct TimeLength: ExpressibleByArgument {
    let nanoseconds: Nanoseconds

    init?(argument: String) {
        let units: [(suffix: String, nanoseconds: Double)] = [("ns", 1), ("us", 1e3), ("µs", 1e3), ("ms", 1e6), ("s", 1e9), ("", 1e9)]
        guard let unit = units.first(where: { argument.hasSuffix($0.suffix) }),
            let count = Double(argument.dropLast(unit.suffix.count)), count.isFinite, count >= 0
        else { return nil }
        nanoseconds = Nanoseconds(UInt64(exactly: (count * unit.nanoseconds).rounded()) ?? .max)
    }
}

struct WindowOptions: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Only what happens at this time or later, since the start of the trace: 1.5 (seconds), 20ms, 10%.", valueName: "time"),
        transform: { try TimePoint.read($0) })
    var from: TimePoint?
    @Option(help: ArgumentHelp("Only what happens before this time.", valueName: "time"), transform: { try TimePoint.read($0) })
    var to: TimePoint?
    @Option(
        help: ArgumentHelp(
            "Only what happens, in any thread, while a call of a matching function is open: NAME, MODULE or MODULE!NAME.", valueName: "glob"
        ))
    var around: String?
    @Option(help: ArgumentHelp("With --around: only the longest N of these calls.", valueName: "number"))
    var slowest: Int?

    func validate() throws {
        if let slowest, slowest < 1 || slowest > 100_000 { throw ValidationError("--slowest takes 1 to 100000 calls") }
        if slowest != nil, around == nil { throw ValidationError("--slowest selects calls of a function: add --around FUNCTION") }
    }

    var isWhole: Bool { from == nil && to == nil && around == nil }

    /// The traces, of which no more is shown than what is asked for; of several those that have some of it.
    /// - Parameter least: --min, the shortest call for --around
    func narrow(_ traces: [TraceFile], least: TimeLength?) throws -> [TraceFile] { try narrowRun(traces, least: least).traces }

    /// The same, and how the window is called.
    func narrowRun(_ traces: [TraceFile], least: TimeLength?) throws -> (traces: [TraceFile], window: RunWindow?) {
        if least != nil, around == nil {
            throw CommandFailure("--min selects calls of a function: add --around FUNCTION", status: 2)
        }
        guard !isWhole, !traces.isEmpty else { return (traces, nil) }
        let run = Run(traces)
        let ranges = try range(of: run)
        let windows = try around.map { try moments(FunctionPattern($0), least, run, ranges) } ?? ranges.map { TimeWindow([$0]) }
        let narrowed = zip(traces, windows).map { $0.narrowed(to: $1) }
        let touched = zip(narrowed, run.ends).filter { $0.window.touches($0.firstTicks.raw, $1.raw) }.map { $0.0 }
        return (touched.isEmpty ? [narrowed[0]] : touched, RunWindow(narrowed))
    }

    func narrow(_ trace: TraceFile, least: TimeLength?) throws -> TraceFile { try narrow([trace], least: least)[0] }

    /// Several processes on the clock that a machine has for them; times count from the beginning of the first.
    private struct Run {
        let traces: [TraceFile]
        let ends: [Ticks]
        private let origin: UInt64

        init(_ traces: [TraceFile]) {
            self.traces = traces
            ends = traces.map { TraceEnd($0).ticks }
            origin = traces.map { $0.header.first.monotonic_ns }.min() ?? 0
        }

        var name: String { traces.count == 1 ? traces[0].path : "the run" }
        var length: Nanoseconds { Nanoseconds(traces.indices.map { time(of: ends[$0].raw, in: $0) }.max() ?? 0) }

        private func begin(_ index: Int) -> UInt64 { traces[index].header.first.monotonic_ns &- origin }

        func time(of ticks: UInt64, in index: Int) -> UInt64 {
            begin(index) &+ traces[index].timeScale.nanoseconds(from: traces[index].firstTicks, to: Ticks(ticks)).count
        }

        /// 0 for what is before the trace's beginning, to which belongs what it has of that time.
        func ticks(at time: UInt64, in index: Int) -> UInt64 {
            guard time > begin(index) else { return 0 }
            return traces[index].firstTicks.raw &+ traces[index].timeScale.ticks(Nanoseconds(time - begin(index)))
        }
    }

    /// --from and --to in ticks of each trace.
    private func range(of run: Run) throws -> [Range<UInt64>] {
        let whole = run.length, name = run.name
        let low = from?.nanoseconds(of: whole) ?? 0, high = to?.nanoseconds(of: whole) ?? .max
        guard low <= high else { throw CommandFailure("--from is after --to", status: 2) }
        if low > whole.count { throw CommandFailure("--from is past the end: \(name) spans \(readable(whole))") }
        if to != nil, high > whole.count { complain("--to is past the end: \(name) spans \(readable(whole))") }
        return run.traces.indices.map { index in
            let begin = run.ticks(at: low, in: index)
            let end = high >= whole.count ? .max : run.ticks(at: high, in: index)
            return begin..<(low == high ? begin + 1 : max(begin, end)) // one moment is what was open then
        }
    }

    private func moments(_ pattern: FunctionPattern, _ least: TimeLength?, _ run: Run, _ ranges: [Range<UInt64>]) throws -> [TimeWindow] {
        let searches = run.traces.indices.map { index in
            let trace = run.traces[index]
            let ticks = least.map { trace.timeScale.ticks($0.nanoseconds) } ?? 0
            let wanted: CallSearch.Wanted = slowest.map { .longest($0) } ?? .moments(least: ticks)
            return withProgress([trace]) { CallSearch(trace, pattern, wanted, in: ranges[index], progress: $0) }
        }
        var found = try searches.map { search -> [Range<UInt64>] in
            guard let moments = search.moments else {
                throw CommandFailure(
                    "calls of \(around ?? "") are open in more than \(grouped(UInt64(CallSearch.mostMoments))) moments: give a longer --min, or --slowest"
                )
            }
            return moments
        }
        if let slowest {
            let calls = searches.indices.flatMap { index in
                searches[index].calls.map { (index, $0, run.traces[index].timeScale.nanoseconds($0.length).count) }
            }.filter { $0.2 >= least?.nanoseconds.count ?? 0 }.sorted { ($0.2, $1.0, $1.1.start) > ($1.2, $0.0, $0.1.start) }
            for (index, call, _) in calls.prefix(slowest) { found[index].append(call.moment) }
        }
        if found.allSatisfy({ $0.isEmpty }) { throw nothingFound(searches, least, run) }
        return run.traces.indices.map { index in
            var all = found[index]
            for other in run.traces.indices where other != index {
                all += found[other].map {
                    run.ticks(
                        at: run.time(of: $0.lowerBound, in: other), in: index)..<run.ticks(
                            at: run.time(of: $0.upperBound, in: other), in: index)
                }
            }
            return TimeWindow(all).intersection(ranges[index])
        }
    }

    private func nothingFound(_ searches: [CallSearch], _ least: TimeLength?, _ run: Run) -> CommandFailure {
        let name = around ?? ""
        guard searches.contains(where: { $0.count > 0 }) else {
            let known = run.traces.lazy.compactMap { FunctionNames($0.metadata).nearest(to: name) }.first
            return CommandFailure(
                "no call of \(name) begins \(from == nil && to == nil ? "in \(run.name)" : "between --from and --to")"
                    + (known.map { "; there is \($0)" } ?? ""))
        }
        let longest = searches.indices.map { run.traces[$0].timeScale.nanoseconds(searches[$0].longest).count }.max() ?? 0
        return CommandFailure(
            "no call of \(name) takes \(least.map { readable($0.nanoseconds) } ?? "any time"): the longest takes \(readable(Nanoseconds(longest)))"
        )
    }
}

/// --min of commands that have no other.
struct ShortestCall: ParsableArguments {
    @Option(
        name: .customLong("min"),
        help: ArgumentHelp("With --around: only calls of at least this length: 5ms, 0.005 (seconds).", valueName: "time"))
    var least: TimeLength?
}
