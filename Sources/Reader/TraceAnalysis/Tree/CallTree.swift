// The merged call tree: each distinct path of functions once, with how often it was called and how long it took. What
// `tree`, `callers`, `diff`, flame graphs and the exports that add up (folded, pprof, callgrind) are made of.
//
// Times are nanoseconds. Self times of one file add up, function by function, to exactly what `Summary` gives: the
// rounding is carried from path to path.
import CTraceLayout
import Presentation
import TraceFormat

package struct CallTree: Sendable {
    /// Identical functions of several files are one: symbol and module name are what they are known by.
    package struct Function: Hashable, Sendable {
        /// For people.
        package var name: String
        /// As in the file: mangled; "" when it has none, then the name is module+offset.
        package var symbol: String
        /// File name of the module, "?" when unknown.
        package var module: String
        /// Its calls with these arguments alone, in a tree that distinguishes calls by them; nil: whichever they are, or they are not known.
        package var arguments: String?

        /// The name with the arguments, as of a call.
        func caption(_ name: String) -> String {
            guard let arguments else { return name }
            // A name of C++ has its parameters already.
            return !name.hasSuffix(")") ? "\(name)(\(arguments))" : arguments.isEmpty ? name : "\(name) \(arguments)"
        }

        /// Code of a program that a thread runs while no recorded call is open: on the first level of a tree, without calls.
        package static func ownCode(of program: String) -> Function {
            Function(name: FunctionNames.ownCode, symbol: FunctionNames.ownCode, module: basename(program))
        }
        package var isOwnCode: Bool { symbol == FunctionNames.ownCode }

        /// In a tree of callers: code that is not recorded, where recorded functions call from there as well.
        static let notRecorded = Function(name: "(not recorded)", symbol: "(not recorded)", module: FunctionNames.noModule)
        var isNotRecorded: Bool { symbol == Self.notRecorded.symbol }
    }

    package struct Node: Sendable {
        /// Index of the node below, -1 for a root.
        package var parent: Int
        /// Index in `functions`, -1 for a root.
        package var function: Int
        /// Index after the last node of its subtree: nodes are in preorder, children by falling total.
        package var end: Int
        /// Calls that began here.
        package var calls: UInt64
        /// How many of those have a known length. `total / timedCalls` is their average where `cut` is 0.
        package var timedCalls: UInt64
        /// Time from entry to exit, all calls together. For a root: the sum of its children, own code included.
        package var total: UInt64
        /// Without the recorded calls made from it. Of calls that overlap (coroutines) the later one has the time. 0 of a root.
        package var selfTime: Int64
        /// Length of the shortest call, and of the longest; nil when none has a known length.
        package var minimum: UInt64?
        package var maximum: UInt64?
        /// Calls still running when the trace or thread ended: their time counts up to there.
        package var open: UInt64
        /// Calls left without returning: exception, longjmp, end of the thread.
        package var unwound: UInt64
        /// Calls whose end lies in a stretch that the file does not have: they ran at least as long as counted.
        package var cut: UInt64
        /// Calls that returned on this thread and began on another, where they are counted as calls.
        package var migrated: UInt64
        /// Calls of which only a part lies in the window of time; only that part of their time counts, and as calls those that begin there.
        package var part: UInt64 = 0
        /// Parts of `selfTime` and `total` that recording itself took: the agent's cost for the calls, as measured when it
        /// started. 0 where `isCostKnown` is false.
        package var selfCost: UInt64 = 0
        package var totalCost: UInt64 = 0
        /// `selfTime` and `total` by state, of wall time whichever they show; meaningful where the tree has a `time`.
        package var states = SplitTimes()

        /// The total does not count again: the node lies in another one that has it.
        mutating func removeTotal() {
            total = 0
            totalCost = 0
            states.total = StateTimes()
        }

        /// As if nothing had been recorded.
        package var correctedSelf: Int64 { selfTime &- Int64(clamping: min(selfCost, UInt64(max(selfTime, 0)))) }
        package var correctedTotal: UInt64 { total &- min(totalCost, total) }
    }

    /// Top of a tree: one thread, or several that were merged.
    package struct Root: Sendable {
        /// Index in `nodes`.
        package var node: Int
        /// Index in `processes`, nil when threads of several were merged.
        package var process: Int?
        /// nil when several were merged.
        package var tid: UInt32?
        package var name: String
        package var threadCount: Int
        package var calls: UInt64
        /// Chunks that a ring overwrote, or that a damaged file lacks.
        package var missingChunks: UInt64
        package var dropped: UInt64
        /// Calls filtered out by time or depth while recording.
        package var filtered: UInt64
    }

    package struct Process: Sendable {
        package var path: String
        package var program: String
        /// What it calls itself, or was called by.
        package var name: String
        package var commandLine: String
        package var pid: UInt32
        package var parentPid: UInt32
        /// Nanoseconds since the epoch, 0 unknown.
        package var startedAt: UInt64
        package var duration: Nanoseconds
        package var isRing: Bool
        /// How it ended, or why recording stopped; nil where that needs no word.
        package var endText: String?
        /// Calls made while nothing could be written, of no thread in particular.
        package var dropped: UInt64
        /// True if the trace says what recording a call cost.
        package var isCostKnown: Bool
        /// The cost itself.
        var cost: CallCost
        /// "window 1.2 s to 1.5 s of 3 s", and as JSON has it; nil where all is shown.
        package var window: String?
        var reportedWindow: ReportedWindow?
    }

    package internal(set) var processes: [Process]
    /// Sorted by process; within a process the main thread first, then by falling total.
    package internal(set) var roots: [Root]
    package internal(set) var nodes: [Node]
    package internal(set) var functions: [Function]
    /// Suppressed functions, and those that made calls of them: the calls that are not recorded are in their own time. By index.
    var suppressed: Set<Int> = []
    /// Functions with calls that are counted and not recorded: of their calls on a path the recorded ones tell the number.
    var onlyCounted: Set<Int> = []
    var holders: Set<Int> = []
    /// Who calls the functions of the first level is below them: all figures of a path are those of its first function.
    var isInverted = false
    /// Some calls are distinguished by their arguments.
    package internal(set) var hasArguments = false
    /// What `selfTime`, `total` and the lengths of calls are. nil: wall time, and no states are known.
    package internal(set) var time: CallTime?
}

