// Puts a call tree together from paths in any order: of one reading, or of several trees. Nothing here recurses: a
// path may be a million functions long.
import CTraceLayout
import TraceFormat

struct CallTreeAssembly {
    typealias Function = CallTree.Function

    /// A parent lies before its children; `end` is not yet known.
    private var nodes: [CallTree.Node] = []
    private var roots: [CallTree.Root] = []
    private var processes: [CallTree.Process] = []
    private var functions: [Function] = []
    private var numberOfFunction: [Function: Int] = [:]
    private var suppressed: Set<Int> = [], onlyCounted: Set<Int> = [], holders: Set<Int> = []
    /// What the times of the trees show that were added.
    private var times: Set<CallTime?> = []
    private var childOf: [Edge: Int] = [:]

    private struct Edge: Hashable {
        var parent: Int
        var function: Int
    }

    init() {}

    // MARK: gathering

    mutating func number(_ function: Function) -> Int {
        if let number = numberOfFunction[function] { return number }
        functions.append(function)
        numberOfFunction[function] = functions.count - 1
        return functions.count - 1
    }

    /// The functions of a tree, and which are suppressed: their numbers here.
    mutating func numbers(of tree: CallTree) -> [Int] {
        let numbers = tree.functions.map { number($0) }
        suppressed.formUnion(tree.suppressed.map { numbers[$0] })
        onlyCounted.formUnion(tree.onlyCounted.map { numbers[$0] })
        holders.formUnion(tree.holders.map { numbers[$0] })
        times.insert(tree.time)
        return numbers
    }

    mutating func add(_ process: CallTree.Process) -> Int {
        processes.append(process)
        return processes.count - 1
    }

    /// A root; `node` of it is filled in. Returns its number among the roots.
    mutating func add(_ root: CallTree.Root) -> Int {
        var root = root
        root.node = nodes.count
        nodes.append(Self.empty(parent: -1, function: -1))
        roots.append(root)
        return roots.count - 1
    }

    func node(ofRoot root: Int) -> Int { roots[root].node }
    var nodeCount: Int { nodes.count }

    mutating func merge(_ root: CallTree.Root, into number: Int) {
        roots[number].threadCount += root.threadCount
        roots[number].calls &+= root.calls
        roots[number].missingChunks &+= root.missingChunks
        roots[number].dropped &+= root.dropped
        roots[number].filtered &+= root.filtered
    }

    mutating func child(_ parent: Int, _ function: Int) -> Int {
        let edge = Edge(parent: parent, function: function)
        if let node = childOf[edge] { return node }
        nodes.append(Self.empty(parent: parent, function: function))
        childOf[edge] = nodes.count - 1
        return nodes.count - 1
    }

    /// Nodes that have children so far.
    var parents: Set<Int> { Set(nodes.lazy.map(\.parent)) }

    mutating func add(_ sums: CallTree.Node, to node: Int) { Self.add(sums, to: &nodes[node]) }

    static func add(_ sums: CallTree.Node, to node: inout CallTree.Node) {
        node.calls &+= sums.calls
        node.timedCalls &+= sums.timedCalls
        node.total &+= sums.total
        node.selfTime &+= sums.selfTime
        if let shortest = sums.minimum { node.minimum = min(node.minimum ?? .max, shortest) }
        if let longest = sums.maximum { node.maximum = max(node.maximum ?? 0, longest) }
        node.open &+= sums.open
        node.unwound &+= sums.unwound
        node.cut &+= sums.cut
        node.migrated &+= sums.migrated
        node.part &+= sums.part
        node.selfCost &+= sums.selfCost
        node.totalCost &+= sums.totalCost
        node.states &+= sums.states
    }

    /// All of a tree; `rootNumber` says which root here takes what is below one of its roots.
    mutating func add(_ tree: CallTree, _ rootNumber: (inout CallTreeAssembly, CallTree.Root) -> Int) {
        let numbers = numbers(of: tree)
        for root in tree.roots {
            var here = [Int](repeating: 0, count: tree.nodes[root.node].end - root.node)
            let number = rootNumber(&self, root) // not in the call below, which would take `self` as it was before
            here[0] = node(ofRoot: number)
            for index in root.node + 1..<max(tree.nodes[root.node].end, root.node + 1) {
                let node = tree.nodes[index]
                here[index - root.node] = child(here[node.parent - root.node], numbers[node.function])
                add(node, to: here[index - root.node])
            }
        }
    }

