// Folded stacks, which Brendan Gregg's flamegraph.pl and its kin read: a line for each path, frames from the outermost
// on, then its weight in nanoseconds. Functions are written module`function, as stackcollapse.pl has them from DTrace.

struct FoldedExport {
    static func write(_ tree: CallTree, _ weight: ExportWeight, to output: ([UInt8]) throws -> Void) throws {
        let tree = tree.shortened()
        let names = tree.functions.map { [UInt8](frame($0.module + "`" + $0.name)) }
        var text = ByteWriter(capacity: 1 << 20)
        for root in tree.roots {
            // Frames of the path, each with where it ends in `path`.
            var path = [UInt8](title(of: root, in: tree))
            var ends: [(node: Int, length: Int)] = [(tree.nodes[root.node].end, path.count)]
            for index in root.node + 1..<max(tree.nodes[root.node].end, root.node + 1) {
                let node = tree.nodes[index]
                while let last = ends.last, last.node <= index { ends.removeLast() }
                path.removeSubrange((ends.last?.length ?? 0)...)
                path.append(UInt8(ascii: ";"))
                path += names[node.function]
                ends.append((node.end, path.count))
                // A self time may be negative in a damaged file, which no flame graph can show.
                let value = weight == .total ? node.total : UInt64(max(node.selfTime, 0))
                guard value > 0 else { continue }
                text.append(path)
                text.append(" ")
                text.append(decimal: value)
                text.append("\n")
                if text.count >= 1 << 20 {
                    try output(text.bytes)
                    text.removeAll()
                }
            }
        }
        try output(text.bytes)
    }

    private static func title(of root: CallTree.Root, in tree: CallTree) -> [UInt8] {
        let process = root.process.map { "\(tree.processes[$0].name) \(tree.processes[$0].pid)" } ?? "all"
        return frame(process) + [UInt8(ascii: ";")] + frame(root.tid.map { "\(root.name) \($0)" } ?? root.name)
    }

    /// The separator cannot be part of a name.
    private static func frame(_ text: String) -> [UInt8] {
        text.utf8.map { $0 == UInt8(ascii: ";") ? UInt8(ascii: ":") : $0 }
    }
}
