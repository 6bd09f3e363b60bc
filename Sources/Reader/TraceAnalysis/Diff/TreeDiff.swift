// Differences between two sets of runs. Functions are matched by module and name, whatever their addresses. A name is
// taken without what compilers append to it (.constprop.0); a function without a name, whose module+offset moves with
// every build, is matched by its callers and callees. Self times are compared: with the program's own code they add up
// to the time of all threads, so each row is a part of the difference and none is counted twice. Where the kernel's account of all of them is
// there, time in which a thread could have run and others had the CPUs is no part of it: it is the machine's.

package struct TreeDiff: Sendable {
    /// The time that sides are compared by.
    package enum Time: String, Sendable {
        case wall, running, waiting
        case runningAndWaiting = "running+waiting"

        package init(_ time: CallTime) {
            self =
                switch time {
                case .wall: .wall
                case .running: .running
                case .waiting: .waiting
                }
        }

        /// Returns what of a time is compared.
        fileprivate func of(_ states: StateTimes) -> Int64 {
            switch self {
            case .wall: states.whole
            case .running: states.running
            case .waiting: states.waiting
            case .runningAndWaiting: states.running &+ states.waiting
            }
        }
    }

    /// Numbers of one function or one path: one for each run of a side.
    package struct Side: Sendable {
        package var calls: [Double]
        /// Nanoseconds.
        package var selfTime: [Double]
        /// Without what recording took.
        package var correctedSelf: [Double] = []

        package init(calls: [Double], selfTime: [Double], correctedSelf: [Double] = []) {
            (self.calls, self.selfTime, self.correctedSelf) = (calls, selfTime, correctedSelf)
        }

        static func difference(_ side: Side, _ other: Side) -> Side {
            Side(
                calls: zip(side.calls, other.calls).map { $0 - $1 }, selfTime: zip(side.selfTime, other.selfTime).map { $0 - $1 },
                correctedSelf: zip(side.correctedSelf, other.correctedSelf).map { $0 - $1 })
        }

        package var medianCalls: Double { TreeDiff.median(calls) }
        package var medianSelf: Double { TreeDiff.median(selfTime) }
        package var medianCorrected: Double { TreeDiff.median(correctedSelf) }
    }

    package struct Row: Sendable {
        package var before: Side
        package var after: Side

        package init(before: Side, after: Side) { (self.before, self.after) = (before, after) }

        package var difference: Double { after.medianSelf - before.medianSelf }
        package var correctedDifference: Double { after.medianCorrected - before.medianCorrected }
        package var callDifference: Double { after.medianCalls - before.medianCalls }

        /// True if runs differ as much among themselves as the two sets do: some run of one set is on the wrong side of
        /// some run of the other. nil when there is only one run of each, which shows nothing.
        package var isNoise: Bool? { Self.isNoise(before.selfTime, after.selfTime, difference) }
        package var isCorrectedNoise: Bool? { Self.isNoise(before.correctedSelf, after.correctedSelf, correctedDifference) }

        private static func isNoise(_ before: [Double], _ after: [Double], _ difference: Double) -> Bool? {
            guard before.count + after.count > 2 else { return nil }
            let (low, high) = difference > 0 ? (before, after) : (after, before)
            return (low.max() ?? 0) >= (high.min() ?? 0)
        }
    }

    package struct FunctionRow: Sendable {
        package var function: CallTree.Function
        /// Its name before, when that was another.
        package var formerName: String?
        package var row: Row
    }

    /// Node of a tree of both sides, a parent before its children.
    package struct PathRow: Sendable {
        /// -1 for what a thread calls.
        package var parent: Int
        /// Index in `functions`.
        package var function: Int
        package var row: Row
    }

    /// Functions, the largest difference first.
    package private(set) var functions: [FunctionRow] = []
    package private(set) var paths: [PathRow] = []
    /// All calls together, and own code.
    package let whole: Row
    /// Own code: time that threads ran while no recorded call was open.
    package let own: Row
    /// All calls together.
    package let inCalls: Row
    /// Time from the beginning of a run's first process to the end of its last one, in nanoseconds.
    package let duration: Row
    /// True if order and noise are judged by times without the recording overhead.
    package let isCorrected: Bool
    package let time: Time
    /// Time of all threads in which they could have run and others had the CPUs; nil: not known.
    package let runnable: Row?

    /// One tree for each run, with states where they are known.
    /// - Parameter time: nil: running and waiting where the states of all are known, else wall time. Others need states.
    package init(before: [CallTree], after: [CallTree], by wanted: Time? = nil, isCorrected: Bool = false) {
        self.isCorrected = isCorrected
        let areKnown = (before + after).allSatisfy { $0.time != nil }
        time = areKnown ? wanted ?? .runningAndWaiting : .wall
        func runnable(_ trees: [CallTree]) -> Side {
            Side(
                calls: [], selfTime: trees.map { tree in Double(tree.roots.reduce(0) { $0 &+ tree.nodes[$1.node].states.total.runnable }) })
        }
        self.runnable = areKnown ? Row(before: runnable(before), after: runnable(after)) : nil
        var union = Union(beforeCount: before.count, afterCount: after.count, time)
        let renamed = RenamedFunctions(before, after)
        // The program may have been built under another name; its own code is its own code.
        let program = before.first?.processes.first?.program ?? ""
        func common(_ function: CallTree.Function, in tree: CallTree) -> CallTree.Function? {
            function.isOwnCode && function == tree.processes.first.map { .ownCode(of: $0.program) } ? .ownCode(of: program) : nil
        }
        for (index, tree) in before.enumerated() {
            union.add(tree, run: index) { function in common(function, in: tree).map { ($0, nil) } ?? renamed.name(function) }
        }
        for (index, tree) in after.enumerated() {
            union.add(tree, run: before.count + index) { (common($0, in: tree) ?? Self.plain($0), nil) }
        }
        whole = union.row(union.whole)
        let ofFunction = union.functionSums()
        own = union.row(
            ofFunction.indices.filter { union.functions[$0].isOwnCode }.reduce(into: union.nothing) { sums, index in
                for run in sums.indices { sums[run] += ofFunction[index][run] }
            })
        inCalls = Row(before: Side.difference(whole.before, own.before), after: Side.difference(whole.after, own.after))
        duration = Row(
            before: Side(calls: [], selfTime: before.map { Double($0.duration.count) }),
            after: Side(calls: [], selfTime: after.map { Double($0.duration.count) }))
        functions = union.functions.indices.map { index in
            FunctionRow(function: union.functions[index], formerName: union.formerNames[index], row: union.row(ofFunction[index]))
        }
        paths = union.nodes.map { PathRow(parent: $0.parent, function: $0.function, row: union.row($0.sums)) }
        let order = functions.indices.sorted { a, b in
            let (one, other) = (functions[a], functions[b])
            return (abs(judged(one.row)), abs(one.row.callDifference), other.function.name)
                > (abs(judged(other.row)), abs(other.row.callDifference), one.function.name)
        }
        var ranks = [Int](repeating: 0, count: functions.count)
        for (rank, index) in order.enumerated() { ranks[index] = rank }
        functions = order.map { functions[$0] }
        for index in paths.indices { paths[index].function = ranks[paths[index].function] }
    }

    /// The difference that counts.
    func judged(_ row: Row) -> Double { isCorrected ? row.correctedDifference : row.difference }
    func isNoise(_ row: Row) -> Bool? { isCorrected ? row.isCorrectedNoise : row.isNoise }

    static func median(_ values: [Double]) -> Double {
        let sorted = values.sorted(), middle = sorted.count / 2
        if sorted.isEmpty { return 0 }
        return sorted.count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2
    }

    /// Without what a compiler appends to the name of a copy that it made: the number changes from build to build.
    static func plain(_ function: CallTree.Function) -> CallTree.Function {
        guard let dot = function.symbol.firstIndex(of: "."), dot != function.symbol.startIndex,
            [".constprop", ".isra", ".part", ".cold", ".llvm", ".lto_priv"].contains(where: { function.symbol[dot...].hasPrefix($0) })
        else { return function }
        let symbol = String(function.symbol[..<dot])
        return CallTree.Function(name: demangled(symbol), symbol: symbol, module: function.module)
    }
}

