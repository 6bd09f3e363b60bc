// The sums that `report` keeps of calls: per function a cache line of sums and a row of duration counts. Self time is additive: a call adds
// its length to its own function and takes it from the function below, so that any part of a trace can be read alone and the parts added
// up.

/// Sums of one function. Ticks, all of them; wrapping, so that a damaged file cannot stop the reader.
///
/// Stored is what the commonest call changes least of: it is a leaf of known length, and not within a call of its own function.
struct FunctionSums: BitwiseCopyable {
    var calls: UInt64 = 0
    private var untimed: UInt64 = 0
    /// Time of all calls of known length.
    private(set) var sum: UInt64 = 0
    /// What of `sum` is not in `total`.
    private var inner: UInt64 = 0
    /// What of `sum` is not in `selfTime`.
    private var others: UInt64 = 0
    private(set) var minimum: UInt64 = .max
    private(set) var maximum: UInt64 = 0
    /// Row of the duration counts, 0 before the first.
    var durationRow: UInt32 = 0
    /// What makes calls of the function special: one look at them all.
    private(set) var kinds: UInt8 = 0
    /// Calls of suppressed functions were made from it: those that are not recorded are in its own time.
    var holdsSuppressed = false

    /// Calls whose length is known.
    var timed: UInt64 { calls &- untimed }
    /// Time of outermost calls: a recursive function's time is counted once.
    var total: UInt64 {
        @inline(__always) get { sum &- inner }
        @inline(__always) set { inner = sum &- newValue }
    }
    var selfTime: Int64 {
        @inline(__always) get { Int64(truncatingIfNeeded: sum &- others) }
        @inline(__always) set { others = sum &- UInt64(truncatingIfNeeded: newValue) }
    }

    private func has(_ kind: UInt8) -> Bool { kinds & kind != 0 }
    private mutating func set(_ kind: UInt8, _ value: Bool) { kinds = value ? kinds | kind : kinds & ~kind }
    var isEntryOnly: Bool {
        get { has(1) }
        set { set(1, newValue) }
    }
    /// There were more calls than are recorded.
    var isSuppressed: Bool {
        get { has(2) }
        set { set(2, newValue) }
    }
    /// There were more calls than are recorded, and they are not counted, either.
    var isUncounted: Bool {
        get { has(4) }
        set { set(4, newValue) }
    }

    /// A call whose length is not known yet. Returns true if its function is special.
    @inline(__always) mutating func open() -> Bool {
        untimed &+= 1
        return openLeaf()
    }

    /// A call whose length is given next, but if that of this function is not known.
    @inline(__always) mutating func openLeaf() -> Bool {
        calls &+= 1
        return kinds != 0
    }

    /// A call of known length after `open`, or one that was not opened here. Returns the row of the duration counts.
    /// - Parameter own: the part of the duration that is the function's own, as far as this call alone says
    @inline(__always) mutating func time(_ duration: UInt64, own: UInt64, isOutermost: Bool) -> UInt32 {
        untimed &-= 1
        if _slowPath(own != duration) { others &+= duration &- own }
        return timeLeaf(duration, isOutermost: isOutermost)
    }

    /// The length of the call of `openLeaf`, all of which is the function's own. Returns the row of the duration counts.
    @inline(__always) mutating func timeLeaf(_ duration: UInt64, isOutermost: Bool) -> UInt32 {
        sum &+= duration
        if _slowPath(!isOutermost) { inner &+= duration }
        if _slowPath(duration < minimum) { minimum = duration }
        if _slowPath(duration > maximum) { maximum = duration }
        return durationRow
    }

    /// Calls that are not recorded, of no known length.
    mutating func count(_ more: UInt64) {
        calls &+= more
        untimed &+= more
    }

    /// The call of `openLeaf` has no length.
    mutating func leaveUntimed() { untimed &+= 1 }

    /// All but the row of the duration counts.
    mutating func add(_ other: FunctionSums) {
        calls &+= other.calls
        untimed &+= other.untimed
        sum &+= other.sum
        inner &+= other.inner
        others &+= other.others
        minimum = min(minimum, other.minimum)
        maximum = max(maximum, other.maximum)
        isSuppressed = isSuppressed || other.isSuppressed
        isUncounted = isUncounted || other.isUncounted
        holdsSuppressed = holdsSuppressed || other.holdsSuppressed
    }

    /// In nanoseconds, without the row of the duration counts.
    func scaled(_ scale: TimeScale) -> FunctionSums {
        var sums = self
        sums.durationRow = 0
        sums.sum = scale.nanoseconds(sum).count
        sums.total = scale.nanoseconds(total).count
        sums.selfTime = scale.signedNanoseconds(selfTime)
        sums.minimum = minimum == .max ? .max : scale.nanoseconds(minimum).count
        sums.maximum = scale.nanoseconds(maximum).count
        return sums
    }
}

