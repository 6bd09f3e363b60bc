// Time of the threads of all processes of a run by state, as a whole and in each start-up stage.
import Presentation
import TraceFormat

package struct ThreadReport {
    /// A part of a process's time.
    struct Stage {
        var kind: String
        var name: String
        /// Since the beginning of the trace.
        var start: Int64
        var duration: Nanoseconds
        /// In the order of the process's threads.
        var times: [ThreadTimes]
    }
    struct Process {
        var search: WaitSearch
        /// Indices of its threads to report.
        var threads: [Int]
        var whole: [ThreadTimes]
        var stages: [Stage]
    }

    let processes: [Process]
    let window: RunWindow?

    /// All threads of the processes, also those that were not chosen.
    package var threads: [(pid: UInt32, tid: UInt32, name: String)] { processes.flatMap { $0.search.namedThreads } }

    package init(
        _ traces: [TraceFile], window: RunWindow? = nil, _ choice: WaitChoice = WaitChoice(), hasStages: Bool = true,
        workers: Int = TraceFile.cpuCount, progress: ReadingProgress? = nil
    ) {
        self.window = window
        processes = progress.each(traces, weight: \.usedByteCount) { trace in
            let search = WaitSearch(trace, workers: workers, progress: progress)
            let threads = search.threads.indices.filter { search.isChosen(thread: $0, choice) }
            return Process(
                search: search, threads: threads, whole: threads.map { ThreadTimes(search, $0, in: trace.window) },
                stages: hasStages && window == nil ? Self.stages(search, threads) : [])
        }
    }

    /// None where the trace does not say how its program started.
    private static func stages(_ search: WaitSearch, _ threads: [Int]) -> [Stage] {
        guard search.noSwitches == nil else { return [] }
        let trace = search.trace
        return StartStages(trace).all.map { stage in
            let part = TimeWindow([stage.ticks])
            return Stage(
                kind: stage.kind, name: stage.name,
                start: trace.timeScale.signedNanoseconds(Int64(truncatingIfNeeded: stage.ticks.lowerBound &- trace.firstTicks.raw)),
                duration: trace.timeScale.nanoseconds(stage.ticks.upperBound - stage.ticks.lowerBound),
                times: threads.map { ThreadTimes(search, $0, in: part) })
        }
    }

    var missing: [String] { WaitSearch.missing(processes.map { $0.search }) }
}

// MARK: - JSON

extension ThreadReport: Record {
    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("window", windowMeaning, \.window?.reported)
        Member("missing", "why the kernel has not reported when threads were off-CPU, and what allows it; null: it has", \.missing.first)
        Member("notes", "what could not be found out") { report in WaitSearch.notes(report.processes.map { $0.search }) }
        Member("threads", "of each process, in the order in which they began") { report in
            report.processes.flatMap { $0.rows($0.whole) }
        }
        Member("stages", "of processes that say how they started; none in a window of time") { report in
            report.processes.flatMap { process in process.stages.map { StageRow(process: process, stage: $0) } }
        }
    }
}

extension ThreadReport.Process {
    func rows(_ times: [ThreadTimes]) -> [ThreadRow] {
        zip(threads, times).map { ThreadRow(search: search, thread: $0, times: $1) }
    }
}

private struct StageRow: Record {
    var process: ThreadReport.Process
    var stage: ThreadReport.Stage

    static let members = declare {
        Member("stage", "of startup.json, or ready: after it", \.stage.kind)
        Member("name", \.stage.name)
        Member("pid", \.process.search.trace.header.pid)
        Member("start_ns", \.stage.start)
        Member("duration_ns", \.stage.duration)
        Member("threads") { $0.process.rows($0.stage.times) }
    }
}

/// The times of one thread.
struct ThreadRow: Record {
    var search: WaitSearch
    /// Its index there.
    var thread: Int
    var times: ThreadTimes

    fileprivate func time(_ ticks: UInt64?) -> Nanoseconds? { ticks.map { search.trace.timeScale.nanoseconds($0) } }
    fileprivate func cell(_ ticks: UInt64?) -> String { time(ticks).map { $0.count == 0 ? "-" : column(readable($0)) } ?? "?" }