/// The paths of all runs in one tree, with a number for each run at each.
private struct Union {
    struct Node {
        var parent: Int
        var function: Int
        var sums: [Sums]
    }
    struct Sums {
        var calls = 0.0
        var selfTime = 0.0
        var correctedSelf = 0.0

        static func += (sums: inout Sums, other: Sums) {
            sums.calls += other.calls
            sums.selfTime += other.selfTime
            sums.correctedSelf += other.correctedSelf
        }
    }
    private struct Edge: Hashable {
        var parent: Int
        var function: Int
    }
    let beforeCount: Int
    let afterCount: Int
    let time: TreeDiff.Time
    private(set) var nodes: [Node] = []
    private(set) var functions: [CallTree.Function] = []
    private(set) var formerNames: [String?] = []
    private(set) var whole: [Sums]
    var nothing: [Sums] { Array(repeating: Sums(), count: beforeCount + afterCount) }
    private var numbers: [Key: Int] = [:]
    private var childOf: [Edge: Int] = [:]

    /// The name for people alone: a mangled one may say where its types are from.
    private struct Key: Hashable {
        var name: String
        var module: String
    }

    init(beforeCount: Int, afterCount: Int, _ time: TreeDiff.Time) {
        self.beforeCount = beforeCount
        self.afterCount = afterCount
        self.time = time
        whole = Array(repeating: Sums(), count: beforeCount + afterCount)
    }

