// CPU profile from samples that are merged with the recorded calls: a tree of functions from the outermost on, for each thread, and the
// functions by their shares.
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
    /// Number of samples whose outermost frames are not known, shown as "…".
    package let cut: UInt64
    /// CPU time from one sample to the next; nil: the trace does not say.
    package let period: Nanoseconds?
    /// Kernel records for which there was no space in the buffer.
    package let lost: UInt64
    package let damagedRecords: Int

    package init(
        _ traces: [TraceFile], symbolizer: Symbolizer = Symbolizer(), workers: Int = TraceFile.cpuCount,
        progress: ReadingProgress? = nil
    ) {
        let stacks = traces.map { SampledStacks($0, symbolizer, workers: workers, progress: progress) }
        tree = CallTree(stacks.compactMap { $0.tree })
        samples = UInt64(stacks.reduce(0) { $0 + $1.samples.count })
        cut = stacks.reduce(0) { $0 + $1.cut }
        damagedRecords = stacks.reduce(0) { $0 + $1.damagedRecords }
        period = traces.lazy.compactMap { $0.metadata.kernel?.period }.first
        lost = traces.reduce(0) { max($0, $1.metadata.kernel?.lost ?? 0) }
    }

    package var threads: [Thread] {
        tree.roots.map { Thread(tid: $0.tid ?? 0, name: $0.name, samples: tree.nodes[$0.node].total) }
    }

    /// Functions, the largest own share first.
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
            if onPath[node.function] == 0 { shares[node.function].total &+= node.total } // recursion: the outermost call only
            onPath[node.function] += 1
            path.append((node.function, node.end))
        }
        return shares.filter { $0.total > 0 }.sorted {
            ($0.own, $0.total, $1.function.name, $1.function.module) > ($1.own, $1.total, $0.function.name, $0.function.module)
        }
    }
}

extension TraceFile {
    /// Threads that have samples or recorded calls, also those that are not shown.
    package var sampledThreads: [(pid: UInt32, tid: UInt32, name: String)] {
        let names = ofAllThreads.namesOfThreadIDs
        return SampleRecords(self).tids.union(names.keys).sorted().map { (header.pid, $0, names[$0] ?? "") }
    }
}
