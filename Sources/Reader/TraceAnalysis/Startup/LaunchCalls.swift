// Calls that main's thread made between main and ready, merged by path: the launch lab compares launches by them. Loads of libraries are
// skipped, with everything that ran in them: the timeline has them by themselves. A lazy initializer is a node of its own between the
// call that needed it and what it ran, the once-function included; below the innermost call, the waits of the thread in it are nodes, too.
// A start-up item is the call that it looks like.
import CTraceLayout
import Presentation
import Symbols
import TraceFormat

package enum LaunchCalls {
    package struct Node: Sendable {
        package var name: String
        /// File name.
        package var module: String
        package var calls: UInt64
        /// Clipped at ready.
        package var total: Nanoseconds
        package var children: [Node] = []
        package var isLazy = false
        /// A start-up item; its module is its stage.
        package var isItem = false
        package var isWait = false
    }

    package static func untilReady(_ trace: TraceFile, _ timeline: StartupTimeline, _ symbolizer: Symbolizer) -> [Node] {
        guard let sink = paths(trace, timeline) else { return [] }
        return nodes(sink.nodes, sink.waitsOfNode, trace, sink.lazy, CodeNames(trace.metadata, symbolizer))
    }

    /// A path on which a function spent most of its own time.
    package struct Place: Sendable, Equatable {
        /// Callers, from main's callee to the function's own caller or one above it; empty: main itself calls it.
        package var callers: [String]
        /// How much of its own time was there; at least a half.
        package var share: Double
    }

    /// Finds for functions (by id) the longest path from main below which at least half of their own time lies.
    static func places(
        of functions: [UInt32], _ trace: TraceFile, _ timeline: StartupTimeline, _ symbolizer: Symbolizer
    ) -> [UInt32: Place] {
        guard let sink = paths(trace, timeline) else { return [:] }
        let nodes = sink.nodes, names = CodeNames(trace.metadata, symbolizer)
        var own = nodes.map { Int64(clamping: $0.ticks) }
        for node in nodes.dropFirst() { own[Int(node.parent)] &-= Int64(clamping: node.ticks) }
        var places: [UInt32: Place] = [:]
        for function in functions {
            // A child lies after its parent: from the back, each sum is whole when its parent takes it.
            var below = [Int64](repeating: 0, count: nodes.count), best = [Int](repeating: 0, count: nodes.count)
            for index in nodes.indices.dropFirst().reversed() {
                if nodes[index].row == function &+ 1 { below[index] &+= max(own[index], 0) }
                let parent = Int(nodes[index].parent)
                below[parent] &+= below[index]
                if best[parent] == 0 || below[index] > below[best[parent]] { best[parent] = index }
            }
            guard below[0] > 0 else { continue }
            var callers: [String] = [], node = 0
            while best[node] > 0, below[best[node]] >= below[0] - below[0] / 2, nodes[best[node]].row != function &+ 1 {
                node = best[node]
                let lazy = LaunchSink.index(ofLazy: nodes[node].row)
                callers.append(lazy.map { sink.lazy[$0].name.name } ?? names.function(nodes[node].row &- 1).0)
            }
            places[function] = Place(callers: callers, share: Double(below[node]) / Double(below[0]))
        }
        return places
    }

    private static func paths(_ trace: TraceFile, _ timeline: StartupTimeline) -> LaunchSink? {
        let records = trace.metadata.start
        guard let main = records.phase(.main) else { return nil }
        let end: Ticks
        switch timeline.outcome {
        case .ready(let moment): end = moment.ticks
        case .neverReady: end = records.phase(.exit)?.usage.ticks ?? TraceEnd(trace).ticks
        }
        var reader = ChunkReader(trace)
        for chunks in trace.chunksOfThread where chunks.first?.thread == main.thread {
            let lazy = timeline.lazyInitializers.filter { $0.thread == main.thread }.sorted { $0.begin < $1.begin }
            let sink = LaunchSink(
                trace, from: main.usage.ticks.raw, until: end.raw, thread: main.thread, lazy: lazy, waits: timeline.mainWaits,
                cpuWaits: timeline.mainCPUWaits)
            var stack = CallStack(sink, rowCount: 0)
            reader.read(chunks, until: end.raw, into: &stack)
            return stack.sink
        }
        return nil
    }

    private static func nodes(
        _ sums: [LaunchSink.Sum], _ waits: [Int: [String: UInt64]], _ trace: TraceFile, _ lazy: [LazyRun], _ names: CodeNames
    ) -> [Node] {
        func time(_ ticks: UInt64) -> Nanoseconds { trace.timeScale.nanoseconds(ticks) }
        // A child lies after its parent: from the back, each is whole when its parent takes it.
        var built = sums.map { sum -> Node in
            if let index = LaunchSink.index(ofLazy: sum.row) {
                let name = lazy[index].name
                return Node(name: name.name, module: name.module, calls: sum.calls, total: time(sum.ticks), isLazy: true)
            }
            if let item = trace.metadata.functions[sum.row &- 1].flatMap({ $0.isSpan ? StartupItem.Registration($0.rawName) : nil }) {
                return Node(name: item.name, module: item.stageText, calls: sum.calls, total: time(sum.ticks), isItem: true)
            }
            let (name, module) = names.function(sum.row &- 1)
            return Node(name: name, module: module, calls: sum.calls, total: time(sum.ticks))
        }
        for (index, kinds) in waits {
            built[index].children = kinds.sorted { $0.key < $1.key }.map { kind, ticks in
                Node(name: MainWait.text(kind), module: "", calls: 1, total: time(ticks), isWait: true)
            }
        }
        for index in sums.indices.dropFirst().reversed() {
            built[index].children.reverse()
            built[Int(sums[index].parent)].children.append(built[index])
        }
        return built.first.map { $0.children.reversed() } ?? []
    }
}

