// Reads every event of a trace, on several threads, and adds up what each function did.
import CTraceLayout
import Presentation
import TraceFormat

package struct FunctionSummary: Sendable {
    package var name: String
    /// As in the file, not demangled.
    package var symbol: String
    package var module: String
    package var calls: UInt64
    /// Calls whose length is known: not entries of which no exit is recorded.
    package var timedCalls: UInt64
    /// Recursive calls are counted once, by their outermost.
    package var total: Nanoseconds
    /// Without the calls made from it, in nanoseconds. Of calls that overlap (coroutines) the later one has the time.
    package var selfTime: Int64
    /// There were more calls: from a moment on not all are recorded, nor are the others counted.
    package var isSuppressed = false
    /// What of `calls` is counted and not recorded, and so in no time here.
    package var counted: CountedTime?
    /// `calls` has some that are counted and of which only recorded ones say where they belong.
    var areCallsEstimated = false
    /// What the times are.
    var shownTime = CallTime.wall
    /// It made calls of suppressed functions: those that are not recorded are in its own time.
    package var holdsSuppressed = false
    /// Length of one call; nil when none has a known length.
    package var average, minimum, maximum: Nanoseconds?
    package var median, percentile99: Percentile?
    package var shape = DurationShape()
    /// `selfTime` and `total` by state, of wall time whichever they show; nil: not asked for, or not known.
    package var states: SplitTimes?
    /// The part of `selfTime` that recording took; nil where the trace does not say what it costs.
    package var recording: Nanoseconds?
    /// Without what recording took; nil where that is not asked for.
    package var correctedTotal: CorrectedTime?
    package var correctedSelf: CorrectedTime?
    /// The caller, in rows that distinguish callers.
    package var caller: String?
    /// The call site, in rows that distinguish call sites.
    package var site: CallSite?

    static func ownCode(of program: String, _ time: Nanoseconds) -> FunctionSummary {
        FunctionSummary(
            name: FunctionNames.ownCode, symbol: "", module: program, calls: 0, timedCalls: 0, total: time,
            selfTime: Int64(clamping: time.count))
    }

    /// More than a tenth of its own time, as a part of it.
    package var recordingShare: Double? {
        guard let recording, selfTime > 0, Double(recording.count) > Double(selfTime) / 10 else { return nil }
        return min(Double(recording.count) / Double(selfTime), 1)
    }

    /// The average says little: most calls take a third of it or less, or three times as long.
    var isSkewed: Bool {
        guard timedCalls >= 10, let average, let median = median?.time else { return false }
        return average.count / 3 > max(median.count, 10) || average.count < median.count / 3
    }
}

/// A time less the cost of recording, which is known within some part of itself.
package struct CorrectedTime: Sendable, Equatable {
    package var nanoseconds: Int64
    package var error: Nanoseconds

    init(_ nanoseconds: Int64, error: Double) {
        self.nanoseconds = nanoseconds
        self.error = Nanoseconds(UInt64(exactly: error.rounded()) ?? .max)
    }

    /// It may as well be nothing.
    package var isKnown: Bool { error.count == 0 || nanoseconds > Int64(clamping: error.count) }
    package var most: Int64 { max(nanoseconds, 0).addingReportingOverflow(Int64(clamping: error.count)).partialValue }

    package var text: String {
        if !isKnown { return "< " + readable(signed: most) }
        return readable(signed: nanoseconds) + (error.count > 0 ? " ±" + readable(error) : "")
    }
}

package struct ThreadSummary: Sendable {
    package var index: UInt32
    package var pid: UInt32
    package var tid: UInt32
    package var name: String
    package var calls: UInt64
    package var chunks: Int
    /// Chunks that a ring overwrote, or that a damaged file lacks.
    package var missingChunks: UInt64
    package var openFrames: Int
    /// How long the thread ran the program's code, calls before and after main included, and for how much of that no recorded call was
    /// open on it. nil where the file lacks
    /// events of its middle, or its outermost calls.
    package var span: Nanoseconds?
    package var own: Nanoseconds?
}

