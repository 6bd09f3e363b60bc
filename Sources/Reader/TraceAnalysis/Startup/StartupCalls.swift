// Calls until the program was ready: by module, inside each initializer, and code that ran once.
import CTraceLayout
import TraceFormat

struct StartupCalls {
    struct FunctionTime {
        var function: UInt32
        var calls: UInt64
        var selfTicks: Int64
        /// Estimated cost of recording it and the calls that it made, in ticks, contained in `selfTicks`.
        var recordingTicks: Double
    }
    struct OnceRun {
        var end: Ticks
        /// The function that was running when it was called.
        var parent: UInt32?
        /// Recorded from its call to its end, on its thread.
        var calls: UInt64
    }
    struct Span {
        var function: UInt32
        var thread: UInt32
        var begin: Ticks
        var end: Ticks?
        /// Recorded inside, on its thread.
        var calls: UInt64
    }

    /// Calls of each module's functions.
    private(set) var callsOfModule: [UInt32: UInt64] = [:]
    /// Calls of dlsym(3) and dlvsym(3): they find functions without a slot that is bound to them.
    private(set) var lookups: UInt64 = 0
    /// Call counts of each thread at known moments.
    private var moments: [UInt32: CallMoments] = [:]
    /// Runs by index in the trace's records of once-functions; one that was not over when the program was ready is missing.
    private(set) var onceRuns: [Int: OnceRun] = [:]
    private(set) var spans: [Span] = []
    /// Functions on the main thread between main and ready, the longest first.
    private(set) var functionsOfMain: [FunctionTime] = []
    private(set) var calls: UInt64 = 0

    /// - Parameters:
    ///   - end: nothing that begins later is of interest
    ///   - main: where main was called, nil when it was not
    init(_ trace: TraceFile, until end: Ticks, main: (ticks: Ticks, thread: UInt32)?, progress: ReadingProgress? = nil) {
        let cost = CallCost(trace), tick = trace.timeScale.nanosecondsPerTick
        let functions = trace.metadata.functions
        var byFunction = [UInt64](repeating: 0, count: Int(functions.keys.max() ?? 0) + 2)
        var reader = ChunkReader(trace)
        progress?.begin(trace.chunksOfThread.reduce(0) { $0 + $1.count { $0.opened.ticks <= end.raw } })
        for chunks in trace.chunksOfThread {
            guard let thread = chunks.first?.thread else { continue }
            let from = main?.thread == thread ? main?.ticks.raw : nil
            var stack = CallStack(StartupSink(trace, thread: thread, until: end.raw, main: from, counts: byFunction), rowCount: 0)
            byFunction = []
            reader.read(chunks, until: end.raw, into: &stack, progress: progress)
            var sink = stack.sink
            byFunction = sink.counts
            sink.moments.sum()
            moments[thread] = sink.moments
            onceRuns.merge(sink.onceRuns) { $1 }
            spans += sink.spans
            if main?.thread == thread {
                functionsOfMain = sink.mainTimes.all.map { row, time in
                    let recording = (Double(time.timed) * cost.inside + Double(time.callees) * cost.outside) / tick
                    return FunctionTime(
                        function: row &- 1, calls: time.calls, selfTicks: time.ticks,
                        recordingTicks: min(recording, max(Double(time.ticks), 0)))
                }.sorted {
                    (Double($0.selfTicks) - $0.recordingTicks, $1.function) > (Double($1.selfTicks) - $1.recordingTicks, $0.function)
                }
            }
        }
        for (row, count) in byFunction.enumerated() where count > 0 {
            calls &+= count
            guard let function = functions[UInt32(row) &- 1] else { continue }
            if let module = function.module { callsOfModule[module, default: 0] &+= count }
            if ["dlsym", "dlvsym"].contains(function.rawName) { lookups &+= count }
        }
        spans.sort { $0.begin < $1.begin }
    }

    /// Calls that began on the thread from one moment of its initializers and loads, of main or ready, to another.
    func calls(on thread: UInt32, from: Ticks, to: Ticks) -> UInt64 { moments[thread]?.calls(from: from, to: to) ?? 0 }
}

