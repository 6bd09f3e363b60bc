// How long a thread ran, could have run, and waited for what, in a stretch of time.
import Presentation
import TraceFormat

package struct ThreadTimes: Sendable {
    /// Ticks; nil where the kernel did not report switches.
    package private(set) var running: UInt64?
    package private(set) var runnable: UInt64?
    package private(set) var waiting: UInt64
    /// When it was in which state is not known, because records were lost.
    private(set) var unknown: UInt64?
    /// Running, but for what samples found in its own code; nil without samples.
    package private(set) var kernel: UInt64?
    /// Adds up to `waiting`.
    package private(set) var waits: [WaitKind: UInt64] = [:]

    /// True if it has no time in any state, known or unknown.
    var isEmpty: Bool { (running ?? 0) == 0 && (runnable ?? 0) == 0 && waiting == 0 && (unknown ?? 0) == 0 }

    package init(_ search: WaitSearch, _ thread: Int, in window: TimeWindow) {
        let states = search.threads[thread], trace = search.trace
        for part in search.parts[thread] where part.kind != .processor {
            let length = window.length(from: part.begin, to: part.end)
            if length > 0 { waits[part.kind, default: 0] += length }
        }
        waiting = waits.values.reduce(0, +)
        guard search.noSwitches == nil else { return }
        var times: [ThreadStates.State: UInt64] = [:]
        for stretch in states.stretches { times[stretch.state, default: 0] += window.length(from: stretch.begin, to: stretch.end) }
        running = times[.running] ?? 0
        runnable = times[.runnable] ?? 0
        unknown = times[.unknown] ?? 0
        if let grant = trace.metadata.kernel, grant.granted.contains(.samples), let period = grant.period {
            let outside = (search.samples[states.tid] ?? []).count {
                !$0.isInKernel && states.life.contains($0.at) && window.touches($0.at, $0.at)
            }
            let own = trace.timeScale.ticks(period).multipliedReportingOverflow(by: UInt64(outside))
            kernel = times[.running].map { $0 - min(own.overflow ? .max : own.partialValue, $0) } ?? 0
        }
    }
}
