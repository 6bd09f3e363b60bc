// The merged call tree: each distinct path of functions once, with how often it was called and how long it took. What
// `tree`, `callers`, `diff`, flame graphs and the exports that add up (folded, pprof, callgrind) are made of.
//
// Times are nanoseconds. Self times of one file add up, function by function, to exactly what `Summary` gives: the
// rounding is carried from path to path.
import CTraceLayout
import TraceFormat

public struct CallTree: Sendable {
    /// Identical functions of several files are one: symbol and module name are what they are known by.
    public struct Function: Hashable, Sendable {
        /// For people.
        public var name: String
        /// As in the file: mangled; "" when it has none, then the name is module+offset.
        public var symbol: String
        /// File name of the module, "?" when unknown.
        public var module: String
    }

    public struct Node: Sendable {
        /// Index of the node below, -1 for a root.
        public var parent: Int
        /// Index in `functions`, -1 for a root.
        public var function: Int
        /// Behind the last node of its subtree: nodes are in preorder, children by falling total.
        public var end: Int
        /// Calls that began here.
        public var calls: UInt64
        /// Of those, how many have a known length. `total / timedCalls` is their average where `cut` is 0.
        public var timedCalls: UInt64
        /// From entry to exit, all calls together. Of a root: of what was called on it.
        public var total: UInt64
        /// Without the traced calls made from it. Negative only where frames did not nest (coroutines). 0 of a root.
        public var selfTime: Int64
        /// Of one call; nil when none has a known length.
        public var minimum: UInt64?
        public var maximum: UInt64?
        /// Calls still running when the trace or thread ended: their time counts up to there.
        public var open: UInt64
        /// Calls left without returning: exception, longjmp, end of the thread.
        public var unwound: UInt64
        /// Calls whose end lies in a stretch that the file does not have: they ran at least as long as counted.
        public var cut: UInt64
        /// Calls that returned on this thread and began on another, where they are counted as calls.
        public var migrated: UInt64
        /// What of `selfTime` and of `total` recording itself took: the agent's cost for the calls, as it was measured
        /// when it started. 0 where `isCostKnown` is false.
        public var selfCost: UInt64 = 0
        public var totalCost: UInt64 = 0

        /// As if nothing had been recorded.
        public var correctedSelf: Int64 { selfTime &- Int64(clamping: min(selfCost, UInt64(max(selfTime, 0)))) }
        public var correctedTotal: UInt64 { total &- min(totalCost, total) }
    }

    /// What the top of a tree stands for: one thread, or several that were merged.
    public struct Root: Sendable {
        /// Index in `nodes`.
        public var node: Int
        /// Index in `processes`, nil when threads of several were merged.
        public var process: Int?
        /// nil when several were merged.
        public var tid: UInt32?
        public var name: String
        public var threadCount: Int
        public var calls: UInt64
        /// Chunks that a ring overwrote, or that a damaged file lacks.
        public var missingChunks: UInt64
        public var dropped: UInt64
        /// By time and by depth, while recording.
        public var filtered: UInt64
    }

    public struct Process: Sendable {
        public var path: String
        public var program: String
        public var commandLine: String
        public var pid: UInt32
        public var parentPid: UInt32
        /// Of the epoch, 0 unknown.
        public var startedAt: UInt64
        public var duration: Nanoseconds
        public var isRing: Bool
        /// Why its end is not as it should be: "not finished", or the reason why recording stopped.
        public var unfinished: String?
        /// Calls made while nothing could be written, of no thread in particular.
        public var dropped: UInt64
        /// Whether the trace says what recording a call cost.
        public var isCostKnown: Bool
    }

    public internal(set) var processes: [Process]
    /// By process, then by falling total; of one process its main thread first.
    public internal(set) var roots: [Root]
    public internal(set) var nodes: [Node]
    public internal(set) var functions: [Function]

    /// Reads all of a trace. Memory grows with the number of distinct paths, not of calls; beyond two million paths of
    /// one reading thread what is new below a path is one node, "(further paths)".
    public init(_ trace: TraceFile, workers: Int = TraceFile.processorCount, progress: ReadingProgress? = nil) {
        let table = FunctionTable(trace.metadata)
        let all = StreamWorker.read(trace, table, workers: workers, progress: progress) { PathSums(table) }
        let end = all.end, calls = all.calls
        self = all.withSink { CallTreeAssembly(trace, table, $0, calls: calls, end: end).tree(trace.timeScale) }
        addCost(CallCost(trace))
    }

    /// Children of a node, or of nothing: the roots are `roots`.
    public func children(of node: Int) -> Children { Children(nodes: nodes, following: node + 1, end: nodes[node].end) }

    public struct Children: Sequence, IteratorProtocol {
        let nodes: [Node]
        var following: Int
        let end: Int

        public mutating func next() -> Int? {
            guard following < end else { return nil }
            defer { following = nodes[following].end }
            return following
        }
    }

    /// Functions from the root's first call to the node itself.
    public func path(to node: Int) -> [Function] {
        var path: [Function] = []
        var node = node
        while node >= 0, nodes[node].function >= 0 {
            path.append(functions[nodes[node].function])
            node = nodes[node].parent
        }
        return path.reversed()
    }

    public var isCostKnown: Bool { processes.contains { $0.isCostKnown } }

    /// Those with calls from which nothing can be subtracted.
    public var processesOfUnknownCost: [Process] {
        let calling = Set(roots.filter { $0.calls > 0 }.compactMap { $0.process })
        return processes.indices.filter { calling.contains($0) && !processes[$0].isCostKnown }.map { processes[$0] }
    }

    /// The name most like `text`, for one that was mistyped.
    public func nearest(to text: String) -> String? {
        let wanted = text.lowercased()
        return functions.map { $0.name }.filter { $0.lowercased().contains(wanted) }.min { ($0.count, $0) < ($1.count, $1) }
    }

    public var calls: UInt64 { roots.reduce(0) { $0 &+ $1.calls } }
    public var total: UInt64 { roots.reduce(0) { $0 &+ nodes[$1.node].total } }

    static let elsewhere = Function(name: "(further paths)", symbol: "(further paths)", module: FunctionTable.noModule)
}