extension CallTree {
    /// Reads all of a trace. Memory grows with the number of distinct paths, not of calls. If there are more than a million and a half
    /// paths, the longest are not distinguished: what goes on from a path of the length that is left is one node, "(further paths)".
    package init(
        _ trace: TraceFile, states: StateReading = .nothing, byArguments: Bool = false, workers: Int = TraceFile.cpuCount,
        progress: ReadingProgress? = nil
    ) {
        self.init(trace, states, byArguments: byArguments, workers: workers, progress: progress, FunctionNames(trace.metadata))
    }

    /// One of several.
    init(_ trace: TraceFile, _ states: StateReading, byArguments: Bool, workers: Int, names: NameCache) {
        self.init(trace, states, byArguments: byArguments, workers: workers, progress: nil, FunctionNames(trace.metadata, names))
    }

    /// One of several parts of a trace, of which this is the function table.
    init(_ trace: TraceFile, _ table: FunctionNames, workers: Int) { self.init(trace, .nothing, workers: workers, progress: nil, table) }

    /// With other limits for paths: while reading, and in the end.
    package init(_ trace: TraceFile, workers: Int, mostPaths: Int, keptPaths: Int? = nil) {
        self.init(
            trace, .nothing, workers: workers, progress: nil, FunctionNames(trace.metadata), mostPaths: mostPaths, keptPaths: keptPaths)
    }
    /// With another limit for the different arguments of a function.
    package init(_ trace: TraceFile, mostTexts: Int) {
        self.init(
            trace, .nothing, byArguments: true, workers: 1, progress: nil, FunctionNames(trace.metadata), mostTexts: mostTexts)
    }

    private init(
        _ trace: TraceFile, _ states: StateReading, byArguments: Bool = false, workers: Int, progress: ReadingProgress?,
        _ table: FunctionNames,
        mostPaths: Int = PathNode.mostPaths, keptPaths: Int? = nil, mostTexts: Int = ArgumentTexts.mostTexts
    ) {
        let spans = ThreadSpans(trace), files = LoadedFiles(trace)
        if byArguments {
            // What a call has passed is known where it began: its thread is read in the order of time.
            let texts = ArgumentTexts(trace.metadata, mostTexts: mostTexts)
            self.init(trace, states, workers: nil, progress: progress, table, spans) {
                PathSums<ArgumentDetail>(table, spans, files, texts: texts, mostPaths: mostPaths, keptPaths: keptPaths)
            }
        } else {
            self.init(trace, states, workers: workers, progress: progress, table, spans) {
                PathSums<FunctionDetail>(table, spans, files, mostPaths: mostPaths, keptPaths: keptPaths)
            }
        }
    }

