// Number of occurrences of each duration, per function. HdrHistogram's buckets at two significant digits (256 sub-buckets, hence 128
// counters per power of two), but only those powers of two that occur: a function's calls spread over a few, and thousands of functions
// stay small (0.5 KB a power) where a Histogram each would take 10 to 58 KB. Percentiles are asked of a real Histogram, one function at a
// time; its buckets are the same, so nothing is rounded twice.
import Histogram
import Presentation

/// The length that a share of calls does not exceed: the upper end of the bucket that has it, or the exact one, where that is known.
package struct Percentile: Sendable, Equatable {
    package var time: Nanoseconds
    /// The exact one may differ by so much; 0: this is it.
    package var error: Nanoseconds

    /// As in tables and lines: an estimate has a mark.
    package var text: String { (error.count > 0 ? "~" : "") + readable(time) }

    /// Members of any record that has one. Both are null where no call has a known length.
    static func members<Row: Record>(_ key: String, _ percentile: @escaping @Sendable (Row) -> Percentile?) -> [Member<Row>] {
        Row.declare {
            Member("\(key)_ns", percentileMeaning) { percentile($0)?.time }
                .column(key) { percentile($0).map { column($0.text) } ?? "-" }
            Member("\(key)_error_ns", "by how much \(key)_ns may differ from the exact one; 0: it is exact") { percentile($0)?.error }
        }
    }
}

private let percentileMeaning = "at most 0.8% above the exact one; of several traces together within 1.2% of it"

