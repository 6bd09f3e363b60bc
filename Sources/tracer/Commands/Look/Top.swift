import ArgumentParser
import Glibc
import Presentation
import Recorder
import TraceAnalysis
import TraceFormat

extension TopOrder: ExpressibleByArgument {}
extension TopGrouping: ExpressibleByArgument {}

struct Top: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows what a running process calls now, how often and for how long.",
        discussion: """
            Reads the trace of a process that runs under tracer record or tracer attach, as it grows: the process notices nothing. With \
            --attach one that does not is recorded meanwhile. Of a finished trace it shows the whole.

            Shares are of the time of all threads in the interval: a thread that waits in poll has all of its time in it. open: calls \
            that have not returned, with the age of the oldest. p50, p99 and longest are of calls that ended in the interval.

            On a terminal: c t s p 9 l o n sort by calls, total, self, p50, p99, longest, open, name; f T m show functions, threads, \
            modules; a the time since the beginning; / filters, space pauses, h helps, q ends. Elsewhere it prints a table for each \
            interval.

            EXAMPLES
              tracer top 4711                 # a process that is being recorded
              tracer top 4711 --attach        # any other, recorded as long as it is shown
              tracer top app.trace            # a file that grows, or a finished one
              tracer top 4711 --by thread     # what each thread is in
              tracer top 4711 --once --json   # one second, as JSON
              tracer top 4711 -n 10 --interval 5s --sort calls > log
            """)

    @Argument(
        help: ArgumentHelp(
            "The id of a process, or a trace, or the directory of a run. Default: the newest *.trace or run in this directory.",
            valueName: "pid|file"),
        completion: .file(extensions: ["trace"]))
    var target: String?

    @Flag(help: "Attach to the process, as tracer attach does, and let it go at the end.")
    var attach = false
    @Option(
        name: .shortAndLong,
        help: ArgumentHelp("With --attach: keep all that is recorded in this file; otherwise nothing is kept.", valueName: "file"))
    var output: String?
    @OptionGroup(title: "With --attach") var calls: CallOptions

    @Option(help: ArgumentHelp("Length of an interval: 1s, 500ms; at least 100ms.", valueName: "time"))
    var interval: TimeLength?
    @Option(name: [.customShort("n"), .long], help: ArgumentHelp("End after so many intervals.", valueName: "number"))
    var iterations: Int?
    @Flag(help: "One interval: --iterations 1.")
    var once = false
    @Option(name: .customLong("for"), help: ArgumentHelp("End after this time: 10s.", valueName: "time"))
    var length: TimeLength?
    @Option(help: "Order of the rows: calls, total, self, p50, p99, longest, open or name.")
    var sort = TopOrder.selfTime
    @Option(help: ArgumentHelp("One row per function, thread or module.", valueName: "function|thread|module"))
    var by = TopGrouping.function
    @Option(
        help: ArgumentHelp("Only matching functions: NAME, MODULE or MODULE!NAME; threads or modules by their names.", valueName: "glob"))
    var filter: String?
    @Flag(help: "The time since the beginning, not that of the last interval.")
    var cumulative = false
    @Option(help: "Number of rows of a table that is not on a terminal; 0 for all.")
    var top = 20
    @Flag(help: "One JSON object a line for each interval, with all rows.")
    var json = false
    @OptionGroup var names: NameOptions
    @Option(help: ArgumentHelp("Use colours; auto uses them on a terminal, unless NO_COLOR is set.", valueName: "auto|always|never"))
    var color = Output.Colour.auto

    private static let shortest: UInt64 = 100_000_000
    private var nanoseconds: UInt64 { interval?.nanoseconds.count ?? 1_000_000_000 }

    func validate() throws {
        if nanoseconds < Self.shortest { throw ValidationError("--interval takes 100ms or more, such as 1s") }
        if let iterations, iterations < 1 { throw ValidationError("--iterations takes 1 or more") }
        if once, iterations != nil || length != nil { throw ValidationError("--once is one interval: remove --iterations and --for") }
        if let length, length.nanoseconds.count == 0 { throw ValidationError("--for takes a time above 0, such as 10s") }
        if top < 0 { throw ValidationError("--top takes 0 (all) or a number of rows") }
        if !attach, output != nil || calls.isAny { throw ValidationError("options of what is recorded need --attach") }
        if attach, pid == nil { throw ValidationError("--attach takes the id of a process: tracer top PID --attach") }
    }

    /// nil: a file is meant.
    private var pid: pid_t? {
        guard let target, !target.isEmpty, target.allSatisfy(\.isNumber), let pid = pid_t(target), pid > 0 else { return nil }
        return pid
    }

    func run() throws {
        guard let pid else {
            let run = try openRun(target.map { [$0] } ?? [])
            let folder = isDirectory(run.path) ? run.path : nil
            return try show(run.files.map(\.path), nil) { folder.map { Self.traces(in: $0) } ?? [] }
        }
        switch TracedProcess.trace(of: pid) {
        case .trace(let path): try show([path], nil) { [] }
        case .absent: throw CommandFailure("no process \(pid): give the id of one that runs (ps, pgrep), or the name of a trace", status: 2)
        case .forbidden: throw CommandFailure("process \(pid) belongs to another user: run tracer top as that user, or as root")
        case .notRecorded where attach: try attached(pid)
        case .notRecorded:
            throw CommandFailure("process \(pid) is not being recorded: tracer top \(pid) --attach records it as long as it is shown")
        }
    }

    private static func traces(in folder: String) -> [String] {
        ((try? traceNames(in: folder)) ?? []).map { folder.hasSuffix("/") ? folder + $0 : folder + "/" + $0 }
    }

    private func attached(_ pid: pid_t) throws {
        var options = RecordOptions()
        calls.set(in: &options)
        if output == nil, calls.maxSize == nil { options.set(Variables.maximumSize, TopAttachment.usualSize) }
        let attachment = try orFail { try TopAttachment(pid, options, output: output) }
        let folder = attachment.directory
        do {
            try show(Self.traces(in: folder), attachment) { Self.traces(in: folder) }
        } catch {
            try? attachment.end()
            throw error
        }
        try attachment.end()
    }

    private func show(_ paths: [String], _ attachment: TopAttachment?, find: @escaping () -> [String]) throws {
        let reading = try orFail { try TopReading(paths, find: find) }
        if reading.hasCountsAlone {
            throw CommandFailure(
                "\(reading.path) has only which functions were called, not their calls (--mode counts): use tracer coverage \(shellWord(reading.path))"
            )
        }
        for problem in reading.problems { complain("\(problem); skipped") }
        var view = TopView()
        view.grouping = by
        view.order = sort
        view.isWhole = cumulative || reading.isOfEnded
        view.filter = filter.map { FunctionPattern($0) }
        let isBatch = json || once || iterations != nil || length != nil
        if !isBatch, Screen.isPossible {
            try TopScreen(reading, view, names: names.style, colour: color, interval: nanoseconds, attachment, filter: filter ?? "").run()
        } else {
            try print(reading, view, attachment)
        }
        sayNameless()
    }

    // MARK: - Tables without a terminal

    private func print(_ reading: TopReading, _ view: TopView, _ attachment: TopAttachment?) throws {
        let output = Output(colour: color), wanted = once ? 1 : iterations ?? .max
        let began = Moment.now, end = length.map { began + $0.nanoseconds.count } ?? .max
        var view = view, next = began
        view.most = json ? 0 : top
        for number in 1...wanted {
            next = min(next + nanoseconds, end)
            wait(for: reading, until: next, attachment)
            reading.endInterval()
            let snapshot = reading.snapshot(view)
            if json {
                try output.line(snapshot.json.text(lines: 0))
            } else {
                if number > 1 { try output.line("") }
                try output.lines(lines(snapshot, output))
            }
            try output.flush()
            if reading.isOver || attachment?.isOver == true || Moment.now >= end { break }
        }
    }

    /// Reads until then, or to the end of what is read.
    private func wait(for reading: TopReading, until end: UInt64, _ attachment: TopAttachment?) {
        while true {
            let isLast = attachment?.isOver == true // what was recorded until then is there
            reading.look(within: reading.isOfEnded ? nil : TopScreen.mostReading)
            let now = Moment.now
            if reading.isOver || isLast || now >= end { return }
            usleep(UInt32(min(end - now, TopScreen.betweenLooks) / 1000))
        }
    }

    private func lines(_ snapshot: TopSnapshot, _ output: Output) -> [String] {
        let notes = snapshot.notes.map { output.style.alarm($0) }
        return [output.style.bold(snapshot.headline)] + notes + [""]
            + snapshot.table(most: top, width: names.fullNames ? nil : output.width, names: names.style, style: output.style)
            + snapshot.marks.map { output.style.dim($0) }
    }
}

/// CLOCK_MONOTONIC in nanoseconds.
enum Moment {
    static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }
}
