// tracer dump: every word of the file, for those who debug the recorder or write a reader of their own.
import ArgumentParser
import TraceAnalysis
import TraceFormat

struct Dump: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows every event, one line each.",
        discussion: "Columns: offset in the file, thread, seconds since the start, kind, function and what the kind has.")

    @OptionGroup var trace: TraceArgument
    @OptionGroup var display: DisplayOptions

    @Flag(help: "One JSON object a line, times in ticks and nanoseconds.")
    var jsonLines = false

    func run() throws {
        let trace = try trace.open()
        let table = FunctionTable(trace.metadata)
        // Escaping closures may not capture an inout: the buffer lives in a box.
        final class Box {
            var output: Output
            init(_ output: Output) { self.output = output }
        }
        let box = Box(display.output())
        try trace.dump(table) { [jsonLines] event in
            try box.output.line(jsonLines ? Self.json(event, trace, table) : Self.line(event, trace, table))
        }
        try box.output.finish()
        try finish(trace)
    }

    private static func line(_ event: DumpedEvent, _ trace: TraceFile, _ table: FunctionTable) -> String {
        let kind = event.kind.rawValue
        var line = hexadecimal(event.offset) + "  \(event.tid)  " + signedSeconds(event.ticks, trace) + "  " + kind
            + String(repeating: " ", count: 8 - min(kind.utf8.count, 8))
        if let function = event.function {
            let name = table.name(of: function)
            line += "  \(name.name) [\(name.module)]"
        }
        if let duration = event.duration, event.kind == .complete {
            line += "  \(readable(trace.timeScale.nanoseconds(duration)))"
        }
        if let value = event.value {
            line += event.kind == .unknown || event.kind == .resume ? "  0x" + String(value, radix: 16) : "  \(value)"
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

    private static func json(_ event: DumpedEvent, _ trace: TraceFile, _ table: FunctionTable) -> String {
        var members: [(String, JSON)] = [
            ("offset", .unsigned(event.offset)), ("tid", .unsigned(UInt64(event.tid))), ("ticks", .unsigned(event.ticks.raw)),
            ("time_ns", .time(trace.timeScale.nanoseconds(from: trace.firstTicks, to: event.ticks))),
            ("kind", .string(event.kind.rawValue)),
        ]
        if let function = event.function {
            let name = table.name(of: function)
            members += [("id", .unsigned(UInt64(function))), ("name", .string(name.name)), ("module", .string(name.module))]
        }
        if let duration = event.duration {
            members += [("duration_ticks", .unsigned(duration)), ("duration_ns", .time(trace.timeScale.nanoseconds(duration)))]
        }
        if let value = event.value { members.append(("value", .unsigned(value))) }
        return JSON.object(members).text(lines: 0)
    }
}
