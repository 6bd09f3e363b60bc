// Why threads waited: a lane of waits under each thread that did, and an arrow from where another one let it go on.
import Presentation
import TraceFormat

struct PerfettoWaits {
    private typealias Field = PerfettoField
    private let report: WaitReport
    private let sources: [ExportSource]

    /// nil: the kernel has not told of any; then waits are the calls themselves.
    init?(_ sources: [ExportSource]) {
        let told = sources.filter { $0.trace.noSwitches == nil }
        guard !told.isEmpty else { return nil }
        self.sources = told
        report = WaitReport(told.map { $0.trace })
    }

    private static let waitsOfPiece = 10_000

    func write(_ write: ([UInt8]) throws -> Void) throws {
        var piece = ProtobufMessage(), lanes: [Lane: UInt64] = [:]
        let tracks = sources.map { source in
            Dictionary(source.threads.map { ($0.index, $0.track) }, uniquingKeysWith: { first, _ in first })
        }
        for (number, place) in report.order.enumerated() {
            let source = sources[place.process], search = report.processes[place.process], wait = search.waits[place.wait]
            func thread(_ index: Int) -> UInt64? { search.threads[index].thread.flatMap { tracks[place.process][$0] } }
            let lane = Lane(process: place.process, thread: wait.thread)
            let track = lanes[lane] ?? describe(lane, source, search.threads[wait.thread], of: thread(wait.thread), to: &piece)
            lanes[lane] = track
            let (begin, end) = (source.monotonic(wait.begin), source.monotonic(wait.end))
            let explanation = report.explanations[place.process], what = explanation.what(wait) { $0 }
            piece.event(Field.sliceBegin, track: track, at: begin, category: "wait", wait.kind.rawValue) {
                if what != "-" { $0.annotation("waiting in", what) }
                for text in explanation.details(place.wait, { $0 }) { $0.annotation("why", text) }
            }
            if let waker = wait.waker, wait.begin..<wait.end ~= waker.at, let from = thread(waker.thread) {
                let flow = UInt64(number) + 1, woken = source.monotonic(waker.at)
                piece.event(Field.instant, track: from, at: woken, category: "wake", "wakes \(search.threads[wait.thread].title)") {
                    $0.add(Field.Event.flows, fixed: flow)
                }
                piece.event(Field.sliceBegin, track: track, at: woken, category: "wait", "woken by \(search.threads[waker.thread].title)") {
                    $0.add(Field.Event.endedFlows, fixed: flow)
                }
                piece.event(Field.sliceEnd, track: track, at: end) { _ in }
            }
            piece.event(Field.sliceEnd, track: track, at: end) { _ in }
            if number % Self.waitsOfPiece == 0 {
                try write(piece.bytes)
                piece = ProtobufMessage()
            }
        }
        try write(piece.bytes)
    }

    private struct Lane: Hashable {
        var process: Int
        var thread: Int
    }

    /// - Parameter parent: the thread's own track; a thread without calls has none
    private func describe(
        _ lane: Lane, _ source: ExportSource, _ thread: ThreadStates, of parent: UInt64?, to message: inout ProtobufMessage
    ) -> UInt64 {
        let track = source.processTrack + 1 << 31 + 1 << 30 + UInt64(lane.thread) // beside those of the start
        message.packet(sequence: PerfettoWriter.ownSequence) {
            $0.add(Field.Packet.trackDescriptor) {
                $0.add(Field.Track.uuid, track)
                if let parent {
                    $0.add(Field.Track.parent, parent)
                    $0.add(Field.Track.name, "waits")
                } else {
                    $0.add(Field.Track.thread) {
                        $0.add(Field.Thread.pid, UInt64(source.pid))
                        $0.add(Field.Thread.tid, UInt64(thread.tid))
                        if !thread.name.isEmpty { $0.add(Field.Thread.name, thread.name) }
                    }
                }
            }
        }
        return track
    }
}
