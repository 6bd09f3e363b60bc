// Why threads waited: a lane of waits under each thread that did, and an arrow from where another one let it go on.
import Symbols
import TraceFormat

struct PerfettoWaits {
    private typealias Field = PerfettoField
    /// Sources with context switches from the kernel; in others the calls themselves are the waits.
    private let sources: [ExportSource]
    private let searches: [WaitSearch]
    /// CLOCK_MONOTONIC from which times in texts count.
    private let origin: UInt64

    init?(_ sources: [ExportSource]) {
        self.sources = sources.filter { $0.trace.noSwitches == nil }
        if self.sources.isEmpty { return nil }
        var searches = self.sources.map { WaitSearch($0.trace.ofAllThreads) }
        WaitSearch.findWakers(&searches)
        self.searches = searches
        origin = sources.origin
    }

    func write(_ write: ([UInt8]) throws -> Void, _ symbolizer: Symbolizer) throws {
        let tracks = sources.map { source in
            Dictionary(source.threads.map { ($0.index, $0.track) }, uniquingKeysWith: { first, _ in first })
        }
        for index in sources.indices { try self.write(index, tracks, symbolizer, write) }
    }

    private func write(_ index: Int, _ tracks: [[UInt32: UInt64]], _ symbolizer: Symbolizer, _ write: ([UInt8]) throws -> Void) throws {
        let source = sources[index], search = searches[index], explanation = WaitExplanation(search, symbolizer, origin: origin)
        func thread(_ thread: Int) -> UInt64? { search.threads[thread].thread.flatMap { tracks[index][$0] } }
        var piece = ProtobufMessage(), lanes: [Int: UInt64] = [:]
        let isShown = search.threads.map { source.trace.shows(tid: $0.tid, name: $0.name) }
        for (number, wait) in search.waits.enumerated() where isShown[wait.thread] {
            let track =
                lanes[wait.thread] ?? describe(search.threads[wait.thread], wait.thread, source, of: thread(wait.thread), to: &piece)
            lanes[wait.thread] = track
            let (begin, end) = (source.monotonic(wait.begin), source.monotonic(wait.end))
            let what = explanation.what(wait) { $0 }
            piece.event(Field.sliceBegin, track: track, at: begin, category: "wait", wait.kind.rawValue) {
                if what != "-" { $0.annotation("waiting in", what) }
                for text in explanation.details(number, { $0 }) { $0.annotation("why", text) }
                if let stack = explanation.stack(number) { $0.annotation("stack", stack.text(deepest: 0) { $0 }) }
            }
            if let waker = waker(of: wait, index, tracks), begin..<end ~= waker.at {
                let flow = source.processTrack + UInt64(number)
                piece.event(Field.instant, track: waker.track, at: waker.at, category: "wake", "wakes \(search.threads[wait.thread].title)")
                {
                    $0.add(Field.Event.flows, fixed: flow)
                }
                piece.event(Field.sliceBegin, track: track, at: waker.at, category: "wait", "woken by \(waker.name)") {
                    $0.add(Field.Event.endedFlows, fixed: flow)
                }
                piece.event(Field.sliceEnd, track: track, at: end) { _ in }
            }
            piece.event(Field.sliceEnd, track: track, at: end) { _ in }
            try piece.flush(to: write)
        }
        try write(piece.bytes)
    }

    /// Returns the thread that ended the wait, of this process or another one of the run. nil: not known, or it has no track.
    private func waker(of wait: Wait, _ index: Int, _ tracks: [[UInt32: UInt64]]) -> (track: UInt64, name: String, at: UInt64)? {
        if let waker = wait.waker {
            let thread = searches[index].threads[waker.thread]
            return thread.thread.flatMap { tracks[index][$0] }.map { ($0, thread.title, sources[index].monotonic(waker.at)) }
        }
        guard let other = wait.otherProcess, let thread = other.thread,
            let sourceIndex = sources.firstIndex(where: { $0.trace.header.first.monotonic_ns == other.begun && $0.pid == other.pid }),
            let track = tracks[sourceIndex][thread]
        else { return nil }
        let end = sources[index].monotonic(wait.end)
        return (track, "\(other.name)/\(other.tid)", end - min(other.late.count, end))
    }

    /// - Parameter parent: the thread's own track; a thread without calls has none
    private func describe(
        _ thread: ThreadStates, _ index: Int, _ source: ExportSource, of parent: UInt64?, to message: inout ProtobufMessage
    ) -> UInt64 {
        let track = source.processTrack + 1 << 31 + 1 << 30 + UInt64(index) // above the tracks of PerfettoStart
        message.track(track) {
            if let parent {
                $0.add(Field.Track.parent, parent)
                $0.add(Field.Track.name, "waits")
            } else {
                $0.thread(thread.tid, thread.name, of: source)
            }
        }
        return track
    }
}
