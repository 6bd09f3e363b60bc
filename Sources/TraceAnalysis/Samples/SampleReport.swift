// What the processor was doing, by samples that are merged with the recorded calls: a tree of functions from the outermost on, for each
// thread, and the functions by their shares.
import CTraceLayout
import Presentation
import Symbols

package struct SampleReport: Sendable {
    package struct FunctionShare: Sendable {
        package var function: CallTree.Function
        /// Samples in which it was the innermost; and in whose stacks it was, however often.
        package var own: UInt64
        package var total: UInt64
    }
    package struct Thread: Sendable {
        package var tid: UInt32
        package var name: String
        package var samples: UInt64
    }

    /// A node's `total` and `selfTime`, and a root's `calls`, are samples; so are a node's `calls`, those that were taken right in it.
    package let tree: CallTree
    package let samples: UInt64
    /// Whose outermost frames are in "…".
    package let cut: UInt64
    /// Of a processor's time, from one sample to the next; nil: the trace does not say.
    package let period: Nanoseconds?
    /// Records of the kernel that found no room.
    package let lost: UInt64
    package let damagedRecords: Int

    package init(
        _ traces: [TraceFile], symbolizer: Symbolizer = Symbolizer(), workers: Int = TraceFile.processorCount,
        progress: ReadingProgress? = nil
    ) {
        var trees: [CallTree] = [], samples: UInt64 = 0, cut: UInt64 = 0, damaged = 0
        for trace in traces {
            let records = SampleRecords(trace)
            damaged += records.damagedRecords
            guard let stacks = SampleStacks(trace, records, symbolizer, workers: workers, progress: progress) else { continue }
            var builder = SampleTree()
            for (number, sample) in records.samples.enumerated() {
                builder.add(stacks.stack(number), tid: sample.tid)
                samples += 1
                if !sample.isWhole { cut += 1 }
            }
            trees.append(builder.tree(trace, stacks.functions))
        }
        tree = CallTree(trees)
        self.samples = samples
        self.cut = cut
        damagedRecords = damaged
        period = traces.lazy.compactMap { $0.metadata.kernel?.period }.first
        lost = traces.reduce(0) { max($0, $1.metadata.kernel?.lost ?? 0) }
    }

    package var threads: [Thread] {
        tree.roots.map { Thread(tid: $0.tid ?? 0, name: $0.name, samples: tree.nodes[$0.node].total) }
    }

    /// By falling own share.
    package var functions: [FunctionShare] {
        var shares = tree.functions.map { FunctionShare(function: $0, own: 0, total: 0) }
        var onPath = [Int](repeating: 0, count: shares.count), path: [(function: Int, end: Int)] = []
        for (index, node) in tree.nodes.enumerated() {
            while let last = path.last, last.end <= index {
                onPath[last.function] -= 1
                path.removeLast()
            }
            guard node.function >= 0 else { continue }
            shares[node.function].own &+= UInt64(max(node.selfTime, 0))
            if onPath[node.function] == 0 { shares[node.function].total &+= node.total } // of recursion the outermost alone
            onPath[node.function] += 1
            path.append((node.function, node.end))
        }
        return shares.filter { $0.total > 0 }.sorted {
            ($0.own, $0.total, $1.function.name, $1.function.module) > ($1.own, $1.total, $0.function.name, $0.function.module)
        }
    }
}

/// Stacks of one process, added up.
struct SampleTree {
    private struct Node {
        var function: Int
        var own: UInt64 = 0
        var total: UInt64 = 0
        var children: [Int: Int] = [:]
    }
    private var nodes: [Node] = []
    private var roots: [UInt32: Int] = [:]

    /// - Parameter functions: outermost first
    mutating func add(_ functions: [Int], tid: UInt32) {
        var place = roots[tid] ?? -1
        if place < 0 {
            place = nodes.count
            roots[tid] = place
            nodes.append(Node(function: -1))
        }
        nodes[place].total += 1
        for function in functions {
            if let known = nodes[place].children[function] {
                place = known
            } else {
                nodes[place].children[function] = nodes.count
                nodes.append(Node(function: function))
                place = nodes.count - 1
            }
            nodes[place].total += 1
        }
        nodes[place].own += 1
    }

    func tree(_ trace: TraceFile, _ functions: [CallTree.Function]) -> CallTree {
        var result: [CallTree.Node] = [], found: [CallTree.Root] = []
        let threads = Dictionary(
            trace.chunksOfThread.compactMap { $0.last }.map { ($0.tid, trace.threadName($0.thread)) }, uniquingKeysWith: { $1 })
        let order = roots.sorted {
            let first = [$0, $1].map { ($0.key == trace.header.pid ? 0 : 1, UInt64.max - nodes[$0.value].total, $0.key) }
            return first[0] < first[1]
        }
        for (tid, root) in order {
            found.append(
                CallTree.Root(
                    node: result.count, process: 0, tid: tid, name: threads[tid] ?? "", threadCount: 1, calls: nodes[root].total,
                    missingChunks: 0, dropped: 0, filtered: 0))
            append(root, to: &result, functions)
        }
        return CallTree(
            processes: [CallTree.Process(trace, end: TraceEnd(trace).ticks)], roots: found, nodes: result, functions: functions)
    }

    /// In preorder, children by falling total. A stack may be thousands of frames long: not by recursion.
    private func append(_ root: Int, to result: inout [CallTree.Node], _ functions: [CallTree.Function]) {
        var waiting = [(place: root, parent: -1)], open: [Int] = []
        func name(_ place: Int) -> String { functions[nodes[place].function].name }
        while let (place, parent) = waiting.popLast() {
            while let last = open.last, last != parent {
                result[last].end = result.count
                open.removeLast()
            }
            let node = nodes[place]
            open.append(result.count)
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
