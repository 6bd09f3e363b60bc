// What `tracer top` shows of an interval: as a table, and as a line of JSON.
import CTraceLayout
import Presentation
import Glibc

package struct TopProcess: Record, Sendable {
    var pid: UInt32
    var program: String
    var name: String
    var command: String
    var state: GrowingTrace.State
    var isTruncated: Bool

    package static let members = declare {
        Member("pid", \.pid)
        Member("program", "path", \.program)
        Member("command", \.command)
        Member("state", "recording; stopped: the process goes on without being recorded; ended: it has ended, or was detached from") {
            $0.stateText
        }
    }
    private var stateText: String {
        switch state {
        case .recording: "recording"
        case .stopped: "stopped"
        case .ended: "ended"
        }
    }
}

/// A function, a module or a thread.
package struct TopRow: Record, Sendable {
    package var figures: FunctionSummary
    let grouping: TopGrouping
    /// Length of the interval and time of all threads: what rates and shares are parts of.
    let length: Nanoseconds, whole: Nanoseconds
    package internal(set) var open = 0
    var oldest: Nanoseconds?
    /// More calls were made, of which nothing could be read.
    var isAtLeast: Bool
    /// Its number in the sums; nil: it has no percentiles.
    let number: Int?
    var pid: UInt32?, tid: UInt32?
    var innermost: String?
    /// How names are spelt in tables.
    package var short: @Sendable (String) -> String = { $0 }

    init(
        _ figures: FunctionSummary, _ grouping: TopGrouping, length: Nanoseconds, whole: Nanoseconds, open: Int = 0,
        oldest: Nanoseconds? = nil, isAtLeast: Bool = false, number: Int? = nil
    ) {
        self.figures = figures
        self.grouping = grouping
        self.length = length
        self.whole = whole
        self.open = open
        self.oldest = oldest
        self.isAtLeast = isAtLeast
        self.number = number
    }

    private var isOwnCode: Bool { figures.name == FunctionNames.ownCode }
    private var isFunction: Bool { grouping == .function }
    private var rate: Double? { isOwnCode || length.count == 0 ? nil : Double(figures.calls) * 1e9 / Double(length.count) }
    private var total: Nanoseconds? { grouping == .module ? nil : figures.total }
    private func share(_ time: Double) -> Double? { whole.count > 0 ? time / Double(whole.count) : nil }
    private var totalShare: Double? { total.flatMap { share(Double($0.count)) } }
    private var selfShare: Double? { share(Double(figures.selfTime)) }
    /// With an estimate of the calls that were only counted.
    private func shareText(_ share: Double?, _ time: Double) -> String {
        guard let share else { return "-" }
        guard let counted = figures.counted, whole.count > 0 else { return percent(max(share, 0)) }
        let part = figures.total.count > 0 ? min(max(time, 0) / Double(figures.total.count), 1) : 1
        return "~" + percent(share + Double(counted.time.count) * part / Double(whole.count))
    }
    private var mark: String { (isAtLeast || figures.isSuppressed) && !isOwnCode ? "≥" : "" }
    private static func spelt(_ time: Nanoseconds?) -> String { time.map { column(readable($0)) } ?? "-" }
    private static func rateText(_ rate: Double) -> String {
        if rate >= 100 || rate == 0 { return grouped(UInt64(exactly: rate.rounded()) ?? .max) }
        let tenths = UInt64((rate * 10).rounded())
        return tenths == 0 ? "<0.1" : "\(tenths / 10).\(tenths % 10)"
    }

    package static let members = declare {
        Member("name", "demangled; of a thread its name", \.figures.name).column("function", .name) {
            Summary.explained($0.short($0.figures.name))
        }
        Member("symbol", "as in the file", \.figures.symbol)
        Member("module", "file name of the module it lies in; of a thread the name of its process", \.figures.module)
            .column("module", .text) { $0.figures.module }
        Member.optional("pid", "of a thread") { $0.pid }
        Member.optional("tid") { $0.tid }.column("tid") { $0.tid.map { String($0) } ?? "" }
        Member("calls", "that began", \.figures.calls).column("calls") { $0.isOwnCode ? "-" : $0.mark + grouped($0.figures.calls) }
        Member("calls_per_second", "null where the interval has no length, and of own code", \.rate)
            .column("calls/s") { row in row.rate.map { row.mark + rateText($0) } ?? "-" }
        Member("total_ns", "time in which a call was open, a recursive function's outermost calls only; null of modules", \.total)
        Member("total_share", "total_ns as a part of the time of all threads; of a thread, of its own time", \.totalShare)
            .column("total") { $0.shareText($0.totalShare, Double($0.figures.total.count)) }
        Member(
            "self_ns", "without the recorded calls made from it; of calls that overlap (coroutines) the later one has the time",
            \.figures.selfTime)
        Member("self_share", "self_ns as a part of the same", \.selfShare)
            .column("self") { $0.shareText($0.selfShare, Double($0.figures.selfTime)) }
        Percentile.members("p50", \.figures.median)
        Percentile.members("p99", \.figures.percentile99)
        Member("longest_ns", "of calls that ended and whose beginning was seen; null: there is none", \.longest)
            .column("longest") { spelt($0.longest) }
        Member("open", "calls that are open now; of a thread, on it", \.open).column("open") { $0.open > 0 ? grouped($0.open) : "-" }
        Member("oldest_ns", "how long ago the oldest of them began; of a thread, the innermost", \.oldest).column("oldest") {
            spelt($0.oldest)
        }
        Member.optional("in", "the innermost call that is open on the thread") { $0.innermost }
            .column("in", .name) { row in row.innermost.map { row.short($0) } ?? "" }
        CountedTime.members { $0.figures.counted }
        Member.optional("left_out", leftOutMeaning) { $0.figures.isSuppressed ? true : nil }
        Member.shown("thread", "thread", .text) { $0.figures.name }
        Member.shown("process", "process", .text) { $0.figures.module }
        Member.shown("of_module", "module", .text) { $0.figures.name }
    }
    private var longest: Nanoseconds? { grouping == .thread ? nil : figures.maximum }
}