package struct Accumulator: ~Copyable {
    private(set) var sums: PlainArray<FunctionSums>
    private(set) var durations = DurationCounts()
    /// Calls of known length that were made from each function. Beside the sums: those are a cache line.
    private(set) var made: PlainArray<UInt64>
    /// Calls that were counted and not recorded, by row; they are in `sums`, too.
    private var countedCalls: [UInt32: CountedCalls] = [:]
    /// All of them.
    private(set) var onlyCounted: UInt64 = 0
    private var standIns = CountedStandIns()
    private var rows: RowNumbers
    var migratedCalls = Migrations()
    private(set) var coverage: CallCoverage

    package private(set) var calls: UInt64 = 0
    package private(set) var orphans: UInt64 = 0
    private(set) var unwound: UInt64 = 0
    private(set) var migrations: UInt64 = 0
    private(set) var unknownWords: UInt64 = 0

    package init(_ table: FunctionNames, _ spans: ThreadSpans) {
        coverage = CallCoverage(spans)
        rows = RowNumbers(table)
        sums = PlainArray(repeating: FunctionSums(), count: table.rowCount)
        made = PlainArray(repeating: 0, count: table.rowCount)
        for row in 1..<max(table.rowCount, 1) where table.rows[row - 1].isEntryOnly { sums[row].isEntryOnly = true }
        for row in table.suppressed { sums[Int(row)].isSuppressed = true }
        for row in table.uncounted { sums[Int(row)].isUncounted = true }
    }

    func counted(_ row: Int) -> CountedCalls? { countedCalls[UInt32(row)] }

    var unknownFunctions: [UInt32] { rows.unknownFunctions }

    /// A call of known length.
    /// - Parameter here: the part of the duration that counts in the part of the thread that is being read
    @inline(__always)
    private mutating func time(_ duration: UInt64, here: UInt64, _ row: UInt32, parent: UInt32, isOutermost: Bool) {
        count(duration, of: row, in: sums[Int(row)].time(duration, own: here, isOutermost: isOutermost))
        take(here, from: parent)
    }

    @inline(__always) private mutating func count(_ duration: UInt64, of row: UInt32, in durationRow: UInt32) {
        durations.record(duration, row: _fastPath(durationRow != 0) ? durationRow : addDurations(of: row))
    }

    @inline(never) private mutating func addDurations(of row: UInt32) -> UInt32 {
        let durationRow = durations.addRow()
        sums[Int(row)].durationRow = durationRow
        return durationRow
    }

    /// What a call takes of its caller's own time.
    @inline(__always) private mutating func take(_ ticks: UInt64, from caller: UInt32) {
        sums[Int(caller)].selfTime &-= Int64(truncatingIfNeeded: ticks) // row 0, nobody, is never shown
        made[Int(caller)] &+= 1
    }

    /// A call of a special function begins. Returns true if it stands for calls that were counted.
    private mutating func stands(_ row: UInt32) -> Bool {
        if row != standIns.row { return false }
        counted(row, standIns.take())
        return true
    }

    /// A call of a special function.
    private mutating func note(_ row: UInt32, from caller: UInt32) {
        if sums[Int(row)].isSuppressed { sums[Int(caller)].holdsSuppressed = true }
    }

    /// The threads called suppressed functions while no recorded call was open.
    var ownCodeHoldsSuppressed: Bool { sums[0].holdsSuppressed }

    @inline(never) private mutating func unknownRow(_ function: UInt32) -> UInt32 {
        let row = rows.unknownRow(function)
        if Int(row) >= sums.count {
            made.append(repeating: 0, count: Int(row) + 1 - sums.count)
            sums.append(repeating: FunctionSums(), count: Int(row) + 1 - sums.count)
        }
        return row
    }

    /// Moves what one row holds to another.
    mutating func merge(_ row: Int, into other: Int) {
        let source = sums[row]
        sums[other].add(source)
        sums[row] = FunctionSums()
        made[other] &+= made[row]
        made[row] = 0
        if let calls = countedCalls.removeValue(forKey: UInt32(row)) { countedCalls[UInt32(other), default: CountedCalls()].add(calls) }
        guard source.durationRow != 0 else { return }
        if sums[other].durationRow == 0 {
            sums[other].durationRow = source.durationRow
        } else {
            durations.merge(source.durationRow, into: sums[other].durationRow)
        }
    }

    mutating func translate(_ row: UInt32, from other: borrowing Accumulator) -> UInt32 {
        other.rows.unknownFunction(row).map { unknownRow($0) } ?? row
    }

    mutating func add(_ other: borrowing Accumulator) {
        coverage.add(other.coverage)
        for index in 1..<max(other.sums.count, 1) {
            let theirs = other.sums[index]
            if theirs.calls == 0, theirs.timed == 0, theirs.total == 0, theirs.selfTime == 0 { continue }
            let row = Int(translate(UInt32(index), from: other))
            sums[row].add(theirs)
            made[row] &+= other.made[index]
            durations.add(other.durations, row: theirs.durationRow, to: &sums[row].durationRow)
        }
        for (row, calls) in other.countedCalls { countedCalls[row, default: CountedCalls()].add(calls) }
        if other.ownCodeHoldsSuppressed { sums[0].holdsSuppressed = true }
        onlyCounted &+= other.onlyCounted
        calls &+= other.calls
        orphans &+= other.orphans
        unwound &+= other.unwound
        migrations &+= other.migrations
        unknownWords &+= other.unknownWords
        addMigratedCalls(of: other)
    }
}

