// An order for people: what it consists of, and which functions a linker may not find.
import Presentation
import TraceAnalysis

extension LayoutOrder {
    package func lines(names: NameStyle, style: TextStyle) -> [String] {
        let all = start + later, short = ShortNames(all.map { $0.name }, names)
        func bytes(_ functions: [LaidFunction]) -> String { readable(byteCount: functions.reduce(0) { $0 &+ $1.byteCount }) }
        var lines = [
            style.bold("\(module.name): \(counted(all.count, "function")), \(bytes(all)), from \(counted(traceCount, "trace"))"),
            "  \(grouped(start.count)) called during start-up, \(bytes(start)): "
                + readiness.map { $0.text + (readiness.count > 1 ? " in \(counted($0.traces, "trace"))" : "") }.joined(separator: ", "),
            "  \(grouped(later.count)) called later, \(bytes(later))",
        ]
        let pages = Pages(start)
        if pages.now > 0 {
            lines.insert("    on \(counted(pages.now, "page")) of text now, ~\(grouped(pages.together)) if placed together", at: 2)
        }
        if let uncalledCount { lines.append("  \(grouped(uncalledCount)) never called, left to the linker") }
        if !doubts.kinds.isEmpty || doubts.isWithoutSections {
            lines += ["", style.bold("Functions that the linker may not find, or not place alone")]
        }
        for kind in doubts.kinds {
            let examples = kind.functions.prefix(3).map { shortened(short[$0.name], 40) }.joined(separator: ", ")
            lines.append(
                "\(leftFilled(grouped(kind.functions.count), 9))  \(kind.text): \(examples)\(kind.functions.count > 3 ? ", …" : "")")
        }
        if doubts.isWithoutSections {
            lines.append("           It is not known whether each has its own section: there is no debug information (-g)")
        }
        if !doubts.others.isEmpty {
            let count = doubts.others.reduce(0) { $0 + $1.functions }
            let modules = doubts.others.prefix(3).map { "\($0.module) \(grouped($0.functions))" }.joined(separator: ", ")
            lines += [
                "",
                "\(counted(count, "function")) of other modules were also called (\(modules)\(doubts.others.count > 3 ? ", …" : "")): --module makes their order",
            ]
        }
        return lines
    }
}