    static let members = declare {
        Member("thread", "name") { $0.search.threads[$0.thread].name }.column("thread", .text) { $0.search.threads[$0.thread].title }
        Member("tid") { $0.search.threads[$0.thread].tid }
        Member("pid", \.search.trace.header.pid)
        Member("running_ns", "on a CPU; null: the kernel has not reported it") { $0.time($0.times.running) }
            .column("running") { $0.cell($0.times.running) }
        Member("runnable_ns", "others had the CPUs") { $0.time($0.times.runnable) }.column("runnable") { $0.cell($0.times.runnable) }
        Member("waiting_ns", "the sum of waits") { $0.search.trace.timeScale.nanoseconds($0.times.waiting) }
            .column("waiting") { $0.cell($0.times.waiting) }
        Member("unknown_ns", "records are missing") { $0.time($0.times.unknown) }.column("unknown") { $0.cell($0.times.unknown) }
        Member("kernel_ns", "of running, in the kernel: without what samples found in the program's code; null without samples") {
            $0.time($0.times.kernel)
        }.column("in kernel") { $0.cell($0.times.kernel) }
        Member("waits", \.waits)
        waitColumns
    }

    private static var waitColumns: [Member<ThreadRow>] {
        WaitKind.allCases.map { kind in Member.shown(kind.rawValue, kind.rawValue) { $0.cell($0.times.waits[kind] ?? 0) } }
    }

    private var waits: Kinds { Kinds(row: self) }

    /// The time that it waited, by what for.
    private struct Kinds: Record {
        var row: ThreadRow

        static let members: [Member<Kinds>] = WaitKind.allCases.filter { $0 != .processor }.map { kind in
            Member.optional(kind.rawValue) { $0.row.time($0.row.times.waits[kind]) }
        }
    }
}

// MARK: - Text

extension ThreadReport {
    package func lines(width: Int?, style: TextStyle) -> [String] {
        var lines = [style.bold(headline)]
        for text in missing {
            lines.append(style.alarm("no context switches: \(text); waiting is the time in blocking calls of 10 us or more"))
        }
        for text in WaitSearch.notes(processes.map { $0.search }) { lines.append(style.alarm(text)) }
        lines += [""] + table(processes.map { ($0, $0.whole) }, isWhole: true, width, style)
        for process in processes {
            for stage in process.stages where stage.times.contains(where: { !$0.isEmpty }) {
                let pid = processes.count > 1 ? "\(process.search.trace.processName)/\(process.search.trace.header.pid): " : ""
                lines += ["", style.bold("\(pid)\(stage.name)") + ", \(readable(stage.duration))"]
                lines += table([(process, stage.times)], isWhole: false, width, style)
            }
        }
        return lines
    }

    private var headline: String {
        let name = WaitSearch.title(processes.map { $0.search })
        return "\(name): \(counted(processes.reduce(0) { $0 + $1.threads.count }, "thread"))" + (window.map { ", \($0.text)" } ?? "")
    }

    private func table(_ parts: [(process: Process, times: [ThreadTimes])], isWhole: Bool, _ width: Int?, _ style: TextStyle) -> [String] {
        let rows = parts.flatMap { $0.process.rows($0.times) }.filter { isWhole || !$0.times.isEmpty }
        func has(_ isThere: (ThreadTimes) -> Bool) -> Bool { parts.contains { $0.times.contains(where: isThere) } }
        let kinds = WaitKind.allCases.filter { kind in has { $0.waits[kind] != nil } }.map(\.rawValue)
        let figures =
            ["running_ns"] + (has { $0.kernel != nil } ? ["kernel_ns"] : []) + ["runnable_ns", "waiting_ns"] + kinds
            + (has { $0.unknown ?? 0 > 0 } ? ["unknown_ns"] : [])
        let table = TextTable(rows, ThreadRow.columns(figures + ["thread"]))
        return table.lines(style, width: width)
    }
}
