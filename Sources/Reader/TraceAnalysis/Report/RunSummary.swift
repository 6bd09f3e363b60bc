// Reads all traces of a run, several at a time, and adds up what each function and each process did. Memory grows with the names and the
// processes, not with calls. A trace is a run of one: what is said of it and not of several is what asks for `only`.
import Presentation

package struct RunSummary: Sendable {
    package let path: String
    /// The trace of a run that is one; nil: there are several, or processes were chosen.
    package let only: TraceFile?
    /// Sums over all traces: of one in its ticks, of several in nanoseconds.
    package var summary: Summary
    /// Parents before their children.
    package let processes: [RunProcess]
    /// Traces that cannot be read, and damage in others: one line each.
    package let warnings: [String]
    /// Programs that processes of the run executed and that have no trace, as far as they are known.
    package var unrecorded: [UnrecordedProcess] { processes.flatMap { $0.images.flatMap(\.unrecorded) } }
    /// The window of time that is reported, nil and null for the whole run.
    package var windowText: String? { if let only { only.windowText(until: summary.end) } else { window?.text } }
    var reportedWindow: ReportedWindow? { if let only { only.reportedWindow(until: summary.end) } else { window?.reported } }
    private var window: RunWindow?
    /// What the times of rows are.
    package let time: CallTime
    /// The conditions that hold for the calls of the rows, as they were written, and for how many of how many they might.
    private(set) var conditions: [String] = []
    private(set) var conditionNote: String?
    /// False: rows are of some threads, or of a part of the time.
    private var isOfAll = true

    /// - Parameters:
    ///   - asRun: as if there were several traces, even if there is one
    ///   - names: rows for functions are wanted
    ///   - states: what of the threads' states is
    ///   - isWanted: whether a trace is; all are without it
    package init(
        _ run: TraceRun, asRun: Bool = false, workers: Int = TraceFile.cpuCount, names: Bool = true, states: StateReading = .nothing,
        progress: ReadingProgress? = nil, _ isWanted: @escaping @Sendable (TraceFile) -> Bool = { _ in true }
    ) {
        let rates = ClockRates(run.files)
        self.init(
            run.path, run.files.map { $0.byteCount }, asRun: asRun, unreadable: run.unreadable, workers: workers, names: names,
            states: states, progress: progress
        ) { index in
            let trace = try TraceFile(path: run.files[index].path, rates: rates)
            return isWanted(trace) ? trace : nil
        }
    }

    /// Sums up traces that are already open, each within its window.
    /// - Parameters:
    ///   - path: their common name
    ///   - window: that of the run; of one trace, its own
    ///   - asRun: as if there were several traces, even if there is one
    package init(
        _ traces: [TraceFile], path: String, window: RunWindow? = nil, asRun: Bool = false, workers: Int = TraceFile.cpuCount,
        names: Bool = true, states: StateReading = .nothing, progress: ReadingProgress? = nil
    ) {
        self.init(
            path, traces.map { $0.usedByteCount }, asRun: asRun, unreadable: [], workers: workers, names: names, states: states,
            progress: progress
        ) { traces[$0] }
        self.window = window
        isOfAll = window == nil && traces.allSatisfy { $0.window.isWhole && $0.chosen == nil }
    }

    private init(
        _ path: String, _ sizes: [UInt64], asRun: Bool, unreadable: [String], workers: Int, names: Bool, states: StateReading,
        progress: ReadingProgress?, _ open: @escaping @Sendable (Int) throws -> TraceFile?
    ) {
        let sharing = WorkSharing(sizes, workers: workers)
        let readers = (0..<sharing.workers).map { _ in RunReader(open, hasNames: names, states) }
        if sizes.count == 1, !asRun {
            readers[0].readOnly(workers: workers, progress: progress)
        } else {
            progress?.begin(sizes.count)
            sharing.forEach { file, worker, isShared in
                readers[worker].read(file, workers: isShared ? workers : 1)
                progress?.advance()
            }
        }
        let rest = readers.dropFirst()
        for reader in rest { readers[0].sums.add(reader.sums) }
        let parts = readers.flatMap { $0.parts }.sorted { $0.index < $1.index }
        self.path = path
        only = readers[0].only
        warnings =
            unreadable + readers.flatMap { $0.failures }
            + parts.flatMap { part in part.image.warnings.map { "\(part.image.path): \($0)" } }
        processes = RunProcess.processes(of: parts.map { $0.image })
        time = states.shown
        if only != nil {
            summary = parts[0].summary
            return
        }
        let begun = parts.map { $0.image.begun }.min() ?? 0, ended = parts.map { $0.image.ended }.max() ?? 0
        summary = Summary(
            parts.map { $0.summary }, duration: Nanoseconds(ended > begun ? ended - begun : 0),
            functions: readers[0].sums.functions(of: states.time))
    }

    /// Shows some calls alone.
    /// - Parameters:
    ///   - calls: how many, of how many for which the conditions might hold
    ///   - rows: a row a function
    mutating func choose(_ rows: [FunctionSummary], calls: (UInt64, of: UInt64), where conditions: [String]) {
        summary.replaceRows(rows)
        self.conditions = conditions
        conditionNote = "where \(conditions.joined(separator: " and ")): \(grouped(calls.0)) of \(counted(calls.of, "call"))"
    }

    /// Returns functions to leave out of another recording; nil: none, or the times are not all of the run's.
    func exclusionAdvice(keeping isNeeded: (String) -> Bool) -> ExclusionAdvice? {
        guard isOfAll, time == .wall else { return nil }
        return ExclusionAdvice(summary, isRing: processes.contains { $0.images.contains { $0.isRing } }, keeping: isNeeded)
    }
}

/// Used by one thread at a time.
private final class RunReader: @unchecked Sendable {
    struct Part {
        var index: Int
        var summary: Summary
        var image: ProcessImage
    }

    private let open: @Sendable (Int) throws -> TraceFile?
    private let hasNames: Bool
    private let states: StateReading
    private let names = NameCache()
    var sums = RunSums()
    private(set) var parts: [Part] = []
    private(set) var only: TraceFile?
    private(set) var failures: [String] = []

    init(_ open: @escaping @Sendable (Int) throws -> TraceFile?, hasNames: Bool, _ states: StateReading) {
        self.open = open
        self.hasNames = hasNames
        self.states = states
    }

    /// One of several traces.
    func read(_ index: Int, workers: Int) {
        guard let trace = opened(index) else { return }
        let table = FunctionNames(unnamed: trace.metadata)
        let summary = Summary(trace, table, workers: workers, states: states) { accumulator, times in
            if hasNames { sums.add(accumulator, times, table, trace, names) }
            return []
        }
        parts.append(Part(index: index, summary: summary, image: ProcessImage(trace, summary)))
    }

    /// The trace of a run of one.
    func readOnly(workers: Int, progress: ReadingProgress?) {
        guard let trace = opened(0) else { return }
        let summary = Summary(trace, workers: workers, names: hasNames, states: states, progress: progress)
        parts.append(Part(index: 0, summary: summary, image: ProcessImage(trace, summary)))
        only = trace
    }

    private func opened(_ index: Int) -> TraceFile? {
        do {
            return try open(index)
        } catch {
            failures.append("\(error)")
            return nil
        }
    }
}
