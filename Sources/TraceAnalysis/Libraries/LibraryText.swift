// The libraries as a table, and as the JSON object of `tracer libs --json`.
import Presentation

extension LibraryReport {
    package func table(style: TextStyle) -> String {
        var table = TextTable(["mapped", "relocations", "look-ups", "constructors", "calls", "library", "needed by"], leftAligned: [5, 6])
        for library in libraries {
            var needers = library.neededBy.prefix(3).joined(separator: ", ")
            if library.neededBy.count > 3 { needers += " and \(library.neededBy.count - 3) more" }
            if library.load != nil { needers = needers.isEmpty ? "opened by the program" : needers + " (opened by the program)" }
            table.add([
                readable(byteCount: library.mappedBytes), grouped(library.relocations), grouped(library.lookups),
                library.constructorCount == 0 ? "-" : "\(library.constructorCount): \(readable(library.constructorTime))",
                grouped(library.calls), library.name, needers.isEmpty ? "preloaded" : needers,
            ])
        }
        let relocations = libraries.reduce(UInt64(0)) { $0 &+ $1.relocations }, lookups = libraries.reduce(UInt64(0)) { $0 &+ $1.lookups }
        var lines = [
            style.bold(
                "\(program): \(libraries.count == 1 ? "1 library" : "\(libraries.count) libraries"), "
                    + "\(grouped(relocations)) relocations, \(grouped(lookups)) symbol look-ups"), "",
        ]
        lines += table.lines(style)
        let unused = unusedLines()
        if !unused.isEmpty {
            lines += ["", style.bold("Linked but not used: nothing is bound to them (link with -Wl,--as-needed)")] + unused
        }
        if !few.isEmpty {
            lines += ["", style.bold("Little used, with all of their functions that were called")]
            for library in few {
                let functions = library.functions.map { "\($0.name) (\(counted($0.calls, "call")))" }.joined(separator: ", ")
                lines.append("  \(library.library): \(functions)")
            }
        }
        if !duplicates.isEmpty {
            lines += ["", style.bold("Defined twice: all code uses the first, even code linked with the second")]
            for pair in duplicates {
                let names = pair.symbols.prefix(3).map { demangled($0) }.joined(separator: ", ")
                lines.append(
                    "  \(pair.taken) before \(pair.passedOver): \(counted(UInt64(pair.symbols.count), "symbol")) (\(names)"
                        + (pair.symbols.count > 3 ? ", …" : "") + "), used by \(pair.users.joined(separator: ", "))")
            }
        }
        if !unread.isEmpty {
            lines += [
                "",
                style.dim(
                    "not read, because the file is missing or has changed: " + unread.prefix(8).joined(separator: ", ")
                        + (unread.count > 8 ? " and \(unread.count - 8) more" : "")),
            ]
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private func unusedLines() -> [String] {
        var lines = unusedByProgram.map { "  \($0), by \(program)" }
        for library in libraries { lines += library.unusedNeeds.map { "  \($0), by \(library.name)" } }
        return lines
    }

    package func json() -> JSON {
        .object([
            ("schema", .unsigned(1)), ("program", .string(program)),
            ("libraries", .array(libraries.map { StartupTimeline.json($0) })),
            ("unused_by_program", .array(unusedByProgram.map { .string($0) })),
            (
                "few",
                .array(
                    few.map { library in
                        .object([
                            ("library", .string(library.library)),
                            (
                                "functions",
                                .array(library.functions.map { .object([("name", .string($0.name)), ("calls", .unsigned($0.calls))]) })
                            ),
                        ])
                    })
            ),
            (
                "duplicates",
                .array(
                    duplicates.map { pair in
                        .object([
                            ("taken", .string(pair.taken)), ("passed_over", .string(pair.passedOver)),
                            ("users", .array(pair.users.map { .string($0) })), ("symbols", .array(pair.symbols.map { .string($0) })),
                        ])
                    })
            ),
            ("unread", .array(unread.map { .string($0) })),
        ])
    }
}
