// When a call ends that is still running, without reading all that lies between: each chunk stores the frames that were
// open when it began, so that a few of them, halving the distance, determine the one in which the call ended. That one is
// decoded.
import CTraceLayout
import TraceFormat

/// The end of a trace and of its threads, from `ThreadEnds` and the latest events, which are read when somebody asks.
package final class TraceEnd {
    private let trace: TraceFile
    /// Latest events by thread index.
    private lazy var latestOfThread: [UInt32: UInt64] = {
        var reader = ChunkReader(trace)
        var all: [UInt32: UInt64] = [:]
        for chunks in trace.chunksOfThread {
            guard let chunk = chunks.last.flatMap({ reader.settled($0) }) else { continue }
            var stack = CallStack(EndSink(wanted: []), rowCount: 0)
            all[chunk.thread] = max(reader.read(chunk, into: &stack), chunk.opened.ticks)
        }
        return all
    }()
    private lazy var latest = latestOfThread.values.max() ?? 0

    /// The end of the process, as far as it is known.
    package var ticks: Ticks { Ticks(max(trace.ends.process.raw, latest)) }

    package init(_ trace: TraceFile) { self.trace = trace }

    /// When calls end that the thread leaves open.
    func end(of thread: UInt32) -> CallEnds.End { CallEnds.End(trace.ends, of: thread, after: latestOfThread[thread] ?? 0, latest: latest) }
}

/// Finds the ends of one thread's calls; its chunks must store all their open frames.
final class CallEnds {
    /// Its row is as in `EndSink`.
    typealias Key = FrameKey
    struct End: Sendable {
        var time: UInt64
        var how: Ending
        /// What the call returned, if that is recorded.
        var result: RecordedValues?

        init(time: UInt64, how: Ending, result: RecordedValues? = nil) {
            self.time = time
            self.how = how
            self.result = result
        }

        /// The end of calls that the thread leaves open after an event at `last`. `latest`: the latest event of all threads.
        init(_ ends: ThreadEnds, of thread: UInt32, after last: UInt64, latest: UInt64) {
            let end = ends.end(of: thread, after: last, latest: latest)
            self.init(time: end.time, how: end.isOwn ? .unwound : .open)
        }
    }

    private var reader: ChunkReader
    private let chunks: [Chunk]
    private let atEnd: () -> End
    /// Ends found ahead, of other calls that will be asked for.
    private var known: [Key: End] = [:]

    /// - Parameter atEnd: the end of calls that are still open after the last chunk
    init(_ trace: TraceFile, _ chunks: [Chunk], atEnd: @escaping () -> End) {
        reader = ChunkReader(trace)
        self.chunks = chunks
        self.atEnd = atEnd
    }

    func take(_ key: Key) -> End? { known.isEmpty ? nil : known.removeValue(forKey: key) }

    /// The call runs on after the chunk of this index. False when it ends in the next or between the two, where a
    /// reading will find it; else `take` has it. `wanted`: others that will be asked for.
    func lookAhead(_ key: Key, after index: Int, _ wanted: Set<Key>) -> Bool {
        guard index + 2 < chunks.count, isStored(key, in: index + 1), isStored(key, in: index + 2) else { return false }
        search(key, from: index + 2, wanted)
        return true
    }

    /// The call is open somewhere in the chunk of this index.
    func lookAhead(_ key: Key, within index: Int, _ wanted: Set<Key>) {
        scan(index, wanted)
        if known[key] == nil { search(key, from: index, wanted) }
    }

    /// Finds the last chunk that the call was open in: steps that double, then halves.
    private func search(_ key: Key, from index: Int, _ wanted: Set<Key>) {
        var low = index, step = 1
        while low + step < chunks.count, isStored(key, in: low + step) {
            low += step
            step *= 2
        }
        var high = min(low + step, chunks.count)
        while high - low > 1 {
            let middle = low + (high - low) / 2
            if isStored(key, in: middle) { low = middle } else { high = middle }
        }
        scan(low, wanted)
    }

    private func isStored(_ key: Key, in index: Int) -> Bool {
        guard let chunk = reader.settled(chunks[index]) else { return false }
        return reader.storedFrames(chunk).contains { $0.enter_ticks == key.enter && EndSink.row($0.function) == key.row }
    }

    /// Decodes a chunk and notes the ends of the `wanted` that lie in it, or between it and the next.
    private func scan(_ index: Int, _ wanted: Set<Key>) {
        guard let chunk = reader.settled(chunks[index]) else { return }
        var stack = CallStack(EndSink(wanted: wanted), rowCount: 0)
        stack.adopt(reader.storedFrames(chunk), bottom: 0, latest: 0, areCalls: false)
        let latest = reader.read(chunk, into: &stack)
        known.merge(stack.sink.ends) { $1 }
        var next: Set<Key>?
        if index + 1 < chunks.count {
            let frames = reader.settled(chunks[index + 1]).map { reader.storedFrames($0) } ?? []
            next = Set(frames.map { Key(enter: $0.enter_ticks, row: EndSink.row($0.function)) })
        }
        for index in 0..<stack.frames.count {
            let frame = stack.frames[index]
            guard wanted.contains(frame.key), next?.contains(frame.key) != true else { continue }
            var end = next == nil ? atEnd() : End(time: latest, how: .lost)
            end.time = max(end.time, frame.enter)
            known[frame.key] = end
        }
    }
}

private struct EndSink: CallSink {
    let wanted: Set<CallEnds.Key>
    var ends: [CallEnds.Key: CallEnds.End] = [:]
    private var result: RecordedValues?

    init(wanted: Set<CallEnds.Key>) { self.wanted = wanted }

    static var wantsArguments: Bool { true }
    mutating func nextResult(_ values: RecordedValues?) { result = values }

    static func row(_ function: UInt32) -> UInt32 { function &+ 1 } // 0 is nobody

    mutating func row(of function: UInt32) -> UInt32 { Self.row(function) }
    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending) {
        let result = ending == .returned ? result.take() : nil
        if wanted.contains(frame.key) { ends[frame.key] = CallEnds.End(time: time, how: ending, result: result) }
    }
}
