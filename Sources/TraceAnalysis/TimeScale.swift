// Ticks become nanoseconds by two samples of both clocks, as far apart as the file has them.
import CTraceLayout
import TraceFormat

/// A length of time in nanoseconds. Not interchangeable with `Ticks`.
public struct Nanoseconds: Equatable, Comparable, Hashable, Sendable {
    public var count: UInt64
    public init(_ count: UInt64) { self.count = count }
    public static func < (a: Nanoseconds, b: Nanoseconds) -> Bool { a.count < b.count }

    /// 0 at least.
    func without(_ part: Nanoseconds) -> Nanoseconds { Nanoseconds(count > part.count ? count - part.count : 0) }
}

public struct TimeScale: Sendable {
    public let nanosecondsPerTick: Double
    /// false when the file has nothing to tell the length of a tick by, and a tick was taken for a nanosecond
    public let isKnown: Bool

    static let shortestBaseline: UInt64 = 1_000_000 // ns; below it a sample's own jitter (~100 ns) shows

    /// `samples`: any order, zero ones are ignored.
    init(clock: UInt32, ticksPerSecond: UInt64, samples: [trace_clock_sample]) {
        if clock == UInt32(TRACE_CLOCK_MONOTONIC) {
            self.init(1, known: true)
            return
        }
        let valid = samples.filter { $0.ticks != 0 && $0.monotonic_ns != 0 }
        let measured: (ratio: Double, baseline: UInt64)? = valid.min { $0.ticks < $1.ticks }.flatMap { low in
            guard let high = valid.max(by: { $0.ticks < $1.ticks }),
                  high.ticks > low.ticks, high.monotonic_ns > low.monotonic_ns else { return nil }
            let baseline = high.monotonic_ns - low.monotonic_ns
            return (Double(baseline) / Double(high.ticks - low.ticks), baseline)
        }
        if let measured, measured.baseline >= Self.shortestBaseline, Self.isPlausible(measured.ratio) {
            self.init(measured.ratio, known: true)
        } else if ticksPerSecond != 0, Self.isPlausible(1e9 / Double(ticksPerSecond)) {
            self.init(1e9 / Double(ticksPerSecond), known: true)
        } else if let measured, Self.isPlausible(measured.ratio) {
            self.init(measured.ratio, known: true)
        } else {
            self.init(1, known: false)
        }
    }

    private init(_ ratio: Double, known: Bool) {
        nanosecondsPerTick = ratio
        isKnown = known
    }

    /// Clocks between 1 kHz and 1 THz.
    private static func isPlausible(_ ratio: Double) -> Bool { ratio >= 1e-3 && ratio <= 1e6 }

    /// The length of so many ticks, rounded. Never traps: a length beyond UInt64 becomes its maximum.
    public func nanoseconds(_ tickCount: UInt64) -> Nanoseconds {
        Nanoseconds(UInt64(exactly: (Double(tickCount) * nanosecondsPerTick).rounded()) ?? .max)
    }

    /// As above for a signed length: self time can be negative in a damaged file.
    public func signedNanoseconds(_ tickCount: Int64) -> Int64 {
        let magnitude = Int64(clamping: nanoseconds(tickCount.magnitude).count)
        return tickCount < 0 ? -magnitude : magnitude
    }

    /// From `start` to `moment`, 0 when it is earlier.
    public func nanoseconds(from start: Ticks, to moment: Ticks) -> Nanoseconds {
        nanoseconds(moment.raw > start.raw ? moment.raw - start.raw : 0)
    }
}
