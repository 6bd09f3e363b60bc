// Sums of functions over several traces. Each trace has a clock and function ids of its own: here times are nanoseconds, and a function is
// identified by its symbol (its name, where it has none) and its module.
import Presentation

struct RunSums: ~Copyable {
    private struct Key: Hashable {
        /// The function's name where it has no symbol.
        var symbol: String
        var module: String
        var site: CallSite?
    }
    private var numbers: [Key: Int] = [:]
    private var rows: [(function: FunctionNames.Row, site: CallSite?)] = []
    private var sums = PlainArray<FunctionSums>()
    /// Cost of recording in the functions' own time, in nanoseconds; nil where a trace does not say.
    private var recording: [UInt64?] = []
    /// Times by state; nil where a trace does not say, or nobody asks.
    private var states: [SplitTimes?] = []
    /// Calls that are not recorded.
    private var counted: [CountedTime?] = []
    private var durations = DurationCounts(areMiddles: true)

    mutating func number(_ row: FunctionNames.Row, _ site: CallSite? = nil) -> Int {
        let key = Key(symbol: row.symbol.isEmpty ? row.name : row.symbol, module: row.module, site: site)
        if let number = numbers[key] { return number }
        let number = rows.count
        rows.append((row, site))
        recording.append(0)
        states.append(SplitTimes())
        counted.append(nil)
        numbers[key] = number
        if number >= sums.count { sums.append(repeating: FunctionSums(), count: 256) }
        return number
    }

    /// - Parameters:
    ///   - times: of the rows by state, in ticks
    ///   - table: by which `trace` was read; its rows need no names
    mutating func add(
        _ accumulator: borrowing Accumulator, _ times: [SplitTimes]?, _ table: FunctionNames, _ trace: TraceFile, _ names: NameCache
    ) {
        let scale = trace.timeScale, cost = CallCost(trace)
        var functionOfRow = [UInt32](repeating: 0, count: table.rowCount)
        for (id, row) in table.rowOfFunction.enumerated() where row != 0 && functionOfRow[Int(row)] == 0 {
            functionOfRow[Int(row)] = UInt32(id)
        }
        let modules = trace.metadata.modules.mapValues { $0.name }
        for row in 1..<max(accumulator.sums.count, 1) where accumulator.isUsed(row) || times?.isUsed(row) == true {
            let number: Int
            if row < table.rowCount, let function = trace.metadata.functions[functionOfRow[row]] {
                if let module = function.module.flatMap({ modules[$0] }), let known = numbers[Key(symbol: function.rawName, module: module)]
                {
                    number = known
                } else {
                    number = self.number(names.row(of: function, trace.metadata))
                }
            } else {
                let unknownFunction = row < table.rowCount ? 0 : accumulator.unknownFunctions[row - table.rowCount]
                number = self.number(FunctionNames.unknown(unknownFunction))
            }
            add(accumulator.sums[row], accumulator.durations, times?[row].inNanoseconds(scale), to: number, scale)
            add(accumulator.recording(row, cost)?.count, to: number)
            add(accumulator.counted(row)?.time(accumulator.sums[row], trace), to: number)
        }
    }

    /// One row, to those that came before it, whatever their names.
    mutating func add(_ accumulator: borrowing Accumulator, _ times: SplitTimes?, _ row: Int, _ trace: TraceFile) {
        guard row > 0 else { return }
        let number = number(FunctionNames.Row(name: "", symbol: "", module: "", isEntryOnly: false))
        add(accumulator.sums[row], accumulator.durations, times?.inNanoseconds(trace.timeScale), to: number, trace.timeScale)
        add(accumulator.recording(row, CallCost(trace))?.count, to: number)
        add(accumulator.counted(row)?.time(accumulator.sums[row], trace), to: number)
    }

    mutating func add(_ counted: CountedTime?, to number: Int) {
        guard let counted else { return }
        self.counted[number] = self.counted[number]?.adding(counted) ?? counted
    }

    private mutating func add(_ times: SplitTimes?, to number: Int) {
        states[number] = states[number].flatMap { sum in times.map { sum.adding($0) } }
    }

    private mutating func add(_ recording: UInt64?, to number: Int) {
        self.recording[number] = self.recording[number].flatMap { sum in recording.map { sum &+ $0 } }
    }

    /// - Parameters:
    ///   - theirs: of one trace, in ticks
    ///   - times: theirs by state, in nanoseconds
    mutating func add(
        _ theirs: FunctionSums, _ counts: borrowing DurationCounts, _ times: SplitTimes?, to number: Int, _ scale: TimeScale
    ) {
        sums[number].add(theirs.scaled(scale))
        add(times, to: number)
        guard theirs.durationRow != 0 else { return }
        if sums[number].durationRow == 0 { sums[number].durationRow = durations.addRow() }
        let to = sums[number].durationRow
        counts.forEach(row: theirs.durationRow) { lowest, count in
            // The middle of what the counter stands for.
            let width = UInt64(1) << UInt64(max(56 - lowest.leadingZeroBitCount, 0))
            durations.record(scale.nanoseconds(lowest &+ width / 2).count, row: to, count: count)
        }
    }

    mutating func add(_ other: borrowing RunSums) {
        for index in other.rows.indices {
            let theirs = other.sums[index]
            let number = number(other.rows[index].function, other.rows[index].site)
            sums[number].add(theirs)
            add(other.recording[index], to: number)
            add(other.states[index], to: number)
            add(other.counted[index], to: number)
            durations.add(other.durations, row: theirs.durationRow, to: &sums[number].durationRow)
        }
    }

    /// - Parameter time: what was added up, where times by state are asked for
    func functions(of time: CallTime? = nil) -> [FunctionSummary] {
        rows.indices.map { index in
            let site = rows[index].site
            var summary = FunctionSummary(
                rows[index].function, sums[index], durations, recording: site == nil ? recording[index].map { Nanoseconds($0) } : nil)
            summary.site = site
            summary.counted = counted[index]
            if let time, let times = states[index] { summary.show(times, as: time) }
            return summary
        }
    }
}
