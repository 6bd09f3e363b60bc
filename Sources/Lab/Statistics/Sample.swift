// Measurements of one thing in n runs, in nanoseconds, and the figures that describe them. With tens of runs every value
// is kept, so percentiles are exact; a histogram's buckets would only blur them.
import Foundation

package struct Sample: Equatable, Sendable {
    /// Nanoseconds, ascending.
    package let values: [Double]

    package init(_ values: [Double]) { self.values = values.filter(\.isFinite).sorted() }

    package var count: Int { values.count }
    package var isEmpty: Bool { values.isEmpty }
    package var mean: Double { values.isEmpty ? 0 : values.reduce(0, +) / Double(values.count) }
    package var median: Double { quantile(0.5) }

    /// How far apart the middle half of the runs lies: the interquartile range. One run that went wrong does not move it.
    package var spread: Double { quantile(0.75) - quantile(0.25) }

    /// Linear between the two nearest runs (Hyndman and Fan, "Sample Quantiles in Statistical Packages", type 7).
    /// 0 for an empty sample.
    package func quantile(_ fraction: Double) -> Double { Sample.quantile(fraction, ofAscending: values) }

    static func quantile(_ fraction: Double, ofAscending values: [Double]) -> Double {
        guard let last = values.indices.last else { return 0 }
        let position = min(max(fraction, 0), 1) * Double(last)
        let below = Int(position)
        guard below < last else { return values[last] }
        return values[below] + (values[below + 1] - values[below]) * (position - Double(below))
    }
}
