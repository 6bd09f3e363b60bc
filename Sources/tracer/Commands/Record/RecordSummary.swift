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
        var all = [first]
        all += [whole.unrecorded.text].compactMap { $0 }
        all += RecordSummary.losses(whole, main.path).map { "lost: \($0)" }
        all += notes.map { "note: \($0)" }
        all += result.snapshots.map { Self.snapshots($0) } ?? []
        all += whole.exclusionAdvice.map { ["less to record: \($0.text)"] } ?? []
        all.append("next: tracer \(Self.called(whole, main.path) == nil ? "report" : "coverage") \(shellWord(path))")
        lines = all
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

    /// At most a few by name.
    private static func snapshots(_ kept: KeptSnapshots) -> [String] {
        let most = 5
        var lines = kept.paths.prefix(most).map { "snapshot: tracer report \(shellWord($0))" }
        if kept.paths.count > most { lines.append("snapshot: \(kept.paths.count - most) more next to them") }
        if kept.watched == 0, !kept.patterns.isEmpty {
            lines.append(
                "no function was watched: nothing that could be recorded has the name \(listed(kept.patterns, most: 4)) (names of C++ are the linker's: '*\(kept.patterns[0])*')"
            )
        } else if kept.watched == 0, !kept.events.isEmpty {
            lines.append("nothing was watched: no function that tells of \(listed(kept.events, most: 4)) could be recorded")
        } else if kept.paths.isEmpty, kept.failed == 0, !(kept.patterns + kept.events).isEmpty {
            lines.append("no snapshot: no call was as --when says")
        }
        if kept.passed > 0 {
            lines.append("\(counted(kept.passed, "more call")) asked for a snapshot: those that were taken are of the longest")
        }
        if kept.missed > 0 { lines.append("lost: \(counted(kept.missed, "call")) came too fast one after the other for a snapshot") }
        if let problem = kept.problem { lines.append("lost: \(counted(kept.failed, "snapshot")) could not be written: \(problem)") }
        return lines
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
            "\(grouped(summary.recordedCalls)) calls recorded, \(onlyCounted)\(grouped(summary.filtered)) filtered, "
            + "\(grouped(summary.dropped)) dropped, "
            + (missing > 0 ? "\(counted(missing, "chunk")) of older calls \(isRing ? "overwritten" : "missing"), " : "")
            + readable(byteCount: bytes)
    }
}
