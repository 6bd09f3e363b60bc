// The samples of all processes as the page has them: one tree of their stacks, and for each moment the node in which a sample counts. Too
// many for a page are counted in steps of time, at the middle of each.
import Presentation
import TraceAnalysis
import TraceFormat

package struct PageSamples {
    package struct Process: Sendable {
        var trace: TraceFile
        var stacks: SampledStacks
        /// Index among the page's traces; nil: its threads have no lanes.
        var index: Int?

        package init(trace: TraceFile, stacks: SampledStacks, index: Int? = nil) {
            self.trace = trace
            self.stacks = stacks
            self.index = index
        }

        /// Converts ticks to nanoseconds of the page's time.
        /// - Parameter begun: CLOCK_MONOTONIC at its beginning
        fileprivate func moment(_ ticks: UInt64, begun: UInt64) -> UInt64 {
            let since = trace.timeScale.signedNanoseconds(Int64(truncatingIfNeeded: ticks &- trace.firstTicks.raw))
            return UInt64(clamping: Int64(truncatingIfNeeded: trace.header.first.monotonic_ns &- begun) &+ since)
        }
    }

    /// Nanoseconds; 0: each has its own moment.
    package let step: UInt64
    private let tree: ViewTree
    private let moments: [Moment]
    /// Lane of each thread of the tree, -1 for none.
    private let lanes: [Int]
    private let period: Nanoseconds?

    private struct Moment {
        var at: UInt64
        var node: Int
        var count: UInt64 = 1
    }

    /// nil: no process has samples.
    /// - Parameters:
    ///   - begun, duration: beginning (CLOCK_MONOTONIC) and length of the page's time
    ///   - lane: returns the lane of a thread id in a trace of the page; nil: it has none
    package init?(
        _ processes: [Process], begun: UInt64, duration: UInt64, least: Double, mostNodes: Int, mostMoments: Int,
        lane: (Int, UInt32) -> Int?, _ functions: inout FunctionNumbers
    ) {
        let sampled = processes.filter { $0.stacks.tree != nil }
        guard !sampled.isEmpty else { return nil }
        tree = ViewTree(sampled.map { $0.stacks.tree! }, least: least, most: mostNodes, &functions)
        lanes = sampled.flatMap { process in
            process.stacks.tree!.roots.map { root in process.index.flatMap { index in root.tid.flatMap { lane(index, $0) } } ?? -1 }
        }
        period = sampled.lazy.compactMap { $0.trace.metadata.kernel?.period }.first
        let moments = zip(sampled, tree.indices).flatMap { process, indices in
            process.stacks.samples.map { Moment(at: min(process.moment($0.at, begun: begun), duration), node: indices[$0.node]) }
        }
        var step: UInt64 = 0, sums = moments
        while sums.count > mostMoments, step < 1 << 62 {
            step = step == 0 ? 1 << 20 : step * 2
            sums = Self.summed(moments, step)
            if sums.allSatisfy({ $0.at < step }) { break } // there are more nodes than that
        }
        self.step = step
        self.moments = sums.sorted { ($0.at, $0.node) < ($1.at, $1.node) }
    }

    private static func summed(_ moments: [Moment], _ step: UInt64) -> [Moment] {
        struct Key: Hashable {
            var number: UInt64
            var node: Int
        }
        var counts: [Key: UInt64] = [:]
        for one in moments { counts[Key(number: one.at / step, node: one.node), default: 0] += one.count }
        return counts.map { Moment(at: $0.key.number * step &+ step / 2, node: $0.key.node, count: $0.value) }
    }

    /// `samples` of schema.mjs.
    package var text: String {
        let moments = self.moments.map { "\($0.at),\($0.node),\($0.count)" }.joined(separator: ",")
        return """
            {"period":\(period.map { "\($0.count)" } ?? "null"),"step":\(step),
            \(tree.pathText),
            "lanes":[\(lanes.map(String.init).joined(separator: ","))],"moments":[\(moments)]}
            """
    }
}
