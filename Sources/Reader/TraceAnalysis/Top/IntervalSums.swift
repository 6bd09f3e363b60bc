// Sums of the calls of one row, and tables of them.
import Presentation

/// Ticks, or nanoseconds. Wrapping, so that a damaged file cannot stop the reader.
struct IntervalSums: BitwiseCopyable {
    /// Calls that began, and are recorded.
    var calls: UInt64 = 0
    /// Calls whose length is known, the sum of their lengths, the shortest and the longest.
    var timed: UInt64 = 0
    var sum: UInt64 = 0
    var shortest: UInt64 = .max
    var longest: UInt64 = 0
    /// Time in which a call was open: recursive calls count once.
    var total: Int64 = 0
    var selfTime: Int64 = 0
    /// Calls that were counted and not recorded, and those that stand for them.
    var counted = CountedCalls()
    /// Row of the duration counts, 0 before the first.
    var durationRow: UInt32 = 0

    @inline(__always) mutating func time(_ duration: UInt64) {
        timed &+= 1
        sum &+= duration
        if _slowPath(duration < shortest) { shortest = duration }
        if _slowPath(duration > longest) { longest = duration }
    }

    /// All but the row of the duration counts.
    mutating func add(_ other: IntervalSums) {
        calls &+= other.calls
        timed &+= other.timed
        sum &+= other.sum
        shortest = min(shortest, other.shortest)
        longest = max(longest, other.longest)
        total &+= other.total
        selfTime &+= other.selfTime
        counted.add(other.counted)
    }

    /// In nanoseconds, without the row of the duration counts, and without what was only counted, whose time is estimated in ticks.
    func scaled(_ scale: TimeScale) -> IntervalSums {
        var sums = self
        sums.durationRow = 0
        sums.counted = CountedCalls()
        sums.sum = scale.nanoseconds(sum).count
        sums.shortest = shortest == .max ? .max : scale.nanoseconds(shortest).count
        sums.longest = scale.nanoseconds(longest).count
        sums.total = scale.signedNanoseconds(total)
        sums.selfTime = scale.signedNanoseconds(selfTime)
        return sums
    }
}

/// Sums by row. Rows that were not used since the table was emptied cost nothing.
struct SumTable: ~Copyable {
    private(set) var sums = PlainArray<IntervalSums>(repeating: IntervalSums(), count: 256)
    private(set) var durations: DurationCounts
    /// Rows with sums.
    private(set) var used: [UInt32] = []

    init(areMiddles: Bool = false) { durations = DurationCounts(areMiddles: areMiddles) }

    @inline(__always) mutating func with(_ row: UInt32, _ body: (inout IntervalSums) -> Void) {
        if _slowPath(Int(row) >= sums.count || sums[Int(row)].durationRow == 0) { begin(row) }
        body(&sums[Int(row)])
    }

    /// A call of this length, whose function is used.
    @inline(__always) mutating func record(_ duration: UInt64, _ row: UInt32, count: UInt32 = 1) {
        durations.record(duration, row: sums[Int(row)].durationRow, count: count)
    }

    @inline(never) private mutating func begin(_ row: UInt32) {
        if Int(row) >= sums.count { sums.append(repeating: IntervalSums(), count: max(Int(row) + 1 - sums.count, sums.count)) }
        sums[Int(row)].durationRow = durations.addRow()
        used.append(row)
    }

    subscript(row: UInt32) -> IntervalSums { Int(row) < sums.count ? sums[Int(row)] : IntervalSums() }

    mutating func add(_ other: borrowing SumTable) {
        for row in other.used { add(other[row], other.durations, to: row) }
    }

    mutating func add(_ theirs: IntervalSums, _ counts: borrowing DurationCounts, to row: UInt32) {
        with(row) { $0.add(theirs) }
        durations.addForLong(counts, row: theirs.durationRow, to: sums[Int(row)].durationRow)
    }

    mutating func removeAll() {
        for row in used { sums[Int(row)] = IntervalSums() }
        used = []
        durations.removeAll()
    }
}
