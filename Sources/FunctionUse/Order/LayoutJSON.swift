// An order for programs (docs/schemas/order.json).
import Presentation
import TraceAnalysis

extension LayoutOrder {
    package func json() -> JSON {
        let pages = Pages(start)
        return .object([
            ("schema", .unsigned(1)), ("module", .string(module.name)), ("path", .string(module.path)),
            ("build_id", module.identity.buildID.isEmpty ? .null : .string(hexadecimal(module.identity.buildID))),
            ("traces", .unsigned(UInt64(traceCount))),
            (
                "readiness",
                .array(readiness.map { .object([("text", .string($0.text)), ("traces", .unsigned(UInt64($0.traces)))]) })
            ),
            // Sizes are in the file alone.
            ("pages", pages.now == 0 ? .null : .unsigned(UInt64(pages.now))),
            ("pages_together", pages.now == 0 ? .null : .unsigned(UInt64(pages.together))),
            ("start", .array(start.map { Self.json($0) })), ("later", .array(later.map { Self.json($0) })),
            ("never_called", uncalledCount.map { .unsigned(UInt64($0)) } ?? .null),
            (
                "doubts",
                .array(
                    doubts.kinds.map {
                        .object([("reason", .string($0.text)), ("addresses", .array($0.functions.map { .unsigned($0.address) }))])
                    })
            ),
            ("has_debug_information", .bool(!doubts.isWithoutSections)),
            (
                "other_modules",
                .array(doubts.others.map { .object([("module", .string($0.module)), ("functions", .unsigned(UInt64($0.functions)))]) })
            ),
        ])
    }

    private static func json(_ function: LaidFunction) -> JSON {
        .object([
            ("name", .string(function.name)), ("symbols", .array(function.symbols.map { .string($0) })),
            ("address", .unsigned(function.address)),
            ("size", function.byteCount == 0 ? .null : .unsigned(function.byteCount)),
        ])
    }
}