package struct TopSnapshot: Record, Sendable {
    package let view: TopView
    package internal(set) var rows: [TopRow] = []
    /// From the end of the interval before, or from the beginning.
    var length = Nanoseconds(0)
    package internal(set) var isOver = false
    var processes: [TopProcess] = []
    var endedProcesses = 0
    var calls: UInt64 = 0, onlyCounted: UInt64 = 0
    var threads = 0
    var threadTime = Nanoseconds(0), inCalls = Nanoseconds(0)
    package internal(set) var losses = TopLosses()
    let at = Self.realtime

    init(_ view: TopView) { self.view = view }

    /// Some of the calls could not be read: there were more.
    var isAtLeast: Bool { losses.missingChunks > 0 || losses.skippedWords > 0 }
    var own: Nanoseconds { threadTime.without(inCalls) }
    private var rate: Double? { length.count > 0 ? Double(calls) * 1e9 / Double(length.count) : nil }
    private static var realtime: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return UInt64(max(time.tv_sec, 0)) * 1_000_000_000 + UInt64(max(time.tv_nsec, 0))
    }

    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("at", "when it was read, ISO 8601") { UTC(nanoseconds: $0.at).iso8601 }
        Member("processes", "those that are read, and have not ended before this interval", \.processes)
        Member("ended_processes", "that were read, and ended before", \.endedProcesses)
        Member("is_cumulative", "true: since the beginning; false: of this interval") { $0.view.isWhole }
        Member("length_ns", "of the interval, or since the beginning", \.length)
        Member("calls", "in all", \.calls)
        Member("calls_per_second", \.rate)
        Member("only_counted", "what of them is counted and not recorded", \.onlyCounted)
        Member("threads", "that run, or had run when the process ended", \.threads)
        Member("thread_time_ns", "how long all threads together ran", \.threadTime)
        Member("own_ns", "what of that no recorded call covers", \.own)
        Member("filtered", "calls that were not kept, by time, by depth and by condition", \.losses.filtered)
        Member("dropped", "calls that could not be written", \.losses.droppedCalls)
        Member("missing_chunks", "overwritten by a ring, or damaged, before they were read: there were more calls", \.losses.missingChunks)
        Member(
            "skipped_events", "words that were not read, since more was written than could be: there were more calls", \.losses.skippedWords
        )
        Member("by", "function, thread or module") { $0.view.grouping.rawValue }
        Member("rows", "in the order that was asked for", \.rows)
        Member("is_over", "nothing more will come", \.isOver)
    }

    // MARK: - Text

    private var title: String {
        guard let first = processes.first else { return endedProcesses > 0 ? counted(endedProcesses, "process", "processes") : "" }
        if processes.count + endedProcesses == 1 { return "\(first.name) (\(first.pid))" }
        return "\(first.name) (\(first.pid)) and \(counted(processes.count + endedProcesses - 1, "process", "processes"))"
    }

    /// The command line, if it says more than the title.
    package var command: String? { processes.count == 1 && endedProcesses == 0 ? processes[0].command : nil }

    /// What the process does, and how much of it is shown.
    package var headline: String {
        let mark = isAtLeast ? "≥" : ""
        var parts = [title]
        parts.append((view.isWhole ? "since the beginning " : "") + readable(length))
        if let rate { parts.append("\(mark)\(grouped(UInt64(exactly: rate.rounded()) ?? .max)) calls/s") }
        parts.append(counted(threads, "thread"))
        if threadTime.count > 0 { parts.append("own code \(percent(own.count, of: threadTime.count))") }
        return parts.joined(separator: ", ")
    }

    /// What is missing, and how the process ended; a phrase each.
    package var notes: [String] {
        var notes: [String] = []
        if losses.missingChunks > 0 {
            notes.append("\(counted(losses.missingChunks, "chunk")) overwritten before they were read: calls are missing (≥)")
        }
        if losses.skippedWords > 0 {
            notes.append("more is written than can be read: \(counted(losses.skippedWords, "event")) skipped (≥)")
        }
        if losses.droppedCalls > 0 { notes.append("\(counted(losses.droppedCalls, "call")) dropped") }
        if losses.filtered > 0 { notes.append("\(counted(losses.filtered, "call")) filtered") }
        if processes.contains(where: \.isTruncated) { notes.append("the trace was truncated while it was read") }
        let ended = processes.filter { $0.state != .recording }
        if isOver, let first = ended.first, processes.count == 1 {
            notes.append(first.state == .stopped ? "recording has stopped" : "\(first.name) has ended, or is not recorded any more")
        } else if isOver, !ended.isEmpty {
            notes.append("all processes have ended")
        }
        return notes
    }

    private static func columns(_ grouping: TopGrouping) -> [String] {
        switch grouping {
        case .function:
            ["calls_per_second", "total_share", "self_share", "p50_ns", "p99_ns", "longest_ns", "open", "oldest_ns", "name", "module"]
        case .module: ["calls_per_second", "self_share", "p50_ns", "p99_ns", "longest_ns", "open", "oldest_ns", "of_module"]
        case .thread: ["tid", "calls_per_second", "total_share", "open", "oldest_ns", "in", "thread", "process"]
        }
    }
    /// Columns that narrow terminals have no space for, the least important first, and the order that needs each.
    private static let dispensable: [(key: String, order: TopOrder?)] = [
        ("process", nil), ("module", nil), ("oldest_ns", nil), ("longest_ns", .longest), ("p50_ns", .median), ("p99_ns", .percentile99),
        ("total_share", .total), ("open", .open), ("thread", nil), ("self_share", .selfTime), ("tid", nil),
    ]

    /// - Parameters:
    ///   - most: rows, 0 all
    ///   - width: columns of the terminal, nil where lines may be of any length
    ///   - isCut: no line is longer, not even where rows then look alike
    package func table(most: Int, width: Int?, names: NameStyle, style: TextStyle, isCut: Bool = false, from first: Int = 0) -> [String] {
        let part = rows.dropFirst(first), shown = most > 0 ? Array(part.prefix(most)) : Array(part)
        if shown.isEmpty { return [view.filter == nil ? "no call is open, and none was made" : "no call matches the filter"] }
        let short = ShortNames(shown.flatMap { [$0.figures.name, $0.innermost ?? ""] }, names)
        let spelt = shown.map { row in
            var row = row
            row.short = { short[$0] }
            return row
        }
        var keys = Self.columns(view.grouping)
        func table() -> TextTable { TextTable(spelt, TopRow.columns(keys)) }
        for (key, order) in Self.dispensable {
            guard let width, keys.contains(key), order != view.order, !table().isReadable(within: width, least: 24) else { continue }
            keys.removeAll { $0 == key }
        }
        let lines = table().lines(TextStyle(isColoured: false), width: width)
        return lines.enumerated().map { index, line in
            let cut = isCut ? clipped(line, width ?? .max) : line
            return index == 0 ? style.dim(cut) : cut
        }
    }

    /// Lines that explain the marks of the rows.
    package var marks: [String] {
        SuppressionMark.notes(
            isSuppressed: rows.contains { $0.figures.isSuppressed }, isCounted: rows.contains { $0.figures.counted != nil },
            holdsSuppressed: false)
    }
}
