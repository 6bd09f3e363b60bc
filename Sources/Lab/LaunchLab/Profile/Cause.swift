// Why launches take longer: what the search finds.

package struct Cause: Equatable, Sendable {
    package enum Change: String, Sendable {
        case new, gone, slower, faster, calledMoreOften = "called more often", calledLessOften = "called less often"
    }
    package var kind: CallNode.Kind
    package var name: String
    package var module: String
    /// Second set minus first, of the medians.
    package var difference: Double
    /// Share of the whole difference: 1 is all of it.
    package var share: Double
    package var change: Change
    /// From the outermost caller inward, the cause last; of several paths the one that matters most.
    package var path: [String]
    /// Medians of how often, in the first and the second set.
    package var callsBefore: Double, callsAfter: Double
    /// "waiting for a lock", where that is what takes longer.
    package var waiting: String?
    /// Medians of what it took, nanoseconds; of a library that is new or gone: what it brings, or brought.
    package var before = 0.0, after = 0.0
}

package struct Attribution: Sendable {
    /// Difference of the whole launch, nanoseconds: median of the second set minus that of the first.
    package var difference: Double
    /// Causes that stand out from noise, and all new libraries; those that explain most come first.
    package var causes: [Cause]
    package var unexplained: Double { difference - causes.reduce(0) { $0 + $1.difference } }
}
