// States of a thread as the page has them, in itself or asked for later.
import Presentation
import TraceAnalysis

enum PageStates {
    /// Returns `states` of schema.mjs, null where there are none.
    /// - Parameter lane: returns the lane of the waker of one of the trace's threads; nil: it has none
    static func text(_ timeline: StateTimeline?, of trace: PageTrace, lane: (StateTimeline.Waker) -> Int?) -> String {
        guard let timeline else { return "null" }
        let numbers = Dictionary(uniqueKeysWithValues: StateTimeline.State.allCases.enumerated().map { ($0.element, $0.offset) })
        let spans = timeline.spans.map {
            "\(trace.moment($0.begin)),\(trace.length($0.end - $0.begin)),\(numbers[$0.state]!),\($0.wait ?? -1)"
        }
        let bands = timeline.bands.map { "\(trace.moment($0.begin)),\(trace.length($0.length)),\(numbers[$0.state]!),\($0.share)" }
        let waits = timeline.waits.map { wait in
            JSON.object([
                ("what", .string(wait.what)), ("details", .array(wait.details.map { .string($0) })),
                ("length", .unsigned(trace.length(wait.duration))), ("stretches", .unsigned(UInt64(wait.stretches))),
                ("waker", wait.waker.flatMap { lane($0) }.map { .unsigned(UInt64($0)) } ?? .null),
                ("woken", wait.waker.map { .unsigned(trace.moment($0.at)) } ?? .null),
                ("ran", (wait.waker?.ran).map { .unsigned(trace.moment($0)) } ?? .null),
            ]).scriptText
        }
        return
            "{\"spans\":[\(spans.joined(separator: ","))],\"bands\":[\(bands.joined(separator: ","))],\"waits\":[\(waits.joined(separator: ",\n"))]}"
    }
}
