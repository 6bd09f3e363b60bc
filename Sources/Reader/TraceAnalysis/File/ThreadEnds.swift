// When calls end that a thread leaves open: with the thread, or with the process. Every reader of calls asks here, and passes what it
// knows from the events. Nothing ends before its last event, whatever the file says.
import CTraceLayout
import TraceFormat

package struct ThreadEnds: Sendable {
    private enum End: Sendable {
        /// The kernel saw it end.
        case at(UInt64)
        /// The agent noticed some time after its end, so that its last event is all that is known.
        case withLastEvent
    }

    /// The latest time at which the process is known to have run, apart from events: its end, if that was seen.
    package private(set) var process: Ticks
    /// The agent's last reading of the clock.
    private let lastSample: UInt64
    private let ends: [UInt32: End]

    /// - Parameters:
    ///   - chunks: those of each thread
    ///   - now: CLOCK_MONOTONIC, if the process is alive at this moment
    init(_ header: trace_file_header, _ metadata: Metadata, _ chunks: [[Chunk]], _ scale: TimeScale, now: UInt64?) {
        let lastSample = scale.even(max(header.stopped_ticks == 0 ? header.last.ticks : header.stopped_ticks, header.first.ticks))
        // What threads did after recording had stopped is not known.
        let limit = Int(header.state) == TRACE_STOPPED ? lastSample : .max
        func moment(_ monotonic: UInt64) -> UInt64 { min(scale.ticks(monotonic: monotonic, since: header.first), limit) }
        // Without the length of a tick, another clock says nothing.
        let seen = scale.isKnown ? metadata.taskEnds.mapValues { $0.sorted() } : [:]
        var ends: [UInt32: End] = [:], latest = lastSample
        for first in chunks.lazy.compactMap({ $0.first }) {
            let life = metadata.threads[first.thread], begun = min(life?.started?.raw ?? .max, first.opened.ticks)
            // The thread's id may have been another thread's before, and may be again.
            let moments = seen[first.tid] ?? [], next = bisect(moments.count) { moment(moments[$0]) < begun }
            if next < moments.count {
                let end = min(moment(moments[next]), life?.ended?.raw ?? .max)
                ends[first.thread] = .at(end)
                latest = max(latest, end)
            } else if life?.ended != nil {
                ends[first.thread] = .withLastEvent
            }
        }
        if scale.isKnown {
            if header.ended_ns != 0 { latest = max(latest, moment(header.ended_ns)) }
            if let now { latest = max(latest, moment(now)) }
        }
        process = Ticks(latest)
        self.lastSample = lastSample
        self.ends = ends
    }

    /// Returns the same ends for a process that is known to have run until then.
    func lasting(until end: Ticks) -> ThreadEnds {
        var copy = self
        copy.process = max(process, end)
        return copy
    }

    /// Returns when calls end that the thread leaves open, and whether that is its own end, after which the process went on.
    /// - Parameters:
    ///   - last: time of the thread's last event, 0: it has none
    ///   - latest: time of the latest event of all threads
    func end(of thread: UInt32, after last: UInt64, latest: UInt64) -> (time: UInt64, isOwn: Bool) {
        switch ends[thread] {
        case .at(let end): return (max(end, last), end < max(latest, lastSample))
        case .withLastEvent: return (last, true)
        case nil: return (max(process.raw, latest, last), false)
        }
    }
}
