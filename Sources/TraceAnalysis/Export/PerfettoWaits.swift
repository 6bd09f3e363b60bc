// Why threads waited: a lane of waits under each thread that did, and an arrow from where another one let it go on.
import Symbols
import TraceFormat

struct PerfettoWaits {
    private typealias Field = PerfettoField
    private let source: ExportSource
    private let search: WaitSearch
    private let explanation: WaitExplanation

    /// nil: the kernel has not told of any; then waits are the calls themselves.
    /// - Parameter origin: CLOCK_MONOTONIC from which times in texts count
    init?(_ source: ExportSource, _ symbolizer: Symbolizer, origin: UInt64) {
        guard source.trace.noSwitches == nil else { return nil }
        self.source = source
        search = WaitSearch(source.trace)
        explanation = WaitExplanation(search, symbolizer, origin: origin)
    }

    private static let waitsOfPiece = 10_000

    func write(_ write: ([UInt8]) throws -> Void) throws {
        let tracks = Dictionary(source.threads.map { ($0.index, $0.track) }, uniquingKeysWith: { first, _ in first })
        func thread(_ index: Int) -> UInt64? { search.threads[index].thread.flatMap { tracks[$0] } }
        var piece = ProtobufMessage(), lanes: [Int: UInt64] = [:]
        for (number, wait) in search.waits.enumerated() {
            let track = lanes[wait.thread] ?? describe(wait.thread, of: thread(wait.thread), to: &piece)
            lanes[wait.thread] = track
            let (begin, end) = (source.monotonic(wait.begin), source.monotonic(wait.end))
            let what = explanation.what(wait) { $0 }
            piece.event(Field.sliceBegin, track: track, at: begin, category: "wait", wait.kind.rawValue) {
                if what != "-" { $0.annotation("waiting in", what) }
                for text in explanation.details(number, { $0 }) { $0.annotation("why", text) }
            }
            if let waker = wait.waker, wait.begin..<wait.end ~= waker.at, let from = thread(waker.thread) {
                let flow = source.processTrack + UInt64(number), woken = source.monotonic(waker.at)
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

    /// - Parameter parent: the thread's own track; a thread without calls has none
    private func describe(_ index: Int, of parent: UInt64?, to message: inout ProtobufMessage) -> UInt64 {
        let thread = search.threads[index], track = source.processTrack + 1 << 31 + 1 << 30 + UInt64(index) // beside those of the start
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
