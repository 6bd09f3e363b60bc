// The agent's share of the times of a tree.

extension CallTree {
    /// Sets the agent's share of the times of each node.
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
            guard node.parent >= 0 else {
                addCost(ofOwnCodeBelow: index, calls: Double(calls[index]) * cost.outside)
                continue
            }
            calls[node.parent] &+= node.timedCalls
            nodes[node.parent].totalCost &+= nodes[index].totalCost
        }
    }

    /// Charges a thread's own code with what recording its outermost calls took outside of them.
    private mutating func addCost(ofOwnCodeBelow root: Int, calls cost: Double) {
        guard let own = ownCode(below: root) else { return }
        nodes[own].selfCost = UInt64(exactly: min(cost, Double(nodes[own].selfTime)).rounded()) ?? 0
        nodes[own].totalCost = nodes[own].selfCost
        nodes[root].totalCost &+= nodes[own].selfCost
    }
}
