// An order in the words of a linker.

package enum OrderFormat: String, CaseIterable, Sendable {
    case lld, gold, mold, section
    case bfdScript = "ld.bfd-script"

    /// How the linker gets it.
    package func usage(_ path: String) -> String {
        switch self {
        case .lld: "-fuse-ld=lld -Wl,--symbol-ordering-file=\(path)"
        case .gold: "-fuse-ld=gold -Wl,--section-ordering-file=\(path)"
        case .mold:
            "ld.bfd -r --force-group-allocation -T \(path) -o ordered.o OBJECTS, and link ordered.o with -fuse-ld=mold, which cannot order functions itself"
        case .section: "section names, in order"
        case .bfdScript: "-fuse-ld=bfd -Wl,-T,\(path)"
        }
    }
}

package enum OrderFile {
    package static func text(_ order: LayoutOrder, _ format: OrderFormat) -> String {
        text((order.start + order.later).map { $0.symbols }, format)
    }

    /// - Parameter functions: all names of each
    package static func text(_ functions: [[String]], _ format: OrderFormat) -> String {
        let functions = functions.filter { $0.first.map { !LayoutDoubts.startFileNames.contains($0) } ?? false }
        var known: Set<String> = []
        let symbols = functions.flatMap { $0 }.filter { known.insert($0).inserted }
        switch format {
        case .lld: return lines(symbols)
        case .gold, .section: return lines(symbols.flatMap { sections(of: $0) })
        case .bfdScript:
            // A section of its own, since an output section cannot be added to from outside its script.
            return "SECTIONS\n{\n  .text.ordered :\n  {\n" + lines(symbols.flatMap { sections(of: $0) }.map { "    *(\(quoted($0)))" })
                + "  }\n}\nINSERT BEFORE .text;\n"
        case .mold:
            // Each section stays one, in this order: mold lays those of an object as they stand in it.
            return "SECTIONS\n{\n" + lines(symbols.flatMap { sections(of: $0) }.map { "  \(quoted($0)) 0 : { *(\(quoted($0))) }" }) + "}\n"
        }
    }

    /// Returns the sections that a compiler may put a function in: gcc has extra ones for hot, unlikely and start-up functions.
    static func sections(of symbol: String) -> [String] { ["", "hot.", "startup.", "unlikely."].map { ".text.\($0)\(symbol)" } }

    private static func lines(_ lines: [String]) -> String { lines.map { $0 + "\n" }.joined() }

    /// In a script: what is no part of a word there.
    private static func quoted(_ section: String) -> String {
        section.utf8.allSatisfy {
            $0 == 0x24 || $0 == 0x2e || $0 == 0x5f || $0 >= 0x30 && $0 <= 0x39 || $0 | 0x20 >= 0x61 && $0 | 0x20 <= 0x7a
        }
            ? section : "\"\(section)\""
    }
}
