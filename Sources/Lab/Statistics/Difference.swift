// Two sets of runs of one thing: how much slower is the second, how sure is that, and how small a difference could have
// been seen at all.
import Foundation

package struct Difference: Equatable, Sendable {
    /// Median of the second minus that of the first, in nanoseconds.
    package var medians: Double
    /// Bounds of the difference's confidence interval, in nanoseconds.
    package var low: Double, high: Double
    /// Result of the rank test (p-value).
    package var probability: Double
    package var isSignificant: Bool
    /// Largest difference, either way, that these runs leave possible, in nanoseconds.
    package var largest: Double { max(abs(low), abs(high)) }

    package static let confidence = 0.95
    static let resamples = 4000

    /// The interval is the percentile bootstrap's (Efron and Tibshirani, "An Introduction to the Bootstrap", 13.3): both
    /// sets are drawn again with replacement, 4000 times. A difference is significant if the rank test and the interval
    /// both say so. The same runs always give the same figures.
    package init(_ first: Sample, _ second: Sample) {
        medians = second.median - first.median
        probability = RankTest.probability(first, second)
        guard !first.isEmpty, !second.isEmpty else {
            (low, high, isSignificant) = (medians, medians, false)
            return
        }
        var random = SplitMix(seed: UInt64(first.count) << 32 | UInt64(second.count))
        var differences = (0..<Difference.resamples).map { _ in
            random.medianOfResample(second.values) - random.medianOfResample(first.values)
        }
        differences.sort()
        let outside = (1 - Difference.confidence) / 2
        low = Sample.quantile(outside, ofAscending: differences)
        high = Sample.quantile(1 - outside, ofAscending: differences)
        isSignificant = probability < 1 - Difference.confidence && (low > 0 || high < 0)
    }
}
