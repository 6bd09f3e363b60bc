// The window of time of several traces, on the clock that a machine has for all of its processes: since the beginning of the first.
import Presentation
import TraceFormat

package struct RunWindow: Sendable {
    package let text: String
    let reported: ReportedWindow?

    /// nil for the whole run.
    /// - Parameter traces: of the whole run, also those that have nothing of the window
    package init?(_ traces: [TraceFile]) {
        guard traces.contains(where: { !$0.window.isWhole }) else { return nil }
        if traces.count == 1 {
            let end = TraceEnd(traces[0]).ticks
            text = traces[0].windowText(until: end) ?? ""
            reported = traces[0].reportedWindow(until: end)
            return
        }
        let origin = traces.map { $0.header.first.monotonic_ns }.min() ?? 0
        var from = UInt64.max, to: UInt64 = 0, whole: UInt64 = 0, moments: [Range<UInt64>] = []
        for trace in traces {
            // A damaged file may say anything.
            let first = min(trace.firstTicks.raw, .max - 1), end = Ticks(min(max(TraceEnd(trace).ticks.raw, first), .max - 1))
            let begin = trace.header.first.monotonic_ns - origin
            func time(_ ticks: UInt64) -> UInt64 { begin &+ trace.timeScale.nanoseconds(from: trace.firstTicks, to: Ticks(ticks)).count }
            whole = max(whole, time(end.raw))
            for moment in trace.window.moments {
                let moment = moment.clamped(to: first..<end.raw + 1)
                guard !moment.isEmpty else { continue }
                from = min(from, time(moment.lowerBound))
                to = max(to, time(moment.upperBound))
                moments.append(time(moment.lowerBound)..<max(time(moment.upperBound), time(moment.lowerBound)))
            }
        }
        // Each process has its part of a moment, as long as it lives.
        let together = TimeWindow(moments)
        let length = together.length(from: 0, to: .max)
        from = min(from, to)
        to = min(to, whole)
        text =
            together.momentCount <= 1
            ? "window \(readable(Nanoseconds(from))) to \(readable(Nanoseconds(to))) of \(readable(Nanoseconds(whole)))"
            : "window of \(counted(UInt64(together.momentCount), "moment")), \(readable(Nanoseconds(length))) of \(readable(Nanoseconds(whole)))"
        reported = ReportedWindow(
            from: Nanoseconds(from), to: Nanoseconds(to), moments: together.momentCount, length: Nanoseconds(length))
    }
}