package struct Summary: Sendable {
    /// Only those with calls or times, in no order.
    package private(set) var functions: [FunctionSummary] = []
    /// Time that the threads ran the program's code while no recorded call was open. nil if there is none, or a filter hides it.
    package var ownCode: FunctionSummary? { ownCodes.first }
    /// For each program.
    package private(set) var ownCodes: [FunctionSummary] = []
    /// Self times of all functions and the programs' own code, whichever rows are kept or wanted: what shares are parts of. Calls that end
    /// on another thread are in another thread's `span`.
    package private(set) var selfTime = Nanoseconds(0)
    /// Time that all threads ran the program's code, by state, and how long of that the kernel has reported nothing; nil: not asked for, or
    /// not known.
    package private(set) var states: StateTimes?
    package private(set) var unknownState = Nanoseconds(0)
    /// `inCalls` by state; nil: not asked for of functions, or not known.
    package private(set) var callStates: StateTimes?
    package private(set) var threads: [ThreadSummary] = []
    package private(set) var duration = Nanoseconds(0)
    package private(set) var end = Ticks(0)
    package private(set) var calls: UInt64 = 0
    /// What of them is counted and not recorded.
    package private(set) var onlyCounted: UInt64 = 0
    package var recordedCalls: UInt64 { calls &- onlyCounted }
    /// Words that record calls: enters, exits and complete calls.
    package private(set) var events: UInt64 = 0
    package private(set) var completes: UInt64 = 0
    package private(set) var enters: UInt64 = 0
    package private(set) var exits: UInt64 = 0
    package private(set) var filteredByTime: UInt64 = 0
    package private(set) var filteredByDepth: UInt64 = 0
    package private(set) var filteredByCondition: UInt64 = 0
    package var filtered: UInt64 { filteredByTime &+ filteredByDepth &+ filteredByCondition }
    package private(set) var dropped: UInt64 = 0
    /// Exits without an enter.
    package private(set) var orphans: UInt64 = 0
    /// Calls in more open calls than a reader keeps, whose lengths are not known.
    package private(set) var tooDeep: UInt64 = 0
    package private(set) var unwound: UInt64 = 0
    package private(set) var migrations: UInt64 = 0
    package private(set) var unknownWords: UInt64 = 0
    /// About what recording all calls took; nil: the agent could not measure it.
    package private(set) var recording: Nanoseconds?
    /// Bytes that a call without calls inside takes in the file, at least.
    private(set) var leafBytes: UInt64 = 8
    /// Chunks of a ring still being recorded that were overwritten before or while they were read.
    package private(set) var overwritten: UInt64 = 0

    /// - Parameter workers: how many threads read; memory is a megabyte or two for each and what the functions need.
    package init(
        _ trace: TraceFile, workers: Int = TraceFile.cpuCount, names: Bool = true, states: StateReading = .nothing,
        progress: ReadingProgress? = nil
    ) {
        let table = names ? FunctionNames(trace.metadata) : FunctionNames(unnamed: trace.metadata)
        self.init(trace, table, workers: workers, states: states, progress: progress) {
            names ? $0.functions(table, trace, $1, of: states.shown) : []
        }
    }

    /// - Parameter rows: of what was added up by `table`, with the times by state in ticks if they are asked for
    init(
        _ trace: TraceFile, _ table: FunctionNames, workers: Int, states: StateReading, progress: ReadingProgress? = nil,
        rows: (inout Accumulator, [SplitTimes]?) -> [FunctionSummary]
    ) {
        var spans = ThreadSpans(trace)
        let clocks = StateClocks(trace, states)
        if let clocks, let time = states.time {
            let all = StreamWorker.read(trace, table, workers: workers, progress: progress) { [spans] in
                SplitSums(clocks, spans) { Accumulator(table, spans) }
            }
            spans.settle(all)
            let own = all.withSink { sums in
                take(sums.wall)
                return sums.own(of: trace, spans)
            }
            summarize(trace, all, spans, all.withSink { $0.wall.coverage.byThread })
            addOwnCode(of: trace, all.withSink { $0.wall.ownCodeHoldsSuppressed })
            if !ownCodes.isEmpty {
                let times = own.inNanoseconds(trace.timeScale, whole: ownCodes[0].selfTime)
                ownCodes[0].show(SplitTimes(selfTime: times, total: times), as: time)
            }
            functions = all.withSink { sums in
                let times = sums.rowTimes
                callStates = times.dropFirst().reduce(StateTimes()) { $0.adding($1.selfTime) }.inNanoseconds(
                    trace.timeScale, whole: Int64(clamping: inCalls.count))
                return sums.with(time) {
                    addSelfTime(of: $0, trace.timeScale)
                    return rows(&$0, times)
                }
            }
        } else {
            let all = StreamWorker.read(trace, table, workers: workers, progress: progress) { [spans] in Accumulator(table, spans) }
            spans.settle(all)
            all.withSink { take($0) }
            summarize(trace, all, spans, all.withSink { $0.coverage.byThread })
            addOwnCode(of: trace, all.withSink { $0.ownCodeHoldsSuppressed })
            functions = all.withSink {
                addSelfTime(of: $0, trace.timeScale)
                return rows(&$0, nil)
            }
        }
        if let (times, unknown) = clocks?.whole(trace, spans) {
            self.states = times.inNanoseconds(trace.timeScale)
            unknownState = trace.timeScale.nanoseconds(unknown)
        }
    }

    /// Adds the self times of all functions to that of own code, which is known before.
    private mutating func addSelfTime(of sums: borrowing Accumulator, _ scale: TimeScale) {
        let ticks = (1..<max(sums.rowCount, 1)).reduce(Int64(0)) { $0 &+ sums.sums(of: $1).selfTime }
        let time = ownCodes.reduce(scale.signedNanoseconds(ticks)) { $0 &+ $1.selfTime }
        selfTime = Nanoseconds(UInt64(max(time, 0)))
    }

    private mutating func addOwnCode(of trace: TraceFile, _ holdsSuppressed: Bool) {
        guard own.count > 0 else { return }
        ownCodes = [.ownCode(of: basename(trace.program), own)]
        ownCodes[0].holdsSuppressed = holdsSuppressed
    }

    /// Sums up several traces: the counts of all, and these rows.
    init(_ parts: [Summary], duration: Nanoseconds, functions: [FunctionSummary]) {
        self.duration = duration
        self.functions = functions
        let costs = parts.compactMap(\.recording)
        recording = costs.count == parts.count ? Nanoseconds(costs.reduce(0) { $0 &+ $1.count }) : nil
        leafBytes = parts.map(\.leafBytes).min() ?? leafBytes
        var own: [String: FunctionSummary] = [:]
        let counts: [WritableKeyPath<Summary, UInt64>] = [
            \.calls, \.onlyCounted, \.events, \.completes, \.enters, \.exits, \.filteredByTime, \.filteredByDepth, \.filteredByCondition,
            \.dropped, \.orphans,
            \.tooDeep,
            \.unwound, \.migrations, \.unknownWords, \.overwritten,
        ]
        for part in parts {
            threads += part.threads
            end = max(end, part.end)
            if let times = part.states { states = (states ?? StateTimes()).adding(times) }
            unknownState = Nanoseconds(unknownState.count &+ part.unknownState.count)
            selfTime = Nanoseconds(selfTime.count &+ part.selfTime.count)
            for count in counts { self[keyPath: count] &+= part[keyPath: count] }
            for row in part.ownCodes {
                let known = own[row.module], total = Nanoseconds(row.total.count &+ (known?.total.count ?? 0))
                own[row.module] = .ownCode(of: row.module, total)
                own[row.module]?.holdsSuppressed = row.holdsSuppressed || known?.holdsSuppressed == true
                own[row.module]?.states = known == nil ? row.states : known?.states.flatMap { sum in row.states.map { sum.adding($0) } }
            }
        }
        ownCodes = own.sorted { $0.key < $1.key }.map(\.value)
    }

    /// Omits rows; the counts of the whole stay.
    package mutating func keep(_ isWanted: (FunctionSummary) -> Bool) {
        functions = functions.filter(isWanted)
        ownCodes = ownCodes.filter(isWanted)
    }

    /// Takes over corrected times from a tree of the same calls: times without the cost of recording.
    package mutating func correct(by rows: [FunctionSummary]) {
        struct Key: Hashable { var name: String, symbol: String, module: String }
        func key(_ row: FunctionSummary) -> Key { Key(name: row.name, symbol: row.symbol, module: row.module) }
        let corrected = Dictionary(rows.map { (key($0), $0) }) { first, _ in first }
        functions = functions.map { row in
            var row = row
            row.correctedTotal = corrected[key(row)]?.correctedTotal
            row.correctedSelf = corrected[key(row)]?.correctedSelf
            return row
        }
        ownCodes = rows.filter { $0.symbol == FunctionNames.ownCode }
    }

    /// Rows of another grouping of the same trace.
    package mutating func replaceRows(_ rows: [FunctionSummary]) {
        functions = rows.filter { $0.symbol != FunctionNames.ownCode }
        ownCodes = rows.filter { $0.symbol == FunctionNames.ownCode }
    }

    /// Time that all threads together ran the program's code, and the part of it with no recorded call open.
    package var span: Nanoseconds { Nanoseconds(threads.reduce(0) { $0 &+ ($1.span?.count ?? 0) }) }
    package var own: Nanoseconds { Nanoseconds(threads.reduce(0) { $0 &+ ($1.own?.count ?? 0) }) }
    package var inCalls: Nanoseconds { span.without(own) }

    private mutating func take(_ sums: borrowing Accumulator) {
        calls = sums.calls
        onlyCounted = sums.onlyCounted
        orphans = sums.orphans
        unwound = sums.unwound
        migrations = sums.migrations
        unknownWords = sums.unknownWords
    }

    private mutating func summarize<Sink: StreamSink & ~Copyable>(
        _ trace: TraceFile, _ all: StreamWorker<Sink>, _ spans: ThreadSpans, _ covered: [UInt32: CoveredTime]
    ) {
        end = all.end
        duration = trace.timeScale.nanoseconds(from: trace.firstTicks, to: end)
        completes = all.stack.completes
        enters = all.stack.enters
        exits = all.stack.exits
        tooDeep = all.stack.tooDeep
        overwritten = all.overwritten
        events = completes &+ enters &+ exits
        dropped = trace.lostCalls
        let cost = CallCost(trace).whole
        recording = cost > 0 ? Nanoseconds(UInt64(exactly: (Double(recordedCalls) * cost).rounded()) ?? .max) : nil
        if trace.hasCallSites { leafBytes = 16 }
        var ownTicks: UInt64 = 0
        for chunks in trace.chunksOfThread {
            guard let last = chunks.last else { continue }
            for chunk in chunks {
                filteredByTime &+= chunk.filteredByTime
                filteredByDepth &+= chunk.filteredByDepth
                filteredByCondition &+= chunk.filteredByCondition
            }
            threads.append(
                ThreadSummary(
                    index: last.thread, pid: trace.header.pid, tid: last.tid, name: trace.threadName(last.thread),
                    calls: all.calls[last.thread] ?? 0,
                    chunks: chunks.count, missingChunks: last.sequence &+ 1 &- UInt64(chunks.count),
                    openFrames: all.openFrames[last.thread] ?? 0))
            guard let span = spans[last.thread] else { continue }
            threads[threads.count - 1].span = trace.timeScale.nanoseconds(span.length &+ (covered[last.thread]?.beside ?? 0))
            let before = trace.timeScale.nanoseconds(ownTicks) // the rounding error goes to the next thread: the sum is that of the ticks
            ownTicks &+= span.own(covered[last.thread])
            threads[threads.count - 1].own = trace.timeScale.nanoseconds(ownTicks).without(before)
        }
    }
}
