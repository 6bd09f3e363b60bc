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
            let name = table.name(of: function)
            line += "  \(name.name)" + (object.map { "(\($0.text))" } ?? "") + " [\(name.module)]"
        }
        if let duration, kind == .complete {
            line += "  \(readable(trace.timeScale.nanoseconds(duration)))"
        }
        if let value {
            line += [.unknown, .resume, .site, .argument].contains(kind) ? "  0x" + String(value, radix: 16) : "  \(value)"
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
        var members: [(String, JSON)] = [
            ("offset", .unsigned(offset)), ("tid", .unsigned(UInt64(tid))), ("ticks", .unsigned(ticks.raw)),
            ("time_ns", .time(trace.timeScale.nanoseconds(from: trace.firstTicks, to: ticks))),
            ("kind", .string(kind.rawValue)),
        ]
        if let function {
            let name = table.name(of: function)
            members += [("id", .unsigned(UInt64(function))), ("name", .string(name.name)), ("module", .string(name.module))]
        }
        if let duration {
            members += [("duration_ticks", .unsigned(duration)), ("duration_ns", .time(trace.timeScale.nanoseconds(duration)))]
        }
        if let value { members.append(("value", .unsigned(value))) }
        if let object { members.append(("object", object.json)) }
        return JSON.object(members).text(lines: 0)
    }
}
