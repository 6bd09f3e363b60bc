// The rows of a report, from what the reading added up.
import Presentation

extension Accumulator {
    /// Entries and calls of one symbol and module are one row.
    mutating func functions(_ table: FunctionNames, _ scale: TimeScale, _ cost: CallCost) -> [FunctionSummary] {
        var firstOf: [FunctionNames.Row: Int] = [:]
        for row in 1..<max(table.rowCount, 1) where isUsed(row) {
            var key = table.rows[row - 1]
            key.isEntryOnly = false
            if let first = firstOf[key] {
                merge(row, into: first)
            } else {
                firstOf[key] = row
            }
        }
        var result: [FunctionSummary] = []
        for row in 1..<max(sums.count, 1) where isUsed(row) {
            let function = row < table.rowCount ? table.rows[row - 1] : FunctionNames.unknown(unknownFunctions[row - table.rowCount])
            result.append(summary(row, function, scale, cost))
        }
        return result
    }

    func isUsed(_ row: Int) -> Bool {
        let sums = sums[row]
        return sums.calls != 0 || sums.timed != 0 || sums.total != 0
    }

    /// Returns the part of the function's own time that recording took. nil: not known.
    func recording(_ row: Int, _ cost: CallCost) -> Nanoseconds? {
        guard cost.whole > 0 else { return nil }
        return Nanoseconds(UInt64(exactly: (Double(sums[row].timed) * cost.inside + Double(made[row]) * cost.outside).rounded()) ?? 0)
    }

    func summary(_ row: Int, _ function: FunctionNames.Row, _ scale: TimeScale, _ cost: CallCost) -> FunctionSummary {
        let sums = sums[row]
        var summary = FunctionSummary(
            name: function.name, symbol: function.symbol, module: function.module, calls: sums.calls,
            timedCalls: sums.timed, total: scale.nanoseconds(sums.total),
            selfTime: scale.signedNanoseconds(sums.selfTime), isSuppressed: sums.isSuppressed, recording: recording(row, cost))
        guard sums.timed > 0 else { return summary }
        summary.average = scale.nanoseconds(sums.sum / sums.timed)
        summary.minimum = scale.nanoseconds(sums.minimum)
        summary.maximum = scale.nanoseconds(sums.maximum)
        if let values = durations.percentiles([50, 99], row: sums.durationRow, minimum: sums.minimum, maximum: sums.maximum) {
            summary.median = scale.nanoseconds(values[0])
            summary.percentile99 = scale.nanoseconds(values[1])
            durations.forEach(row: sums.durationRow) { summary.shape.add(scale.nanoseconds($0), UInt64($1)) }
        }
        return summary
    }
}
