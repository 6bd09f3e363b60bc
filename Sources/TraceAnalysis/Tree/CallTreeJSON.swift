// The tree for other programs: functions once, nodes in preorder, each with the number of its parent.
import Presentation

extension CallTree: Record {
    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("processes", \.processes)
        Member("roots", "a thread each, or several that were merged", \.roots)
        Member("functions", \.functions)
        Member("nodes", "in preorder: a parent stands before its children", \.nodes)
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
        Member("name", "demangled; \"(own code)\" is what a thread runs while no recorded call is open", \.name)
        Member("symbol", \.symbol)
        Member("module", \.module)
    }
}

extension CallTree.Node: Record {
    package static let members = declare {
        Member("parent", "index in nodes; -1 of a root") { Int64($0.parent) }
        Member("function", "index in functions; -1 of a root") { Int64($0.function) }
        Member("calls", \.calls)
        Member("total_ns", "from entry to exit, of a root all below it", \.total)
        Member("self_ns", \.selfTime)
        Member("min_ns", \.minimum)
        Member("max_ns", \.maximum)
        Member("open", "calls still running at the end", \.open)
        Member("unwound", "calls left without returning", \.unwound)
        Member("cut", "calls whose end the file does not have", \.cut)
        Member("migrated", "calls that began on another thread", \.migrated)
        Member("part", "calls of which only a part lies in the window", \.part)
        Member("total_cost_ns", "what of total_ns recording took, by the agent's own measurement", \.totalCost)
        Member("self_cost_ns", \.selfCost)
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
        Member("callers", "upside down: the function, below it its callers", .file("tree.json"), \.callers.json)
        Member("calls", "the function, below it what it calls", .file("tree.json"), \.calls.json)
    }
}