    mutating func add(_ tree: CallTree, run: Int, _ name: (CallTree.Function) -> (CallTree.Function, former: String?)) {
        let here = tree.functions.map { function in
            let (known, former) = name(function)
            return number(known, former)
        }
        var paths = [Int](repeating: -1, count: tree.nodes.count) // path of each node of this tree
        for (index, node) in tree.nodes.enumerated() where node.parent >= 0 {
            let edge = Edge(parent: paths[node.parent], function: here[node.function])
            let path = childOf[edge] ?? nodes.count
            if path == nodes.count {
                nodes.append(Node(parent: edge.parent, function: edge.function, sums: nothing))
                childOf[edge] = path
            }
            paths[index] = path
            let selfTime = tree.time == nil ? node.selfTime : time.of(node.states.selfTime)
            let corrected = selfTime &- Int64(clamping: min(node.selfCost, UInt64(max(selfTime, 0))))
            let sums = Sums(calls: Double(node.calls), selfTime: Double(selfTime), correctedSelf: Double(corrected))
            nodes[path].sums[run] += sums
            whole[run] += sums
        }
    }

    private mutating func number(_ function: CallTree.Function, _ former: String?) -> Int {
        let key = Key(name: function.name, module: function.module)
        if let number = numbers[key] {
            if let former { formerNames[number] = former }
            return number
        }
        functions.append(function)
        formerNames.append(former)
        numbers[key] = functions.count - 1
        return functions.count - 1
    }

    func functionSums() -> [[Sums]] {
        var result = Array(repeating: nothing, count: functions.count)
        for node in nodes {
            for run in node.sums.indices {
                result[node.function][run] += node.sums[run]
            }
        }
        return result
    }

    func row(_ sums: [Sums]) -> TreeDiff.Row {
        func side(_ runs: ArraySlice<Sums>) -> TreeDiff.Side {
            TreeDiff.Side(calls: runs.map { $0.calls }, selfTime: runs.map { $0.selfTime }, correctedSelf: runs.map { $0.correctedSelf })
        }
        return TreeDiff.Row(before: side(sums[..<beforeCount]), after: side(sums[beforeCount...]))
    }
}

/// Functions of before that have another name after: those that no symbol names, known by who calls them and what they
/// call.
private struct RenamedFunctions {
    private var names: [CallTree.Function: CallTree.Function] = [:]

    private struct Shape: Hashable {
        var callers: Set<String> = []
        var callees: Set<String> = []
        var calls: UInt64 = 0
    }

    init(_ before: [CallTree], _ after: [CallTree]) {
        let old = Self.shapes(before), new = Self.shapes(after)
        var free = new.filter { old[$0.key] == nil }
        // The most alike first, whichever they are.
        var pairs: [(old: CallTree.Function, new: CallTree.Function, likeness: Double)] = []
        for (function, shape) in old where new[function] == nil {
            for (other, otherShape) in free where other.module == function.module {
                let likeness = Self.likeness(shape, otherShape)
                if likeness >= 0.5 { pairs.append((function, other, likeness)) }
            }
        }
        pairs.sort { ($0.likeness, $1.old.name, $1.new.name) > ($1.likeness, $0.old.name, $0.new.name) }
        for pair in pairs where names[pair.old] == nil && free[pair.new] != nil {
            names[pair.old] = pair.new
            free[pair.new] = nil
        }
    }

    func name(_ function: CallTree.Function) -> (CallTree.Function, former: String?) {
        if let other = names[function] { return (other, function.name) }
        return (TreeDiff.plain(function), nil)
    }

    private static func shapes(_ trees: [CallTree]) -> [CallTree.Function: Shape] {
        var shapes: [CallTree.Function: Shape] = [:]
        for tree in trees {
            let unnamed = Set(tree.functions.indices.filter { tree.functions[$0].symbol.isEmpty })
            guard !unnamed.isEmpty else { continue }
            func name(_ number: Int) -> String {
                number < 0 ? "(thread)" : unnamed.contains(number) ? tree.functions[number].module + "+" : tree.functions[number].name
            }
            for node in tree.nodes where node.parent >= 0 {
                let parent = tree.nodes[node.parent].function
                if unnamed.contains(node.function) {
                    shapes[tree.functions[node.function], default: Shape()].callers.insert(name(parent))
                    shapes[tree.functions[node.function], default: Shape()].calls &+= node.calls
                }
                if parent >= 0, unnamed.contains(parent) {
                    shapes[tree.functions[parent], default: Shape()].callees.insert(name(node.function))
                }
            }
        }
        return shapes
    }

    /// 0 … 1: what they have in common of their callers and callees, and how near their numbers of calls are.
    private static func likeness(_ a: Shape, _ b: Shape) -> Double {
        let common = a.callers.intersection(b.callers).count + a.callees.intersection(b.callees).count
        let all = a.callers.union(b.callers).count + a.callees.union(b.callees).count
        let calls = Double(min(a.calls, b.calls)) / Double(max(a.calls, b.calls, 1))
        return (all == 0 ? 0 : Double(common) / Double(all)) * (0.75 + 0.25 * calls)
    }
}
