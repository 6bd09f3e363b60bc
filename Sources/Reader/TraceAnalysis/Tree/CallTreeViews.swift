// Other views of a call tree: who calls a function, what is below it wherever it is called, and the paths that lead to
// it. Each is a tree again.

extension CallTree {
    /// Calls `body` for each node with the number of `chosen` functions above it on its path. In preorder.
    func forEachNode(of chosen: Set<Int>, _ body: (Int, _ above: Int) -> Void) {
        var above = [Int](repeating: 0, count: nodes.count)
        for (index, node) in nodes.enumerated() where node.parent >= 0 {
            let parent = node.parent
            above[index] = above[parent] + (chosen.contains(nodes[parent].function) ? 1 : 0)
            body(index, above[index])
        }
    }

    /// Who calls the functions, as a tree upside down: its first level are they, below each its callers. Times and calls are theirs, as far
    /// as they came this way, so that calls and self times of a node's callers, with those that are not recorded, add up to the node's; one
    /// that only such code calls has none. Totals do so without recursion: a call within another one that came the same way is part of it.
    ///
    /// All callers of a recursion of n levels would be n² steps. After `mostSteps`, or as many nodes as a tree has at most, the callers that
    /// are left are "(further paths)", one level for all.
    package func callers(of chosen: Set<Int>, mostSteps: Int = 1 << 24) -> CallTree {
        /// A call of the functions, the caller that is next, and the node here that this one is below.
        struct Walk {
            var call: Int
            var next: Int
            var node: Int
        }
        var assembly = CallTreeAssembly()
        let root = assembly.add(emptyRoot), top = assembly.node(ofRoot: root)
        let numbers = assembly.numbers(of: self)
        var walks: [Walk] = [] // in preorder of the calls
        var whole: UInt64 = 0, states = StateTimes()
        forEachNode(of: chosen) { index, above in
            guard chosen.contains(nodes[index].function) else { return }
            walks.append(Walk(call: index, next: index, node: top))
            if above == 0 {
                whole &+= nodes[index].total
                states &+= nodes[index].states.total
            }
        }
        var ends: [Int] = [] // the end of the last call in each node here that lies in no other one of it
        func add(_ call: Int, to node: Int) {
            var sums = nodes[call]
            while ends.count <= node { ends.append(0) }
            if call < ends[node] {
                sums.removeTotal()
            } else {
                ends[node] = sums.end
            }
            assembly.add(sums, to: node)
        }
        var fromElsewhere: [(node: Int, call: Int)] = [] // what code that is not recorded has called
        var steps = 0, isFirst = true
        while !walks.isEmpty {
            steps += walks.count
            let isLast = !isFirst && (steps > mostSteps || assembly.nodeCount > PathNode.mostPaths)
            isFirst = false
            var left = 0
            for index in walks.indices {
                var walk = walks[index]
                walk.node = assembly.child(walk.node, isLast ? assembly.number(Self.elsewhere) : numbers[nodes[walk.next].function])
                add(walk.call, to: walk.node)
                walk.next = nodes[walk.next].parent
                if isLast { continue }
                if nodes[walk.next].function >= 0 {
                    walks[left] = walk
                    left += 1
                } else {
                    fromElsewhere.append((walk.node, walk.call))
                }
            }
            walks.removeLast(walks.count - left)
        }
        let called = assembly.parents, notRecorded = assembly.number(.notRecorded)
        for (node, call) in fromElsewhere where called.contains(node) { add(call, to: assembly.child(node, notRecorded)) }
        for process in processes { _ = assembly.add(process) }
        var tree = assembly.tree()
        tree.nodes[tree.roots[0].node].total = whole
        tree.nodes[tree.roots[0].node].states.total = states
        tree.isInverted = true
        return tree
    }

    /// The same with paths of so many functions at most that all paths together have no more than `most`: a format that writes each path
    /// in full would take n² for a recursion of n levels. What goes on from the longest is "(further paths)".
    package func shortened(most: Int = 1 << 26) -> CallTree {
        var depths = [Int32](repeating: 0, count: nodes.count), counts = [0]
        for (index, node) in nodes.enumerated() where node.parent >= 0 {
            depths[index] = depths[node.parent] + 1
            if Int(depths[index]) == counts.count { counts.append(0) }
            counts[Int(depths[index])] += 1
        }
        var longest = 0, left = most, paths = counts.dropFirst().reduce(0, +) // longer than `longest`
        while longest + 1 < counts.count, left >= paths {
            left -= paths
            longest += 1
            paths -= counts[longest]
        }
        if longest + 1 == counts.count { return self }
        longest = max(longest, 1)
        var assembly = CallTreeAssembly()
        for process in processes { _ = assembly.add(process) }
        let numbers = assembly.numbers(of: self), elsewhere = assembly.number(Self.elsewhere)
        var here = [Int](repeating: -1, count: nodes.count)
        for root in roots {
            let number = assembly.add(root)
            here[root.node] = assembly.node(ofRoot: number)
        }
        for (index, node) in nodes.enumerated() where node.parent >= 0 && here[node.parent] >= 0 {
            let parent = here[node.parent], depth = Int(depths[index])
            var sums = node
            if depth > longest + 1 { // its time is in that of a call which is there already
                here[index] = parent
                sums.removeTotal()
            } else {
                here[index] = assembly.child(parent, depth > longest ? elsewhere : numbers[node.function])
            }
            assembly.add(sums, to: here[index])
        }
        return assembly.tree()
    }

