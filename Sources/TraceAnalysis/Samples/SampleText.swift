// The tree of samples as lines of text, and as JSON.
import Presentation

extension SampleReport {
    package static let columns = "   total     self     samples  function"

    /// "6,612 samples, one for each 1 ms of CPU time; 3% of the stacks are incomplete (…)"
    package var title: String {
        var parts = [counted(samples, "sample") + (period.map { ", one for each \(readable($0)) of CPU time" } ?? "")]
        if cut > 0 { parts.append("\(percent(cut, of: samples)) of the stacks are incomplete (…)") }
        if lost > 0 { parts.append("\(counted(lost, "kernel record")) lost") }
        return parts.joined(separator: "; ")
    }

    package func title(_ root: CallTree.Root, in tree: CallTree) -> String {
        let thread =
            root.tid.map { "thread \($0)\(root.name.isEmpty ? "" : " " + root.name)" } ?? counted(UInt64(root.threadCount), "thread")
        return "\(thread), \(counted(tree.nodes[root.node].total, "sample"))"
    }

    /// - Parameters:
    ///   - tree: this report's, with names for texts
    ///   - least: share of all samples of the thread that gets a line
    ///   - deepest: levels, 0 all
    package static func lines(
        _ tree: CallTree, _ root: CallTree.Root, least: Double, deepest: Int, width: Int?, _ style: TextStyle,
        _ body: (String) throws -> Void
    ) rethrows {
        let whole = tree.nodes[root.node].total
        func line(_ total: UInt64, _ own: UInt64, _ indentation: Int, _ text: String) -> String {
            let figures =
                leftFilled(percent(total, of: whole), 8) + " " + leftFilled(own == 0 ? "" : percent(own, of: whole), 8) + " "
                + leftFilled(grouped(total), 11) + "  "
            let text = String(repeating: " ", count: indentation) + text
            return figures + (width.map { shortened(text, max($0 - figures.count, 20)) } ?? text)
        }
        var waiting = [(node: root.node, level: -1, indentation: -1, isChained: false)]
        while let (index, level, indentation, isChained) = waiting.popLast() {
            let node = tree.nodes[index]
            if node.function >= 0 {
                let function = tree.functions[node.function]
                let module = function.module == FunctionNames.noModule ? "" : style.dim(" (\(function.module))")
                try body(
                    line(node.total, UInt64(max(node.selfTime, 0)), indentation, (isChained ? "> " : "") + function.name + module))
            }
            if deepest > 0, level + 1 >= deepest { continue }
            let shown = tree.children(of: index).filter { Double(tree.nodes[$0].total) >= least * Double(whole) }
            // A chain of single callees stays in its column, or thirty levels of it would leave the screen.
            let isChain = shown.count == 1 && level >= 0
            waiting += shown.reversed().map { ($0, level + 1, indentation + (isChain ? 0 : 1), isChain) }
        }
    }

    package func json() -> JSON {
        func share(_ count: UInt64) -> JSON { .number(samples == 0 ? 0 : Double(count) / Double(samples)) }
        return .object([
            ("schema", .unsigned(1)), ("samples", .unsigned(samples)), ("period_ns", period.map { .unsigned($0.count) } ?? .null),
            ("cut", .unsigned(cut)), ("lost", .unsigned(lost)),
            (
                "threads",
                .array(
                    threads.map {
                        .object([("tid", .unsigned(UInt64($0.tid))), ("name", .string($0.name)), ("samples", .unsigned($0.samples))])
                    })
            ),
            (
                "functions",
                .array(
                    functions.map {
                        .object([
                            ("name", .string($0.function.name)), ("symbol", .string($0.function.symbol)),
                            ("module", .string($0.function.module)), ("self", .unsigned($0.own)), ("total", .unsigned($0.total)),
                            ("self_share", share($0.own)), ("total_share", share($0.total)),
                        ])
                    })
            ),
        ])
    }
}
