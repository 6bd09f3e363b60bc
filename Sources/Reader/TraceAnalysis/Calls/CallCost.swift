// The cost of recording, to be taken out of the times: a call's two clock reads enclose a part of the agent's own work, which is in its
// length, and the rest is in its caller's. The agent measures both for a leaf call when it starts. Calls with calls inside cost somewhat
// more (two events instead of one), and work that overlaps with a stall of the CPU costs less: the agent has measured how much, too.
import CTraceLayout

/// Cost of recording one call, in nanoseconds.
struct CallCost {
    /// The part within the call's own length.
    var inside: Double
    /// The part in the caller's time.
    var outside: Double
    /// Relative errors of `whole` and `inside`.
    var wholeError: Double
    var insideError: Double
    /// 0: the agent could not measure it.
    var whole: Double { inside + outside }

    /// Returns the error of a sum of recording costs, in nanoseconds. `cost` has the inner part of `calls` calls; the rest is the whole
    /// cost of other calls or, with `isSelf`, the outer part of calls made from here.
    func error(of cost: UInt64, calls: UInt64, isSelf: Bool) -> Double {
        guard whole > 0 else { return 0 }
        let within = min(Double(calls) * inside, Double(cost))
        let others = isSelf && outside > 0 ? (whole * wholeError + inside * insideError) / outside : wholeError
        return within * insideError + (Double(cost) - within) * others
    }

    /// Calls in a program differ at least this much from those that were measured …
    private static let leastError = 1.0 / 16
    /// … and this much where the agent did not measure it.
    private static let unknownError = 0.5

    init(_ trace: TraceFile) { self.init(trace.header, trace.timeScale) }

    init(_ header: trace_file_header, _ scale: TimeScale) {
        let part = scale.nanosecondsPerTick / Double(TRACE_COST_PARTS)
        let whole = Double(header.leaf_cost) * part
        inside = min(Double(header.inside_cost) * part, whole)
        outside = whole - inside
        func error(_ parts: UInt32) -> Double {
            parts == 0 ? Self.unknownError : max(Double(parts) / Double(TRACE_COST_PARTS), Self.leastError)
        }
        wholeError = error(header.leaf_error)
        insideError = error(header.inside_error)
    }
}

extension TraceFile {
    /// Relative error of the cost of recording a call.
    package var costError: Double { CallCost(self).wholeError }

    /// Share of a call's recording cost that lies within the call's own length. nil: the agent could not measure it.
    package var insideCostShare: Double? {
        let cost = CallCost(self)
        return cost.whole > 0 ? cost.inside / cost.whole : nil
    }
}
