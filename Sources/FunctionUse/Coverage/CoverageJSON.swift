// The account for programs (docs/schemas/coverage.json).
import Presentation

extension Coverage {
    package func json() -> JSON {
        .object([
            ("schema", .unsigned(1)), ("traces", .array(traces.map { .string($0) })),
            ("modules", .array(modules.map { Self.json($0) })),
            ("files", .array(files.map { Self.json($0) })), ("scopes", .array(scopes.map { Self.json($0) })),
            (
                "unknown",
                .array(
                    unknown.map {
                        .object([
                            ("module", .string($0.module)), ("reason", .string($0.reason.text)),
                            ("functions", .unsigned(UInt64($0.functions))),
                        ])
                    })
            ),
            ("functions", .array(modules.flatMap { $0.functions.map { Self.json($0) } })),
        ])
    }

    private static func json(_ module: CoveredModule) -> JSON {
        .object(
            [
                ("name", .string(module.name)), ("path", .string(module.identity.path)),
                ("build_id", module.identity.buildID.isEmpty ? .null : .string(hexadecimal(module.identity.buildID))),
                ("recorded", .string(module.recording == .functions ? "functions" : "slots")),
            ] + members(module.sums))
    }

    private static func json(_ group: Group) -> JSON {
        .object([("name", .string(group.name)), ("module", .string(group.module))] + members(group.sums))
    }

    private static func members(_ sums: CoverageSums) -> [(String, JSON)] {
        [
            ("called", .unsigned(UInt64(sums.called))), ("called_bytes", .unsigned(sums.calledBytes)),
            ("never_called", .unsigned(UInt64(sums.neverCalled))), ("never_called_bytes", .unsigned(sums.neverCalledBytes)),
            ("only_from_uncalled", .unsigned(UInt64(sums.onlyFromUncalled))),
            ("only_from_uncalled_bytes", .unsigned(sums.onlyFromUncalledBytes)),
            ("unknown", .unsigned(UInt64(sums.unknown))), ("unknown_bytes", .unsigned(sums.unknownBytes)),
        ]
    }

    private static func json(_ function: CoveredFunction) -> JSON {
        let isKnown = function.calls > 0 || function.reason == nil
        return .object([
            ("name", .string(function.name)), ("symbols", .array(function.symbols.map { .string($0) })),
            ("module", .string(function.module)), ("file", function.source.map { .string($0.path) } ?? .null),
            ("line", function.source.map { .unsigned(UInt64($0.line)) } ?? .null),
            ("scope", function.scope.isEmpty ? .null : .string(function.scope)), ("size", .unsigned(function.byteCount)),
            ("calls", isKnown ? .unsigned(function.calls) : .null), ("at_least", .bool(function.isLeast)),
            ("only_from_uncalled", function.isOnlyFromUncalled.map { .bool($0) } ?? .null),
            ("reason", function.calls == 0 ? function.reason.map { .string($0.text) } ?? .null : .null),
        ])
    }
}
