// Calls that the agent counted and did not record (Metadata.passed). The number is exact. Their time is estimated by those calls of the same function
// that were recorded in their stead, about one in a thousand, without what recording them took.
import Presentation

/// Such calls of one function, in ticks.
struct CountedCalls: BitwiseCopyable {
    var calls: UInt64 = 0
    /// Recorded calls of known length that stand for them, the sum of their lengths, and of the squares.
    private var samples: UInt64 = 0
    private var sum = 0.0, squares = 0.0

    mutating func sample(_ length: UInt64) {
        samples &+= 1
        sum += Double(length)
        squares += Double(length) * Double(length)
    }

    mutating func add(_ other: CountedCalls) {
        calls &+= other.calls
        samples &+= other.samples
        sum += other.sum
        squares += other.squares
    }

    func time(_ recorded: FunctionSums, _ trace: TraceFile) -> CountedTime {
        var time = time(timed: recorded.timed, sum: recorded.sum, trace.timeScale, CallCost(trace))
        time.isExact = trace.window.isWhole
        return time
    }

    /// - Parameters:
    ///   - timed: recorded calls of the function, whatever they stand for: what is known where there are no samples
    ///   - sum: their time
    func time(timed: UInt64, sum recorded: UInt64, _ scale: TimeScale, _ cost: CallCost) -> CountedTime {
        let tick = scale.nanosecondsPerTick, calls = Double(calls)
        func withoutCost(_ mean: Double) -> Double { max(mean * tick - cost.inside, 0) }
        guard samples > 1 else {
            let mean = withoutCost(timed > 0 ? Double(recorded) / Double(timed) : 0)
            return CountedTime(calls: self.calls, nanoseconds: calls * mean, error: calls * max(mean, cost.inside * cost.insideError))
        }
        let count = Double(samples), mean = sum / count
        let variance = max(squares / count - mean * mean, 0) * count / (count - 1)
        // The standard error of the mean, and that of the cost, which is the same for all.
        let error = (variance / count).squareRoot() * tick + cost.inside * cost.insideError
        return CountedTime(calls: self.calls, nanoseconds: calls * withoutCost(mean), error: calls * error)
    }
}

/// The number of such calls, and an estimate of the time that they took, in nanoseconds.
package struct CountedTime: Sendable {
    package var calls: UInt64
    var nanoseconds: Double
    /// How far that may be off.
    var error: Double
    /// False: a window of time is shown, and the number is an estimate, too.
    var isExact = true

    func adding(_ other: CountedTime) -> CountedTime {
        CountedTime(
            calls: calls &+ other.calls, nanoseconds: nanoseconds + other.nanoseconds, error: error + other.error,
            isExact: isExact && other.isExact)
    }

    package var time: Nanoseconds { Nanoseconds(UInt64(exactly: nanoseconds.rounded()) ?? .max) }
    package var timeError: Nanoseconds { Nanoseconds(UInt64(exactly: error.rounded(.up)) ?? .max) }
}
