// A trace of which some threads are shown. What else depends on the others stays: when it ends, which calls return on another thread, who
// wakes whom.
import TraceFormat

extension TraceFile {
    /// The same trace, of which only the threads that the pattern names are shown. Precondition: none were chosen before.
    package func only(_ pattern: ThreadPattern) -> TraceFile {
        var copy = self
        copy.chosen = pattern
        copy.ends = ends.lasting(until: TraceEnd(self).ticks)
        copy.chunksOfThread = []
        for chunks in chunksOfThread {
            let isShown = chunks.last.map { copy.shows(tid: $0.tid, name: threadName($0.thread)) } ?? false
            if isShown { copy.chunksOfThread.append(chunks) } else { copy.otherChunks.append(chunks) }
        }
        return copy
    }

    /// The same trace as if it had these threads alone, by their indices.
    package func only(_ threads: Set<UInt32>) -> TraceFile {
        var copy = self
        copy.chunksOfThread = chunksOfThread.filter { $0.first.map { threads.contains($0.thread) } ?? false }
        copy.otherChunks = []
        return copy
    }

    /// True if readers report this thread.
    func shows(tid: UInt32, name: String) -> Bool { chosen?.matches(tid: tid, pid: header.pid, name: name) ?? true }

    /// The same trace with all of its threads.
    package var ofAllThreads: TraceFile {
        guard chosen != nil else { return self }
        var copy = self
        copy.chosen = nil
        copy.chunksOfThread = (chunksOfThread + otherChunks).sorted { ($0.first?.thread ?? 0) < ($1.first?.thread ?? 0) }
        copy.otherChunks = []
        return copy
    }

    /// The same trace with the threads that are not shown; nil: all are.
    var ofOtherThreads: TraceFile? {
        guard !otherChunks.isEmpty else { return nil }
        var copy = ofAllThreads
        copy.chunksOfThread = otherChunks
        return copy
    }

    /// Names by thread id: of threads that had the same one, that of the last.
    var namesOfThreadIDs: [UInt32: String] {
        Dictionary(chunksOfThread.compactMap { $0.last }.map { ($0.tid, threadName($0.thread)) }, uniquingKeysWith: { $1 })
    }
}
