// Sums of a function's calls by call site. They are kept like sums of functions, but by (function, return address), and by time if several
// modules have had that address.
import CTraceLayout
import Presentation
import Symbols
import TraceFormat

private struct SiteKey: Hashable {
    var row: UInt32
    var epoch: UInt32
    var address: UInt64

    /// Returns the index in a table whose size is a power of two; `mask` is that size minus one.
    func bucket(_ mask: UInt64) -> Int { Int(truncatingIfNeeded: ((address ^ UInt64(row) &<< 40) &* 0x9e37_79b9_7f4a_7c15) &>> 40 & mask) }
}

private struct SiteSums: SummingSink, ~Copyable {
    static var wantsSites: Bool { true }

    private var rows: RowNumbers
    private let isEntryOnly: [Bool]
    private let suppressed: Set<UInt32>, uncounted: Set<UInt32>
    /// Calls that were counted and not recorded, by number.
    private(set) var countedCalls: [Int: CountedCalls] = [:]
    private var standIns = CountedStandIns()
    private let modules: ModuleTimes
    /// Keys by number; 0 is nobody.
    private(set) var keys = [SiteKey(row: 0, epoch: 0, address: 0)]
    private(set) var sums = PlainArray<FunctionSums>(repeating: FunctionSums(), count: 1)
    private(set) var durations = DurationCounts()
    private var numbers: [SiteKey: UInt32] = [:]
    /// Numbers looked up last, by bucket: hashing each call's key would take longer than all the rest.
    private var recent = PlainArray<UInt32>(repeating: 0, count: Self.recentCount)
    private static var recentCount: Int { 4096 }
    /// Open calls of each number, of the thread that is read.
    private var open = PlainArray<UInt32>(repeating: 0, count: 1)
    /// Duration of the latest call closed, by number: only calls open at the trace's end, whose opening this sink did not see.
    private var ended: [Int: UInt64] = [:]
    var migratedCalls = Migrations()
    private var nextLeafSite: UInt64 = 0
    private(set) var calls: UInt64 = 0

    init(_ table: FunctionNames, _ modules: ModuleTimes) {
        rows = RowNumbers(table)
        isEntryOnly = [false] + table.rows.map(\.isEntryOnly)
        suppressed = table.suppressed
        uncounted = table.uncounted
        self.modules = modules
    }

    var unknownFunctions: [UInt32] { rows.unknownFunctions }
    var rowCount: Int { keys.count }
    func sums(of number: Int) -> FunctionSums { sums[number] }

    @inline(__always) private mutating func number(_ row: UInt32, _ address: UInt64, at ticks: UInt64) -> Int {
        let key = SiteKey(row: row, epoch: modules.epoch(at: ticks), address: address)
        let bucket = key.bucket(UInt64(Self.recentCount - 1))
        let known = Int(recent[bucket])
        if _fastPath(known != 0 && keys[known] == key) { return known }
        let number = number(of: key)
        recent[bucket] = UInt32(number)
        return number
    }

    @inline(never) private mutating func number(of key: SiteKey) -> Int {
        if let number = numbers[key] { return Int(number) }
        let number = keys.count
        keys.append(key)
        numbers[key] = UInt32(number)
        var fresh = FunctionSums()
        fresh.isEntryOnly = Int(key.row) < isEntryOnly.count && isEntryOnly[Int(key.row)]
        fresh.isSuppressed = suppressed.contains(key.row)
        fresh.isUncounted = uncounted.contains(key.row)
        sums.append(fresh)
        open.append(0)
        return number
    }

    /// A call of known length, without what is its own of it.
    private mutating func time(_ duration: UInt64, _ number: Int, isOutermost: Bool) {
        _ = sums[number].time(duration, own: 0, isOutermost: isOutermost)
        if sums[number].durationRow == 0 { sums[number].durationRow = durations.addRow() }
        durations.record(duration, row: sums[number].durationRow)
    }
    private mutating func takeSelf(_ duration: UInt64, _ number: Int, parent: Frame) {
        if sums[number].isSuppressed { sums[Int(parent.tag)].holdsSuppressed = true }
        sums[number].selfTime &+= Int64(truncatingIfNeeded: duration)
        sums[Int(parent.tag)].selfTime &-= Int64(truncatingIfNeeded: duration)
    }

    // MARK: - Calls

