// The few lines on stderr when a recorded program has ended.
import Recorder
import TraceAnalysis

struct RecordSummary {
    let lines: [String]

    init(_ result: RecordingResult) {
        guard let main = result.files.last(where: \.isRoot) ?? result.files.first else {
            lines = ["no trace was written: the agent was not loaded, or has said above why it could not write one"]
            return
        }
        let trace = try? TraceFile(path: main.path)
        var first = "\(main.path): " + RecordSummary.counts(main, trace)
        let others = result.files.count - 1
        if others > 0 {
            let writing = result.files.count { $0.isBeingWritten }
            // Of processes that it started, and of what the same process ran before it called exec.
            first += "; \(others) more file\(others == 1 ? "" : "s") of this run beside it"
            if writing > 0 { first += ", \(writing) still being written" }
        }
        lines = [first] + (trace?.flagTexts ?? []).map { "note: \($0)" } + ["next: tracer report \(RecordSummary.quoted(main.path))"]
    }

    func print() {
        for line in lines { complain(line) }
    }

    private static func counts(_ file: RecordingResult.File, _ trace: TraceFile?) -> String {
        guard let trace else { return "\(size(file.bytes)), which cannot be read back" }
        let summary = Summary(trace, names: false)
        return "\(grouped(summary.calls)) calls recorded, \(grouped(summary.filteredByTime + summary.filteredByDepth)) filtered, "
            + "\(grouped(summary.dropped)) dropped, \(size(file.bytes))"
    }

    /// 1234567 as 1,234,567.
    private static func grouped(_ number: UInt64) -> String {
        var text = ""
        for (place, digit) in String(number).reversed().enumerated() {
            if place > 0, place % 3 == 0 { text.append(",") }
            text.append(digit)
        }
        return String(text.reversed())
    }

    private static func size(_ bytes: UInt64) -> String {
        for (unit, shift) in [("GB", 30), ("MB", 20), ("KB", 10)] as [(String, UInt64)] where bytes >= 1 << shift {
            let tenths = (bytes * 10) >> shift
            return "\(tenths / 10).\(tenths % 10) \(unit)"
        }
        return "\(bytes) bytes"
    }

    /// As it can be pasted into a shell.
    private static func quoted(_ path: String) -> String {
        let plain = path.allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || "/._-+=:@%,".contains($0)) }
        return plain ? path : "'" + path.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
