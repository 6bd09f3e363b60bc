// The files that the processes of a run used, made of the recorded calls alone.
import CTraceLayout
import Presentation
import TraceFormat

package struct FileReport: Sendable {
    package enum Order: String, CaseIterable, Sendable { case time, first, bytes, opens, path }

    package private(set) var files: [FileUse] = []
    /// When the run's first process was ready, since its beginning; nil: it never was.
    let ready: Int64?
    /// Why the kernel has not reported waits.
    let missing: String?
    /// Calls on descriptors that are no files, how many such descriptors there were, and calls on descriptors of which nothing is known.
    private(set) var otherCalls = 0, otherDescriptors = 0, unknownCalls = 0
    /// Calls of functions that use files, but without their arguments.
    private(set) var without: UInt64 = 0
    /// How many of them only ask about a path.
    private(set) var lookUpsWithout: UInt64 = 0
    private(set) var isTooMany = false
    private let losses: [String]
    /// Calls of functions that use files and were not to be recorded (`record --when`).
    private var keptConditions = KeptConditions()

    private var indices: [String: Int] = [:]
    private var others: Set<UInt64> = []

    /// - Parameters:
    ///   - traces: of a run, whole
    ///   - until: calls that begin later are left out; nil: none is. Where given, there is one trace
    package init(_ traces: [TraceFile], until: Ticks? = nil, workers: Int = TraceFile.cpuCount, progress: ReadingProgress? = nil) {
        let origin = traces.map { $0.header.first.monotonic_ns }.min() ?? 0
        missing = traces.compactMap(\.noSwitches).first
        losses = Losses(traces).lost
        let root = traces.min { $0.header.first.monotonic_ns < $1.header.first.monotonic_ns }
        ready = root.flatMap { root in root.readyMoment(symbol: nil).moment.map { FileClock(root, origin).time($0.ticks.raw) } }
        for trace in traces { keptConditions.add(trace.keptConditions(of: FileFunction.isName)) }
        var tables: [FileTable] = []
        // A parent begins before its children.
        let ordered = traces.sorted { $0.header.first.monotonic_ns < $1.header.first.monotonic_ns }
        for (n, trace) in ordered.enumerated() {
            let part = Double(n) / Double(max(ordered.count, 1)), next = Double(n + 1) / Double(max(ordered.count, 1))
            let table = progress.part(part, next) {
                read(
                    trace, FileClock(trace, origin), parent(of: trace, in: ordered[..<n], tables), until: until?.raw ?? .max,
                    workers: workers, progress: progress)
            }
            tables.append(table)
        }
        otherDescriptors = others.count
    }

    /// The table of the process that it was forked from or executed in, and whether it was executed; nil: that has no trace.
    private func parent(of trace: TraceFile, in earlier: ArraySlice<TraceFile>, _ tables: [FileTable])
        -> (FileTable, isExecuted: Bool, isOther: Bool)?
    {
        let pid = trace.header.pid
        guard
            let index = earlier.lastIndex(where: { $0.header.pid == pid })
                ?? earlier.lastIndex(where: { $0.header.pid == trace.header.parent_pid })
        else { return nil }
        return (tables[index], !trace.isOfFork, earlier[index].header.pid != pid && !trace.isOfFork)
    }

    private mutating func read(
        _ trace: TraceFile, _ clock: FileClock, _ parent: (table: FileTable, isExecuted: Bool, isOther: Bool)?, until: UInt64,
        workers: Int, progress: ReadingProgress?
    ) -> FileTable {
        let folder = trace.metadata.texts[TRACE_TEXT_DIRECTORY]?.first.flatMap { $0.isEmpty ? nil : $0 }
        var table =
            parent.map {
                FileTable(
                    of: $0.table, at: clock.time(trace.firstTicks.raw), isExecuted: $0.isExecuted, isOther: $0.isOther, folder: folder)
            }
            ?? FileTable(folder: folder)
        let names = FunctionNames(trace.metadata), functions = FileFunction.all(names)
        guard functions.contains(where: { $0 != nil }) else { return table }
        let found = FileCalls.found(in: trace, names, functions, workers: workers, progress: progress)
        without &+= found.without
        lookUpsWithout &+= found.lookUpsWithout
        isTooMany = isTooMany || found.isTooMany
        var reading = FileReading(trace, clock, names)
        let calls = until == .max ? found.calls : found.calls.filter { $0.begin < until }
        for step in FileReading.steps(calls, reading.opened) { reading.take(step, calls, &table, &self) }
        return table
    }

    mutating func add(_ path: String, _ body: (inout FileUse) -> Void) {
        let index = indices[path] ?? files.count
        if index == files.count {
            indices[path] = index
            files.append(FileUse(path: path))
        }
        body(&files[index])
    }
    mutating func addOther(_ descriptor: UInt64, of pid: UInt32) {
        otherCalls += 1
        others.insert(UInt64(pid) << 32 | descriptor)
    }
    mutating func addUnknown() { unknownCalls += 1 }

    /// Leaves these, in this order.
    package func chosen(_ isWanted: (String) -> Bool, by order: Order, limit: Int) -> [FileUse] {
        let rows = files.filter { isWanted($0.path) }
        func figure(_ use: FileUse) -> Int64 {
            switch order {
            case .time: -Int64(clamping: use.time.count)
            case .first: use.first
            case .bytes: -Int64(clamping: use[.read].bytes &+ use[.write].bytes)
            case .opens: -Int64(use[.open].calls)
            case .path: 0
            }
        }
        let sorted = rows.map { (figure($0), $0) }.sorted { ($0.0, $0.1.path) < ($1.0, $1.1.path) }.map(\.1)
        return limit > 0 ? Array(sorted.prefix(limit)) : sorted
    }

    /// Why there is none to show; nil: there are files.
    package var noFiles: String? {
        guard files.isEmpty else { return nil }
        return without > 0
            ? "its calls are recorded without their arguments: record with --files"
            : "no call that uses a file" + losses.map { ", \($0)" }.joined()
    }

    /// What is not counted, as it is in most traces, one line each.
    var remarks: [String] {
        var notes: [String] = []
        if otherCalls > 0 {
            notes.append(
                "\(counted(otherCalls, "call")) on \(counted(otherDescriptors, "descriptor")) that \(otherDescriptors == 1 ? "is no file: a pipe, socket or other" : "are no files: pipes, sockets and others")"
            )
        }
        if unknownCalls > 0 {
            notes.append("\(counted(unknownCalls, "call")) on descriptors of which the trace does not say what they are")
        }
        if lookUpsWithout > 0 {
            notes.append(
                "\(counted(lookUpsWithout, "look-up")) (stat, access and others) without \(lookUpsWithout == 1 ? "its path" : "their paths"): record --files has them"
            )
        }
        let rest = without &- lookUpsWithout
        if rest > 0 { notes.append("\(counted(rest, "other call")) recorded without arguments \(rest == 1 ? "is" : "are") not counted") }
        return notes
    }
    /// What is missing, one line each.
    var alarms: [String] {
        var notes: [String] = []
        if isTooMany { notes.append("there are too many calls to keep them all: the rest is missing") }
        if let text = keptConditions.text { notes.append(text) }
        if !losses.isEmpty { notes.append("not in the trace: \(losses.joined(separator: ", "))") }
        return notes
    }
}

/// The clock of a run.
struct FileClock {
    private let trace: TraceFile
    private let since: Int64

    init(_ trace: TraceFile, _ origin: UInt64) {
        self.trace = trace
        since = Int64(truncatingIfNeeded: trace.header.first.monotonic_ns &- origin)
    }
    func time(_ ticks: UInt64) -> Int64 {
        since &+ trace.timeScale.signedNanoseconds(Int64(truncatingIfNeeded: ticks &- trace.firstTicks.raw))
    }
    func length(from begin: UInt64, to end: UInt64) -> Nanoseconds { trace.timeScale.nanoseconds(end > begin ? end - begin : 0) }
}
