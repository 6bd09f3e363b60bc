// The tree of samples as lines of text, and the JSON of `tracer samples`.
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
}

// MARK: - JSON

extension SampleReport: Record {
    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("samples", "number of samples of all threads of all traces", \.samples)
        Member("period_ns", "CPU time from one sample to the next; null: the trace does not say", \.period)
        Member("cut", "samples whose stacks are longer than the part that was copied, or end where the caller cannot be determined", \.cut)
        Member("lost", "kernel records for which there was no space in the buffer", \.lost)
        Member("threads", \.threads)
        Member("functions", "by falling self") { report in report.functions.map { ShareRow(share: $0, samples: report.samples) } }
    }
}

extension SampleReport.Thread: Record {
    package static let members = declare {
        Member("tid", \.tid)
        Member("name", \.name)
        Member("samples", \.samples)
    }
}

/// A function's part of all samples.
private struct ShareRow: Record {
    var share: SampleReport.FunctionShare
    /// The number of all samples.
    var samples: UInt64

    static let members = declare {
        Member("name", "… stands for unknown frames", \.share.function.name)
        Member("symbol", "mangled; empty where it has none", \.share.function.symbol)
        Member("module", \.share.function.module)
        Member("self", "samples with it innermost", \.share.own)
        Member("total", "samples with it in their stacks", \.share.total)
        Member("self_share", "of all samples, 0 to 1") { $0.part($0.share.own) }
        Member("total_share") { $0.part($0.share.total) }
    }

    private func part(_ count: UInt64) -> Double { samples == 0 ? 0 : Double(count) / Double(samples) }
}