    mutating func row(of function: UInt32) -> UInt32 { rows.row(of: function) }

    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        let number = number(frame.row, frame.site, at: frame.enter)
        frame.tag = UInt64(number)
        open[number] &+= 1
        guard isCall else { return }
        calls &+= 1
        _ = sums[number].open()
        _ = stands(frame.row, number)
    }

    mutating func sampled(_ row: UInt32, _ calls: UInt64) { standIns.expect(row, calls) }
    mutating func takeStood() -> [UInt32: UInt64] { standIns.takeStood() }
    /// Returns true if the call stands for others, which are counted.
    private mutating func stands(_ row: UInt32, _ number: Int) -> Bool {
        if row != standIns.row { return false }
        count(number, standIns.take())
        return true
    }
    private mutating func count(_ number: Int, _ more: UInt64) {
        calls &+= more
        sums[number].count(more)
        countedCalls[number, default: CountedCalls()].calls &+= more
    }
    /// Their site is unknown.
    mutating func counted(_ row: UInt32, _ calls: UInt64) { count(number(of: SiteKey(row: row, epoch: 0, address: 0)), calls) }

    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending) {
        let duration = time > frame.began ? time &- frame.began : 0, number = Int(frame.tag)
        takeSelf(time > frame.since ? time &- frame.since : 0, number, parent: parent)
        var isOutermost = true
        if open[number] > 0 {
            open[number] &-= 1
            isOutermost = open[number] == 0
        } else if ending != .elsewhere {
            // Innermost first: of those within another of the same number the last one counts.
            sums[number].total &-= ended.updateValue(duration, forKey: number) ?? 0
        }
        if ending == .elsewhere { return }
        if ending != .lost && ending != .part {
            self.time(duration, number, isOutermost: isOutermost)
        } else if isOutermost {
            sums[number].total &+= duration
        }
    }

    mutating func unseen(_ frame: Frame, depth: Int, from begin: UInt64, to end: UInt64) {
        sums[Int(frame.tag)].selfTime &-= Int64(truncatingIfNeeded: end &- begin)
    }

    mutating func leafSite(_ address: UInt64) { nextLeafSite = address }

    mutating func leaf(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool) {
        let number = number(row, nextLeafSite, at: start)
        calls &+= 1
        _ = sums[number].open()
        if stands(row, number) { countedCalls[number]?.sample(end &- start) }
        if sums[number].isEntryOnly { return }
        time(end &- start, number, isOutermost: open[number] == 0)
        takeSelf(end &- start, number, parent: parent)
    }

    /// Adds a call that began on another thread, without its site: only where the call began is that known.
    mutating func migrated(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        migratedCalls.insert(row, enter: start, end: end)
        let number = number(row, 0, at: start)
        time(end &- start, number, isOutermost: true)
    }

    mutating func interleaved(_ frame: Frame, _ overlap: Overlap, depth: Int, parent: Frame) {
        sums[Int(frame.tag)].selfTime &-= Int64(truncatingIfNeeded: overlap.length)
        sums[Int(parent.tag)].selfTime &+= Int64(truncatingIfNeeded: overlap.length)
        sums[Int(frame.tag)].total &+= overlap.outermost ?? 0
    }

    mutating func carried(_ frame: Frame, until time: UInt64, depth: Int, parent: Frame) {
        takeSelf(time &- frame.since, Int(frame.tag), parent: parent)
    }

    // MARK: - Parts of a trace

    mutating func begin(thread: UInt32) {
        for number in 0..<open.count { open[number] = 0 }
        ended = [:]
    }

    mutating func translate(_ row: UInt32, from other: borrowing SiteSums) -> UInt32 { rows.translate(row, from: other.rows) }
    private mutating func translate(number: Int, from other: borrowing SiteSums) -> Int {
        var key = other.keys[number]
        key.row = translate(key.row, from: other)
        return self.number(of: key)
    }

    mutating func add(_ other: borrowing SiteSums) {
        calls &+= other.calls
        for index in 1..<max(other.keys.count, 1) {
            let number = translate(number: index, from: other), theirs = other.sums[index]
            sums[number].add(theirs)
            durations.add(other.durations, row: theirs.durationRow, to: &sums[number].durationRow)
            if let counted = other.countedCalls[index] { countedCalls[number, default: CountedCalls()].add(counted) }
        }
        addMigratedCalls(of: other)
    }

    mutating func translate(_ frame: Frame, from other: borrowing SiteSums) -> Frame {
        var frame = frame
        frame.row = translate(frame.row, from: other)
        if frame.tag != 0 { frame.tag = UInt64(translate(number: Int(frame.tag), from: other)) }
        return frame
    }
}

extension TraceFile {
    /// True if call sites were recorded.
    package var hasCallSites: Bool { header.flags & UInt32(TRACE_FLAG_CALL_SITES) != 0 }
}