    static func empty(parent: Int, function: Int) -> CallTree.Node {
        CallTree.Node(
            parent: parent, function: function, end: 0, calls: 0, timedCalls: 0, total: 0, selfTime: 0,
            minimum: nil, maximum: nil, open: 0, unwound: 0, cut: 0, migrated: 0)
    }

    // MARK: the tree

    /// Returns what was gathered in preorder: children by falling total, then calls, then by name, the same in every run.
    /// - Parameter scale: what makes nanoseconds of the times that were added; nil when they are nanoseconds
    func tree(_ scale: TimeScale? = nil) -> CallTree {
        var totals = nodes.map { $0.total }
        for root in roots { totals[root.node] = 0 }
        var statesOfRoot: [Int: StateTimes] = [:]
        for node in nodes where node.parent >= 0 && nodes[node.parent].parent < 0 {
            totals[node.parent] &+= node.total
            statesOfRoot[node.parent, default: StateTimes()] &+= node.states.total
        }
        let ranks = alphabeticalRanks()
        func comesFirst(_ a: Int, _ b: Int) -> Bool {
            if totals[a] != totals[b] { return totals[a] > totals[b] }
            if nodes[a].calls != nodes[b].calls { return nodes[a].calls > nodes[b].calls }
            return ranks[nodes[a].function] < ranks[nodes[b].function]
        }
        // Children of each node, back to back, sorted.
        var first = [Int](repeating: 0, count: nodes.count + 1)
        for node in nodes where node.parent >= 0 { first[node.parent + 1] += 1 }
        for index in 1..<max(first.count, 1) { first[index] += first[index - 1] }
        var children = [Int](repeating: 0, count: first.last ?? 0)
        var filled = first
        for (index, node) in nodes.enumerated() where node.parent >= 0 {
            children[filled[node.parent]] = index
            filled[node.parent] += 1
        }
        for index in nodes.indices where first[index + 1] - first[index] > 1 {
            children[first[index]..<first[index + 1]].sort(by: comesFirst)
        }
        let order = roots.indices.sorted { a, b in
            let (one, other) = (roots[a], roots[b])
            if one.process != other.process { return one.process ?? -1 < other.process ?? -1 }
            let (isMain, isOtherMain) = (self.isMain(one), self.isMain(other))
            if isMain != isOtherMain { return isMain }
            return (totals[other.node], one.tid ?? 0) < (totals[one.node], other.tid ?? 0)
        }
        // Preorder with a stack of our own.
        var result: [CallTree.Node] = []
        result.reserveCapacity(nodes.count)
        var sortedRoots: [CallTree.Root] = []
        for number in order {
            var root = roots[number]
            var stack = [(node: root.node, parent: -1)]
            root.node = result.count
            sortedRoots.append(root)
            while let (index, parent) = stack.popLast() {
                var node = nodes[index]
                node.parent = parent
                if parent < 0 {
                    node.total = totals[index]
                    node.states = SplitTimes(selfTime: StateTimes(), total: statesOfRoot[index] ?? StateTimes())
                }
                for child in children[first[index]..<first[index + 1]].reversed() { stack.append((child, result.count)) }
                result.append(node)
            }
        }
        for index in result.indices.reversed() {
            result[index].end = max(result[index].end, index + 1)
            if result[index].parent >= 0 { result[result[index].parent].end = max(result[result[index].parent].end, result[index].end) }
        }
        if let scale { convert(&result, functions.indices.map { family(of: $0) }, scale) }
        var tree = CallTree(
            processes: processes, roots: sortedRoots, nodes: result, functions: functions, suppressed: suppressed, onlyCounted: onlyCounted,
            holders: holders)
        // States are not known of processes with and without them together.
        tree.time = times.count == 1 ? times.first! : nil
        tree.hasArguments = functions.contains { $0.arguments != nil }
        return tree
    }

