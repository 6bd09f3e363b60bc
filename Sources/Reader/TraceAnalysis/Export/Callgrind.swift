// The format of callgrind: https://valgrind.org/docs/manual/cl-format.html. It is a graph, not a tree: what one function
// did below all its callers, and what each call from one function to another took. Names are written once and then
// called by number. Source files are not known, which callgrind_annotate wants to be given.
//
// Both readers take the sum over a function's callers for its inclusive time (callgrind_annotate.in, "inclusive costs"; KCachegrind,
// TraceFunction::update). So a call within another call of the same function, directly or not, counts, but its time is in the outer
// one's already: the sum is what `report` shows as total.

struct CallgrindExport {
    private struct Arc: Hashable {
        var caller: Int
        var callee: Int
    }
    private struct Cost {
        var calls: UInt64 = 0
        var total: UInt64 = 0
    }

    static func write(_ tree: CallTree, to output: ([UInt8]) throws -> Void) throws {
        var own = [Int64](repeating: 0, count: tree.functions.count)
        var arcs: [Arc: Cost] = [:]
        var active = [Int](repeating: 0, count: tree.functions.count) // calls of each that are open on the path
        var summary: Int64 = 0
        for (number, root) in tree.roots.enumerated() {
            let title = tree.functions.count + number
            var path: [(function: Int, end: Int)] = []
            for index in root.node + 1..<max(tree.nodes[root.node].end, root.node + 1) {
                let node = tree.nodes[index]
                while let last = path.last, last.end <= index {
                    active[last.function] -= 1
                    path.removeLast()
                }
                let arc = Arc(caller: path.last?.function ?? title, callee: node.function)
                own[node.function] &+= node.selfTime
                summary &+= node.selfTime
                arcs[arc, default: Cost()].calls &+= node.calls
                if active[node.function] == 0 { arcs[arc, default: Cost()].total &+= node.total }
                active[node.function] += 1
                path.append((node.function, node.end))
            }
            for open in path { active[open.function] = 0 }
        }
        try write(tree, own, arcs, summary, to: output)
    }

    private static func write(
        _ tree: CallTree, _ own: [Int64], _ arcs: [Arc: Cost], _ summary: Int64,
        to output: ([UInt8]) throws -> Void
    ) throws {
        var text = ByteWriter(capacity: 1 << 20)
        text.append("# callgrind format\nversion: 1\ncreator: tracer\n")
        for process in tree.processes { text.append("pid: \(process.pid)\ncmd: \(process.commandLine)\n") }
        text.append("positions: line\nevents: ns\nsummary: \(summary)\n\nfl=(1) ???\n")
        var names = Names(tree)
        let callees = Dictionary(grouping: arcs.keys, by: { $0.caller })
        for caller in 0..<tree.functions.count + tree.roots.count {
            let calls = (callees[caller] ?? []).sorted { $0.callee < $1.callee }
            let selfTime = caller < own.count ? own[caller] : 0
            if calls.isEmpty, selfTime == 0 { continue }
            text.append("\n")
            names.write(caller, "ob=", "fn=", to: &text)
            text.append("0 \(selfTime)\n")
            for arc in calls {
                // A frame of the parent process was called there. What a thread runs of the program's own code was called once.
                let isOwnCode = tree.functions[arc.callee].isOwnCode
                guard let cost = arcs[arc], cost.calls > 0 || isOwnCode else { continue }
                names.write(arc.callee, "cob=", "cfn=", to: &text)
                text.append("calls=\(isOwnCode ? 1 : cost.calls) 0\n0 \(cost.total)\n")
            }
            if text.count >= 1 << 20 {
                try output(text.bytes)
                text.removeAll()
            }
        }
        text.append("\ntotals: \(summary)\n")
        try output(text.bytes)
    }

    /// "(1) name" the first time, "(1)" then. Functions and objects have numbers of their own.
    private struct Names {
        let tree: CallTree
        /// Names that functions of several modules have: callgrind_annotate knows a function by its source file and its name, and takes
        /// such ones for one.
        private let ambiguous: Set<String>
        private var objects: [String: Int] = [:]
        private var isKnown: [Bool]

        init(_ tree: CallTree) {
            self.tree = tree
            isKnown = Array(repeating: false, count: tree.functions.count + tree.roots.count)
            var modules: [String: String] = [:], ambiguous: Set<String> = []
            for function in tree.functions {
                let first = modules[function.name] ?? function.module
                modules[function.name] = first
                if function.module != first { ambiguous.insert(function.name) }
            }
            self.ambiguous = ambiguous
        }

        mutating func write(_ function: Int, _ object: String, _ key: String, to text: inout ByteWriter) {
            let isFunction = function < tree.functions.count
            let module = isFunction ? tree.functions[function].module : "[thread]"
            if let number = objects[module] {
                text.append("\(object)(\(number))\n")
            } else {
                objects[module] = objects.count + 1
                text.append("\(object)(\(objects.count)) \(module)\n")
            }
            if isKnown[function] {
                text.append("\(key)(\(function + 1))\n")
                return
            }
            isKnown[function] = true
            var name = isFunction ? tree.functions[function].name : title(tree.roots[function - tree.functions.count])
            if isFunction, ambiguous.contains(name) { name += " (\(module))" }
            text.append("\(key)(\(function + 1)) \(name)\n")
        }

        private func title(_ root: CallTree.Root) -> String {
            let thread = root.tid.map { "thread \(root.name) \($0)" } ?? "thread \(root.name)"
            return root.process.map { "\(tree.processes[$0].name) \(tree.processes[$0].pid): \(thread)" } ?? thread
        }
    }
}
