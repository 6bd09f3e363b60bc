// Two sets of runs of one thing: how much slower is the second, how sure is that, and how small a difference could have
// been seen at all.
import Foundation

public struct Difference: Equatable, Sendable {
    /// Second minus first: of the medians, nanoseconds.
    public var medians: Double
    /// Where the difference lies with the confidence that was asked for.
    public var low: Double, high: Double
    /// Of the rank test.
    public var probability: Double
    public var isSignificant: Bool
    /// A larger one, either way, is out of the question with so many runs.
    public var largest: Double { max(abs(low), abs(high)) }

    public static let confidence = 0.95
    static let resamples = 4000

    /// The interval is the percentile bootstrap's (Efron and Tibshirani, "An Introduction to the Bootstrap", 13.3): both
    /// sets are drawn again with replacement, 4000 times. Significant is what the rank test and the interval both call
    /// different. The same runs always give the same figures.
    public init(_ first: Sample, _ second: Sample) {
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

/// A generator whose numbers are the same in every process (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
/// Generators", 2014).
public struct SplitMix: RandomNumberGenerator, Sendable {
    private var state: UInt64
    public init(seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ z >> 30) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ z >> 27) &* 0x94d0_49bb_1331_11eb
        return z ^ z >> 31
    }

    fileprivate mutating func medianOfResample(_ ascending: [Double]) -> Double {
        // Sorting places instead of values: the values are in order already.
        var places = ascending.map { _ in Int.random(in: 0..<ascending.count, using: &self) }
        places.sort()
        let middle = places.count / 2
        let upper = ascending[places[middle]]
        return places.count % 2 == 1 ? upper : (ascending[places[middle - 1]] + upper) / 2
    }
}
