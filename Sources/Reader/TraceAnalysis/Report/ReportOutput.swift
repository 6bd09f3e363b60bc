// What `tracer report --json` prints.
import Presentation

package struct ReportOutput: Record {
    private let run: RunSummary
    private let locations: FunctionLocations?
    private let advice: ExclusionAdvice?

    /// - Parameter run: of at least one process
    package init(_ run: RunSummary, _ locations: FunctionLocations?, _ advice: ExclusionAdvice? = nil) {
        self.run = run
        self.locations = locations
        self.advice = advice
    }

    /// The program that was started.
    private var root: ProcessImage { run.processes[0].images[0] }

    private var ownCodes: [OwnCode] {
        // One trace has it even where it is nothing, or where the rows are without it.
        if let only = run.only { return [OwnCode(module: basename(only.program), time: run.summary.own)] }
        return run.summary.ownCodes.map { OwnCode(module: $0.module, time: $0.total) }
    }

    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("program", "path; of a run that which was started", \.root.program)
        Member("pid", \.root.pid)
        Member("duration_ns", \.run.summary.duration)
        Member("window", windowMeaning, \.run.reportedWindow)
        Member("in_calls_ns", "time in recorded calls, all threads together", \.run.summary.inCalls)
        Member("time", timeMeaning, \.run.time.rawValue)
        Member("states", "times of all threads by state; null: the kernel has reported no context switches") { output in
            output.run.summary.states.map { ReportedStates(times: $0, unknown: output.run.summary.unknownState) }
        }
        Member("events", "words that record calls", \.run.summary.events)
        Member("dropped", "calls that could not be written", \.run.summary.dropped)
        Member("agent_waits", "how often a thread waited until the agent had space for its calls", \.run.agentWaits.count)
        Member("agent_wait_ns", "how long in all", \.run.agentWaits.total)
        Member("longest_agent_wait_ns", \.run.agentWaits.longest)
        Member("filtered", "by time, by depth and by condition, while recording") { $0.run.summary.filtered }
        Member("threads", \.run.summary.threads)
        Member("modules", \.ownCodes)
        Member("where", "conditions that hold for the calls of functions; the other members are of all calls", \.run.conditions)
        Member("functions", "rows, by falling self time") { output in
            output.run.summary.functions(by: .selfTime).map {
                FunctionRow(figures: $0, locations: output.locations, whole: output.run.summary.selfTime)
            }
        }
        Member("calls", \.run.summary.calls)
        Member("only_counted", "what of them is counted and not recorded", \.run.summary.onlyCounted)
        Member(
            "exclusion", "a few functions that make most of the calls and take little of the time; null: none, or not all is reported",
            \.advice)
        Member("processes", "parents before their children", \.run.processes)
        Member("unrecorded", "programs that have no trace, as far as they are known", \.run.unrecorded)
    }
}

extension ThreadSummary: Record {
    package static let members = declare {
        Member("pid", \.pid)
        Member("tid", \.tid)
        Member("name", \.name)
        Member("calls", \.calls)
        Member(
            "span_ns",
            "how long it ran the program's code, calls before and after main included; null where the file lacks events of its middle",
            \.span)
        Member("own_ns", "what of that no recorded call covers", \.own)
    }
}

/// Times of all threads while they ran the program's code.
private struct ReportedStates: Record {
    var times: StateTimes
    var unknown: Nanoseconds

    static let members = declare {
        Member("running_ns", "on a CPU, or the kernel has reported nothing", \.times.running)
        Member("waiting_ns", \.times.waiting)
        Member("runnable_ns", "others had the CPUs", \.times.runnable)
        Member("unknown_ns", "of running_ns: the kernel has reported nothing, or records are missing", \.unknown)
    }
}

/// Time of a program in which no recorded call was open.
private struct OwnCode: Record {
    var module: String
    var time: Nanoseconds

    static let members = declare {
        Member("name", \.module)
        Member("own_ns", "own code of the program", \.time)
    }
}

extension RunProcess: Record {
    package static let members = declare {
        Member("pid", \.pid).column("pid") { String($0.pid) }
        Member("ppid", \.parentPid)
        Member("program", "path; after exec the last one", \.program)
        Member("name", "what it calls itself, or was called by", \.name)
        Member("title", "command line that it has written over its own; null: none", \.title)
        Member("command", "command line of that", \.commandLine).column("command", .text) { $0.commands }
        Member.shown("tree", "command", .text) { String(repeating: "  ", count: min($0.depth, 30)) + $0.commands }
        Member("calls", \.calls).column("calls") { grouped($0.calls) }
        Member("filtered", "by time, by depth and by condition, while recording", \.filtered)
        Member("dropped", "calls that could not be written", \.dropped)
        Member("in_calls_ns", "time in recorded calls, of all threads", \.inCalls).column("in calls") { column(readable($0.inCalls)) }
        Member("duration_ns", "from its first recorded moment to its end", \.duration).column("time") { column(readable($0.duration)) }
        times(
            "in_calls_", "in calls",
            "what of in_calls_ns its threads were on a CPU, or the kernel has not reported; missing where it has reported no context switches",
            \.callStates)
        times("", "of threads", "time that its threads ran the program's code on a CPU, calls before and after main left out", \.states)
        Member(
            "status", "as a shell reports it: exit status, or 128 + signal; null when nobody saw it who could write it down", \.exitStatus
        )
        .column("status") { $0.exitStatus.map { String($0) } ?? ($0.isUnfinished ? "-" : "?") }
        Member("ended", "executed: it became another program, without a trace; running: it is alive; null: unknown", \.endKind)
        Member("signal", "that killed it; null if none did", \.signal)
        Member("is_finished", "the trace was closed") { !$0.isUnfinished }
        Member("images", "the programs that the process was, one after the other", \.images)
    }
}

extension RunProcess {
    /// A time by state, which tables show as the time that is asked for.
    private static func times(
        _ prefix: String, _ title: String, _ meaning: String, _ times: @escaping @Sendable (RunProcess) -> StateTimes?
    ) -> [Member<RunProcess>] {
        CallTime.allCases.dropFirst().map { time in
            Member.optional("\(prefix)\(time.rawValue)_ns", time == .running ? meaning : "") { times($0)?[time] }
                .column(title) { times($0).map { column(readable(signed: $0[time])) } ?? "-" }
        } + [Member.optional("\(prefix)runnable_ns", "others had the CPUs") { times($0)?.runnable }]
    }

    private enum EndKind: String, JSONChoice { case exited, killed, executed, running }

    private var endKind: EndKind? {
        switch end {
        case .exited: .exited
        case .killed: .killed
        case .executed: .executed
        case .running: .running
        case nil: nil
        }
    }

    private var signal: Int32? { if case .killed(let signal) = end { signal } else { nil } }
}

extension ProcessImage: Record {
    package static let members = declare {
        Member("program", \.program)
        Member("command", \.commandLine)
        Member("calls", \.calls)
        Member("file", \.path)
    }
}
