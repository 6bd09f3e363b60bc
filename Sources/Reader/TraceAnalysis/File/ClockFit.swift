// The recording clock ticks evenly, unless the machine is another one than before: a virtual machine that was migrated to a CPU
// with another rate, one that slept while its counter went on, a counter that follows the CPU's frequency. The samples of both
// clocks show it. Ticks are then stretched, piece by piece, to those of the first rate, as they are read from the file; so one rate
// is enough for everything that follows.
import CTraceLayout
import TraceFormat

/// From the ticks of the file to even ones. The moment of the first sample keeps its number.
package final class ClockCorrection: Sendable {
    struct Piece: Equatable {
        /// As in the file, and even.
        var begin: UInt64, even: UInt64
        /// Even ticks for one of the file.
        var factor: Double
    }
    /// In order; the first one's factor is 1, and holds for what was before it, too.
    let pieces: [Piece]

    init(_ pieces: [Piece]) { self.pieces = pieces }

    /// Never earlier for a later moment; whatever a damaged file holds, it yields some number.
    func even(_ ticks: UInt64) -> UInt64 {
        let next = bisect(pieces.count) { pieces[$0].begin <= ticks }
        if next == 0 { return ticks }
        let piece = pieces[next - 1], limit = next < pieces.count ? pieces[next].even : .max
        let length = UInt64(exactly: (Double(ticks - piece.begin) * piece.factor).rounded()) ?? .max
        let (moment, isBeyond) = piece.even.addingReportingOverflow(length)
        return isBeyond ? limit : min(moment, limit)
    }

    func stretch(_ ticks: inout Ticks) { ticks.raw = even(ticks.raw) }
    func stretch(_ ticks: inout Ticks?) { ticks = ticks.map { Ticks(even($0.raw)) } }
    func stretch(_ usage: inout Usage) { stretch(&usage.ticks) }
}

/// Straight lines through the samples: one, or where the rate has changed, several.
struct ClockFit {
    /// Ends of the lines: indices of samples, two at least.
    private var knots: [Int]
    private let samples: [trace_clock_sample]
    /// Ticks of samples that the agent has compared with others of its own.
    private let certain: Set<UInt64>

    /// A counter that is corrected by NTP differs by less, and no two CPUs that a machine is migrated between are so alike.
    private static let leastChange = 0.001
    /// A sample is good to 100 ns or so: over this, a hundredth of the least change.
    private static let shortestLine = 10_000_000.0 // ns
    private static let mostLines = 256

    /// nil when there are not two samples that differ. Zero ones are ignored, and those of which both clocks do not go on.
    init?(_ samples: [trace_clock_sample], certain: [trace_clock_sample] = []) {
        let sorted = (samples + certain).lazy.filter { $0.ticks != 0 && $0.monotonic_ns != 0 }.sorted { $0.ticks < $1.ticks }
        guard let low = sorted.first, let high = sorted.last, high.ticks > low.ticks, high.monotonic_ns > low.monotonic_ns else {
            return nil
        }
        var even = [low]
        for sample in sorted
        where sample.ticks > even.last!.ticks && sample.monotonic_ns >= even.last!.monotonic_ns
            && (sample.monotonic_ns < high.monotonic_ns || sample.ticks == high.ticks)
        {
            even.append(sample)
        }
        self.samples = even
        self.certain = Set(certain.lazy.map { $0.ticks })
        knots = [0, even.count - 1]
        knots = brokenLine()
    }

    /// Between the samples farthest apart.
    var baseline: UInt64 { samples[samples.count - 1].monotonic_ns - samples[0].monotonic_ns }
    /// Nanoseconds per tick, of each line.
    var rates: [Double] { zip(knots, knots.dropFirst()).map { Self.rate(samples[$0], samples[$1]) } }
    var isStraight: Bool { knots.count == 2 }

