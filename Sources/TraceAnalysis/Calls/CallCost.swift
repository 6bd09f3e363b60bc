// What recording costs, taken out of the times: a call's two clock reads enclose a part of the agent's own work, which is
// in its length, and the rest is in its caller's. The agent measures both for a leaf call when it starts. Calls with
// calls inside cost somewhat more (two events instead of one), and what a processor would have waited for anyhow costs less: how much,
// the agent has measured, too.
import CTraceLayout

/// Of one call, in nanoseconds.
struct CallCost {
    /// Within the call's own length.
    var inside: Double
    /// In the time of whoever called.
    var outside: Double
    /// By how much `whole` and `inside` may be wrong, as parts of themselves.
    var wholeError: Double
    var insideError: Double
    /// 0: the agent could not measure it.
    var whole: Double { inside + outside }

    /// By how much the sum of the costs may be wrong of which so many calls have the inner part in it, in nanoseconds. Of others it has
    /// the whole, or, of the calls that somebody makes, the outer part.
    func error(of cost: UInt64, calls: UInt64, isSelf: Bool) -> Double {
        guard whole > 0 else { return 0 }
        let within = min(Double(calls) * inside, Double(cost))
        let others = isSelf && outside > 0 ? (whole * wholeError + inside * insideError) / outside : wholeError
        return within * insideError + (Double(cost) - within) * others
    }

    /// Calls in a program differ by no less from those that were measured …
    private static let leastError = 1.0 / 16
    /// … and by so much where the agent did not look.
    private static let unknownError = 0.5

    init(_ trace: TraceFile) {
        let part = trace.timeScale.nanosecondsPerTick / Double(TRACE_COST_PARTS)
        let whole = Double(trace.header.leaf_cost) * part
        inside = min(Double(trace.header.inside_cost) * part, whole)
        outside = whole - inside
        func error(_ parts: UInt32) -> Double {
            parts == 0 ? Self.unknownError : max(Double(parts) / Double(TRACE_COST_PARTS), Self.leastError)
        }
        wholeError = error(trace.header.leaf_error)
        insideError = error(trace.header.inside_error)
    }
}

extension TraceFile {
    /// By how much what recording a call costs may be wrong, as a part of it.
    package var costError: Double { CallCost(self).wholeError }

    /// Of what recording a call costs, what is in the call's own length. nil: the agent could not measure it.
    package var insideCostShare: Double? {
        let cost = CallCost(self)
        return cost.whole > 0 ? cost.inside / cost.whole : nil
    }
}
