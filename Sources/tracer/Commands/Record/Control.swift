import ArgumentParser
import CTraceLayout
import Glibc
import Presentation
import Recorder
import TraceAnalysis

struct Control: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Has a recorded process stop, go on, keep less, or copies its trace as it is now.",
        usage: "tracer control PID status|start|stop|filter|snapshot [options]",
        discussion: """
            The process was started by tracer record or with the agent preloaded, or tracer attach records it. It takes note at its next \
            call that would be recorded; nothing is sent to it, and no thread waits.

            EXAMPLES
              tracer record --start off -- ./server &   # nothing is recorded for now
              tracer control $(pgrep -x server) start
              tracer control $(pgrep -x server) stop
              tracer control 4711 filter --min-ms 5ms   # it was started with --min-ms
              tracer control 4711 filter --functions 'handle*' --exclude 'mem*:strlen'
              tracer control 4711 snapshot -o now.trace --last 5s
            """)

    enum Action: String, ExpressibleByArgument, CaseIterable {
        case status, start, stop, filter, snapshot
    }

    @Argument(help: ArgumentHelp("The id of the process.", valueName: "pid"))
    var pid: Int32
    @Argument(help: ArgumentHelp("What it is to do.", valueName: "status|start|stop|filter|snapshot"))
    var action: Action
    @Flag(help: "The same of all processes of its run that are being recorded.")
    var all = false
    @Option(help: ArgumentHelp("Of filter: keep no shorter calls from now on, such as 5ms; 0 keeps all.", valueName: "time"))
    var minMs: String?
    @Option(help: ArgumentHelp("Of filter: of the functions that --functions has chosen, only these; repeatable.", valueName: "glob"))
    var functions: [String] = []
    @Option(help: ArgumentHelp("Of filter: only matching functions or modules; '' takes it back.", valueName: "glob"))
    var include: [String] = []
    @Option(help: ArgumentHelp("Of filter: not matching functions or modules; '' takes it back.", valueName: "glob"))
    var exclude: [String] = []
    @Option(name: .shortAndLong, help: ArgumentHelp("Of snapshot: its file. Default: by program and time.", valueName: "file"))
    var output: String?
    @Option(help: ArgumentHelp("Of snapshot: only the last 5s, 500ms. Default: all that the trace has.", valueName: "time"))
    var last: TimeLength?

    private static let patience: UInt64 = 1_000_000_000

    func run() throws {
        let choosesNames = !(functions + include + exclude).isEmpty
        if minMs == nil, !choosesNames, action == .filter {
            throw CommandFailure("filter needs --min-ms TIME, such as 5ms, or --functions, --include or --exclude GLOB", status: 2)
        }
        for (option, given, needed) in [
            ("--min-ms", minMs != nil, Action.filter), ("--functions", !functions.isEmpty, .filter),
            ("--include", !include.isEmpty, .filter),
            ("--exclude", !exclude.isEmpty, .filter), ("--output", output != nil, .snapshot), ("--last", last != nil, .snapshot),
        ] where given && action != needed {
            throw CommandFailure("\(option) is for \(needed.rawValue)", status: 2)
        }
        if all, output != nil { throw CommandFailure("--output names one file: remove --all", status: 2) }
        let first = try Self.process(pid)
        let others = all ? first.others.compactMap { try? Self.process($0) } : []
        for process in [first] + others {
            switch action {
            case .status: try describe(process)
            case .start: try ask(process, .start, "recording")
            case .stop: try ask(process, .stop, "stopped; calls that are open now still end in the trace")
            case .filter:
                if minMs != nil {
                    let time = try minimum()
                    try ask(
                        process, .minimum(time), time == 0 ? "keeps all calls" : "keeps calls of \(readable(Nanoseconds(time))) or longer")
                }
                if choosesNames { try choose(process) }
            case .snapshot: try copy(process)
            }
        }
    }

    private static func process(_ pid: pid_t) throws -> RecordedProcess {
        switch TracedProcess.trace(of: pid) {
        case .trace(let path): return try orFail { try RecordedProcess(pid: pid, trace: path) }
        case .absent: throw CommandFailure("there is no process \(pid)", status: 2)
        case .forbidden:
            throw CommandFailure("process \(pid) belongs to another user: run tracer control as that user, or as root", status: 126)
        case .notRecorded:
            throw CommandFailure(
                "process \(pid) is not being recorded: start it with tracer record, or use tracer attach \(pid)", status: 126)
        }
    }

    /// A number without a unit is milliseconds, as for record.
    private func minimum() throws -> UInt64 {
        let text = minMs ?? ""
        guard let time = Double(text) == nil ? TimeLength(argument: text) : TimeLength(argument: text + "ms"),
            time.nanoseconds.count < 1_000_000_000_000
        else { throw CommandFailure("--min-ms \(text): give a time such as 0.5 (milliseconds) or 20us", status: 2) }
        return time.nanoseconds.count
    }

    private func ask(_ process: RecordedProcess, _ wish: RecordedProcess.Wish, _ done: @autoclosure () -> String) throws {
        let number = try orFail { try process.ask(wish) }, begun = clock()
        while !process.hasDone(number) {
            if clock() - begun > Self.patience {
                return complain("\(process.name) (\(process.pid)): it has called nothing since; it takes note at its next call")
            }
            usleep(2000)
        }
        guard !process.hasRefused(number) else {
            throw CommandFailure(
                "process \(process.pid) cannot read the lists in its trace, or a plan of its functions: those stay recorded", status: 126)
        }
        complain("\(process.name) (\(process.pid)): \(done())")
    }

    private func choose(_ process: RecordedProcess) throws {
        func lists(_ values: [String]) -> [String] { values.flatMap { $0.split(separator: ":").map(String.init) } }
        let wish = RecordedProcess.Wish.names(functions: lists(functions), include: lists(include), exclude: lists(exclude))
        try ask(process, wish, Self.leftOut(process.header.current) ?? "records all functions that it can")
    }
    /// nil: nothing is.
    private static func leftOut(_ state: trace_file_header) -> String? {
        let parts = [(state.left_functions, "function"), (state.left_slots, "slot")].filter { $0.0 > 0 }.map { counted(UInt64($0.0), $0.1) }
        return parts.isEmpty ? nil : "leaves out \(parts.joined(separator: " and "))"
    }
    private func clock() -> UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    private func copy(_ process: RecordedProcess) throws {
        let last = last?.nanoseconds.count, path = try orFail { try process.snapshot(last: last, to: output) }
        if !process.addStates(to: path, last: last) {
            complain("\(process.name) (\(process.pid)): its recorder did not say when threads ran and waited: the snapshot is without it")
        }
        complain("\(process.name) (\(process.pid)): tracer report \(shellWord(path))")
    }

    private func describe(_ process: RecordedProcess) throws {
        let state = process.header.current, output = Output()
        try output.line("\(process.name) (\(process.pid))")
        func row(_ name: String, _ value: String) throws {
            try output.line("  " + name + String(repeating: " ", count: max(14 - name.count, 1)) + value)
        }
        try row("trace", process.header.path)
        try row(
            "recording", state.state != UInt32(TRACE_RECORDING) ? "ended" : state.is_on != 0 ? "on" : "off: tracer control \(pid) start")
        let size = min(state.next_offset, UInt64(Int64.max))
        try row("size", readable(byteCount: size) + (state.size_limit > 0 ? " of \(readable(byteCount: state.size_limit))" : ""))
        try row("mode", state.mode == UInt32(TRACE_MODE_RING) ? "ring" : state.mode == UInt32(TRACE_MODE_COUNTS) ? "counts" : "full")
        if state.minimum_ticks > 0 {
            try row("shortest call", readable(Nanoseconds(process.nanoseconds(state.minimum_ticks))))
        } else if state.flags & UInt32(TRACE_FLAG_FILTERED) != 0 {
            try row("shortest call", "any")
        }
        if let text = Self.leftOut(state) { try row("functions", text + ": tracer info says which") }
        if state.maximum_depth > 0 { try row("depth", grouped(UInt64(state.maximum_depth))) }
        if state.watched > 0 {
            try row("watched", "\(counted(state.watched, "function")), \(counted(state.requests, "call")) that asked for a snapshot")
        }
        if state.dropped > 0 { try row("dropped", counted(state.dropped, "call")) }
        try output.finish()
    }
}