    /// Converts ticks to nanoseconds.
    private func convert(_ nodes: inout [CallTree.Node], _ families: [Int], _ scale: TimeScale) {
        let ticks = nodes.map(\.total)
        Self.convert(
            &nodes, families, scale, { ($0.selfTime, Int64(truncatingIfNeeded: $0.total)) }, { $0.selfTime = $1 },
            { $0.total = UInt64(max($1, 0)) })
        for index in nodes.indices {
            let total = nodes[index].total
            // Nor does rounding make one call longer than all.
            func length(_ call: UInt64) -> UInt64 {
                call <= ticks[index] ? min(scale.nanoseconds(call).count, total) : scale.nanoseconds(call).count
            }
            nodes[index].minimum = nodes[index].minimum.map(length)
            nodes[index].maximum = nodes[index].maximum.map(length)
        }
        if !times.contains(where: { $0 != nil }) { return }
        Self.convert(
            &nodes, families, scale, { ($0.states.selfTime.waiting, $0.states.total.waiting) }, { $0.states.selfTime.waiting = $1 },
            { $0.states.total.waiting = $1 })
        Self.convert(
            &nodes, families, scale, { ($0.states.selfTime.runnable, $0.states.total.runnable) }, { $0.states.selfTime.runnable = $1 },
            { $0.states.total.runnable = $1 })
        for index in nodes.indices {
            let node = nodes[index], states = node.states
            nodes[index].states = SplitTimes(
                selfTime: StateTimes(whole: node.selfTime, waiting: states.selfTime.waiting, runnable: states.selfTime.runnable),
                total: StateTimes(whole: Int64(clamping: node.total), waiting: states.total.waiting, runnable: states.total.runnable))
        }
    }

    /// Converts one of the times. The remainder from rounding a self time goes to the function's next path, and a
    /// total that is the sum of its parts in ticks is their sum in nanoseconds too.
    private static func convert(
        _ nodes: inout [CallTree.Node], _ families: [Int], _ scale: TimeScale, _ times: (CallTree.Node) -> (own: Int64, total: Int64),
        _ setSelf: (inout CallTree.Node, Int64) -> Void, _ setTotal: (inout CallTree.Node, Int64) -> Void
    ) {
        var parts = nodes.map { times($0).own } // and the totals above it, in ticks, then in nanoseconds
        for node in nodes where node.parent >= 0 { parts[node.parent] &+= times(node).total }
        let isSum = nodes.indices.map { nodes[$0].parent < 0 || parts[$0] == times(nodes[$0]).total }
        var before = [Int64](repeating: 0, count: families.count)
        for index in nodes.indices where nodes[index].parent >= 0 {
            let function = families[nodes[index].function]
            let after = before[function] &+ times(nodes[index]).own
            setSelf(&nodes[index], scale.signedNanoseconds(after) &- scale.signedNanoseconds(before[function]))
            before[function] = after
        }
        for index in nodes.indices { parts[index] = nodes[index].parent < 0 ? 0 : times(nodes[index]).own }
        for index in nodes.indices.reversed() {
            let time = isSum[index] && parts[index] >= 0 ? parts[index] : scale.signedNanoseconds(times(nodes[index]).total)
            setTotal(&nodes[index], time)
            if nodes[index].parent >= 0 { parts[nodes[index].parent] &+= time }
        }
    }

    /// The number of the function whose calls these are, whatever their arguments; its own where that has no calls.
    private func family(of function: Int) -> Int {
        guard functions[function].arguments != nil else { return function }
        var whole = functions[function]
        whole.arguments = nil
        return numberOfFunction[whole] ?? function
    }

    private func isMain(_ root: CallTree.Root) -> Bool {
        root.process.map { root.tid == processes[$0].pid } ?? false
    }

    /// Returns the alphabetical rank of each function, indexed by its number.
    private func alphabeticalRanks() -> [Int] {
        let order = functions.indices.sorted {
            (functions[$0].name, functions[$0].module, functions[$0].symbol, functions[$0].arguments ?? "") < (
                functions[$1].name, functions[$1].module, functions[$1].symbol, functions[$1].arguments ?? ""
            )
        }
        var ranks = [Int](repeating: 0, count: functions.count)
        for (rank, function) in order.enumerated() { ranks[function] = rank }
        return ranks
    }
}

