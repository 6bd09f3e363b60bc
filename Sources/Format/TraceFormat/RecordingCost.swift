// Cost of recording a call, computed from timed loops: by the agent, and by tests without a clock.

/// Ticks of all calls of one loop over a function, made directly and through the agent.
public struct TimedCalls {
    public var bare: UInt64
    public var traced: UInt64
    /// Sum of the calls' recorded lengths.
    public var lengths: UInt64

    @inlinable public init(bare: UInt64, traced: UInt64, lengths: UInt64) {
        self.bare = bare
        self.traced = traced
        self.lengths = lengths
    }
}

public struct RecordingCost {
    /// Cost of recording all calls of the empty function, in ticks.
    public let whole: UInt64
    /// The part of it that lies between a call's two clock reads.
    public let inside: UInt64
    /// Relative error of each cost, in 1/`errorParts`.
    public private(set) var wholeError: UInt64 = RecordingCost.errorOfPrograms
    public private(set) var insideError: UInt64 = 0
    private let empty: TimedCalls

    @inlinable public static var errorParts: UInt64 { 256 }
    /// Two fifths. In a sort with unpredictable comparisons a call was found to cost 27 ticks where it costs 44 in a loop (AMD EPYC, strcmp
    /// under qsort): a CPU does that much of the work while it would have waited. The loops below show a part of that.
    @inlinable static var errorOfPrograms: UInt64 { 102 }
    /// Upper limit of an error, twice the cost: more is as good as nothing known.
    private static var largestError: UInt64 { 2 * errorParts }

    /// nil: recording took no time, which cannot be.
    public init?(_ empty: TimedCalls) {
        if empty.traced <= empty.bare || empty.lengths == 0 { return nil }
        self.empty = empty
        whole = empty.traced &- empty.bare
        inside = min(empty.lengths, whole)
    }

    /// Raises the errors by calls of another kind: a CPU does part of the work of recording while it would have waited anyway.
    public mutating func compare(_ other: TimedCalls) {
        RecordingCost.note(other.traced > other.bare ? other.traced &- other.bare : 0, whole, &wholeError)
        let work = other.bare > empty.bare ? other.bare &- empty.bare : 0
        RecordingCost.note(other.lengths > work ? other.lengths &- work : 0, inside, &insideError)
    }

    /// Raises the error for a clock that advances in steps: each call of a loop, unlike the loop, may be measured half a step too long.
    public mutating func compare(stepOfClock ticks: UInt64, calls: UInt64) {
        if ticks > 1 { RecordingCost.note(inside &+ ticks / 2 &* calls, inside, &insideError) }
    }

    @inline(never) private static func note(_ found: UInt64, _ said: UInt64, _ error: inout UInt64) {
        let difference = found > said ? found &- said : said &- found
        error = min(max(error, difference &* errorParts / max(said, 1)), largestError)
    }
}
