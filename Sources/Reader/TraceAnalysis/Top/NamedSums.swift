// Sums of calls by name: the rows of one or several growing traces, of which each numbers its functions and has a clock of its own.
import Presentation

struct NamedSums: ~Copyable {
    private var numbers: [FunctionNames.Row: Int] = [:]
    private var rows: [FunctionNames.Row] = []
    private var table: SumTable
    private var counted: [CountedTime?] = []
    private var uncounted: Set<Int> = []
    private var open: [Int: (calls: Int, oldest: Nanoseconds)] = [:]
    /// Scale of the sums, where they are of one trace; nil: they are nanoseconds.
    private let scale: TimeScale?
    /// One row for each module.
    private let areModules: Bool

    /// - Parameter scale: of the only trace; nil: there are several
    init(_ scale: TimeScale?, areModules: Bool) {
        self.scale = scale
        self.areModules = areModules
        table = SumTable(areMiddles: scale == nil)
    }

    private mutating func number(_ row: FunctionNames.Row) -> Int {
        var key = row
        key.isEntryOnly = false // entries and calls of one symbol are one row
        if areModules { key = FunctionNames.Row(name: row.module, symbol: "", module: "", isEntryOnly: false) }
        if let number = numbers[key] { return number }
        numbers[key] = rows.count
        rows.append(key)
        counted.append(nil)
        return rows.count - 1
    }

    /// - Parameter sums: one of the trace's tables
    mutating func add(_ trace: GrowingTrace, _ sums: borrowing SumTable) {
        let cost = CallCost(trace.header, trace.scale), left = trace.uncountedRows
        for row in sums.used where row != 0 {
            let theirs = sums[row], number = number(trace.functions.rows[Int(row)])
            if theirs.counted.calls > 0 {
                let time = theirs.counted.time(timed: theirs.timed, sum: theirs.sum, trace.scale, cost)
                counted[number] = counted[number]?.adding(time) ?? time
            }
            if left.contains(row) { uncounted.insert(number) }
            if scale != nil {
                table.add(theirs, sums.durations, to: UInt32(number))
            } else {
                table.with(UInt32(number)) { $0.add(theirs.scaled(trace.scale)) }
                addMiddles(theirs, sums.durations, trace.scale, to: number)
            }
        }
    }
    private mutating func addMiddles(_ theirs: IntervalSums, _ counts: borrowing DurationCounts, _ scale: TimeScale, to number: Int) {
        counts.forEach(row: theirs.durationRow) { lowest, count in
            // The middle of what the counter stands for.
            let width = UInt64(1) << UInt64(max(56 - lowest.leadingZeroBitCount, 0))
            table.record(scale.nanoseconds(lowest &+ width / 2).count, UInt32(number), count: count)
        }
    }

    /// Sums of traces that have ended, in nanoseconds.
    mutating func add(_ other: borrowing NamedSums) {
        for index in other.rows.indices {
            let number = number(other.rows[index])
            table.add(other.table[UInt32(index)], other.table.durations, to: UInt32(number))
            if let time = other.counted[index] { counted[number] = counted[number]?.adding(time) ?? time }
            if other.uncounted.contains(index) { uncounted.insert(number) }
        }
    }

    /// Calls that are open at this moment.
    mutating func addOpen(_ trace: GrowingTrace) {
        trace.forEachOpen { _, frame in
            let number = number(trace.functions.rows[Int(frame.row)]), age = trace.age(frame), known = open[number]
            open[number] = ((known?.calls ?? 0) + 1, max(known?.oldest ?? age, age))
        }
    }

    /// Rows without percentiles, which cost most.
    func summaries(_ isWanted: (FunctionNames.Row) -> Bool) -> [(summary: FunctionSummary, number: Int, open: Int, oldest: Nanoseconds?)] {
        func time(_ length: UInt64) -> Nanoseconds { scale?.nanoseconds(length) ?? Nanoseconds(length) }
        func signed(_ length: Int64) -> Int64 { scale?.signedNanoseconds(length) ?? length }
        return rows.indices.compactMap { index in
            let row = rows[index], sums = table[UInt32(index)], open = open[index]
            let isUsed = sums.calls > 0 || sums.timed > 0 || sums.total != 0 || sums.selfTime != 0 || counted[index] != nil || open != nil
            guard isUsed, isWanted(row) else { return nil }
            var summary = FunctionSummary(
                name: row.name, symbol: row.symbol, module: row.module, calls: sums.calls &+ (counted[index]?.calls ?? 0),
                timedCalls: sums.timed, total: Nanoseconds(UInt64(max(signed(sums.total), 0))), selfTime: signed(sums.selfTime),
                isSuppressed: uncounted.contains(index))
            summary.counted = counted[index]
            if sums.timed > 0 {
                summary.average = time(sums.sum / sums.timed)
                summary.minimum = time(sums.shortest)
                summary.maximum = time(sums.longest)
            }
            return (summary, index, open?.calls ?? 0, open?.oldest)
        }
    }

    /// Adds the percentiles to a row.
    func addPercentiles(_ number: Int, to summary: inout FunctionSummary) {
        let sums = table[UInt32(number)]
        func time(_ length: UInt64) -> Nanoseconds { scale?.nanoseconds(length) ?? Nanoseconds(length) }
        guard sums.timed > 0,
            let values = table.durations.percentiles([50, 99], row: sums.durationRow, minimum: sums.shortest, maximum: sums.longest)
        else { return }
        func percentile(_ estimate: DurationCounts.Estimate) -> Percentile {
            let shown = time(estimate.value)
            return Percentile(time: shown, error: shown.without(time(estimate.value - min(estimate.error, estimate.value))))
        }
        summary.median = percentile(values[0])
        summary.percentile99 = percentile(values[1])
    }
}