// From one reading.
extension CallTreeAssembly {
    /// - Parameter states: nil: they are not asked for
    init<Detail>(
        _ trace: TraceFile, _ table: FunctionNames, _ sums: borrowing PathSums<Detail>, _ spans: ThreadSpans, _ states: SplitPaths? = nil,
        calls: [UInt32: UInt64], end: Ticks
    ) {
        times = [states?.time]
        let process = add(CallTree.Process(trace, end: end))
        let numbers = functionNumbers(table, sums)
        var rootOfNode: [UInt32: Int] = [:]
        let rootOfThread = Dictionary(sums.threads.map { ($0.thread, $0.root) }) { $1 }
        for chunks in trace.chunksOfThread {
            guard let last = chunks.last, let root = rootOfThread[last.thread] else { continue }
            rootOfNode[root] = add(
                CallTree.Root(
                    node: 0, process: process, tid: last.tid, name: trace.threadName(last.thread), threadCount: 1,
                    calls: calls[last.thread] ?? 0, missingChunks: last.sequence &+ 1 &- UInt64(chunks.count),
                    dropped: chunks.reduce(0) { $0 &+ $1.dropped },
                    filtered: chunks.reduce(0) { $0 &+ $1.filtered }))
        }
        // Entries of a function and its calls are one path here, and were two there.
        var here = [Int](repeating: -1, count: sums.nodes.count)
        for index in 1..<sums.nodes.count {
            let node = sums.nodes[index]
            if node.parent == 0 {
                here[index] = rootOfNode[UInt32(index)].map { self.node(ofRoot: $0) } ?? -1
            } else if here[Int(node.parent)] >= 0 {
                let function = node.row == PathNode.elsewhere ? number(CallTree.elsewhere) : numbers[Int(node.row)]
                here[index] = child(here[Int(node.parent)], function)
                var sums = CallTree.Node(node)
                if let states {
                    sums.states = states.times[index]
                    if sums.minimum != nil { (sums.minimum, sums.maximum) = states.lengths[index] }
                }
                add(sums, to: here[index])
            }
        }
        if sums.isInterleaved { sumTotals() }
        // Calls with the same arguments may be among those that are not recorded.
        func all(_ rows: Set<UInt32>) -> Set<Int> {
            let chosen = Set(rows.map { numbers[Int($0)] })
            return chosen.union(functions.indices.filter { chosen.contains(family(of: $0)) })
        }
        suppressed = all(table.uncounted)
        onlyCounted = all(table.suppressed.subtracting(table.uncounted))
        for index in 1..<sums.nodes.count where here[index] >= 0 && nodes[here[index]].parent >= 0 {
            let node = nodes[here[index]]
            guard suppressed.contains(node.function) || onlyCounted.contains(node.function) else { continue }
            holders.insert(nodes[node.parent].parent < 0 ? number(.ownCode(of: trace.program)) : nodes[node.parent].function)
        }
        let covered = sums.coverage.byThread
        for (thread, root) in rootOfThread {
            guard let number = rootOfNode[root], let own = spans[thread]?.own(covered[thread]), own > 0 else { continue }
            var node = Self.empty(parent: -1, function: -1)
            node.total = own
            node.selfTime = Int64(clamping: own)
            if let off = states?.own[thread] {
                let times = StateTimes(whole: own, off)
                node.states = SplitTimes(selfTime: times, total: times)
            }
            add(node, to: child(self.node(ofRoot: number), self.number(.ownCode(of: trace.program))))
        }
    }

    /// Makes every total the sum of what it consists of. A call that went on below several paths has no length on any.
    private mutating func sumTotals() {
        for index in nodes.indices {
            nodes[index].total = UInt64(max(nodes[index].selfTime, 0))
            nodes[index].states.total = nodes[index].states.selfTime
        }
        for index in nodes.indices.reversed() where nodes[index].parent >= 0 {
            nodes[nodes[index].parent].total &+= nodes[index].total
            nodes[nodes[index].parent].states.total &+= nodes[index].states.total
            if nodes[index].maximum ?? 0 > nodes[index].total { nodes[index].maximum = nil }
            if nodes[index].minimum ?? 0 > nodes[index].total { nodes[index].minimum = nil }
        }
    }

