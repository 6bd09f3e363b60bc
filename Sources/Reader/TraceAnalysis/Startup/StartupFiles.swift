// The files that a process used until it was ready, as text.
import Presentation

extension StartupTimeline {
    func fileLines(_ top: Int, _ style: TextStyle) -> [String] {
        guard let files, !files.isEmpty else { return [] }
        let opens = files.reduce(0) { $0 + $1[.open].calls }, read = files.reduce(UInt64(0)) { $0 &+ $1[.read].bytes }
        let sum = [
            counted(files.count, "file"), opens > 0 ? counted(opens, "open") : nil, read > 0 ? "\(readable(byteCount: read)) read" : nil,
        ]
        var lines = [style.bold("Files used before ready: \(sum.compactMap { $0 }.joined(separator: ", "))")]
        let shown = files.prefix(top).filter { $0.time.count >= 1000 }, width = min(shown.map(\.path.count).max() ?? 0, 60)
        for file in shown {
            let facts = facts(file)
            lines.append(
                "  " + time(file.time) + "  " + ofWhole(file.time) + "  "
                    + (facts.isEmpty ? file.path : rightFilled(file.path, width) + "  " + facts.joined(separator: ", ")))
        }
        let rest = files.dropFirst(shown.count)
        if !rest.isEmpty {
            let sum = Nanoseconds(rest.reduce(UInt64(0)) { $0 &+ $1.time.count })
            lines.append(style.dim("  " + time(sum) + String(repeating: " ", count: 10) + "\(grouped(UInt64(rest.count))) more"))
        }
        return lines
    }

    private func facts(_ file: FileUse) -> [String] {
        var facts: [String] = []
        func add(_ kind: FileUse.Kind, _ noun: String) {
            let counts = file[kind], all = counts.failed == counts.calls ? "all failed" : "\(grouped(counts.failed)) failed"
            if counts.calls > 0 { facts.append(counted(counts.calls, noun) + (counts.failed > 0 ? " (\(all))" : "")) }
        }
        add(.open, "open")
        add(.lookUp, "look-up")
        if file[.read].bytes > 0 {
            facts.append("\(readable(byteCount: file[.read].bytes)) read" + (file.source.map { $0 == .disk ? " from disk" : "" } ?? ""))
        }
        if file[.write].bytes > 0 { facts.append("\(readable(byteCount: file[.write].bytes)) written") }
        if let caller = file.opener?.caller { facts.append("by \(caller.name)") }
        return facts
    }
}
