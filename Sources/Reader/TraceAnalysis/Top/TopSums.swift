// Adds up the calls of a growing trace, interval by interval. What was open in several counts in each as long as it was open in it.

struct TopSums: ~Copyable {
    private let functions: TopFunctions
    /// Sums of this interval.
    var table = SumTable()
    var coverage: CallCoverage
    /// Row of each function, by its id; 0 not met.
    private var rows = PlainArray<UInt32>(repeating: 0, count: 1024)
    private var standIns = CountedStandIns()
    private(set) var migrated = Migrations()
    /// Since the beginning.
    private(set) var calls: UInt64 = 0
    private(set) var orphans: UInt64 = 0
    private(set) var unknownWords: UInt64 = 0

    init(_ functions: TopFunctions, _ spans: ThreadSpans?) {
        self.functions = functions
        coverage = CallCoverage(spans)
    }

    mutating func begin(thread: UInt32) { coverage.begin(thread: thread) }

    /// Returns the calls that were counted alone and for which recorded ones stand, by row, since it was asked last.
    mutating func takeStood() -> [UInt32: UInt64] { standIns.takeStood() }

    /// Adds calls that were counted alone.
    mutating func count(_ calls: UInt64, of row: UInt32) {
        self.calls &+= calls
        table.with(row) { $0.counted.calls &+= calls }
    }

    /// Returns the time of each thread in recorded calls, in this interval.
    mutating func takeCoverage(_ spans: ThreadSpans?) -> [UInt32: CoveredTime] {
        defer { coverage = CallCoverage(spans) }
        return coverage.byThread
    }

    @inline(never) private mutating func newRow(of function: UInt32) -> UInt32 {
        let row = functions.newRow(of: function)
        if Int(function) >= rows.count { rows.append(repeating: 0, count: max(Int(function) + 1 - rows.count, rows.count)) }
        rows[Int(function)] = row
        return row
    }

    private static var isSample: UInt64 { 1 }

    @inline(__always) private mutating func take(_ ticks: UInt64, from caller: UInt32) {
        table.with(caller) { $0.selfTime &-= Int64(truncatingIfNeeded: ticks) } // row 0, nobody, is never shown
    }
}

extension TopSums: ContinuedSink {
    @inline(__always) package mutating func row(of function: UInt32) -> UInt32 {
        let row = _fastPath(Int(function) < rows.count) ? rows[Int(function)] : 0
        return _fastPath(row != 0) ? row : newRow(of: function)
    }

    @inline(__always) package mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        guard isCall else { return }
        calls &+= 1
        table.with(frame.row) { $0.calls &+= 1 }
        if _slowPath(frame.row == standIns.row) {
            _ = standIns.take()
            frame.tag = Self.isSample
        }
    }

    package mutating func sampled(_ row: UInt32, _ calls: UInt64) { standIns.expect(row, calls) }

    @inline(__always) package mutating func closed(
        _ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending
    ) {
        let duration = time > frame.began ? time &- frame.began : 0, here = time > frame.since ? time &- frame.since : 0
        coverage.add(frame.since, max(time, frame.since), depth: depth)
        take(here, from: parent.row)
        if _slowPath(ending == .elsewhere) {
            // What was counted before is in the length that `migrated` adds.
            let before = Int64(truncatingIfNeeded: frame.since &- frame.began)
            return table.with(frame.row) {
                $0.selfTime &+= Int64(truncatingIfNeeded: here)
                if isOutermost { $0.total &-= before }
            }
        }
        let isTimed = ending != .lost && ending != .part
        table.with(frame.row) {
            $0.selfTime &+= Int64(truncatingIfNeeded: here)
            if isOutermost { $0.total &+= Int64(truncatingIfNeeded: here) }
            if isTimed { $0.time(duration) }
            if _slowPath(frame.tag == Self.isSample), ending == .returned { $0.counted.sample(duration) }
        }
        if isTimed { table.record(duration, frame.row) }
    }

    @inline(__always) package mutating func leaf(
        _ row: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool
    ) {
        calls &+= 1
        let duration = end &- start, isSample = row == standIns.row
        if _slowPath(isSample) { _ = standIns.take() }
        if _slowPath(duration == 0), functions.isEntryOnly(row) { return table.with(row) { $0.calls &+= 1 } }
        coverage.add(start, end, depth: depth)
        table.with(row) {
            $0.calls &+= 1
            $0.selfTime &+= Int64(truncatingIfNeeded: duration)
            if isOutermost { $0.total &+= Int64(truncatingIfNeeded: duration) }
            $0.time(duration)
            if _slowPath(isSample) { $0.counted.sample(duration) }
        }
        table.record(duration, row)
        take(duration, from: parent.row)
    }

    package mutating func continued(_ frame: Frame, until time: UInt64, depth: Int, parent: Frame, isOutermost: Bool) {
        let here = time &- frame.since
        coverage.add(frame.since, time, depth: depth)
        take(here, from: parent.row)
        table.with(frame.row) {
            $0.selfTime &+= Int64(truncatingIfNeeded: here)
            if isOutermost { $0.total &+= Int64(truncatingIfNeeded: here) }
        }
    }

    package mutating func interleaved(_ frame: Frame, _ overlap: Overlap, depth: Int, parent: Frame) {
        take(overlap.length, from: frame.row)
        table.with(parent.row) { $0.selfTime &+= Int64(truncatingIfNeeded: overlap.length) }
        table.with(frame.row) { $0.total &+= Int64(truncatingIfNeeded: overlap.outermostHere ?? 0) }
        coverage.remove(overlap, depth: depth)
    }

    package mutating func migrated(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        migrated.insert(row, enter: start, end: end)
        table.with(row) {
            $0.total &+= Int64(truncatingIfNeeded: end &- start)
            $0.time(end &- start)
        }
        table.record(end &- start, row)
    }

    package mutating func orphan(_ row: UInt32, at time: UInt64, depth: Int) { orphans &+= 1 }
    package mutating func unseen(_ frame: Frame, depth: Int, from begin: UInt64, to end: UInt64) {
        take(end &- begin, from: frame.row)
    }
    package mutating func unknown() { unknownWords &+= 1 }
}