/// A row for each function and call site, over all processes.
package struct SiteReport: Sendable {
    package let rows: [FunctionSummary]
    /// What the times of rows are.
    package let time: CallTime

    package init(
        _ traces: [TraceFile], _ pattern: FunctionPattern? = nil, states: StateReading = .nothing, workers: Int = TraceFile.cpuCount,
        progress: ReadingProgress? = nil
    ) {
        let names = NameCache()
        var sums = RunSums()
        for trace in traces { Self.add(trace, pattern, states, names, workers, progress, to: &sums) }
        time = states.shown
        rows = sums.functions(of: states.time).filter { $0.calls > 0 || $0.timedCalls > 0 || $0.total.count > 0 }
    }

    private static func add(
        _ trace: TraceFile, _ pattern: FunctionPattern?, _ states: StateReading, _ names: NameCache, _ workers: Int,
        _ progress: ReadingProgress?, to sums: inout RunSums
    ) {
        let table = FunctionNames(trace.metadata, names), modules = ModuleTimes(trace.metadata)
        if let time = states.time, let clocks = StateClocks(trace, states) {
            let spans = ThreadSpans(trace)
            let all = StreamWorker.read(trace, table, workers: workers, progress: progress) {
                SplitSums(clocks, spans) { SiteSums(table, modules) }
            }
            all.withSink { split in
                let times = split.rowTimes
                split.with(time) { add($0, times, trace, table, modules, pattern, names, to: &sums) }
            }
        } else {
            let all = StreamWorker.read(trace, table, workers: workers, progress: progress) { SiteSums(table, modules) }
            all.withSink { add($0, nil, trace, table, modules, pattern, names, to: &sums) }
        }
    }

    /// - Parameter times: of the numbers by state, in ticks
    private static func add(
        _ sink: borrowing SiteSums, _ times: [SplitTimes]?, _ trace: TraceFile, _ table: FunctionNames, _ modules: ModuleTimes,
        _ pattern: FunctionPattern?, _ names: NameCache, to sums: inout RunSums
    ) {
        let sites = CallSites(names.symbolizer)
        var known: [SiteKey: CallSite] = [:]
        // The calls that are not recorded may have been made from any of a function's calls.
        var holding: Set<UInt32> = []
        for number in 1..<max(sink.keys.count, 1) where sink.sums[number].holdsSuppressed { holding.insert(sink.keys[number].row) }
        for number in 1..<max(sink.keys.count, 1) {
            var key = sink.keys[number]
            let row = Int(key.row)
            let function =
                row < table.rowCount ? table.rows[row - 1] : FunctionNames.unknown(sink.unknownFunctions[row - table.rowCount])
            if let pattern, !pattern.matches(name: function.name, symbol: function.symbol, module: function.module) { continue }
            var site = CallSite.unknown
            if key.address != 0 {
                key.row = 0
                site = known[key] ?? sites.site(key.address, in: modules.module(at: key.address, epoch: key.epoch))
                known[key] = site
            }
            var figures = sink.sums[number]
            figures.holdsSuppressed = holding.contains(sink.keys[number].row)
            let to = sums.number(function, site)
            sums.add(figures, sink.durations, times?[number].inNanoseconds(trace.timeScale), to: to, trace.timeScale)
            sums.add(sink.countedCalls[number]?.time(figures, trace), to: to)
        }
    }

    /// A line for its tables; nil: none is needed.
    package var timeNote: String? { time.note }

    private func sorted(by order: ReportOrder) -> [FunctionSummary] {
        rows.sorted { a, b in
            a.calls == b.calls && a.total == b.total && a.name == b.name
                ? (a.site?.text { $0 } ?? "") < (b.site?.text { $0 } ?? "") : order.comesFirst(a, b)
        }
    }

    /// For `tracer callers --sites`: the call sites, by falling number of calls.
    package func lines(width: Int?, names nameStyle: NameStyle, style: TextStyle) -> [String] {
        let short = ShortNames(rows.flatMap { [$0.name, $0.site?.name ?? ""] }, nameStyle)
        let hasSeveral = Set(rows.map { [$0.name, $0.module] }).count > 1, all = rows.reduce(0) { $0 &+ $1.calls }
        var columns = FunctionRow.columns(["calls", "average", "max_ns", "site"])
        if hasSeveral { columns.insert(Column("function", .name) { $0.short($0.figures.name) }, at: 3) }
        columns.insert(Column("total") { $0.figures.timedCalls == 0 ? "-" : column(readable($0.figures.total)) }, at: 1)
        columns.insert(Column("of all") { percent($0.figures.calls, of: all) }, at: 1)
        let table = TextTable(sorted(by: .calls).map { FunctionRow(figures: $0, short: { short[$0] }) }, columns)
        return table.lines(style, width: width)
    }
}

/// What `tracer callers --sites --json` prints.
extension SiteReport: Record {
    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("time", timeMeaning, \.time.rawValue)
        Member("sites", "rows, by falling number of calls") { report in report.sorted(by: .calls).map { FunctionRow(figures: $0) } }
    }
}
