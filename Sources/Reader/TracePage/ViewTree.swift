// A call tree as columns of numbers: in preorder, with depths. Small paths are summed up below their caller.
import Presentation
import TraceAnalysis

/// How calls of a path ended; in a comparison, that its difference is noise.
package enum NodeFlag: Int, CaseIterable {
    case open = 1, unwound = 2, cut = 4, noise = 8
}

struct ViewTree {
    private let columns: Columns
    private let names: [String]
    /// For each tree, the index here of the node that stands for each of its nodes.
    let indices: [[Int]]

    private struct Rest {
        var paths = 0
        var calls: UInt64 = 0, total: UInt64 = 0
        var nodes: [Range<Int>] = []
    }
    private struct Columns {
        var count = 0
        var depth = "", function = "", calls = "", total = "", own = "", flags = ""
        mutating func add(_ depth: Int, _ function: Int, _ calls: UInt64, _ total: UInt64, _ own: Int64, _ flags: Int) {
            let comma = self.depth.isEmpty ? "" : ","
            self.depth += "\(comma)\(depth)"
            self.function += "\(comma)\(function)"
            self.calls += "\(comma)\(calls)"
            self.total += "\(comma)\(total)"
            self.own += "\(comma)\(own)"
            self.flags += "\(comma)\(flags)"
            count += 1
        }
    }

    /// A negative fn names one of `names`: a thread, or what was summed up.
    /// - Parameters:
    ///   - trees: each follows the one before
    ///   - least: share of all of them that a path must have, or it is summed up
    ///   - most: nodes that are kept
    init(_ trees: [CallTree], least: Double, most: Int, _ functions: inout FunctionNumbers) {
        let limit = Self.limit(trees, least: least, most: most), isOne = trees.count == 1
        var columns = Columns(), names: [String] = []
        indices = trees.map { Self.add($0, isOne: isOne, limit, &columns, &names, &functions) }
        (self.columns, self.names) = (columns, names)
    }

    private static func add(
        _ tree: CallTree, isOne: Bool, _ limit: Double, _ columns: inout Columns, _ names: inout [String],
        _ functions: inout FunctionNumbers
    ) -> [Int] {
        var numbers = [Int](repeating: -1, count: tree.functions.count), indices = [Int](repeating: 0, count: tree.nodes.count)
        func name(_ text: String) -> Int {
            names.append(text)
            return -names.count
        }
        for root in tree.roots {
            let top = tree.nodes[root.node]
            let title = root.name.isEmpty ? "thread" : root.name
            indices[root.node] = columns.count
            columns.add(
                0, name(!isOne || tree.processes.count > 1 ? tree.nameWithProcess(of: root) : root.tid.map { "\(title) \($0)" } ?? title),
                top.calls, top.total, 0,
                0)
            // Nodes that are drawn, and what is summed up below each: from a stack, since paths may be very long.
            var open: [(end: Int, depth: Int, rest: Rest)] = [(top.end, 0, Rest())]
            func close() {
                let last = open.removeLast()
                if last.rest.paths > 0, last.rest.total > 0 {
                    for node in last.rest.nodes.joined() { indices[node] = columns.count }
                    columns.add(
                        last.depth + 1, name("\(counted(UInt64(last.rest.paths), "short path"))"), last.rest.calls, last.rest.total, 0, 0)
                }
            }
            var index = root.node + 1
            while index < top.end {
                while let last = open.last, last.end <= index { close() }
                let node = tree.nodes[index], depth = open.count
                if Double(node.total) < limit {
                    var rest = Rest(paths: node.end - index, calls: 0, total: node.total)
                    for below in index..<node.end { rest.calls &+= tree.nodes[below].calls }
                    open[open.count - 1].rest.paths += rest.paths
                    open[open.count - 1].rest.nodes.append(index..<node.end)
                    open[open.count - 1].rest.calls &+= rest.calls
                    open[open.count - 1].rest.total &+= rest.total
                    index = node.end
                    continue
                }
                if numbers[node.function] < 0 {
                    let function = tree.functions[node.function]
                    numbers[node.function] = functions.number(function.name, function.module)
                }
                let flags = [(node.open, NodeFlag.open), (node.unwound, .unwound), (node.cut, .cut)].reduce(0) {
                    $0 | ($1.0 > 0 ? $1.1.rawValue : 0)
                }
                indices[index] = columns.count
                columns.add(depth, numbers[node.function], node.calls, node.total, node.selfTime, flags)
                open.append((node.end, depth, Rest()))
                index += 1
            }
            while !open.isEmpty { close() }
        }
        return indices
    }

    /// `tree` of schema.mjs.
    var text: String {
        """
        {\(pathText),
        "calls":[\(columns.calls)],
        "total":[\(columns.total)],
        "self":[\(columns.own)],
        "flags":[\(columns.flags)]}
        """
    }

    /// The paths alone.
    var pathText: String {
        """
        "depth":[\(columns.depth)],
        "fn":[\(columns.function)],
        "names":\(JSON.array(names.map { .string($0) }).scriptText)
        """
    }

    /// The least total that is drawn, so that no more than `most` are.
    private static func limit(_ trees: [CallTree], least: Double, most: Int) -> Double {
        let share = least * Double(trees.reduce(0) { $0 + $1.total })
        guard trees.reduce(0, { $0 + $1.nodes.count }) > most else { return share }
        let totals = trees.lazy.flatMap { $0.nodes.lazy.map(\.total) }.sorted(by: >)
        return max(share, Double(totals[most - 1]) + 1)
    }
}
