// Ticks become nanoseconds by two samples of both clocks, as far apart as the file has them; ClockFit.swift when that is not enough.
import CTraceLayout
import Presentation
import TraceFormat

package struct TimeScale: Sendable {
    package let nanosecondsPerTick: Double
    /// false when the file has nothing to determine the length of a tick by, and a tick was taken for a nanosecond
    package let isKnown: Bool
    /// Makes ticks of the file even; nil where they are. The ticks in a `Ticks` always are: `ChunkReader` and `Metadata` see to it.
    package let correction: ClockCorrection?
    /// Nanoseconds per tick of the file, one piece after another; more than one where they are not even.
    let rates: [Double]
    /// Nanoseconds between the samples that the rate was measured by: each is good to 100 ns or so. 0: it was not measured.
    package let baseline: UInt64

    static let shortestBaseline: UInt64 = 1_000_000 // ns; below it a sample's own jitter (~100 ns) shows

    /// `samples`: any order, zero ones are ignored. `certain`: those that the agent wrote down because the rate had changed.
    package init(clock: UInt32, ticksPerSecond: UInt64, samples: [trace_clock_sample], certain: [trace_clock_sample] = []) {
        if clock == UInt32(TRACE_CLOCK_MONOTONIC) {
            self.init(1, known: true)
            return
        }
        let fit = ClockFit(samples, certain: certain), measured = fit?.rates.first
        if let fit, let measured, fit.baseline >= Self.shortestBaseline, Self.isPlausible(measured) {
            self.init(measured, known: true, fit)
        } else if ticksPerSecond != 0, Self.isPlausible(1e9 / Double(ticksPerSecond)) {
            self.init(1e9 / Double(ticksPerSecond), known: true)
        } else if let measured, Self.isPlausible(measured) {
            self.init(measured, known: true)
        } else {
            self.init(1, known: false)
        }
    }

    private init(_ ratio: Double, known: Bool, _ fit: ClockFit? = nil) {
        nanosecondsPerTick = ratio
        isKnown = known
        correction = fit?.correction
        rates = correction == nil ? [ratio] : fit!.rates
        baseline = fit?.baseline ?? 0
    }

    /// Ticks as they are in the file, made even.
    @inline(__always) package func even(_ ticks: UInt64) -> UInt64 { correction.map { $0.even(ticks) } ?? ticks }

    /// Clocks between 1 kHz and 1 THz.
    private static func isPlausible(_ ratio: Double) -> Bool { ratio >= 1e-3 && ratio <= 1e6 }

    /// The length of `tickCount` ticks, rounded. Never traps: a length beyond UInt64 becomes its maximum.
    package func nanoseconds(_ tickCount: UInt64) -> Nanoseconds {
        Nanoseconds(UInt64(exactly: (Double(tickCount) * nanosecondsPerTick).rounded()) ?? .max)
    }

    /// How many ticks so long is.
    package func ticks(_ time: Nanoseconds) -> UInt64 { UInt64(exactly: (Double(time.count) / nanosecondsPerTick).rounded()) ?? .max }

    /// A moment of CLOCK_MONOTONIC on the recording clock.
    func ticks(monotonic: UInt64, since first: trace_clock_sample) -> UInt64 {
        let isLater = monotonic >= first.monotonic_ns
        let length = ticks(Nanoseconds(isLater ? monotonic - first.monotonic_ns : first.monotonic_ns - monotonic))
        if !isLater { return first.ticks - min(length, first.ticks) }
        let (moment, isBeyond) = first.ticks.addingReportingOverflow(length)
        return isBeyond ? .max : moment
    }

    /// As above for a signed length: self time can be negative in a damaged file.
    package func signedNanoseconds(_ tickCount: Int64) -> Int64 {
        let magnitude = Int64(clamping: nanoseconds(tickCount.magnitude).count)
        return tickCount < 0 ? -magnitude : magnitude
    }

    /// From `start` to `moment`, 0 when it is earlier.
    package func nanoseconds(from start: Ticks, to moment: Ticks) -> Nanoseconds {
        nanoseconds(moment.raw > start.raw ? moment.raw - start.raw : 0)
    }
}