package struct DurationCounts: ~Copyable {
    /// A percentile, and by how much the exact one may differ from it.
    package struct Estimate: Equatable {
        package var value: UInt64
        package var error: UInt64
    }

    /// Powers of two: the first block is 0 ... 127, the second 128 ... 255, then each twice as long.
    static var blockCount: Int { 58 }
    static var blockBits: UInt64 { 7 }

    /// Block index in `counters` for each row and power; 0 none. A row is known by where it begins here.
    private var blocks = PlainArray<UInt32>()
    private var counters = PlainArray<UInt32>()
    private let areMiddles: Bool

    /// - Parameter areMiddles: durations are the middles of buckets of other counts
    package init(areMiddles: Bool = false) {
        self.areMiddles = areMiddles
        blocks.append(repeating: 0, count: Self.blockCount) // row 0 and block 0 mean "none yet"
        counters.append(repeating: 0, count: 1 << Int(Self.blockBits))
    }

    /// A new row, to record one function's durations in.
    package mutating func addRow() -> UInt32 {
        let row = blocks.count
        blocks.append(repeating: 0, count: Self.blockCount)
        return UInt32(row)
    }

    @inline(__always)
    package mutating func record(_ duration: UInt64, row: UInt32, count: UInt32 = 1) {
        let shift = UInt64(64 &- 8 &- (duration | 0xff).leadingZeroBitCount) // 0 up to 255
        let sub = duration &>> shift // 0 ... 255, from 128 on when shift is not 0
        // Linear over 0 ... 255, then 128 counters for each shift.
        let index = UInt64(row) &+ shift &+ sub &>> Self.blockBits
        var block = blocks[Int(truncatingIfNeeded: index)]
        if _slowPath(block == 0) { block = addBlock(Int(index)) }
        let counter = Int(truncatingIfNeeded: UInt64(block) &<< Self.blockBits | sub & 127)
        let (sum, overflow) = counters[counter].addingReportingOverflow(count)
        counters[counter] = overflow ? .max : sum
    }

    @inline(never) private mutating func addBlock(_ index: Int) -> UInt32 {
        let block = UInt32(counters.count &>> Int(Self.blockBits))
        counters.append(repeating: 0, count: 1 << Int(Self.blockBits))
        blocks[index] = block
        return block
    }

    /// Calls `body` with the lowest duration of each bucket that is not empty, and its count.
    package func forEach(row: UInt32, _ body: (UInt64, UInt32) -> Void) {
        for power in 0..<Self.blockCount {
            let block = Int(blocks[Int(row) + power])
            guard block != 0 else { continue }
            for sub in 0..<128 {
                let count = counters[block << Int(Self.blockBits) | sub]
                guard count != 0 else { continue }
                body(power == 0 ? UInt64(sub) : UInt64(128 + sub) << UInt64(power - 1), count)
            }
        }
    }

    /// Adds a row of `other`, 0 for none, to one that is made where there is none.
    mutating func add(_ other: borrowing DurationCounts, row otherRow: UInt32, to row: inout UInt32) {
        guard otherRow != 0 else { return }
        if row == 0 { row = addRow() }
        let here = row
        other.forEach(row: otherRow) { record($0, row: here, count: $1) }
    }

    /// Forgets all rows.
    mutating func removeAll() {
        blocks.removeAll()
        blocks.append(repeating: 0, count: Self.blockCount)
        counters.removeAll()
        counters.append(repeating: 0, count: 1 << Int(Self.blockBits))
    }

    /// Adds a row of `other`, 0 for none, for as long as anybody likes: where a counter would overflow, all that the row had before counts half.
    mutating func addForLong(_ other: borrowing DurationCounts, row otherRow: UInt32, to row: UInt32) {
        guard otherRow != 0 else { return }
        other.forEach(row: otherRow) { duration, count in
            if self.count(of: duration, row: row) > UInt32.max - count { halve(row) }
            record(duration, row: row, count: min(count, UInt32.max / 2))
        }
    }

    private func count(of lowest: UInt64, row: UInt32) -> UInt32 {
        let shift = UInt64(64 &- 8 &- (lowest | 0xff).leadingZeroBitCount), sub = lowest &>> shift
        let block = blocks[Int(UInt64(row) &+ shift &+ sub &>> Self.blockBits)]
        return block == 0 ? 0 : counters[Int(UInt64(block) &<< Self.blockBits | sub & 127)]
    }

    private mutating func halve(_ row: UInt32) {
        for power in 0..<Self.blockCount {
            let block = Int(blocks[Int(row) + power])
            guard block != 0 else { continue }
            for sub in 0..<128 { counters[block << Int(Self.blockBits) | sub] /= 2 }
        }
    }

    mutating func merge(_ row: UInt32, into other: UInt32) {
        var copied: [(UInt64, UInt32)] = []
        forEach(row: row) { copied.append(($0, $1)) }
        for (duration, count) in copied { record(duration, row: other, count: count) }
    }

    /// The durations at these percentiles (0 ... 100), by nearest rank; nil when nothing was recorded. The first and the last in order are
    /// the exact minimum and maximum. Of others the bucket is known: its upper end is at most a 128th of its lowest duration above the exact
    /// one. Never outside `minimum ... maximum`.
    package func percentiles(_ wanted: [Double], row: UInt32, minimum: UInt64, maximum: UInt64) -> [Estimate]? {
        let highest = UInt64(1) << 62 // HdrHistogram computes the upper end of a bucket, which must not overflow
        var histogram = Histogram<UInt64>(
            highestTrackableValue: min(max(maximum, 2), highest),
            numberOfSignificantValueDigits: .two)
        histogram.autoResize = true
        forEach(row: row) { histogram.record(min($0, highest), count: UInt64($1)) }
        let count = Double(histogram.totalCount)
        guard count > 0 else { return nil }
        return wanted.map { percentile in
            let rank = max((count * percentile / 100).rounded(.up), 1)
            if rank == 1 { return Estimate(value: minimum, error: 0) }
            if rank == count { return Estimate(value: maximum, error: 0) }
            // Its largest recorded value is the lowest of our bucket; the bucket's upper end is the honest answer.
            let found = histogram.valueAtPercentile(percentile), lowest = histogram.lowestEquivalentForValue(found)
            let value = min(max(histogram.highestEquivalentForValue(found), minimum), maximum)
            let width = value - min(max(lowest, minimum), value)
            return Estimate(value: value, error: width + (areMiddles ? Self.errorOfMiddle(lowest) : 0))
        }
    }

    /// How far a duration may be from the middle of its bucket, whose nanoseconds are rounded. A tick has a bucket of its own below 256
    /// ticks, which no clock counts in 43 ns.
    private static func errorOfMiddle(_ nanoseconds: UInt64) -> UInt64 { nanoseconds < 43 ? 0 : nanoseconds / 256 + 1 }
}