    private mutating func functionNumbers<Detail>(_ table: FunctionNames, _ sums: borrowing PathSums<Detail>) -> [Int] {
        let unknown = sums.unknownFunctions
        var numbers = [-1] + table.rows.map { number(Function($0)) } + unknown.map { _ in -1 }
        // Readers meet them in any order; the tree is the same each time.
        for index in unknown.indices.sorted(by: { unknown[$0] < unknown[$1] }) {
            var function = Function(FunctionNames.unknown(unknown[index]))
            if sums.loading != 0, let path = sums.files.path(of: unknown[index]) {
                function = Function(table.rows[Int(sums.loading) - 1])
                function.name = LoadedFiles.name(function.name, path)
            }
            if let known = sums.texts?.entry(of: unknown[index]) {
                function = Function(table.rows[Int(known.row) - 1])
                function.arguments = known.text
            }
            numbers[table.rowCount + index] = number(function)
        }
        return numbers
    }
}

extension CallTree.Function {
    fileprivate init(_ row: FunctionNames.Row) { self.init(name: row.name, symbol: row.symbol, module: row.module) }
}

extension CallTree.Node {
    /// In ticks. No call is longer than all: a part of a thread that is read alone does not know which of the calls open at its beginning
    /// had begun late (`Frame.late`), and the totals do.
    fileprivate init(_ node: PathNode) {
        self.init(
            parent: 0, function: 0, end: 0, calls: node.calls, timedCalls: node.timed, total: node.total,
            selfTime: node.selfTime, minimum: node.timed > 0 ? min(node.minimum, node.total) : nil,
            maximum: node.timed > 0 ? min(node.maximum, node.total) : nil, open: UInt64(node.open), unwound: UInt64(node.unwound),
            cut: UInt64(node.cut), migrated: UInt64(node.migrated), part: UInt64(node.part))
    }
}

extension CallTree.Process {
    init(_ trace: TraceFile, end: Ticks) {
        self.init(
            path: trace.path, program: trace.program, name: trace.processName, commandLine: trace.commandLine, pid: trace.header.pid,
            parentPid: trace.header.parent_pid, startedAt: trace.header.first_realtime_ns,
            duration: trace.timeScale.nanoseconds(from: trace.firstTicks, to: end), isRing: trace.isRing,
            endText: trace.endText, dropped: trace.header.dropped, isCostKnown: trace.header.leaf_cost > 0,
            cost: CallCost(trace),
            window: trace.windowText(until: end), reportedWindow: trace.reportedWindow(until: end))
    }
}

// Several trees as one.
extension CallTree {
    package enum Merging: Sendable { case threads, processes }

    /// Several files beside each other, each a process.
    package init(_ trees: [CallTree]) {
        var assembly = CallTreeAssembly()
        for tree in trees {
            let processes = tree.processes.map { assembly.add($0) }
            assembly.add(tree) { assembly, root in
                var root = root
                root.process = root.process.map { processes[$0] }
                return assembly.add(root)
            }
        }
        self = assembly.tree()
    }

    /// The same with the threads of each process merged into one, or all threads of all processes.
    package func merged(_ what: Merging) -> CallTree {
        var assembly = CallTreeAssembly()
        for process in processes { _ = assembly.add(process) }
        var roots: [Int?: Int] = [:]
        assembly.add(self) { assembly, root in
            let key = what == .processes ? nil : root.process
            if let number = roots[key] {
                assembly.merge(root, into: number)
                return number
            }
            var merged = root
            merged.process = key ?? (processes.count == 1 ? 0 : nil)
            if self.roots.count(where: { what == .processes || $0.process == root.process }) > 1 {
                merged.tid = nil
                merged.name = ""
            }
            let number = assembly.add(merged)
            roots[key] = number
            return number
        }
        return assembly.tree()
    }
}
