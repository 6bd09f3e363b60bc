// What `tracer libs` prints: text and JSON.
import Presentation

extension LibraryReport {
    /// - Parameter width: columns of the terminal; nil: lines may be of any length
    package func table(width: Int? = nil, style: TextStyle) -> String {
        let relocations = libraries.reduce(UInt64(0)) { $0 &+ $1.relocations }, lookups = libraries.reduce(UInt64(0)) { $0 &+ $1.lookups }
        var lines = [
            style.bold(
                "\(program): \(libraries.count == 1 ? "1 library" : "\(libraries.count) libraries"), "
                    + "\(grouped(relocations)) relocations, \(grouped(lookups)) symbol look-ups"), "",
        ]
        let columns = ["mapped_bytes", "relocations", "lookups", "constructors", "calls", "name", "needed_by"]
        lines += TextTable(libraries, StartupLibrary.columns(columns)).lines(style, width: width)
        let unused = unusedLines(), forOthers = forOthersLines()
        if !unused.isEmpty {
            let how = forOthers.isEmpty ? " (link with -Wl,--as-needed)" : ""
            let found = nameLookups > 0 ? "; \(counted(nameLookups, "call")) of dlsym may have found what they have" : how
            lines += ["", style.bold("Linked but not used: nothing is bound to them\(found)")] + unused
        }
        if !forOthers.isEmpty {
            lines += ["", style.bold("Linked for others, which do not name them: keep them (lld's and gold's -Wl,--as-needed omits them)")]
            lines += forOthers
        }
        if !few.isEmpty {
            lines += ["", style.bold("Little used, with all of their functions that were called")]
            for library in few {
                let functions = library.functions.map { "\($0.name) (\(counted($0.calls, "call")))" }.joined(separator: ", ")
                lines.append("  \(library.library): \(functions)")
            }
        }
        if !duplicates.isEmpty {
            lines += ["", style.bold("Defined twice: the loader binds to the first, also what was linked with the second")]
            for pair in duplicates {
                let names = pair.symbols.prefix(3).map { demangled($0) }.joined(separator: ", ")
                lines.append(
                    "  \(pair.taken) before \(pair.passedOver): \(counted(UInt64(pair.symbols.count), "symbol")) (\(names)"
                        + (pair.symbols.count > 3 ? ", …" : "") + "), used by \(pair.users.joined(separator: ", "))")
            }
        }
        if !unread.isEmpty {
            lines += ["", style.dim("not read, because the file is missing or has changed: " + listed(unread, most: 8))]
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private func unusedLines() -> [String] {
        var lines = unusedByProgram.map { "  \($0), by \(program)" }
        for library in libraries { lines += library.unusedNeeds.map { "  \($0), by \(library.name)" } }
        return lines
    }

    private func forOthersLines() -> [String] {
        ([(program, programNeedsForOthers)] + libraries.map { ($0.name, $0.needsForOthers) }).flatMap { name, needs in
            needs.filter { !$0.dependents.isEmpty }.map { "  \($0.library), by \(name) for \($0.dependents.joined(separator: ", "))" }
        }
    }
}

// MARK: - JSON

extension LibraryReport: Record {
    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("program", \.program)
        Member("libraries", \.libraries)
        Member("unused_by_program", "needed libraries to which nothing is bound", \.unusedByProgram)
        Member("name_lookups", "calls of dlsym, which may have found what libraries have to which nothing is bound", \.nameLookups)
        Member("program_needs_for_others", "needed libraries of which the program uses nothing, and others do", \.programNeedsForOthers)
        Member("few", "libraries of which three functions or fewer were called, as far as calls were recorded", \.few)
        Member("duplicates", "functions that two libraries have", \.duplicates)
        Member("unread", "files that are missing or have changed", \.unread)
    }
}

extension LibraryReport.FewFunctions: Record {
    package static let members = declare {
        Member("library", \.library)
        Member("functions", "the most called first", \.functions)
    }
}

extension LibraryReport.FewFunctions.Called: Record {
    package static let members = declare {
        Member("name", \.name)
        Member("calls", \.calls)
    }
}

extension LibraryReport.Duplicates: Record {
    package static let members = declare {
        Member("taken", "the library whose definitions are used", \.taken)
        Member("passed_over", \.passedOver)
        Member("users", \.users)
        Member("symbols", \.symbols)
    }
}