/// Counts the calls of one thread. Rows are function ids plus one.
private struct StartupSink: CallSink {
    private let until: UInt64
    private let main: UInt64?
    var counts: [UInt64]
    struct MainTime {
        var ticks: Int64 = 0
        /// Calls that began after main; those of them that ended before ready; and calls made from it that ended before ready.
        var calls: UInt64 = 0, timed: UInt64 = 0, callees: UInt64 = 0

        mutating func add(_ length: Int64, isNew: Bool, isOver: Bool) {
            ticks &+= length
            if isNew { calls &+= 1 }
            if isNew && isOver { timed &+= 1 }
        }
        /// Every call of `add` or `takeOut` leaves a count or a length.
        var isUsed: Bool { ticks != 0 || calls > 0 || timed > 0 || callees > 0 }

        mutating func takeOut(_ length: Int64, isOver: Bool) {
            ticks &-= length
            if isOver { callees &+= 1 }
        }
    }
    /// Times by row: a table, but for rows that no record describes.
    struct RowTimes {
        private var table: [MainTime]
        private var others: [UInt32: MainTime] = [:]

        init(rowCount: Int) { table = [MainTime](repeating: MainTime(), count: rowCount) }

        subscript(row: UInt32) -> MainTime {
            get { Int(row) < table.count ? table[Int(row)] : others[row] ?? MainTime() }
            _modify {
                if Int(row) < table.count { yield &table[Int(row)] } else { yield &others[row, default: MainTime()] }
            }
        }

        /// Rows of functions that were called, or called others.
        var all: [(row: UInt32, time: MainTime)] {
            table.enumerated().filter { $0.element.isUsed }.map { (UInt32($0.offset), $0.element) } + others.map { ($0.key, $0.value) }
        }
    }
    private(set) var mainTimes: RowTimes
    var moments: CallMoments
    private(set) var spans: [StartupCalls.Span] = []
    private(set) var onceRuns: [Int: StartupCalls.OnceRun] = [:]

    private let thread: UInt32
    /// What is special in calls of a row: `spanRow` to `releaseRow`.
    private let marks: [UInt8]
    private static let spanRow: UInt8 = 1, onceRow: UInt8 = 2, guardRow: UInt8 = 4, releaseRow: UInt8 = 8

    /// Once-functions that found nothing done: their index in the records, in the order of time.
    private var onces: [(index: Int, ticks: UInt64, row: UInt32)] = []
    private var nextOnce = 0
    private var openGuards: [(index: Int, parent: UInt32)] = []
    /// Calls before that of a once-function, by its index in the records.
    private var callsBeforeOnce: [Int: UInt64] = [:]

    static let mostSpans = 100_000

    init(_ trace: TraceFile, thread: UInt32, until: UInt64, main: UInt64?, counts: [UInt64]) {
        let records = trace.metadata.start, functions = trace.metadata.functions
        self.thread = thread
        self.until = until
        self.main = main
        self.counts = counts
        mainTimes = RowTimes(rowCount: main == nil ? 0 : counts.count)
        var times: [Ticks?] = [Ticks(until), main.map { Ticks($0) }, records.phase(.agent)?.usage.ticks]
        for run in records.initializers where run.thread == thread { times += [run.begin.ticks, run.end?.usage.ticks] }
        for load in records.loads where load.thread == thread { times += [load.begin, load.opened, load.mapped.ticks, load.end?.ticks] }
        moments = CallMoments(times.lazy.compactMap { $0?.raw })
        onces = records.onces.enumerated().filter { $0.element.thread == thread }
            .map { ($0.offset, $0.element.ticks.raw, $0.element.function &+ 1) }.sorted { $0.1 < $1.1 }
        var marks = [UInt8](repeating: 0, count: Int(functions.keys.max() ?? 0) + 2)
        for function in functions.values where function.isSpan { marks[Int(function.id) + 1] |= Self.spanRow }
        for once in onces where Int(once.row) < marks.count { marks[Int(once.row)] |= Self.onceRow }
        let guards = functions.values.filter { $0.rawName == "__cxa_guard_acquire" && marks[Int($0.id) + 1] & Self.onceRow != 0 }
        for function in guards { marks[Int(function.id) + 1] |= Self.guardRow }
        for function in functions.values where !guards.isEmpty && ["__cxa_guard_release", "__cxa_guard_abort"].contains(function.rawName) {
            marks[Int(function.id) + 1] |= Self.releaseRow
        }
        self.marks = marks
    }

