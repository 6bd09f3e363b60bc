// The tree for other programs: functions once, nodes in preorder, each with the number of its parent.
import Presentation

extension CallTree: Record {
    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("time", timeMeaning) { ($0.time ?? .wall).rawValue }
        Member("processes", \.processes)
        Member("roots", "a thread each, or several that were merged", \.roots)
        Member("functions", \.functions)
        Member("nodes", "in preorder: a parent stands before its children", \.nodeRows)
    }

    /// A node of the first level, or a root.
    func isFirst(_ node: Int) -> Bool { nodes[node].parent < 0 || nodes[nodes[node].parent].parent < 0 }

    private var nodeRows: [NodeRow] {
        var rows: [NodeRow] = [], whole: UInt64 = 0, subject = -1
        rows.reserveCapacity(nodes.count)
        for (index, node) in nodes.enumerated() {
            if node.parent < 0 { whole = node.total }
            if !isInverted || isFirst(index) { subject = node.function }
            rows.append(
                NodeRow(
                    node: node, states: time == nil ? nil : node.states, whole: whole, isSuppressed: suppressed.contains(subject),
                    isCounted: onlyCounted.contains(subject),
                    holdsSuppressed: holders.contains(subject)))
        }
        return rows
    }
}

extension CallTree.Process: Record {
    package static let members = declare {
        Member("pid", \.pid)
        Member("program", \.program)
        Member("file", \.path)
        Member("duration_ns", \.duration)
        Member("window", windowMeaning, \.reportedWindow)
    }
}

extension CallTree.Root: Record {
    package static let members = declare {
        Member("node", "its index in nodes", \.node)
        Member("process", "index in processes; null when several were merged", \.process)
        Member("tid", "null when several were merged", \.tid)
        Member("name", \.name)
        Member("threads", "how many it stands for", \.threadCount)
        Member("calls", \.calls)
        Member("dropped", \.dropped)
        Member("missing_chunks", "that a ring overwrote, or a damaged file lacks", \.missingChunks)
    }
}

extension CallTree.Function: Record {
    package static let members = declare {
        Member(
            "name",
            "demangled; \"(own code)\" is what a thread runs while no recorded call is open; \"(not recorded)\" among callers is other code that is not recorded",
            \.name)
        Member("symbol", \.symbol)
        Member("module", \.module)
        Member.optional("arguments", "with --show-arguments: those of all its calls here; missing where they are not known") {
            $0.arguments
        }
    }
}

/// A node, with its share of its thread.
private struct NodeRow: Record {
    var node: CallTree.Node
    var states: SplitTimes?
    /// Total of the root, in nanoseconds.
    var whole: UInt64
    var isSuppressed: Bool, isCounted: Bool, holdsSuppressed: Bool

    static let members = declare {
        Member("parent", "index in nodes; -1 of a root") { Int64($0.node.parent) }
        Member("function", "index in functions; -1 of a root") { Int64($0.node.function) }
        Member("calls", \.node.calls)
        Member("total_ns", "from entry to exit, of a root all below it", \.node.total)
        Member("share", "total_ns as a part of its root's, 0 to 1; null of nothing") {
            $0.whole > 0 ? Double($0.node.total) / Double($0.whole) : nil
        }
        Member("self_ns", \.node.selfTime)
        SplitTimes.members { $0.states }
        Member("min_ns", \.node.minimum)
        Member("max_ns", \.node.maximum)
        Member("open", "calls still running at the end", \.node.open)
        Member("unwound", "calls left without returning", \.node.unwound)
        Member("cut", "calls whose end the file does not have", \.node.cut)
        Member("migrated", "calls that began on another thread", \.node.migrated)
        Member("part", "calls of which only a part lies in the window", \.node.part)
        Member("total_cost_ns", "what of total_ns recording took, by the agent's own measurement", \.node.totalCost)
        Member("self_cost_ns", \.node.selfCost)
        Member.optional("calls_estimated", "true: some are counted and not recorded, and which path they came is an estimate") {
            $0.isCounted ? true : nil
        }
        Member.optional("left_out", leftOutMeaning) { $0.isSuppressed ? true : nil }
        Member.optional("self_holds_left_out", heldMeaning) { $0.holdsSuppressed ? true : nil }
    }
}

/// What `tracer callers --json` prints.
package struct CallersOutput: Record {
    var callers, calls: CallTree

    package init(callers: CallTree, calls: CallTree) {
        self.callers = callers
        self.calls = calls
    }

    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member(
            "callers",
            "upside down: the function, below it its callers; a call within another one that came the same way is part of that one's total_ns",
            .file("tree.json"), \.callers.json)
        Member("calls", "the function, below it what it calls", .file("tree.json"), \.calls.json)
    }
}
