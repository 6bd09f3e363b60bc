// Lines of `tracer dump`, as text and as JSON.
import Presentation
import TraceFormat

extension DumpedEvent {
    package func line(_ trace: TraceFile, _ table: FunctionNames) -> String {
        let word = kind.rawValue
        var line =
            Self.hexadecimal(offset) + "  \(tid)  " + Self.signedSeconds(ticks, trace) + "  " + word
            + String(repeating: " ", count: 8 - min(word.utf8.count, 8))
        if let function {
            let name = table.name(of: function), between = arguments?.text ?? object?.text
            line += "  \(name.name)" + (between.map { "(\($0))" } ?? "")
            if let (value, errno) = result { line += " = " + value.text + (errno.map { " " + $0 } ?? "") }
            line += " [\(name.module)]"
        }
        if let duration, kind == .complete {
            line += "  \(readable(trace.timeScale.nanoseconds(duration)))"
        }
        if let value {
            line += [.unknown, .resume, .site, .argument, .data].contains(kind) ? "  0x" + String(value, radix: 16) : "  \(value)"
        }
        return line
    }

    private static func hexadecimal(_ offset: UInt64) -> String {
        let digits = String(offset, radix: 16)
        return String(repeating: "0", count: max(8 - digits.utf8.count, 0)) + digits
    }

    /// A frame that was inherited from the parent process began before the start.
    private static func signedSeconds(_ ticks: Ticks, _ trace: TraceFile) -> String {
        ticks < trace.firstTicks
            ? "-" + secondsText(trace.timeScale.nanoseconds(from: ticks, to: trace.firstTicks))
            : secondsText(trace.timeScale.nanoseconds(from: trace.firstTicks, to: ticks))
    }

    package func json(_ trace: TraceFile, _ table: FunctionNames) -> String {
        DumpedLine(
            event: self, time: trace.timeScale.nanoseconds(from: trace.firstTicks, to: ticks), name: function.map { table.name(of: $0) },
            duration: duration.map { trace.timeScale.nanoseconds($0) }
        ).json.text(lines: 0)
    }
}

/// A line of `tracer dump --json`, with what only the trace knows of the event already looked up: there are millions of lines.
package struct DumpedLine: Record {
    fileprivate var event: DumpedEvent
    fileprivate var time: Nanoseconds
    fileprivate var name: (name: String, module: String)?
    fileprivate var duration: Nanoseconds?

    package static let members = declare {
        Member("offset", "in the file") { $0.event.offset }
        Member("tid") { $0.event.tid }
        Member("ticks") { $0.event.ticks.raw }
        Member("time_ns") { $0.time }
        Member("kind", "docs/reference/format.md") { $0.event.kind.rawValue }
        Member.optional("id", "of the function") { $0.event.function }
        Member.optional("name") { $0.name?.name }
        Member.optional("module") { $0.name?.module }
        Member.optional("duration_ticks") { $0.event.duration }
        Member.optional("duration_ns") { $0.duration }
        Member.optional("value") { $0.event.value }
        Member.optional("object", CallObject.meaning) { $0.event.object }
        Member.optional("arguments", "of an enter or a complete call: their values by their names") { $0.event.arguments }
        Member.optional("result", "of an exit or a complete call") { $0.event.result?.value }
        Member.optional("errno", "of an exit or a complete call: why the call failed") { $0.event.result?.errno }
    }
}
