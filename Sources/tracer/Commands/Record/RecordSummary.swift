// The few lines on stderr when a recorded program has ended.
import Presentation
import Recorder
import TraceAnalysis

struct RecordSummary {
    let lines: [String]

    init(_ result: RecordingResult) {
        guard let main = result.files.last(where: \.isRoot) ?? result.files.first else {
            // The first line already speaks of programs that created no file.
            let unrecorded = result.unrecorded.map {
                UnrecordedProcess(
                    reason: $0.reason, pid: UInt32(bitPattern: $0.pid), parentPid: UInt32(bitPattern: $0.parent), at: $0.at,
                    program: $0.path)
            }.filter { $0.reason != .noFile }
            lines =
                ["no trace was written: the agent was not loaded, or could not write it (see its message above)"]
                + [unrecorded.text].compactMap { $0 }
            return
        }
        let path = result.path ?? main.path
        let bytes = result.files.reduce(0) { $0 &+ $1.bytes }
        // Names take time, and few calls need no advice.
        let whole = RunSummary(
            TraceRun(path: path, files: result.files.map { $0.path }), names: bytes >= ExclusionAdvice.leastBytes)
        var first = "\(path): " + RecordSummary.counts(whole, bytes, main.path)
        if whole.processes.count > 1 { first += ", \(counted(whole.processes.count, "process", "processes"))" }
        if result.path == nil, result.files.count > 1 {
            first += "; \(counted(result.files.count - 1, "more file")) of this run next to it"
        }
        let writing = result.files.count { $0.isBeingWritten }
        if writing > 0 { first += ", \(writing) still being written" }
        var notes = Set(whole.processes.flatMap { $0.images.flatMap { $0.notes } }).sorted()
        for text in Set(whole.processes.flatMap { $0.images.compactMap { $0.kernelRefusal } }).sorted() {
            notes.append("kernel events: \(text)")
        }
        if result.statesAreCut { notes.append("some kernel events could not be written: is the disk full?") }
        lines =
            [first] + [whole.unrecorded.text].compactMap { $0 } + RecordSummary.losses(whole, main.path).map { "lost: \($0)" }
            + notes.map { "note: \($0)" } + (whole.exclusionAdvice.map { ["less to record: \($0.text)"] } ?? []) + [
                "next: tracer \(Self.called(whole, main.path) == nil ? "report" : "coverage") \(shellWord(path))"
            ]
    }

    /// One line for each trace that lacks calls, the program's own first; no more than a few.
    private static func losses(_ whole: RunSummary, _ main: String) -> [String] {
        let most = 5
        let images = whole.processes.flatMap { $0.images }
        let found = (images.filter { $0.path == main } + images.filter { $0.path != main }).compactMap { image in
            image.lossText.map { "\(image.path): \($0)" }
        }
        return found.count <= most ? found : found.prefix(most) + ["\(found.count - most) more files are incomplete: see tracer info"]
    }

    /// Functions that the program called (its children begin with those of their parents); nil: calls were recorded.
    private static func called(_ whole: RunSummary, _ main: String) -> Int? {
        whole.processes.lazy.flatMap(\.images).first { $0.path == main }?.calledCount
    }

    func print() {
        for line in lines { complain(line) }
    }

    private static func counts(_ whole: RunSummary, _ bytes: UInt64, _ main: String) -> String {
        guard !whole.processes.isEmpty else { return "\(readable(byteCount: bytes)), which cannot be read back" }
        if let called = called(whole, main) { return "\(counted(called, "function")) called, \(readable(byteCount: bytes))" }
        let summary = whole.summary
        // Chunks that a ring overwrote were recorded and are gone.
        let missing = summary.threads.reduce(0) { $0 &+ $1.missingChunks },
            isRing = whole.processes.contains { $0.images.contains { $0.isRing } }
        let onlyCounted = summary.onlyCounted > 0 ? "\(grouped(summary.onlyCounted)) only counted, " : ""
        return
            "\(grouped(summary.recordedCalls)) calls recorded, \(onlyCounted)\(grouped(summary.filteredByTime + summary.filteredByDepth)) filtered, "
            + "\(grouped(summary.dropped)) dropped, "
            + (missing > 0 ? "\(counted(missing, "chunk")) of older calls \(isRing ? "overwritten" : "missing"), " : "")
            + readable(byteCount: bytes)
    }
}