/// Rows are function ids plus one; lazy initializers are counted down from the highest number. A frame's tag is the number of its path plus
/// one; 0: not of interest.
private struct LaunchSink: CallSink {
    struct Sum {
        var parent: UInt32
        var row: UInt32
        var calls: UInt64 = 0
        var ticks: UInt64 = 0
    }
    private struct Edge: Hashable {
        var parent: UInt32, row: UInt32
    }

    private let from: UInt64, until: UInt64
    /// From the first note of a load to its last, on this thread, in the order of time; those within others skipped.
    private let loads: [Range<UInt64>]
    /// The first stands for main itself.
    private(set) var nodes = [Sum(parent: 0, row: 0)]
    private var indices: [Edge: UInt32] = [:]
    let lazy: [LazyRun]
    private var nextLazy = 0
    /// Lazy initializers running at this moment, the innermost last.
    private var running: [Int] = []
    private let waits: [MainWait]
    private let cpuWaits: TimeWindow
    private var nextWait = 0
    /// Waits before this moment that were in none of the calls that have ended.
    private var openWaits: [Int] = []
    private var waitsOfPath: [Int: [String: UInt64]] = [:]
    /// Ticks waited, by node number and kind; waits outside of any call belong to the first node.
    var waitsOfNode: [Int: [String: UInt64]] {
        var all = waitsOfPath
        for index in openWaits + Array(nextWait..<waits.count) where !isInLoad(waits[index].begin) {
            all[0, default: [:]][waits[index].kind, default: 0] += waits[index].length
        }
        return all
    }

    /// Paths beyond these are counted with their callers.
    private static let mostPaths = 200_000

    static func index(ofLazy row: UInt32) -> Int? { row > .max / 2 ? Int(UInt32.max - row) : nil }

    init(_ trace: TraceFile, from: UInt64, until: UInt64, thread: UInt32, lazy: [LazyRun], waits: [MainWait], cpuWaits: TimeWindow) {
        self.lazy = lazy
        self.cpuWaits = cpuWaits
        self.waits = waits.filter { $0.begin >= from && $0.begin < until }
        self.from = from
        self.until = until
        var outermost: [Range<UInt64>] = []
        for load in trace.metadata.start.loads where load.thread == thread {
            let begin = (load.begin ?? load.opened ?? load.mapped.ticks).raw
            let range = begin..<max(min(load.end?.ticks.raw ?? until, until), begin)
            if let last = outermost.last, range.lowerBound < last.upperBound { continue }
            outermost.append(range)
        }
        loads = outermost
    }

    /// Index of the first load that ends after `time`.
    private func load(after time: UInt64) -> Int { bisect(loads.count) { loads[$0].upperBound <= time } }

