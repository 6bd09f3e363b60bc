// Single calls of some functions: the longest of them, or the moments in which any of at least a length was open.
import Presentation
import TraceFormat

package struct FoundCall: Sendable {
    package var start: UInt64
    package var end: UInt64
    /// Index of the thread in the trace.
    package var thread: UInt32
    /// Row of the function table.
    fileprivate var row: UInt32
    /// True if its end is in the trace.
    package var isOver: Bool
    /// Its length by state, in ticks; all of it is running where nothing is known.
    fileprivate(set) var states: StateTimes

    package var length: UInt64 { end - start }
    /// Ticks that it covers; for a call of no length, the tick at which it was made.
    package var moment: Range<UInt64> { Self.moment(start, end) }
    fileprivate static func moment(_ start: UInt64, _ end: UInt64) -> Range<UInt64> { start..<max(end, start == .max ? start : start + 1) }
}

package struct CallSearch: Sendable {
    package enum Wanted: Sendable {
        /// This many, the longest by this time; of a recursive function its outermost calls.
        case longest(Int, CallTime = .wall)
        /// All of at least `least` ticks, merged where they overlap.
        case moments(least: UInt64)
    }

    /// `.longest`: by falling length.
    package let calls: [FoundCall]
    /// `.moments`: in order and disjoint. nil where they are too many.
    package let moments: [Range<UInt64>]?
    /// Calls of these functions, and the longest of them, in ticks: of any length.
    package let count: UInt64
    package let longest: UInt64
    /// True if the states of the calls were asked for, and are known.
    let hasStates: Bool
    private let table: FunctionNames

    package static let mostMoments = 1 << 22

    /// - Parameters:
    ///   - range: of ticks, in which the calls must begin
    ///   - states: of what the calls are found by, or shown with
    package init(
        _ trace: TraceFile, _ pattern: FunctionPattern, _ wanted: Wanted, in range: Range<UInt64> = 0..<UInt64.max,
        states: StateReading = .nothing, workers: Int = TraceFile.cpuCount, progress: ReadingProgress? = nil
    ) {
        let table = FunctionNames(trace.metadata)
        var isWanted = [false]
        for row in table.rows { isWanted.append(pattern.matches(name: row.name, symbol: row.symbol, module: row.module)) }
        let clocks = StateClocks(trace, states)
        let all = StreamWorker.read(trace, table, workers: workers, progress: progress) { [isWanted] in
            SearchSink(table, isWanted, wanted, range, clocks)
        }
        self.table = table
        hasStates = clocks != nil
        (calls, moments, count, longest) = all.withSink { sink in
            sink.settle()
            return (sink.longestCalls, sink.isTooMany ? nil : sink.moments, sink.found, sink.longest)
        }
    }

    package func name(of call: FoundCall) -> (name: String, module: String) {
        (table.rows[Int(call.row) - 1].name, table.rows[Int(call.row) - 1].module)
    }
}

private struct SearchSink: StreamSink, ~Copyable {
    private var rows: RowNumbers
    private let isWanted: [Bool]
    private let wanted: CallSearch.Wanted
    private let range: Range<UInt64>
    private var thread: UInt32 = 0
    private let clocks: StateClocks?
    private var clock = StateClock()
    var migratedCalls = Migrations()

    private(set) var calls: UInt64 = 0
    private(set) var found: UInt64 = 0
    private(set) var longest: UInt64 = 0
    private(set) var longestCalls: [FoundCall] = []
    private(set) var moments: [Range<UInt64>] = []
    private(set) var isTooMany = false
    private var leastKept: Int64 = 0
    private var mostKept = 1 << 16

    init(
        _ table: FunctionNames, _ isWanted: [Bool], _ wanted: CallSearch.Wanted, _ range: Range<UInt64>, _ clocks: StateClocks?
    ) {
        rows = RowNumbers(table)
        self.isWanted = isWanted
        self.wanted = wanted
        self.range = range
        self.clocks = clocks
    }

    /// - Parameter hasStates: it began and ended on this thread
    private mutating func note(_ row: UInt32, _ start: UInt64, _ end: UInt64, isOver: Bool, hasStates: Bool = true) {
        guard range.contains(start), end >= start else { return }
        found &+= 1
        longest = max(longest, end - start)
        switch wanted {
        case .longest(let most, let time):
            // A part of its time is no longer than the whole.
            guard longestCalls.count < most || Int64(truncatingIfNeeded: end - start) > leastKept else { return }
            let off = clocks != nil && hasStates ? clock.offCPU(from: start, to: end) : OffCPUTicks()
            let states = StateTimes(whole: end - start, off)
            guard longestCalls.count < most || states[time] > leastKept else { return }
            longestCalls.append(FoundCall(start: start, end: end, thread: thread, row: row, isOver: isOver, states: states))
            if longestCalls.count >= 2 * most + 64 { settle() }
        case .moments(let least):
            guard end - start >= least, !isTooMany else { return }
            moments.append(FoundCall.moment(start, end))
            if moments.count >= mostKept { settle() }
        }
    }

    /// Keeps no more than is asked for.
    mutating func settle() {
        switch wanted {
        case .longest(let most, let time):
            longestCalls.sort { ($0.states[time], $1.start, $1.thread) > ($1.states[time], $0.start, $0.thread) }
            longestCalls.removeLast(max(longestCalls.count - most, 0))
            leastKept = longestCalls.count == most ? longestCalls.last?.states[time] ?? 0 : 0
        case .moments:
            moments = TimeWindow(moments).moments
            mostKept = max(mostKept, 2 * moments.count)
            if moments.count > CallSearch.mostMoments {
                isTooMany = true
                moments = []
            }
        }
    }

    @inline(__always) private func isWanted(_ row: UInt32) -> Bool { Int(row) < isWanted.count && isWanted[Int(row)] }

    mutating func row(of function: UInt32) -> UInt32 { rows.row(of: function) }
    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        if isCall { calls &+= 1 }
    }
    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending) {
        guard isWanted(frame.row), isOutermost, ending != .part, ending != .elsewhere else { return }
        note(frame.row, frame.enter, time, isOver: ending == .returned || ending == .unwound)
    }
    mutating func leaf(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool) {
        calls &+= 1
        if _slowPath(isWanted(row)), isOutermost { note(row, start, end, isOver: true) }
    }
    mutating func migrated(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        migratedCalls.insert(row, enter: start, end: end)
        if isWanted(row) { note(row, start, end, isOver: true, hasStates: false) }
    }

    mutating func begin(thread: UInt32) {
        if let clocks { clock = clocks[thread] }
        self.thread = thread
    }

    mutating func add(_ other: borrowing SearchSink) {
        calls &+= other.calls
        found &+= other.found
        longest = max(longest, other.longest)
        longestCalls += other.longestCalls
        moments += other.moments
        isTooMany = isTooMany || other.isTooMany
        addMigratedCalls(of: other)
        settle()
    }
}
