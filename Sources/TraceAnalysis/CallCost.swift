// What recording costs, taken out of the times: a call's two clock reads enclose a part of the agent's own work, which is
// in its length, and the rest is in its caller's. The agent measures both for a leaf call when it starts. Calls with
// calls inside cost somewhat more (two events instead of one): what is subtracted is rather too little than too much.
import CTraceLayout

/// Of one call, in nanoseconds.
struct CallCost {
    /// Within the call's own length.
    var inside: Double
    /// In the time of whoever called.
    var outside: Double
    /// 0: the agent could not measure it.
    var whole: Double { inside + outside }

    init(_ trace: TraceFile) {
        let part = trace.timeScale.nanosecondsPerTick / Double(TRACE_COST_PARTS)
        let whole = Double(trace.header.leaf_cost) * part
        inside = min(Double(trace.header.inside_cost) * part, whole)
        outside = whole - inside
    }
}

extension TraceFile {
    /// Of what recording a call costs, what is in the call's own length. nil: the agent could not measure it.
    public var insideCostShare: Double? {
        let cost = CallCost(self)
        return cost.whole > 0 ? cost.inside / cost.whole : nil
    }
}

extension CallTree {
    /// Notes at each node what of its times is the agent's work.
    mutating func addCost(_ cost: CallCost) {
        guard cost.whole > 0 else { return }
        var calls = [UInt64](repeating: 0, count: nodes.count) // made from each node
        for index in nodes.indices.reversed() {
            let node = nodes[index]
            if node.function >= 0 {
                let own = Double(node.timedCalls) * cost.inside + Double(calls[index]) * cost.outside
                nodes[index].selfCost = UInt64(exactly: max(min(own, Double(node.selfTime)), 0).rounded()) ?? .max
                nodes[index].totalCost &+= nodes[index].selfCost
            }
            guard node.parent >= 0 else { continue }
            calls[node.parent] &+= node.timedCalls
            nodes[node.parent].totalCost &+= nodes[index].totalCost
        }
    }
}