    /// - Parameter workers: nil: one, which reads in the order of time
    private init<Detail>(
        _ trace: TraceFile, _ states: StateReading, workers: Int?, progress: ReadingProgress?, _ table: FunctionNames,
        _ threads: ThreadSpans,
        _ paths: () -> PathSums<Detail>
    ) {
        var spans = threads
        if let time = states.time, let clocks = StateClocks(trace, states) {
            let all = StreamWorker.read(trace, table, workers: workers, progress: progress) { SplitSums(clocks, threads, paths) }
            let end = all.end, calls = all.calls
            spans.settle(all)
            self = all.withSink {
                $0.withEach { $0.finish() }
                let times = $0.pathTimes(time, of: trace, spans)
                return CallTreeAssembly(trace, table, $0.wall, spans, times, calls: calls, end: end).tree(trace.timeScale)
            }.showing(time)
        } else {
            let all = StreamWorker.read(trace, table, workers: workers, progress: progress, paths)
            let end = all.end, calls = all.calls
            spans.settle(all)
            self = all.withSink {
                $0.finish()
                return CallTreeAssembly(trace, table, $0, spans, calls: calls, end: end).tree(trace.timeScale)
            }
        }
        if time != .waiting { addCost(CallCost(trace)) } // the agent's work is not waiting
    }

    /// The same with the time that its nodes show, which so far is wall time.
    private func showing(_ time: CallTime) -> CallTree {
        var tree = self
        tree.time = time
        if time == .wall { return tree }
        for index in nodes.indices {
            let states = nodes[index].states
            tree.nodes[index].selfTime = states.selfTime[time]
            tree.nodes[index].total = UInt64(max(states.total[time], 0))
            // Rounding does not make one call longer than all.
            if let length = tree.nodes[index].minimum { tree.nodes[index].minimum = min(length, tree.nodes[index].total) }
            if let length = tree.nodes[index].maximum { tree.nodes[index].maximum = min(length, tree.nodes[index].total) }
        }
        return CallTree([tree]) // in the order of this time
    }

    /// The same with names for texts.
    package func named(_ style: NameStyle) -> CallTree {
        guard style != .full else { return self }
        let short = ShortNames(functions.lazy.map { $0.name }, style)
        var tree = self
        for index in functions.indices { tree.functions[index].name = short[functions[index].name] }
        return tree
    }

    /// Children of a node, or of nothing: the roots are `roots`.
    package func children(of node: Int) -> Children { Children(nodes: nodes, following: node + 1, end: nodes[node].end) }

    package struct Children: Sequence, IteratorProtocol {
        let nodes: [Node]
        var following: Int
        let end: Int

        package mutating func next() -> Int? {
            guard following < end else { return nil }
            defer { following = nodes[following].end }
            return following
        }
    }

    /// Functions from the root's first call to the node itself.
    package func path(to node: Int) -> [Function] {
        var path: [Function] = []
        var node = node
        while node >= 0, nodes[node].function >= 0 {
            path.append(functions[nodes[node].function])
            node = nodes[node].parent
        }
        return path.reversed()
    }

    /// The least certain of the known costs.
    var cost: CallCost? { processes.lazy.filter { $0.isCostKnown }.map { $0.cost }.max { $0.wholeError < $1.wholeError } }
    package var isCostKnown: Bool { processes.contains { $0.isCostKnown } }

    /// Processes with calls whose recording cost is unknown, so that nothing can be subtracted.
    package var processesOfUnknownCost: [Process] {
        let calling = Set(roots.filter { $0.calls > 0 }.compactMap { $0.process })
        return processes.indices.filter { calling.contains($0) && !processes[$0].isCostKnown }.map { processes[$0] }
    }

    /// The name most like `text`, for one that was mistyped.
    package func nearest(to text: String) -> String? {
        let wanted = text.lowercased()
        return functions.map { $0.name }.filter { $0.lowercased().contains(wanted) }.min { ($0.count, $0) < ($1.count, $1) }
    }

    package var calls: UInt64 { roots.reduce(0) { $0 &+ $1.calls } }
    package var total: UInt64 { roots.reduce(0) { $0 &+ nodes[$1.node].total } }

    /// From the beginning of the first process to the end of the last one.
    var duration: Nanoseconds {
        let ends = processes.map { $0.startedAt &+ $0.duration.count }
        // When a process began may be unknown, and the file of a damaged one may say anything.
        guard let first = processes.map(\.startedAt).min(), let last = ends.max(), last > first, first > 0 else {
            return processes.map(\.duration).max() ?? Nanoseconds(0)
        }
        return Nanoseconds(last - first)
    }

    /// The node of the own code below a root's. nil where it has none.
    func ownCode(below root: Int) -> Int? { children(of: root).first { functions[nodes[$0].function].isOwnCode } }

    /// In a tree of callers: whether it has any.
    package var hasCallers: Bool { nodes.contains { $0.parent >= 0 && nodes[$0.parent].parent >= 0 } }
    package static let unrecordedCallers =
        "called from code that is not recorded: record --functions '*' shows the program's functions, --call-sites the calling lines"

    static let elsewhere = Function(name: "(further paths)", symbol: "(further paths)", module: FunctionNames.noModule)
}
