// Rows of a report that come from the tree: by module, by caller, by thread.
import Presentation

extension CallTree {
    /// One row for each group. `total` of a group counts only its outermost calls: a module's total is the time between
    /// entering it and leaving it.
    package func rows(by grouping: ReportGrouping, _ filter: FunctionPattern? = nil) -> [FunctionSummary] {
        switch grouping {
        case .function:
            return sums(filter) { Group(caller: -1, function: $0.function) }.map {
                marked(FunctionSummary(functions[$0.function], $1, cost), [$0.function])
            }
        case .module:
            var first: [String: Int] = [:]
            for (index, function) in functions.enumerated() where first[function.module] == nil { first[function.module] = index }
            let ofFunction = functions.map { first[$0.module]! }
            let members = Dictionary(grouping: functions.indices) { ofFunction[$0] }
            return sums(filter) { Group(caller: -1, function: ofFunction[$0.function]) }.map { group, node in
                marked(
                    FunctionSummary(Function(name: functions[group.function].module, symbol: "", module: ""), node, cost),
                    members[group.function] ?? [])
            }
        case .caller:
            // The caller of what a thread calls first is the thread.
            return sums(filter) { Group(caller: nodes[$0.parent].function, function: $0.function) }.map { group, node in
                var row = marked(FunctionSummary(functions[group.function], node, cost), [group.function])
                row.areCallsEstimated = onlyCounted.contains(group.function)
                row.caller = group.caller < 0 ? "(thread)" : functions[group.caller].name
                return row
            }
        case .site: return [] // a tree is of functions
        case .process:
            let merged = merged(.threads) // its nodes have other indices
            return merged.roots.map { root in
                let process = root.process.map { processes[$0] }, total = merged.nodes[root.node].total
                return FunctionSummary(
                    name: process.map { "\($0.name) \($0.pid)" } ?? name(of: root), symbol: "", module: "", calls: root.calls,
                    timedCalls: root.calls, total: Nanoseconds(total), selfTime: Int64(clamping: total), states: merged.states(of: root))
            }
        case .thread:
            return roots.map { root in
                FunctionSummary(
                    name: name(of: root), symbol: "", module: root.process.map { processes[$0].name } ?? "",
                    calls: root.calls, timedCalls: root.calls, total: Nanoseconds(nodes[root.node].total),
                    selfTime: Int64(clamping: nodes[root.node].total), states: states(of: root))
            }
        }
    }

    /// All times of a row that is a root are one.
    private func states(of root: Root) -> SplitTimes? {
        let times = nodes[root.node].states.total
        return time == nil ? nil : SplitTimes(selfTime: times, total: times)
    }

    /// A row of these functions.
    private func marked(_ row: FunctionSummary, _ functions: [Int]) -> FunctionSummary {
        var row = row
        if time == nil { row.states = nil }
        row.isSuppressed = functions.contains { suppressed.contains($0) }
        row.holdsSuppressed = functions.contains { holders.contains($0) }
        return row
    }

    struct Sums {
        var node = CallTreeAssembly.empty(parent: -1, function: -1)
        /// Length of all calls together, including those within calls of the group.
        var length: UInt64 = 0
    }

    private struct Group: Hashable {
        var caller: Int
        var function: Int
    }

    /// Name of a root's thread, with its process if there are several.
    package func name(of root: Root) -> String {
        processes.count > 1 ? nameWithProcess(of: root) : threadName(of: root)
    }

    /// As among the threads of other processes.
    package func nameWithProcess(of root: Root) -> String {
        guard let process = root.process.map({ processes[$0] }) else { return threadName(of: root) }
        let program = "\(process.name) \(process.pid)"
        return root.tid == process.pid ? program : "\(program): \(threadName(of: root))"
    }

    private func threadName(of root: Root) -> String {
        root.tid.map { "\($0)\(root.name.isEmpty ? "" : " " + root.name)" } ?? counted(UInt64(root.threadCount), "thread")
    }

    private func sums(_ filter: FunctionPattern?, _ group: (Node) -> Group) -> [(Group, Sums)] {
        let isWanted = functions.map { filter?.matches($0) ?? true }
        var numbers: [Group: Int] = [:]
        var sums: [(Group, Sums)] = []
        // Groups that are open on the path to the node being looked at.
        var active: [Int] = []
        var path: [(end: Int, number: Int)] = []
        for (index, node) in nodes.enumerated() {
            while let last = path.last, last.end <= index {
                active[last.number] -= 1
                path.removeLast()
            }
            guard node.parent >= 0, isWanted[node.function] else { continue }
            let group = group(node)
            let number = numbers[group] ?? sums.count
            if number == sums.count {
                numbers[group] = number
                sums.append((group, Sums()))
                active.append(0)
            }
            var part = node
            if active[number] > 0 {
                part.removeTotal()
            }
            CallTreeAssembly.add(part, to: &sums[number].1.node)
            sums[number].1.length &+= node.total
            active[number] += 1
            path.append((node.end, number))
        }
        return sums
    }
}

extension FunctionSummary {
    init(_ function: CallTree.Function, _ sums: CallTree.Sums, _ cost: CallCost?) {
        let node = sums.node
        self.init(
            name: function.name, symbol: function.symbol, module: function.module, calls: node.calls,
            timedCalls: node.timedCalls, total: Nanoseconds(node.total), selfTime: node.selfTime)
        states = node.states
        correctedTotal = CorrectedTime(
            Int64(clamping: node.correctedTotal), error: cost?.error(of: node.totalCost, calls: node.timedCalls, isSelf: false) ?? 0)
        correctedSelf = CorrectedTime(node.correctedSelf, error: cost?.error(of: node.selfCost, calls: node.timedCalls, isSelf: true) ?? 0)
        guard node.timedCalls > 0 else { return }
        if node.cut == 0, node.part == 0 { average = Nanoseconds(sums.length / node.timedCalls) }
        minimum = node.minimum.map { Nanoseconds($0) }
        maximum = node.maximum.map { Nanoseconds($0) }
    }
}

/// A function that calls nothing traced and is called very often from one caller.
package struct HotLeaf: Sendable {
    package var function: CallTree.Function
    /// nil when a thread calls it without any recorded call in between.
    package var caller: CallTree.Function?
    package var calls: UInt64
    package var total: Nanoseconds

    package var text: String {
        "\(grouped(calls)) calls of \(function.caption(function.name)) from \(caller.map { $0.caption($0.name) } ?? "the thread's own code"): \(readable(total))"
    }
}

extension CallTree {
    /// Most called first: of what makes up a twentieth of all calls, and ten thousand at least.
    package func hotLeaves(most: Int = 5) -> [HotLeaf] {
        var sums: [Group: (calls: UInt64, total: UInt64)] = [:]
        for (index, node) in nodes.enumerated() where node.parent >= 0 && node.end == index + 1 && node.calls > 0 {
            sums[Group(caller: nodes[node.parent].function, function: node.function), default: (0, 0)].calls &+= node.calls
            sums[Group(caller: nodes[node.parent].function, function: node.function)]?.total &+= node.total
        }
        let least = max(calls / 20, 10_000)
        return sums.filter { $0.value.calls >= least }
            .map {
                HotLeaf(
                    function: functions[$0.key.function], caller: $0.key.caller < 0 ? nil : functions[$0.key.caller],
                    calls: $0.value.calls, total: Nanoseconds($0.value.total))
            }
            .sorted { ($0.calls, $1.function.name) > ($1.calls, $0.function.name) }
            .prefix(most).map { $0 }
    }
}
