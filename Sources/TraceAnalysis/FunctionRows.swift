// The rows of a report, from what the reading added up.
extension Accumulator {
    /// Entries and calls of one symbol and module are one row.
    mutating func functions(_ table: FunctionTable, _ scale: TimeScale) -> [FunctionSummary] {
        var slotOfRow: [FunctionTable.Row: Int] = [:]
        for slot in 1 ..< max(table.slotCount, 1) where isUsed(slot) {
            var key = table.rows[slot - 1]
            key.isTail = false
            if let first = slotOfRow[key] {
                merge(slot, into: first)
            } else {
                slotOfRow[key] = slot
            }
        }
        var result: [FunctionSummary] = []
        for slot in 1 ..< max(sums.count, 1) where isUsed(slot) {
            if slot < table.slotCount {
                result.append(summary(slot, table.rows[slot - 1], scale))
            } else {
                let name = FunctionTable.strangerName(strangers[slot - table.slotCount])
                let row = FunctionTable.Row(name: name, symbol: name, module: FunctionTable.noModule, isTail: false)
                result.append(summary(slot, row, scale))
            }
        }
        return result
    }

    private func isUsed(_ slot: Int) -> Bool {
        let sums = sums[slot]
        return sums.calls != 0 || sums.timed != 0 || sums.total != 0
    }

    private func summary(_ slot: Int, _ function: FunctionTable.Row, _ scale: TimeScale) -> FunctionSummary {
        let sums = sums[slot]
        var row = FunctionSummary(name: function.name, symbol: function.symbol, module: function.module, calls: sums.calls,
                                  timedCalls: sums.timed, total: scale.nanoseconds(sums.total),
                                  selfTime: scale.signedNanoseconds(sums.selfTime))
        guard sums.timed > 0 else { return row }
        row.average = scale.nanoseconds(sums.sum / sums.timed)
        row.minimum = scale.nanoseconds(sums.minimum)
        row.maximum = scale.nanoseconds(sums.maximum)
        if let values = durations.percentiles([50, 99], row: sums.row, minimum: sums.minimum, maximum: sums.maximum) {
            row.median = scale.nanoseconds(values[0])
            row.percentile99 = scale.nanoseconds(values[1])
        }
        return row
    }
}
