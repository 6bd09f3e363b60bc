// From when to when a thread runs the program's code, so that what no recorded call covers of it can be determined: own code.
import CTraceLayout
import Presentation
import TraceFormat

struct ThreadSpan: Sendable, Equatable {
    var begin: UInt64
    var end: UInt64

    /// The part of it that lies in the window, in ticks.
    var length: UInt64 = 0

    static let nothing = ThreadSpan(begin: 0, end: 0)

    /// Returns the part of `length` that no call covers.
    func own(_ covered: CoveredTime?) -> UInt64 { length - min(covered?.inSpan ?? 0, length) }
    /// How much of a call lies in it.
    @inline(__always) func overlap(_ start: UInt64, _ stop: UInt64) -> UInt64 {
        let low = max(start, begin), high = min(stop, end)
        return high > low ? high &- low : 0
    }
}

/// Spans of all threads of a trace, in ticks.
package struct ThreadSpans: Sendable {
    private var spans: [UInt32: ThreadSpan] = [:]
    private let main: UInt32?
    private let window: TimeWindow

    /// Until all is read, nobody knows when threads end.
    package init(_ trace: TraceFile) {
        window = trace.window
        main = trace.chunksOfThread.lazy.compactMap { $0.first }.first { $0.tid == trace.header.pid }?.thread
        for chunks in trace.chunksOfThread {
            guard let last = chunks.last, let first = Self.firstAfterGaps(chunks) else { continue }
            let missing = last.sequence &+ 1 &- UInt64(chunks.count)
            // What a ring has written over comes before all that can be determined. Elsewhere it is not known what a gap would have told.
            if missing > 0 && first.sequence != missing && !trace.isRing { continue }
            if first.openFrames > first.storedFrames { continue } // nor where calls are open of which nothing is known
            var span = Self.span(trace, first.thread, isMain: first.thread == main)
            if missing > 0 { span.begin = max(span.begin, first.opened.ticks) }
            spans[first.thread] = span
        }
    }

    /// The chunk from which on none is missing.
    private static func firstAfterGaps(_ chunks: some BidirectionalCollection<Chunk>) -> Chunk? {
        var first = chunks.last
        for chunk in chunks.dropLast().reversed() {
            guard let next = first, chunk.sequence &+ 1 == next.sequence else { break }
            first = chunk
        }
        return first
    }

    subscript(_ thread: UInt32) -> ThreadSpan? { spans[thread] }

    /// Sets the ends after a reading of all threads.
    mutating func settle<Sink: StreamSink & ~Copyable>(_ all: StreamWorker<Sink>) {
        for thread in spans.keys {
            spans[thread] = settled(thread, end: all.endOfThread[thread] ?? all.end.raw, latest: all.latestOfThread[thread] ?? 0)
        }
    }

    /// One thread's, when it has been read.
    /// - Parameters:
    ///   - end: when the thread ended
    ///   - latest: its last event, or where a call that it did not return from ends
    func settled(_ thread: UInt32, end: UInt64, latest: UInt64) -> ThreadSpan? {
        guard var span = spans[thread] else { return nil }
        span.end = min(span.end, end)
        if thread != main { span.end = min(span.end, latest) }
        span.length = window.length(from: span.begin, to: span.end)
        return span
    }

    /// The main thread: main, from its call to its return. Of a process that has none, because it was forked, from its birth, when the
    /// agent had made a trace for it.
    ///
    /// Other threads: their start is not in the file. Before its first recorded call a thread has hardly waited for anything, so it began
    /// at least as long ago as it had used the CPU; what it does after its last one is not counted.
    private static func span(_ trace: TraceFile, _ thread: UInt32, isMain: Bool) -> ThreadSpan {
        let life = trace.metadata.threads[thread]
        // If the program already ran, a thread may have been in a call that is not recorded, until its first one that is.
        if trace.isOfRunning, let started = life?.started { return ThreadSpan(begin: started.raw, end: .max) }
        if isMain {
            let phases = trace.metadata.start.phases
            let main = phases.first { $0.kind == .main }?.usage.ticks ?? max(trace.firstTicks, Ticks(trace.agentStart?.upperBound ?? 0))
            let returned = phases.first { $0.kind == .mainReturned }?.usage.ticks
            return ThreadSpan(begin: main.raw, end: returned?.raw ?? .max)
        }
        let first = life?.started ?? trace.firstTicks
        let before = trace.timeScale.ticks(life?.cpuTime ?? Nanoseconds(0))
        return ThreadSpan(begin: max(first.raw &- min(before, first.raw), trace.firstTicks.raw), end: .max)
    }
}
