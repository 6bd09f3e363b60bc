// When the stages of a start begin and end, on the recording clock: for what is told stage by stage.
import Presentation
import Symbols
import TraceFormat

struct StartStages {
    struct Stage {
        /// As in `tracer startup --json`; "ready": what comes after it.
        var kind: String
        var name: String
        var ticks: Range<UInt64>
    }
    private(set) var all: [Stage] = []

    /// None where the trace does not say how its program started.
    init(_ trace: TraceFile) {
        guard let start = try? StartupTimeline(trace, symbolizer: Symbolizer()) else { return }
        let end = start.origin.raw &+ trace.timeScale.ticks(start.total)
        var bounds = start.stages.map { ($0.kind.rawValue, $0.name, start.origin.raw &+ trace.timeScale.ticks($0.start)) }
        var last = end
        if case .ready = start.outcome {
            bounds.append(("ready", "after ready", end))
            last = max(TraceEnd(trace).ticks.raw, end)
        }
        for (index, (kind, name, begin)) in bounds.enumerated() {
            let end = index + 1 < bounds.count ? bounds[index + 1].2 : last
            all.append(Stage(kind: kind, name: name, ticks: begin..<max(begin, end)))
        }
    }

    func stage(at ticks: UInt64) -> Stage? { all.first { $0.ticks.contains(ticks) } }
}
