// Turns chunks into pieces of an export. Chunks store the frames open at their beginning, so several workers take
// chunks of one thread at a time; what does not fit where two meet is mended between them.
import CTraceLayout
import TraceFormat

/// Used by one thread at a time.
final class TimelineWorker<Sink: TimelineSink & ~Copyable>: @unchecked Sendable {
    private var stack: CallStack<Timeline<Sink>>
    private var source: ExportSource?
    private var reader: ChunkReader?

    struct Encoded: Sendable {
        var piece = TimelinePiece()
        /// Frames that the chunk stores: what was open when it began.
        var stored: [trace_open_frame] = []
        var open: [Frame] = []
        var latest: UInt64 = 0
        /// Position in the window at which it ends: a `nextBound`.
        var bound = 0
        /// A ring has overwritten the chunk.
        var isGone = false
    }

    init(_ sink: consuming Sink) {
        stack = CallStack(Timeline(sink), rowCount: 0, deepest: Timeline<Sink>.deepest)
    }

    var migrated: [CallEnds.Key: UInt64] { stack.sink.migrated }

    private func begin(_ thread: ExportThread) {
        if source !== thread.source {
            source = thread.source
            stack.setWindow(thread.source.trace.window)
            reader = ChunkReader(thread.source.trace)
            stack.sink.setTable(thread.source.table)
        }
        stack.abandon()
        stack.sink.start(thread)
    }

    private func ended(_ latest: UInt64, _ stored: [trace_open_frame]) -> Encoded {
        let open = (0..<stack.frames.count).map { stack.frames[$0] }
        return Encoded(piece: stack.sink.sink.takePiece(), stored: stored, open: open, latest: latest, bound: stack.nextBound)
    }

    /// A chunk that stores all its frames, of which nothing is said: `seam` or the chunk before has.
    /// - Parameter end: the opening of the thread's next, in ticks; nil for the last
    func encode(_ listed: Chunk, of thread: ExportThread, until end: UInt64?) -> Encoded {
        begin(thread)
        stack.seek(listed.opened.ticks)
        guard let chunk = reader!.settled(listed) else { return Encoded(isGone: true) }
        let stored = reader!.storedFrames(chunk)
        stack.sink.isSilent = true
        stack.adopt(stored, bottom: 0, latest: 0, areCalls: false)
        stack.sink.isSilent = false
        let latest = reader!.read(chunk, into: &stack)
        if let end { stack.advance(to: end) }
        return ended(latest, stored)
    }

    /// Before chunks that do not say alone what is open: `open` are the frames at the end of the chunk before.
    func beginCut(_ thread: ExportThread, open: [Frame], bound: Int) {
        begin(thread)
        takeUp(open, bound)
    }
    /// The next of these chunks. What it leaves open is not copied: there may be millions of frames, and as many chunks as go with them.
    /// nil: a ring has overwritten it.
    func encodeCut(_ listed: Chunk, of thread: ExportThread, until end: UInt64?, after previous: Chunk?, missing: UInt64, latest: UInt64)
        -> (piece: TimelinePiece, latest: UInt64)?
    {
        guard let chunk = reader!.settled(listed) else { return nil }
        stack.sink.goOn(thread)
        stack.sink.isInherited = true
        stack.begin(chunk, reader!.storedFrames(chunk), after: previous, latest: latest, areCalls: true)
        stack.sink.isInherited = false
        note(missing, before: chunk.opened.ticks)
        let last = max(latest, reader!.read(chunk, into: &stack))
        if let end { stack.advance(to: end) }
        return (stack.sink.sink.takePiece(), last)
    }
    /// What is open after the last of these chunks.
    var openAfterCut: (frames: [Frame], bound: Int) { ((0..<stack.frames.count).map { stack.frames[$0] }, stack.nextBound) }

    /// The frames that began before it have been opened.
    private func note(_ missing: UInt64, before opened: UInt64) {
        if missing == 0 { return }
        stack.advance(to: opened)
        if stack.isInside { stack.sink.missing(missing, at: opened) }
    }

    /// Encodes what lies between a chunk and the next: frames that ended in a gap, and those that began in it. nil: nothing.
    func seam(
        _ thread: ExportThread, open: [Frame], latest: UInt64, stored: [trace_open_frame], missing: UInt64,
        opened: UInt64, bound: Int
    ) -> Encoded? {
        if missing == 0, isSame(open, stored) { return nil }
        begin(thread)
        takeUp(open, bound)
        stack.sink.isInherited = true
        stack.adopt(stored, bottom: 0, latest: latest, areCalls: true)
        stack.sink.isInherited = false
        stack.advance(to: opened)
        note(missing, before: opened)
        return ended(latest, stored)
    }

    /// The end of the thread, for the frames still open.
    func finish(_ thread: ExportThread, open: [Frame], latest: UInt64, bound: Int, migrated: [CallEnds.Key: UInt64]) -> Encoded {
        begin(thread)
        takeUp(open, bound)
        let end = thread.atEnd
        stack.advance(before: end.time)
        guard stack.isInside else {
            stack.abandon()
            return Encoded(piece: stack.sink.sink.takePiece())
        }
        var moment = latest
        for index in open.indices.reversed() {
            let frame = open[index]
            if let migratedAt = migrated[.init(enter: frame.enter, row: frame.row)] {
                moment = max(moment, migratedAt)
                stack.sink.close(frame.row &- 1, at: moment, depth: index, .returnedElsewhere)
            } else {
                stack.sink.close(frame.row &- 1, at: max(end.time, moment), depth: index, TimelineEnd(end.how))
            }
        }
        stack.abandon()
        return Encoded(piece: stack.sink.sink.takePiece())
    }

    private func takeUp(_ open: [Frame], _ bound: Int) {
        stack.resume(bound)
        stack.restore(open)
        guard stack.isInside else { return }
        stack.sink.isSilent = true
        for (depth, frame) in open.enumerated() {
            var frame = frame
            stack.sink.opened(&frame, parent: .nobody, at: frame.enter, depth: depth, isCall: false)
        }
        stack.sink.isSilent = false
    }

    private func isSame(_ open: [Frame], _ stored: [trace_open_frame]) -> Bool {
        open.count == stored.count && zip(open, stored).allSatisfy { $0.enter == $1.enter_ticks && $0.row == $1.function &+ 1 }
    }
}
