// The rows of a report, from what the reading added up: by one accumulator, or by one for each state.
import Presentation

extension Accumulator {
    /// Entries and calls of one symbol and module are one row.
    /// - Parameters:
    ///   - times: of the rows by state, in ticks; nil: not asked for
    ///   - time: what these sums are of
    mutating func functions(
        _ table: FunctionNames, _ trace: TraceFile, _ times: [SplitTimes]? = nil, of time: CallTime = .wall
    ) -> [FunctionSummary] {
        let scale = trace.timeScale, cost = CallCost(trace)
        var firstOf: [FunctionNames.Row: Int] = [:], byState = times
        for row in 1..<max(table.rowCount, 1) where isUsed(row) || byState?.isUsed(row) == true {
            var key = table.rows[row - 1]
            key.isEntryOnly = false
            if let first = firstOf[key] {
                merge(row, into: first)
                byState?.merge(row, into: first)
            } else {
                firstOf[key] = row
            }
        }
        var result: [FunctionSummary] = []
        for row in 1..<max(sums.count, 1) where isUsed(row) || byState?.isUsed(row) == true {
            let function = row < table.rowCount ? table.rows[row - 1] : FunctionNames.unknown(unknownFunctions[row - table.rowCount])
            result.append(summary(row, function, scale, cost))
            result[result.count - 1].counted = counted(row)?.time(sums[row], trace)
            if let times = byState?[row].inNanoseconds(scale) { result[result.count - 1].show(times, as: time) }
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
        FunctionSummary(function, sums[row], durations, scale, recording: recording(row, cost))
    }
}

extension [SplitTimes] {
    func isUsed(_ row: Int) -> Bool { self[row] != SplitTimes() }

    fileprivate mutating func merge(_ row: Int, into other: Int) {
        self[other] &+= self[row]
        self[row] = SplitTimes()
    }
}

/// A sink that has sums of calls, by row.
protocol SummingSink: StreamSink, ~Copyable {
    var rowCount: Int { get }
    func sums(of row: Int) -> FunctionSums
}

extension Accumulator: SummingSink {
    var rowCount: Int { sums.count }
    func sums(of row: Int) -> FunctionSums { sums[row] }
}

extension SplitSums where Base: SummingSink & ~Copyable {
    /// Times of a row by state, in ticks.
    func times(of row: Int) -> SplitTimes {
        let (whole, ran, waited) = (wall.sums(of: row), running.sums(of: row), waiting.sums(of: row))
        func times(_ time: (FunctionSums) -> Int64) -> StateTimes {
            StateTimes(whole: time(whole), waiting: time(waited), runnable: time(whole) &- time(waited) &- time(ran))
        }
        return SplitTimes(selfTime: times(\.selfTime), total: times { Int64(truncatingIfNeeded: $0.total) })
    }

    var rowTimes: [SplitTimes] { (0..<wall.rowCount).map { times(of: $0) } }

    mutating func with<R>(_ time: CallTime, _ body: (inout Base) -> R) -> R {
        switch time {
        case .wall: body(&wall)
        case .running: body(&running)
        case .waiting: body(&waiting)
        }
    }
}

extension FunctionSummary {
    /// Takes over what each state has of the times, of which one is shown.
    mutating func show(_ times: SplitTimes, as time: CallTime) {
        states = times
        shownTime = time
        selfTime = times.selfTime[time]
        total = Nanoseconds(UInt64(max(times.total[time], 0)))
        if time == .waiting { recording = nil } // the agent's work is not waiting
    }

    /// - Parameter scale: of the sums; nil: they are nanoseconds
    init(
        _ function: FunctionNames.Row, _ sums: FunctionSums, _ durations: borrowing DurationCounts, _ scale: TimeScale? = nil,
        recording: Nanoseconds?
    ) {
        func time(_ length: UInt64) -> Nanoseconds { scale?.nanoseconds(length) ?? Nanoseconds(length) }
        self.init(
            name: function.name, symbol: function.symbol, module: function.module, calls: sums.calls, timedCalls: sums.timed,
            total: time(sums.total), selfTime: scale?.signedNanoseconds(sums.selfTime) ?? sums.selfTime, isSuppressed: sums.isUncounted,
            holdsSuppressed: sums.holdsSuppressed, recording: recording)
        guard sums.timed > 0 else { return }
        average = time(sums.sum / sums.timed)
        minimum = time(sums.minimum)
        maximum = time(sums.maximum)
        let values = durations.percentiles([50, 99], row: sums.durationRow, minimum: sums.minimum, maximum: sums.maximum)
        guard let values else { return }
        // The difference of rounded times: less than a nanosecond is none.
        func percentile(_ estimate: DurationCounts.Estimate) -> Percentile {
            let shown = time(estimate.value)
            return Percentile(time: shown, error: shown.without(time(estimate.value - min(estimate.error, estimate.value))))
        }
        median = percentile(values[0])
        percentile99 = percentile(values[1])
        durations.forEach(row: sums.durationRow) { shape.add(time($0), UInt64($1)) }
    }
}
