// Calls that have something in common, and what their numbers add up to.
import Presentation

/// What the calls of a row have in common.
enum ValueKey: Hashable, Sendable {
    /// - Parameter errno: of a result that means failure
    case value(ArgumentValue, errno: String?)
    /// The call has not failed.
    case noError
    /// The call does not have the argument: `mode` of an open without O_CREAT.
    case absent
    case unrecorded, unreadable, hidden, unavailable
    /// There are too many values for a row each.
    case others

    init(_ value: ArgumentValue, errno: String? = nil) {
        switch value {
        case .unreadable, .beyond: self = .unreadable
        case .hidden: self = .hidden
        case .opaque, .unavailable: self = .unavailable
        case .unsigned(let number) where number <= UInt64(Int64.max): self = .value(.integer(Int64(number)), errno: errno) // as of other functions
        default: self = .value(value, errno: errno)
        }
    }
}

struct CallGroup: Hashable, Sendable {
    /// Row of the function; 0: of any.
    var row: UInt32
    /// nil: all calls of the function.
    var key: ValueKey?
}

/// Figures of some calls: in ticks of one trace, or in nanoseconds.
struct CallSums: Sendable {
    var calls: UInt64 = 0
    /// Calls whose length is known.
    var timed: UInt64 = 0
    /// Length of all calls, what lies in another one of the same row counted once.
    var total: UInt64 = 0
    var selfTime: Int64 = 0
    private(set) var sum: UInt64 = 0
    var minimum = UInt64.max, maximum: UInt64 = 0
    /// Row of the lengths' counts, 0 without.
    var durationRow: UInt32 = 0

    mutating func time(_ length: UInt64) {
        timed &+= 1
        sum &+= length
        minimum = min(minimum, length)
        maximum = max(maximum, length)
    }

    /// All but the lengths' counts.
    mutating func add(_ other: CallSums) {
        calls &+= other.calls
        timed &+= other.timed
        total &+= other.total
        selfTime &+= other.selfTime
        sum &+= other.sum
        minimum = min(minimum, other.minimum)
        maximum = max(maximum, other.maximum)
    }

    func scaled(_ scale: TimeScale) -> CallSums {
        var scaled = self
        scaled.total = scale.nanoseconds(total).count
        scaled.selfTime = scale.signedNanoseconds(selfTime)
        scaled.sum = scale.nanoseconds(sum).count
        scaled.minimum = timed == 0 ? .max : scale.nanoseconds(minimum).count
        scaled.maximum = scale.nanoseconds(maximum).count
        return scaled
    }

    /// - Parameter percentiles: p50 and p99
    func summary(name: String, symbol: String = "", module: String = "", _ percentiles: [Percentile] = []) -> FunctionSummary {
        var summary = FunctionSummary(
            name: name, symbol: symbol, module: module, calls: calls, timedCalls: timed, total: Nanoseconds(total), selfTime: selfTime)
        guard timed > 0 else { return summary }
        summary.average = Nanoseconds(sum / timed)
        (summary.minimum, summary.maximum) = (Nanoseconds(minimum), Nanoseconds(maximum))
        if percentiles.count == 2 { (summary.median, summary.percentile99) = (percentiles[0], percentiles[1]) }
        return summary
    }
}

/// Sums of values that are quantities.
package struct NumberSums: Sendable {
    package private(set) var count: UInt64 = 0
    package private(set) var sum: Int128 = 0
    package private(set) var minimum = Int128.max, maximum = Int128.min
    /// Values by the number of bits that they take; negative ones by that number's negative.
    private var powers: [Int: UInt64] = [:]

    package init() {}

    package mutating func add(_ number: Int128) {
        count &+= 1
        sum &+= number
        minimum = min(minimum, number)
        maximum = max(maximum, number)
        let bits = 128 - number.magnitude.leadingZeroBitCount
        powers[number < 0 ? -bits : bits, default: 0] &+= 1
    }

    mutating func add(_ other: NumberSums) {
        count &+= other.count
        sum &+= other.sum
        minimum = min(minimum, other.minimum)
        maximum = max(maximum, other.maximum)
        powers.merge(other.powers) { $0 &+ $1 }
    }

    /// Values from one power of two to the next, both ends inclusive, in order and without gaps.
    package var histogram: [(range: ClosedRange<Int128>, calls: UInt64)] {
        guard let low = powers.keys.min(), let high = powers.keys.max() else { return [] }
        return (low...high).map { bits in
            let least: Int128 = bits == 0 ? 0 : 1 << Int128(abs(bits) - 1), most: Int128 = bits == 0 ? 0 : 2 * least - 1
            return (bits < 0 ? -most...(-least) : least...most, powers[bits] ?? 0)
        }
    }
}