    /// nil when there is one line. A stretch whose rate is in between those around it is where the one became the other: at the
    /// moment where both lines meet. Any other is a leap: one clock stood still while the other went on, or was set. That was at its
    /// end, where the process ran again and took a sample.
    var correction: ClockCorrection? {
        guard !isStraight, let first = rates.first, first > 0 else { return nil }
        var pieces: [ClockCorrection.Piece] = []
        for (index, knot) in knots.dropLast().enumerated() {
            let low = samples[knot], high = samples[knots[index + 1]], rate = rates[index]
            guard let even = moment(of: low, first) else { return nil }
            guard index > 0, index + 1 < rates.count else {
                pieces.append(.init(begin: low.ticks, even: even, factor: rate / first))
                continue
            }
            let before = rates[index - 1], after = rates[index + 1]
            pieces.append(.init(begin: low.ticks, even: even, factor: before / first))
            guard (min(before, after)...max(before, after)).contains(rate), before != after else { continue }
            let reach = Double(high.ticks - low.ticks)
            let meeting = (Double(high.monotonic_ns - low.monotonic_ns) - after * reach) / (before - after)
            guard meeting >= 1, meeting < reach, let ticks = UInt64(exactly: meeting.rounded(.down)),
                let length = UInt64(exactly: (Double(ticks) * before / first).rounded()), let end = moment(of: high, first)
            else { continue }
            pieces.append(.init(begin: low.ticks + ticks, even: min(even &+ min(length, end &- even), end), factor: after / first))
        }
        return ClockCorrection(pieces)
    }

    /// In even ticks.
    private func moment(of sample: trace_clock_sample, _ rate: Double) -> UInt64? {
        guard let length = UInt64(exactly: (Double(sample.monotonic_ns - samples[0].monotonic_ns) / rate).rounded()) else { return nil }
        let (moment, isBeyond) = samples[0].ticks.addingReportingOverflow(length)
        return isBeyond ? nil : moment
    }

    private static func rate(_ low: trace_clock_sample, _ high: trace_clock_sample) -> Double {
        Double(high.monotonic_ns - low.monotonic_ns) / Double(high.ticks - low.ticks)
    }

    /// A line is broken at the sample that is farthest from it, if it then becomes two of different rates, and each of those
    /// likewise.
    private func brokenLine() -> [Int] {
        var knots = knots, open = [0..<samples.count - 1], disturbed = Set<Int>()
        while knots.count <= Self.mostLines, let line = open.popLast() {
            guard let index = bend(line, &disturbed) else { continue }
            knots.append(index)
            open += [line.lowerBound..<index, index..<line.upperBound]
        }
        return knots.sorted()
    }

    /// Returns the sample at which the line between two samples bends; nil: none. Where the rate changes, the samples around are off the
    /// line, too; one that stands out alone was disturbed while it was taken and is ignored from then on.
    private func bend(_ line: Range<Int>, _ disturbed: inout Set<Int>) -> Int? {
        let low = samples[line.lowerBound], high = samples[line.upperBound], rate = Self.rate(low, high)
        func distance(_ index: Int) -> Double {
            abs(Double(samples[index].monotonic_ns - low.monotonic_ns) - Double(samples[index].ticks - low.ticks) * rate)
        }
        for _ in 0..<Self.mostLines {
            var farthest: Int?, most = 0.0
            for index in line.dropFirst() where !disturbed.contains(index) {
                let distance = distance(index)
                if distance > most { (farthest, most) = (index, distance) }
            }
            // The deviation that the least change of rate causes on the shortest line.
            guard let index = farthest, most >= Self.shortestLine * Self.leastChange / 2 else { return nil }
            let isShared = [index - 1, index + 1].contains { line.contains($0) && $0 != line.lowerBound && distance($0) >= most / 2 }
            guard isShared || certain.contains(samples[index].ticks) else {
                disturbed.insert(index)
                continue
            }
            let before = Self.rate(low, samples[index]), after = Self.rate(samples[index], high)
            let longest = max(samples[index].monotonic_ns - low.monotonic_ns, high.monotonic_ns - samples[index].monotonic_ns)
            return abs(before - after) > Self.leastChange * max(before, after) && Double(longest) >= Self.shortestLine ? index : nil
        }
        return nil
    }
}
