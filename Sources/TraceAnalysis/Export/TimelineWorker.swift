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
        /// A ring has overwritten the chunk.
        var isGone = false
    }

    init(_ sink: consuming Sink) {
        stack = CallStack(Timeline(sink), slotCount: 0, deepest: Timeline<Sink>.deepest)
    }

    var migrated: [CallEnds.Key: UInt64] { stack.sink.migrated }

    private func begin(_ thread: ExportThread) {
        if source !== thread.source {
            source = thread.source
            reader = ChunkReader(thread.source.trace)
            stack.sink.setTable(thread.source.table)
        }
        stack.abandon()
        stack.sink.start(thread)
    }

    private func ended(_ latest: UInt64, _ stored: [trace_open_frame]) -> Encoded {
        let open = (0 ..< stack.frames.count).map { stack.frames[$0] }
        return Encoded(piece: stack.sink.sink.takePiece(), stored: stored, open: open, latest: latest)
    }

    /// A chunk that stores all its frames, of which nothing is said: `seam` or the chunk before has.
    func encode(_ listed: Chunk, of thread: ExportThread) -> Encoded {
        begin(thread)
        guard let chunk = reader!.settled(listed) else { return Encoded(isGone: true) }
        let stored = reader!.storedFrames(chunk)
        stack.sink.isSilent = true
        stack.adopt(stored, bottom: 0, latest: 0, areCalls: false)
        stack.sink.isSilent = false
        return ended(reader!.read(chunk, into: &stack), stored)
    }

    /// A chunk that does not say alone what is open: `open` are the frames at the end of the chunk before.
    func encodeCut(_ listed: Chunk, of thread: ExportThread, after previous: Chunk?, open: [Frame], latest: UInt64) -> Encoded {
        begin(thread)
        takeUp(open)
        guard let chunk = reader!.settled(listed) else {
            var encoded = ended(latest, [])
            encoded.isGone = true
            return encoded
        }
        stack.sink.isInherited = true
        stack.begin(chunk, reader!.storedFrames(chunk), after: previous, latest: latest, areCalls: true)
        stack.sink.isInherited = false
        return ended(max(latest, reader!.read(chunk, into: &stack)), [])
    }

    /// What lies between a chunk and the next: frames that ended in a gap, those that began in it.
    func seam(_ thread: ExportThread, open: [Frame], latest: UInt64, stored: [trace_open_frame], missing: UInt64,
              opened: UInt64) -> Encoded? {
        if missing == 0, isSame(open, stored) { return nil }
        begin(thread)
        takeUp(open)
        stack.sink.isInherited = true
        stack.adopt(stored, bottom: 0, latest: latest, areCalls: true)
        stack.sink.isInherited = false
        if missing > 0 { stack.sink.missing(missing, at: opened) } // behind the frames that began before it
        return ended(latest, stored)
    }

    /// The end of the thread, for the frames still open.
    func finish(_ thread: ExportThread, open: [Frame], latest: UInt64, migrated: [CallEnds.Key: UInt64]) -> Encoded {
        begin(thread)
        takeUp(open)
        let end = thread.atEnd
        var moment = latest
        for index in open.indices.reversed() {
            let frame = open[index]
            if let moved = migrated[.init(enter: frame.enter, slot: frame.slot)] {
                moment = max(moment, moved)
                stack.sink.close(frame.slot &- 1, at: moment, depth: index, .moved)
            } else {
                stack.sink.close(frame.slot &- 1, at: max(end.time, moment), depth: index, TimelineEnd(end.how))
            }
        }
        stack.abandon()
        return Encoded(piece: stack.sink.sink.takePiece())
    }

    private func takeUp(_ open: [Frame]) {
        stack.restore(open)
        stack.sink.isSilent = true
        for (depth, frame) in open.enumerated() {
            var frame = frame
            stack.sink.opened(&frame, parent: .nobody, at: frame.enter, depth: depth, isCall: false)
        }
        stack.sink.isSilent = false
    }

    private func isSame(_ open: [Frame], _ stored: [trace_open_frame]) -> Bool {
        open.count == stored.count && zip(open, stored).allSatisfy { $0.enter == $1.enter_ticks && $0.slot == $1.function &+ 1 }
    }
}