    private func mark(_ row: UInt32) -> UInt8 { Int(row) < marks.count ? marks[Int(row)] : 0 }

    mutating func row(of function: UInt32) -> UInt32 { function &+ 1 }

    /// A call begins. Returns the index of the record that says it ran something once, plus one; 0 none.
    private mutating func begin(_ row: UInt32, at time: UInt64) -> UInt64 {
        guard time <= until else { return 0 }
        if Int(row) < counts.count { counts[Int(row)] &+= 1 }
        moments.add(at: time)
        guard mark(row) & Self.onceRow != 0 else { return 0 }
        // A record stands in front of its call. One whose call was filtered out is passed over.
        while nextOnce < onces.count, onces[nextOnce].ticks <= time {
            let once = onces[nextOnce]
            if once.row == row, nextOnce + 1 == onces.count || onces[nextOnce + 1].ticks > time {
                nextOnce += 1
                callsBeforeOnce[once.index] = moments.count &- 1
                return UInt64(once.index) + 1
            }
            nextOnce += 1
        }
        return 0
    }

    private mutating func end(_ row: UInt32, _ start: UInt64, _ end: UInt64, _ parent: UInt32, once: UInt64, isOver: Bool) {
        if let main { // clipped to what lies between main and ready
            let from = max(start, main), to = min(end, until)
            if from < to {
                let length = Int64(truncatingIfNeeded: to &- from) // in a damaged file it may be any number
                mainTimes[row].add(length, isNew: start >= main, isOver: end <= until)
                if parent != 0 { mainTimes[parent].takeOut(length, isOver: end <= until) }
            }
        }
        if once > 0 {
            if mark(row) & Self.guardRow != 0 {
                openGuards.append((Int(once - 1), parent))
            } else if isOver, end <= until {
                finishOnce(Int(once - 1), at: end, parent)
            }
        }
        if mark(row) & Self.releaseRow != 0, end <= until, let innermost = openGuards.popLast() {
            finishOnce(innermost.index, at: end, innermost.parent)
        }
    }

    private mutating func finishOnce(_ index: Int, at end: UInt64, _ parent: UInt32) {
        onceRuns[index] = .init(
            end: Ticks(end), parent: parent == 0 ? nil : parent &- 1, calls: moments.count &- (callsBeforeOnce[index] ?? moments.count))
    }

    private func isSpan(_ row: UInt32) -> Bool { mark(row) & Self.spanRow != 0 }

    private mutating func add(_ row: UInt32, _ start: UInt64, _ end: UInt64?, calls: UInt64) {
        guard spans.count < Self.mostSpans, start <= until else { return }
        spans.append(.init(function: row &- 1, thread: thread, begin: Ticks(start), end: end.map { Ticks($0) }, calls: calls))
    }

    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        let once = begin(frame.row, at: time)
        frame.tag = isSpan(frame.row) ? moments.count : once
    }

    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending) {
        let isSpan = isSpan(frame.row)
        end(frame.row, frame.enter, time, parent.row, once: isSpan ? 0 : frame.tag, isOver: ending != .open)
        if isSpan { add(frame.row, frame.enter, ending == .open ? nil : time, calls: moments.count &- min(frame.tag, moments.count)) }
    }

    mutating func leaf(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool) {
        let once = begin(row, at: start)
        self.end(row, start, end, parent.row, once: once, isOver: true)
        if isSpan(row) { add(row, start, end, calls: 0) }
    }
}
