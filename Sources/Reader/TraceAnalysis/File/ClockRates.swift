// The rate of the recording clock, which the traces of a run share. A process that was killed soon may have two samples a millisecond
// apart: 100 ppm of error, which after 200 ms are more than a thread takes to wake up, so that it seems to run before it was woken.
import CTraceLayout

/// The time scales of a run's traces that were measured longest. Traces of other runs, or other boots, may have had other rates.
package struct ClockRates: Sendable {
    private struct Clock: Hashable {
        let session: UInt64
        let boot: UInt64
        let source: UInt32

        /// nil when the file does not say of which run and boot it is.
        init?(_ header: trace_file_header) {
            guard header.session != 0, header.boot != 0 else { return nil }
            session = header.session
            boot = header.boot
            source = header.clock
        }
    }

    private var longest: [Clock: TimeScale] = [:]

    /// No rates: each trace has its own.
    package init() {}

    /// Opens the file of each clock whose header has the samples farthest apart. If that clock did not tick evenly, no rate is right for
    /// all traces.
    init(_ files: [TraceRun.File]) {
        for (clock, alike) in Dictionary(grouping: files, by: { Clock($0.header) }) where alike.count > 1 {
            guard let clock, let file = alike.max(by: { $0.measured < $1.measured }), let trace = try? TraceFile(path: file.path),
                trace.timeScale.correction == nil
            else { continue }
            longest[clock] = trace.timeScale
        }
    }

    /// Returns the run's time scale if it was measured longer than the trace's own.
    func scale(_ own: TimeScale, _ header: trace_file_header) -> TimeScale {
        guard own.correction == nil, let shared = Clock(header).flatMap({ longest[$0] }), shared.baseline > own.baseline else { return own }
        return shared
    }
}

extension TraceRun.File {
    /// Nanoseconds from the first clock sample to the last.
    fileprivate var measured: UInt64 { header.last.monotonic_ns - min(header.first.monotonic_ns, header.last.monotonic_ns) }
}
