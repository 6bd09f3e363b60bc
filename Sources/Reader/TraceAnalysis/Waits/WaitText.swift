// `tracer waits` for people: the longest waits, each with who held and who woke, and the locks.
import Presentation
import TraceFormat

extension WaitReport {
    /// - Parameters:
    ///   - limit: of waits and of locks; 0 all
    ///   - deepest: frames of each stack, 0 all
    package func lines(
        limit: Int, deepest: Int = usualFrames, width: Int?, names nameStyle: NameStyle, style: TextStyle
    ) -> [String] {
        let short = ShortNames(processes.flatMap { $0.names }, nameStyle)
        var lines = [style.bold(headline)]
        for text in missing { lines.append(style.alarm("no context switches: \(text); a wait is the length of a call of 10 us or more")) }
        for text in WaitSearch.notes(processes) { lines.append(style.alarm(text)) }
        lines += idleLines(width)
        if let text = switchText { lines += wrapped(text, width: width, indentation: 6) }
        if busy.isEmpty { return lines + ["no waits"] + pageLines(limit, width, style) + minorLines(limit, width, style) }
        lines += kindLines(width, style) + placeLines(limit, width, style) { short[$0] } + lockLines(limit, width, style) { short[$0] }
        return lines + waitLines(limit, deepest, width, style) { short[$0] } + pageLines(limit, width, style)
            + minorLines(limit, width, style)
    }

    /// Frames of a stack that are shown unless others are asked for: those of libc, and some of the program.
    package static let usualFrames = 8

    /// What idle threads waited in, in a line.
    private func idleLines(_ width: Int?) -> [String] {
        guard !idle.isEmpty else { return [] }
        struct Call {
            var name: String
            var threads: Set<[Int]> = []
            var titles: [String] = []
            var duration: UInt64 = 0
        }
        var calls: [Call] = []
        for totals in idle {
            let explanation = explanations[totals.process], name = explanation.call(of: totals.call, totals.systemCall)
            let index = calls.firstIndex { $0.name == name } ?? calls.count
            if index == calls.count { calls.append(Call(name: name)) }
            if calls[index].threads.insert([totals.process, totals.thread]).inserted {
                calls[index].titles.append(explanation.search.threads[totals.thread].title)
            }
            calls[index].duration &+= totals.duration.count
        }
        let texts = calls.sorted { $0.duration > $1.duration }.map { call in
            "\(listed(call.titles, most: 3)) \(readable(Nanoseconds(call.duration))) in \(call.name)"
        }
        return wrapped("idle: " + texts.joined(separator: "; "), width: width, indentation: 6)
    }

    private func kindLines(_ width: Int?, _ style: TextStyle) -> [String] {
        let columns = KindRow.columns(["duration_ns", "waits", "p50_ns", "p99_ns", "longest_ns", "kind"])
        return [""] + TextTable(kinds.map { KindRow(kind: $0.kind, lengths: $0.lengths) }, columns).lines(style, width: width)
    }

    /// None where no place has two waits: the list of waits says as much.
    private func placeLines(_ limit: Int, _ width: Int?, _ style: TextStyle, _ spelt: @escaping (String) -> String) -> [String] {
        let all = placeRows(limit: 0, spelt)
        guard all.contains(where: { $0.place.lengths.count > 1 }) else { return [] }
        let shown = limit == 0 ? all[...] : all.prefix(limit)
        let columns = PlaceRow.columns(["duration_ns", "waits", "p50_ns", "p99_ns", "kind", "what"])
        let lines = [""] + TextTable(Array(shown), columns).lines(style, width: width)
        return lines + (shown.count < all.count ? [style.dim("    and \(counted(all.count - shown.count, "place")) more")] : [])
    }

    private func waitLines(_ limit: Int, _ deepest: Int, _ width: Int?, _ style: TextStyle, _ spelt: @escaping (String) -> String)
        -> [String]
    {
        let shown = waitRows(busy, limit: limit, spelt)
        var columns = WaitRow.columns(["duration_ns", "start_ns", "thread", "kind", "what"])
        if !missing.isEmpty { columns[0].title = "took" }
        let lines = table(shown, columns, width, style) { row in
            let details = row.explanation.details(row.index, spelt).joined(separator: "; ")
            return [details, row.explanation.stackText(row.index, deepest: deepest, spelt) ?? ""]
        }
        return lines + (shown.count < busy.count ? [style.dim("    and \(counted(busy.count - shown.count, "shorter one"))")] : [])
    }

    private func pageLines(_ limit: Int, _ width: Int?, _ style: TextStyle) -> [String] {
        let all = pages.enumerated().flatMap { PageTotals.all($1, process: $0) }
        guard !all.isEmpty else { return [] }
        var columns = PageTotalsRow.columns(["waited", "faults", "stage", "file", "symbols"])
        columns[1].title = "major faults"
        columns[3].kind = .text // only the symbols are cut in the middle
        return [""] + TextTable(rows(all, limit: limit), columns).lines(style, width: width)
    }

    private func minorLines(_ limit: Int, _ width: Int?, _ style: TextStyle) -> [String] {
        guard !minorFaults.isEmpty else { return [] }
        let columns = PageTotalsRow.columns(["faults", "stage", "file"])
        return [""] + TextTable(rows(minorFaults, limit: limit), columns).lines(style, width: width)
    }

    private var headline: String {
        let name = WaitSearch.title(processes)
        let all = kinds.reduce(UInt64(0)) { $0 &+ $1.lengths.duration.count }
        return "\(name): \(counted(busy.count, "wait")), \(readable(Nanoseconds(all)))" + (window.map { ", \($0.text)" } ?? "")
    }

    private func lockLines(_ limit: Int, _ width: Int?, _ style: TextStyle, _ spelt: @escaping (String) -> String) -> [String] {
        guard !locks.isEmpty else { return [] }
        let shown = lockRows(limit: limit, spelt)
        let columns = LockRow.columns(["duration_ns", "waits", "longest_ns", "most_at_once", "object", "waited_in", "held_in"])
        return table(shown, columns, width, style) { lock in
            guard let convoy = lock.convoy else { return [] }
            return ["convoy: \(convoy.waits) waits of \(convoy.threads) threads, one after the other for " + readable(convoy.duration)]
        }
    }

    /// - Parameter below: texts of lines below a row's; an empty one has none
    private func table<Row>(
        _ rows: [Row], _ columns: [Column<Row>], _ width: Int?, _ style: TextStyle, below: (Row) -> [String]
    ) -> [String] {
        let table = TextTable(rows, columns).lines(style, width: width)
        return ["", table[0]]
            + zip(table.dropFirst(), rows).flatMap { line, row -> [String] in
                [line]
                    + below(row).filter { !$0.isEmpty }.flatMap { wrapped("    " + $0, width: width, indentation: 6).map { style.dim($0) } }
            }
    }
}
