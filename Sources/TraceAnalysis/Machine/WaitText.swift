// `tracer waits` for people: the longest waits, each with who held and who woke, and the locks.
import Presentation
import TraceFormat

extension WaitReport {
    /// - Parameter limit: of waits and of locks; 0 all
    package func lines(limit: Int, width: Int?, names nameStyle: NameStyle, style: TextStyle) -> [String] {
        let shown = limit == 0 ? order[...] : order.prefix(limit)
        let short = ShortNames(processes.flatMap { $0.names }, nameStyle)
        var lines = [style.bold(headline)]
        for text in missing { lines.append(style.alarm("no context switches: \(text); a wait is the length of a call of 10 us or more")) }
        for text in WaitSearch.notes(processes) { lines.append(style.alarm(text)) }
        if order.isEmpty { return lines + ["no waits"] + pageLines(limit, width, style) + minorLines(limit, width, style) }
        var table = TextTable(
            [missing.isEmpty ? "off-CPU" : "took", "at", "thread", "kind", "waiting in"], leftAligned: [2, 3, 4], names: [4])
        for (process, index) in shown {
            let search = processes[process], wait = search.waits[index]
            table.add([
                column(readable(length(wait.duration, process))), column(readable(signed: time(wait.begin, process))),
                search.threads[wait.thread].title, wait.kind.rawValue, explanations[process].what(wait) { short[$0] },
            ])
        }
        let rows = table.lines(style, width: width)
        lines += ["", rows[0]]
        for (row, one) in zip(rows.dropFirst(), shown) {
            lines.append(row)
            let details = explanations[one.process].details(one.wait) { short[$0] }
            if !details.isEmpty { lines.append(style.dim("    " + details.joined(separator: "; "))) }
        }
        if shown.count < order.count { lines.append(style.dim("    and \(counted(order.count - shown.count, "shorter one"))")) }
        return lines + lockLines(limit, width, style) { short[$0] } + pageLines(limit, width, style) + minorLines(limit, width, style)
    }

    private func pageLines(_ limit: Int, _ width: Int?, _ style: TextStyle) -> [String] {
        let all = pages.enumerated().flatMap { PageTotals.all($1, process: $0) }
        guard !all.isEmpty else { return [] }
        var table = TextTable(["waited", "major faults", "stage", "file", "places"], leftAligned: [2, 3, 4], names: [4])
        let shown = limit == 0 ? all[...] : all.prefix(limit)
        for one in shown {
            let places = one.places.prefix(3).joined(separator: ", ") + (one.places.count > 3 ? " and \(one.places.count - 3) more" : "")
            table.add([
                one.duration == 0 ? "-" : column(readable(length(one.duration, one.process))), grouped(one.count), one.stage ?? "-",
                one.path.isEmpty ? "-" : one.path, places.isEmpty ? "-" : places,
            ])
        }
        return [""] + table.lines(style, width: width)
    }

    private func minorLines(_ limit: Int, _ width: Int?, _ style: TextStyle) -> [String] {
        guard !minorFaults.isEmpty else { return [] }
        var table = TextTable(["minor faults", "stage", "file"], leftAligned: [1, 2], names: [2])
        for one in limit == 0 ? minorFaults[...] : minorFaults.prefix(limit) {
            table.add([grouped(one.count), one.stage ?? "-", one.path.isEmpty ? "-" : one.path])
        }
        return [""] + table.lines(style, width: width)
    }

    private var headline: String {
        let name = WaitSearch.title(processes)
        let all = totals.reduce(UInt64(0)) { $0 &+ $1.duration.count }
        return "\(name): \(counted(order.count, "wait")), \(readable(Nanoseconds(all)))"
            + (totals.isEmpty ? "" : ": " + totals.map { "\($0.kind.rawValue) \(readable($0.duration))" }.joined(separator: ", "))
            + (window.map { ", \($0.text)" } ?? "")
    }

    private func lockLines(_ limit: Int, _ width: Int?, _ style: TextStyle, _ spelt: (String) -> String) -> [String] {
        guard !locks.isEmpty else { return [] }
        var table = TextTable(
            ["waited", "waits", "longest", "at once", "lock", "waited in", "held in"], leftAligned: [4, 5, 6], names: [5, 6])
        func places(_ places: [LockTotals.Place]) -> String {
            let known = places.compactMap { place in place.name.map { spelt($0) + (places.count > 1 ? " ×\(place.waits)" : "") } }
            return known.isEmpty ? "-" : known.prefix(3).joined(separator: "; ") + (known.count > 3 ? "; and \(known.count - 3) more" : "")
        }
        let shown = limit == 0 ? locks[...] : locks.prefix(limit)
        for lock in shown {
            table.add([
                column(readable(length(lock.duration, lock.process))), grouped(lock.waits),
                column(readable(length(lock.longest, lock.process))),
                grouped(lock.mostAtOnce), lock.object, places(lock.waitedIn), places(lock.heldIn),
            ])
        }
        let rows = table.lines(style, width: width)
        var lines = ["", rows[0]]
        for (row, lock) in zip(rows.dropFirst(), shown) {
            lines.append(row)
            let queue = lock.longestQueue
            if queue.isConvoy {
                lines.append(
                    style.dim(
                        "    convoy: \(queue.waits) waits of \(queue.threads) threads, one after the other for "
                            + readable(length(queue.duration, lock.process))))
            }
        }
        return lines
    }
}
