// What `tracer coverage --json` prints, and the rows of its tables.
import ELF
import Presentation

extension Coverage: Record {
    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("traces", \.traces)
        Member("modules", \.modules)
        Member(
            "files",
            "source files with functions that were never called, the most bytes of these first; of modules whose functions are recorded",
            \.files)
        Member("scopes", "classes and namespaces, in the same way", \.scopes)
        Member("unknown", "functions for which it is not known whether they were called, by reason", \.unknown)
        Member("functions") { coverage in coverage.modules.flatMap { $0.functions.map { CoverageRow(function: $0) } } }
    }
}

extension CoveredModule: Record {
    package static let members = declare {
        Member("name", "file name; with the build-id where there are several versions", \.name).column("module", .text) { $0.name }
        Member("path", \.identity.path)
        Member("build_id", "hexadecimal; null: it has none") { $0.identity.buildID.isEmpty ? nil : hexadecimal($0.identity.buildID) }
        Member("recorded", "slots: only calls through slots, so that the called functions are those that a slot led to", \.recording)
        CoverageSums.members { $0.sums }
        Member.shown("never_through_slots", "never through a slot") { grouped($0.sums.neverCalled) }
    }
}

extension Coverage.Group: Record {
    package static let members = declare {
        Member("name", \.name).column("file", .text) { $0.name }
        Member.shown("scope", "class or namespace", .text) { $0.name }
        Member("module", \.module)
        CoverageSums.members { $0.sums }
    }
}

extension CoverageSums {
    /// Members of any record that has some.
    fileprivate static func members<Row: Record>(_ sums: @escaping @Sendable (Row) -> CoverageSums) -> [Member<Row>] {
        Row.declare {
            Member("called") { sums($0).called }.column("called") { grouped(sums($0).called) }
            Member("called_bytes") { sums($0).calledBytes }
            Member("never_called") { sums($0).neverCalled }.column("never called") { grouped(sums($0).neverCalled) }
            Member("never_called_bytes") { sums($0).neverCalledBytes }.column("bytes") { grouped(sums($0).neverCalledBytes) }
            Member.shown("share", "share") { sums($0).neverCalledShare.map { percent($0) } ?? "-" }
            Member("only_from_uncalled", "those of never_called that nothing leads to but functions that were never called") {
                sums($0).onlyFromUncalled
            }.column("only from these") { grouped(sums($0).onlyFromUncalled) }
            Member("only_from_uncalled_bytes") { sums($0).onlyFromUncalledBytes }
                .column("bytes") { grouped(sums($0).onlyFromUncalledBytes) }
            Member("unknown") { sums($0).unknown }.column("unknown") { grouped(sums($0).unknown) }
            Member("unknown_bytes") { sums($0).unknownBytes }
        }
    }
}

extension Coverage.Unknown: Record {
    package static let members = declare {
        Member("module", \.module)
        Member("reason", \.reason.text)
        Member("functions", \.functions)
    }
}

/// A function of a module.
struct CoverageRow {
    var function: CoveredFunction
    /// How names are spelt in tables.
    var short: (String) -> String = { $0 }

    /// nil: it is not known.
    fileprivate var calls: UInt64? { function.calls > 0 || function.reason == nil ? function.calls : nil }
}

extension CoverageRow: Record {
    static let members = declare {
        Member("name", "demangled; an address where it has none", \.function.name).column("function", .name) { $0.short($0.function.name) }
        Member("symbols", "all of its names as in the file; empty: it has none", \.function.symbols)
        Member("module", "name of one of the modules", \.function.module).column("module", .text) { $0.function.module }
        Member("file", "null: no debug information", \.function.source?.path)
        Member("line", "where it begins", \.function.source?.line).column("line", .text) { row in
            row.function.source.map { "\($0.fileName):\($0.line)" } ?? ""
        }
        Member("scope", "class or namespace; null: it belongs to none") { $0.function.scope.isEmpty ? nil : $0.function.scope }
        Member("size", "in bytes", \.function.byteCount).column("bytes") { grouped($0.function.byteCount) }
        Member("calls", "0: it was never called; null: it is not known whether it was", \.calls).column("calls") { row in
            row.calls.map { (row.function.isLeast ? "≥" : "") + grouped($0) } ?? "?"
        }
        Member(
            "at_least",
            "there were more calls than are recorded, or there may have been; always true in a module recorded only through slots",
            \.function.isLeast)
        Member(
            "only_from_uncalled",
            "nothing leads to it but functions that were never called; null where it was called, or where that is not known",
            \.function.isOnlyFromUncalled)
        Member("reason", "why it is not known whether it was called") { $0.calls == nil ? $0.function.reason?.text : nil }
    }
}