extension Accumulator: CallSink {
    @inline(__always) package mutating func row(of function: UInt32) -> UInt32 {
        let row = rows.known(function)
        return _fastPath(row != 0) ? row : unknownRow(function)
    }

    @inline(__always) package mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        guard isCall else { return }
        calls &+= 1
        if _slowPath(sums[Int(frame.row)].open()), stands(frame.row) { frame.tag = Self.isSample }
    }
    private static var isSample: UInt64 { 1 }

    package mutating func sampled(_ row: UInt32, _ calls: UInt64) {
        if sums[Int(row)].isSuppressed { standIns.expect(row, calls) }
    }
    mutating func takeStood() -> [UInt32: UInt64] { standIns.takeStood() }

    package mutating func counted(_ row: UInt32, _ calls: UInt64) {
        self.calls &+= calls
        onlyCounted &+= calls
        sums[Int(row)].count(calls)
        countedCalls[row, default: CountedCalls()].calls &+= calls
    }

    @inline(__always) package mutating func closed(
        _ frame: Frame, at time: UInt64, depth: Int, parent: Frame,
        isOutermost: Bool, _ ending: Ending
    ) {
        let duration = time > frame.began ? time &- frame.began : 0, here = time > frame.since ? time &- frame.since : 0
        coverage.add(frame.since, time, depth: depth)
        if _slowPath(sums[Int(frame.row)].kinds != 0) {
            note(frame.row, from: parent.row)
            if frame.tag == Self.isSample, ending == .returned { countedCalls[frame.row]?.sample(duration) }
        }
        if ending == .unwound { unwound &+= 1 }
        if _slowPath(ending == .elsewhere) { return moveSelf(here, from: parent.row, to: frame.row) }
        if _fastPath(ending != .lost && ending != .part) {
            self.time(duration, here: here, frame.row, parent: parent.row, isOutermost: isOutermost)
        } else {
            // It ran at least so long, or the rest of it is not asked for; as one call's length it would be wrong.
            if isOutermost { sums[Int(frame.row)].total &+= duration }
            moveSelf(here, from: parent.row, to: frame.row)
        }
    }

    @inline(__always) package mutating func leaf(
        _ row: UInt32, from start: UInt64, to end: UInt64, depth: Int,
        parent: Frame, isOutermost: Bool
    ) {
        calls &+= 1
        if _slowPath(sums[Int(row)].openLeaf()) {
            note(row, from: parent.row)
            if stands(row) { countedCalls[row]?.sample(end &- start) }
            if sums[Int(row)].isEntryOnly { return sums[Int(row)].leaveUntimed() }
        }
        coverage.add(start, end, depth: depth)
        let duration = end &- start
        count(duration, of: row, in: sums[Int(row)].timeLeaf(duration, isOutermost: isOutermost))
        take(duration, from: parent.row)
    }

    package mutating func interleaved(_ frame: Frame, _ overlap: Overlap, depth: Int, parent: Frame) {
        moveSelf(overlap.length, from: frame.row, to: parent.row)
        sums[Int(frame.row)].total &+= overlap.outermost ?? 0
        coverage.remove(overlap, depth: depth)
    }

    mutating func carried(_ frame: Frame, until time: UInt64, depth: Int, parent: Frame) {
        coverage.add(frame.since, time, depth: depth)
        moveSelf(time &- frame.since, from: parent.row, to: frame.row)
    }

    private mutating func moveSelf(_ ticks: UInt64, from one: UInt32, to other: UInt32) {
        sums[Int(one)].selfTime &-= Int64(truncatingIfNeeded: ticks)
        sums[Int(other)].selfTime &+= Int64(truncatingIfNeeded: ticks)
    }

    /// Its own time is in that of the thread where it began (`Ending.elsewhere`).
    package mutating func migrated(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        migrations &+= 1
        migratedCalls.insert(row, enter: start, end: end)
        time(end &- start, here: 0, row, parent: row, isOutermost: true)
        made[Int(row)] &-= 1
    }

    package mutating func orphan(_ row: UInt32, at time: UInt64, depth: Int) { orphans &+= 1 }
    package mutating func unseen(_ frame: Frame, depth: Int, from begin: UInt64, to end: UInt64) {
        sums[Int(frame.row)].selfTime &-= Int64(truncatingIfNeeded: end &- begin)
    }
    package mutating func unknown() { unknownWords &+= 1 }
}

extension Accumulator: StreamSink {
    mutating func begin(thread: UInt32) { coverage.begin(thread: thread) }
}
