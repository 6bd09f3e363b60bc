// Writes traces in the order of time: threads one after the other, the chunks of each in their order, encoded by as
// many workers as there are CPUs. A worker holds what it makes of a chunk, a batch a few of those: memory does
// not grow with the trace.
import Dispatch
import Synchronization
import TraceFormat

/// The frame of a file around the pieces that the workers make.
package protocol TimelineWriter {
    mutating func begin(_ sources: [ExportSource]) throws
    mutating func begin(_ thread: ExportThread) throws
    mutating func write(_ piece: TimelinePiece, of thread: ExportThread) throws
    mutating func end(_ thread: ExportThread) throws
    mutating func end() throws
}

package struct TimelineExport<Sink: TimelineSink & ~Copyable> {
    private let workers: [TimelineWorker<Sink>]

    package init(workers count: Int, _ sink: () -> Sink) {
        workers = (0..<max(count, 1)).map { _ in TimelineWorker(sink()) }
    }

    private typealias Encoded = TimelineWorker<Sink>.Encoded

    /// State of a thread between two pieces.
    private struct Progress {
        var open: [Frame] = []
        var latest: UInt64 = 0
        var previous: Chunk?
        /// In the window, as `CallStack.nextBound`.
        var bound = 0
    }

    package func write<Writer: TimelineWriter>(_ sources: [ExportSource], to writer: inout Writer) throws {
        try writer.begin(sources)
        for source in sources {
            for thread in source.threads {
                try writer.begin(thread)
                try write(thread, to: &writer)
                try writer.end(thread)
            }
        }
        try writer.end()
    }

    private func write<Writer: TimelineWriter>(_ thread: ExportThread, to writer: inout Writer) throws {
        var progress = Progress()
        var index = 0
        while index < thread.chunks.count {
            if thread.chunks[index].isCut {
                let cut = thread.chunks[index...].prefix { $0.isCut }
                try writeCut(cut, of: thread, &progress, to: &writer)
                index = cut.endIndex
                continue
            }
            let batch = thread.chunks[index...].prefix(workers.count * 4).prefix { !$0.isCut }
            for (chunk, encoded) in zip(batch, encode(batch, of: thread)) where !encoded.isGone {
                if let seam = workers[0].seam(
                    thread, open: progress.open, latest: progress.latest, stored: encoded.stored,
                    missing: missing(chunk, progress), opened: chunk.opened.ticks, bound: progress.bound)
                {
                    try writer.write(seam.piece, of: thread)
                }
                try writer.write(encoded.piece, of: thread)
                progress = Progress(open: encoded.open, latest: max(progress.latest, encoded.latest), previous: chunk, bound: encoded.bound)
            }
            index += batch.count
        }
        var migrated: [CallEnds.Key: UInt64] = [:]
        for worker in workers { migrated.merge(worker.migrated) { $1 } }
        let last = workers[0].finish(thread, open: progress.open, latest: progress.latest, bound: progress.bound, migrated: migrated)
        try writer.write(last.piece, of: thread)
    }

    private func missing(_ chunk: Chunk, _ progress: Progress) -> UInt64 {
        chunk.sequence &- (progress.previous.map { $0.sequence &+ 1 } ?? 0)
    }

    private func writeCut<Writer: TimelineWriter>(
        _ chunks: ArraySlice<Chunk>, of thread: ExportThread, _ progress: inout Progress, to writer: inout Writer
    ) throws {
        workers[0].beginCut(thread, open: progress.open, bound: progress.bound)
        for (index, chunk) in zip(chunks.indices, chunks) {
            guard
                let encoded = workers[0].encodeCut(
                    chunk, of: thread, until: opened(index + 1, of: thread), after: progress.previous, missing: missing(chunk, progress),
                    latest: progress.latest)
            else { continue }
            try writer.write(encoded.piece, of: thread)
            (progress.latest, progress.previous) = (encoded.latest, chunk)
        }
        (progress.open, progress.bound) = workers[0].openAfterCut
    }

    /// Ticks at which the thread began this chunk; nil when it has none.
    private func opened(_ index: Int, of thread: ExportThread) -> UInt64? {
        index < thread.chunks.count ? thread.chunks[index].opened.ticks : nil
    }

    private func encode(_ batch: ArraySlice<Chunk>, of thread: ExportThread) -> [Encoded] {
        let results = Mutex([Encoded](repeating: Encoded(), count: batch.count))
        let next = Atomic<Int>(0)
        let ends = batch.indices.map { opened($0 + 1, of: thread) }
        DispatchQueue.concurrentPerform(iterations: min(workers.count, batch.count)) { [workers] worker in
            while true {
                let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
                guard index < batch.count else { return }
                let encoded = workers[worker].encode(batch[batch.startIndex + index], of: thread, until: ends[index])
                results.withLock { $0[index] = encoded }
            }
        }
        return results.withLock { $0 }
    }
}