    /// Returns what the functions call, wherever they are called from: each of them is one node of the first level.
    package func below(_ chosen: Set<Int>) -> CallTree {
        var assembly = CallTreeAssembly()
        let root = assembly.add(emptyRoot)
        let numbers = assembly.numbers(of: self)
        var here = [Int](repeating: -1, count: nodes.count)
        forEachNode(of: chosen) { index, above in
            let isChosen = chosen.contains(nodes[index].function)
            guard above > 0 || isChosen else { return }
            let parent = above > 0 ? here[nodes[index].parent] : assembly.node(ofRoot: root)
            here[index] = assembly.child(parent, numbers[nodes[index].function])
            assembly.add(nodes[index], to: here[index])
        }
        for process in processes { _ = assembly.add(process) }
        return assembly.tree()
    }

    /// The paths that lead through one of the functions. Above it a node has the time that passed below the function
    /// and no self time.
    package func focused(on chosen: Set<Int>) -> CallTree {
        var assembly = CallTreeAssembly()
        for process in processes { _ = assembly.add(process) }
        let numbers = assembly.numbers(of: self)
        var through = [UInt64](repeating: 0, count: nodes.count)
        var throughCost = through, throughStates = [StateTimes](repeating: StateTimes(), count: nodes.count)
        var isOnPath = [Bool](repeating: false, count: nodes.count)
        var isBelow = [Bool](repeating: false, count: nodes.count)
        forEachNode(of: chosen) { index, above in isBelow[index] = above > 0 || chosen.contains(nodes[index].function) }
        for index in nodes.indices.reversed() where nodes[index].parent >= 0 {
            let isOutermost = isBelow[index] && !isBelow[nodes[index].parent]
            guard isOutermost || isOnPath[index] else { continue }
            let parent = nodes[index].parent
            isOnPath[parent] = !isBelow[parent]
            through[parent] &+= isOutermost ? nodes[index].total : through[index]
            throughCost[parent] &+= isOutermost ? nodes[index].totalCost : throughCost[index]
            throughStates[parent] &+= isOutermost ? nodes[index].states.total : throughStates[index]
        }
        var here = [Int](repeating: -1, count: nodes.count)
        for var root in roots where isOnPath[root.node] {
            let shown = (root.node + 1..<nodes[root.node].end).lazy.filter { isBelow[$0] || isOnPath[$0] }
            root.calls = shown.reduce(0) { $0 &+ (functions[nodes[$1].function].isOwnCode ? 0 : nodes[$1].calls) }
            let number = assembly.add(root)
            here[root.node] = assembly.node(ofRoot: number)
        }
        for index in nodes.indices where nodes[index].parent >= 0 && (isBelow[index] || isOnPath[index]) {
            here[index] = assembly.child(here[nodes[index].parent], numbers[nodes[index].function])
            var sums = nodes[index]
            if !isBelow[index] {
                sums.total = through[index]
                sums.selfTime = 0
                sums.selfCost = 0
                sums.totalCost = throughCost[index]
                sums.states = SplitTimes(selfTime: StateTimes(), total: throughStates[index])
            }
            assembly.add(sums, to: here[index])
        }
        return assembly.tree()
    }

    private var emptyRoot: Root {
        Root(
            node: 0, process: nil, tid: nil, name: "", threadCount: roots.reduce(0) { $0 + $1.threadCount }, calls: 0,
            missingChunks: 0, dropped: 0, filtered: 0)
    }

    /// Only the threads that `isWanted`.
    package func filtered(_ isWanted: (Root) -> Bool) -> CallTree {
        var tree = self
        tree.roots = roots.filter(isWanted)
        return tree
    }

    /// Returns the functions that the pattern matches, among those that have a node in the tree.
    package func functions(matching pattern: FunctionPattern) -> Set<Int> {
        Set(Set(nodes.lazy.map(\.function)).filter { $0 >= 0 && pattern.matches(functions[$0]) })
    }
}

extension FunctionPattern {
    package func matches(_ function: CallTree.Function) -> Bool {
        matches(name: function.name, symbol: function.symbol, module: function.module)
    }
}
