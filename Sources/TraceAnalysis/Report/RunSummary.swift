// Reads all traces of a run, several at a time, and adds up what each function and each process did. Memory grows with the names and the
// processes, not with calls.
import Presentation

package struct RunSummary: Sendable {
    package let path: String
    /// Sums over all traces.
    package var summary: Summary
    /// Parents before their children.
    package let processes: [RunProcess]
    /// Traces that cannot be read, and damage in others: one line each.
    package let warnings: [String]
    /// The window of time that is reported, nil and null for the whole run.
    package var windowText: String? { window?.text }
    var reportedWindow: ReportedWindow? { window?.reported }
    private var window: RunWindow?

    /// - Parameters:
    ///   - names: rows for functions are wanted
    ///   - isWanted: whether a trace is; all are without it
    package init(
        _ run: TraceRun, workers: Int = TraceFile.cpuCount, names: Bool = true, progress: ReadingProgress? = nil,
        _ isWanted: @escaping @Sendable (TraceFile) -> Bool = { _ in true }
    ) {
        let rates = ClockRates(run.files)
        self.init(
            run.path, run.files.map { $0.byteCount }, unreadable: run.unreadable, workers: workers, names: names, progress: progress
        ) { index in
            let trace = try TraceFile(path: run.files[index].path, rates: rates)
            return isWanted(trace) ? trace : nil
        }
    }

    /// Sums up traces that are already open, each within its window.
    /// - Parameters:
    ///   - path: their common name
    ///   - window: that of the run
    package init(
        _ traces: [TraceFile], path: String, window: RunWindow?, workers: Int = TraceFile.cpuCount, names: Bool = true,
        progress: ReadingProgress? = nil
    ) {
        self.init(path, traces.map { $0.usedByteCount }, unreadable: [], workers: workers, names: names, progress: progress) { traces[$0] }
        self.window = window
    }

    private init(
        _ path: String, _ sizes: [UInt64], unreadable: [String], workers: Int, names: Bool, progress: ReadingProgress?,
        _ open: @escaping @Sendable (Int) throws -> TraceFile?
    ) {
        let sharing = WorkSharing(sizes, workers: workers)
        let readers = (0..<sharing.workers).map { _ in RunReader(open, hasNames: names) }
        progress?.begin(sizes.count)
        sharing.forEach { file, worker, isShared in
            readers[worker].read(file, workers: isShared ? workers : 1)
            progress?.advance()
        }
        let rest = readers.dropFirst()
        for reader in rest { readers[0].sums.add(reader.sums) }
        let parts = readers.flatMap { $0.parts }.sorted { $0.index < $1.index }
        self.path = path
        warnings =
            unreadable + readers.flatMap { $0.failures }
            + parts.flatMap { part in part.image.warnings.map { "\(part.image.path): \($0)" } }
        processes = RunProcess.processes(of: parts.map { $0.image })
        let begun = parts.map { $0.image.begun }.min() ?? 0, ended = parts.map { $0.image.ended }.max() ?? 0
        summary = Summary(
            parts.map { $0.summary }, duration: Nanoseconds(ended > begun ? ended - begun : 0), functions: readers[0].sums.functions())
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
    private let names = NameCache()
    var sums = RunSums()
    private(set) var parts: [Part] = []
    private(set) var failures: [String] = []

    init(_ open: @escaping @Sendable (Int) throws -> TraceFile?, hasNames: Bool) {
        self.open = open
        self.hasNames = hasNames
    }

    func read(_ index: Int, workers: Int) {
        let opened: TraceFile?
        do {
            opened = try open(index)
        } catch {
            failures.append("\(error)")
            return
        }
        guard let trace = opened else { return }
        let table = FunctionNames(unnamed: trace.metadata)
        let summary = Summary(trace, table, workers: workers) { accumulator in
            if hasNames { sums.add(accumulator, table, trace, names) }
            return []
        }
        parts.append(Part(index: index, summary: summary, image: ProcessImage(trace, summary)))
    }
}