    private func isInLoad(_ time: UInt64) -> Bool {
        let next = load(after: time)
        return next < loads.count && loads[next].contains(time)
    }

    /// From `start` to `end` without the loads in between, and without waits for a CPU.
    private func length(_ start: UInt64, _ end: UInt64) -> UInt64 {
        guard end > start else { return 0 }
        var length = withCPU(start, end)
        var next = load(after: start)
        while next < loads.count, loads[next].lowerBound < end {
            length -= min(length, withCPU(max(loads[next].lowerBound, start), min(loads[next].upperBound, end)))
            next += 1
        }
        return length
    }

    private func withCPU(_ start: UInt64, _ end: UInt64) -> UInt64 {
        let length = end - start
        return cpuWaits.isEmpty ? length : length - min(cpuWaits.length(from: start, to: end), length)
    }

    /// The path of a call, 0 when it is not of interest.
    private mutating func path(_ row: UInt32, at time: UInt64, parent: Frame) -> UInt64 {
        guard time >= from, time <= until else { return 0 }
        // Below main the frames are those that call it; what is called in something skipped is skipped.
        if parent.row != 0, parent.enter >= from, parent.tag == 0 { return 0 }
        let isBelow = parent.row != 0 && parent.enter >= from
        var above: UInt64? = isBelow ? parent.tag - 1 : 0
        if !loads.isEmpty, isInLoad(time) { return 0 }
        if !lazy.isEmpty {
            // Lazy initializers that the caller itself runs in were handled when the caller was.
            for index in lazies(at: time) where !isBelow || lazy[index].begin.raw > parent.enter {
                guard let outer = above else { return 0 }
                above = self.node(UInt32.max - UInt32(index), below: outer)
            }
        }
        return above.flatMap { self.node(row, below: $0) }.map { $0 + 1 } ?? 0
    }

    /// nil when there are too many already.
    private mutating func node(_ row: UInt32, below above: UInt64) -> UInt64? {
        let edge = Edge(parent: UInt32(above), row: row)
        if let index = indices[edge] { return UInt64(index) }
        guard nodes.count < Self.mostPaths else { return nil }
        var sum = Sum(parent: edge.parent, row: row)
        if let index = Self.index(ofLazy: row) { // made when its once-function is called: it runs but once
            sum.calls = 1
            sum.ticks = length(lazy[index].begin.raw, min(lazy[index].end?.raw ?? until, until))
        }
        nodes.append(sum)
        indices[edge] = UInt32(nodes.count - 1)
        return UInt64(nodes.count - 1)
    }

    /// The lazy initializers that run at a moment, the outermost first. Moments are asked for in their order.
    private mutating func lazies(at time: UInt64) -> [Int] {
        while let last = running.last, let end = lazy[last].end, end.raw < time { running.removeLast() }
        while nextLazy < lazy.count, lazy[nextLazy].begin.raw <= time {
            if (lazy[nextLazy].end?.raw ?? .max) >= time { running.append(nextLazy) }
            nextLazy += 1
        }
        return running
    }

    /// Assigns waits to the innermost call: among nested calls it ends first, and takes the waits that began in it.
    private mutating func takeWaits(_ path: UInt64, _ start: UInt64, _ end: UInt64) {
        while nextWait < waits.count, waits[nextWait].begin < end {
            openWaits.append(nextWait)
            nextWait += 1
        }
        while let last = openWaits.last, waits[last].begin >= start {
            openWaits.removeLast()
            if path > 0 {
                waitsOfPath[Int(path - 1), default: [:]][waits[last].kind, default: 0] += min(
                    waits[last].length, min(end, until) - waits[last].begin)
            }
        }
    }

    private mutating func add(_ path: UInt64, _ start: UInt64, _ end: UInt64) {
        if !waits.isEmpty { takeWaits(path, start, end) }
        guard path > 0 else { return }
        nodes[Int(path - 1)].calls &+= 1
        nodes[Int(path - 1)].ticks &+= length(start, min(end, until))
    }

    mutating func row(of function: UInt32) -> UInt32 { function &+ 1 }

    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        frame.tag = path(frame.row, at: time, parent: parent)
    }
    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending) {
        add(frame.tag, frame.enter, time)
    }
    mutating func leaf(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool) {
        add(path(row, at: start, parent: parent), start, end)
    }
}
