// Two sets of runs of one thing: how much slower is the second, how sure is that, and how small a difference could have
// been seen at all.
import Foundation

package struct Difference: Equatable, Sendable {
    /// Second minus first: of the medians, nanoseconds.
    package var medians: Double
    /// Where the difference lies with the confidence that was asked for.
    package var low: Double, high: Double
    /// Of the rank test.
    package var probability: Double
    package var isSignificant: Bool
    /// A larger one, either way, is out of the question with so many runs.
    package var largest: Double { max(abs(low), abs(high)) }

    package static let confidence = 0.95
    static let resamples = 4000

    /// The interval is the percentile bootstrap's (Efron and Tibshirani, "An Introduction to the Bootstrap", 13.3): both
    /// sets are drawn again with replacement, 4000 times. Significant is what the rank test and the interval both call
    /// different. The same runs always give the same figures.
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
