// The tree for other programs: functions once, nodes in preorder, each with the number of its parent.
import Presentation

extension CallTree {
    package func json() -> JSON {
        .object([
            ("schema", .unsigned(1)),
            (
                "processes",
                .array(
                    processes.map {
                        .object([
                            ("pid", .unsigned(UInt64($0.pid))), ("program", .string($0.program)), ("file", .string($0.path)),
                            ("duration_ns", .unsigned($0.duration.count)), ("window", $0.windowJSON),
                        ])
                    })
            ),
            (
                "roots",
                .array(
                    roots.map {
                        .object([
                            ("node", .unsigned(UInt64($0.node))), ("process", $0.process.map { .unsigned(UInt64($0)) } ?? .null),
                            ("tid", $0.tid.map { .unsigned(UInt64($0)) } ?? .null), ("name", .string($0.name)),
                            ("threads", .unsigned(UInt64($0.threadCount))), ("calls", .unsigned($0.calls)),
                            ("dropped", .unsigned($0.dropped)), ("missing_chunks", .unsigned($0.missingChunks)),
                        ])
                    })
            ),
            (
                "functions",
                .array(
                    functions.map {
                        .object([("name", .string($0.name)), ("symbol", .string($0.symbol)), ("module", .string($0.module))])
                    })
            ),
            (
                "nodes",
                .array(
                    nodes.map { node in
                        .object([
                            ("parent", .signed(Int64(node.parent))), ("function", .signed(Int64(node.function))),
                            ("calls", .unsigned(node.calls)), ("total_ns", .unsigned(node.total)), ("self_ns", .signed(node.selfTime)),
                            ("min_ns", node.minimum.map { .unsigned($0) } ?? .null),
                            ("max_ns", node.maximum.map { .unsigned($0) } ?? .null),
                            ("open", .unsigned(node.open)), ("unwound", .unsigned(node.unwound)), ("cut", .unsigned(node.cut)),
                            ("migrated", .unsigned(node.migrated)), ("part", .unsigned(node.part)),
                            ("total_cost_ns", .unsigned(node.totalCost)),
                            ("self_cost_ns", .unsigned(node.selfCost)),
                        ])
                    })
            ),
        ])
    }
}
