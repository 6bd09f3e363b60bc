// The samples of a process, each with the stack that is made of it and of the calls that were open, as a tree of all of them.
import Symbols
import TraceFormat

package struct SampledStacks: Sendable {
    package struct Sample: BitwiseCopyable, Sendable {
        /// Ticks.
        package var at: UInt64
        /// Node of the tree in which it counts.
        package var node: Int
    }
    /// In the order of time, those of the trace's window and of the threads that it shows.
    package let samples: [Sample]
    /// nil: there are no samples. A node's `total`, `selfTime` and `calls` are as in `SampleReport`.
    package let tree: CallTree?
    /// Number of samples whose outermost frames are not known, shown as "…".
    let cut: UInt64
    let damagedRecords: Int

    package init(
        _ trace: TraceFile, _ symbolizer: Symbolizer, workers: Int = TraceFile.cpuCount, progress: ReadingProgress? = nil
    ) {
        let records = SampleRecords(trace)
        damagedRecords = records.damagedRecords
        let window = trace.window, names = trace.ofAllThreads.namesOfThreadIDs
        let shown = records.tids.filter { trace.shows(tid: $0, name: names[$0] ?? "") }
        let wanted = records.samples.indices.filter {
            window.touches(records.samples[$0].at, records.samples[$0].at) && shown.contains(records.samples[$0].tid)
        }
        guard !wanted.isEmpty else {
            (samples, tree, cut) = ([], nil, 0)
            return
        }
        // A call that was open may have begun before the window.
        let open = SampledCalls(trace.narrowed(to: .whole), records, workers: workers, progress: progress)
        let code = SampledCode(trace, records, symbolizer), limits = CallPlaces.Limits(trace)
        var sums = SampleTree(), stackNodes: [Int] = []
        for number in wanted {
            let sample = records.samples[number]
            // Spans are between functions, nobody knows which.
            let recorded = open[number].filter { trace.metadata.functions[$0.function].map { !$0.isSpan && !$0.isMark } ?? true }
            let stack = MergedStack(
                sample, kernel: records.kernelStack(of: sample), records.stack(of: sample), open: recorded.reversed(), code, trace.metadata,
                limits)
            stackNodes.append(sums.add(stack.functions, tid: sample.tid))
        }
        let (tree, nodes) = sums.tree(trace, code.functions)
        self.tree = tree
        samples = zip(wanted, stackNodes).map { Sample(at: records.samples[$0].at, node: nodes[$1]) }
        cut = UInt64(wanted.count { !records.samples[$0].isWhole })
    }
}

/// The stacks, added up.
private struct SampleTree {
    private struct Node {
        var function: Int
        var own: UInt64 = 0
        var total: UInt64 = 0
        var children: [Int: Int] = [:]
    }
    private var nodes: [Node] = []
    private var roots: [UInt32: Int] = [:]

    /// - Parameter functions: outermost first
    /// - Returns: where the sample counts
    mutating func add(_ functions: [Int], tid: UInt32) -> Int {
        var node = roots[tid] ?? -1
        if node < 0 {
            node = nodes.count
            roots[tid] = node
            nodes.append(Node(function: -1))
        }
        nodes[node].total += 1
        for function in functions {
            if let known = nodes[node].children[function] {
                node = known
            } else {
                nodes[node].children[function] = nodes.count
                nodes.append(Node(function: function))
                node = nodes.count - 1
            }
            nodes[node].total += 1
        }
        nodes[node].own += 1
        return node
    }

    /// And for each node its index in the tree.
    func tree(_ trace: TraceFile, _ functions: [CallTree.Function]) -> (CallTree, nodes: [Int]) {
        var result: [CallTree.Node] = [], found: [CallTree.Root] = [], numbers = [Int](repeating: 0, count: nodes.count)
        let threads = trace.namesOfThreadIDs
        let order = roots.sorted {
            let first = [$0, $1].map { ($0.key == trace.header.pid ? 0 : 1, UInt64.max - nodes[$0.value].total, $0.key) }
            return first[0] < first[1]
        }
        for (tid, root) in order {
            found.append(
                CallTree.Root(
                    node: result.count, process: 0, tid: tid, name: threads[tid] ?? "", threadCount: 1, calls: nodes[root].total,
                    missingChunks: 0, dropped: 0, filtered: 0))
            append(root, to: &result, &numbers, functions)
        }
        let process = CallTree.Process(trace, end: TraceEnd(trace).ticks)
        return (CallTree(processes: [process], roots: found, nodes: result, functions: functions), numbers)
    }

    /// In preorder, children by falling total. A stack may be thousands of frames long: not by recursion.
    private func append(_ root: Int, to result: inout [CallTree.Node], _ numbers: inout [Int], _ functions: [CallTree.Function]) {
        var waiting = [(number: root, parent: -1)], open: [Int] = []
        func name(_ number: Int) -> String { functions[nodes[number].function].name }
        while let (number, parent) = waiting.popLast() {
            while let last = open.last, last != parent {
                result[last].end = result.count
                open.removeLast()
            }
            let node = nodes[number]
            open.append(result.count)
            numbers[number] = result.count
            let children = node.children.values.sorted { (nodes[$0].total, name($1)) < (nodes[$1].total, name($0)) }
            waiting += children.map { ($0, result.count) }
            result.append(
                CallTree.Node(
                    parent: parent, function: node.function, end: 0, calls: node.own, timedCalls: 0, total: node.total,
                    selfTime: Int64(clamping: node.own), minimum: nil, maximum: nil, open: 0, unwound: 0, cut: 0, migrated: 0))
        }
        for last in open { result[last].end = result.count }
    }
}
