// Context switches of threads, and who ran on their CPUs while they were ready to run and had none.
import Presentation
import TraceFormat

package struct ContextSwitches: Sendable {
    /// A thread of the run that had the CPU.
    package struct Rival: Sendable {
        package let process: Int
        package let thread: Int
        package fileprivate(set) var duration: Nanoseconds
    }
    package struct OfThread: Sendable {
        package let process: Int
        package let thread: Int
        /// It waited for something.
        package fileprivate(set) var voluntary = 0
        /// It could have gone on.
        package fileprivate(set) var involuntary = 0
        /// Ready, without a CPU: preempted, or begun and not yet run.
        package fileprivate(set) var ready = Nanoseconds(0)
        /// Threads of the run that ran meanwhile on the CPU that it had lost or, if it had just begun, got; the longest first.
        package fileprivate(set) var rivals: [Rival] = []
        /// The rest of `ready`.
        package var others: Nanoseconds { rivals.reduce(ready) { $0.without($1.duration) } }
    }

    /// The chosen threads of processes whose switches the kernel has reported.
    package let threads: [OfThread]

    package init(_ processes: [WaitSearch], _ choice: WaitChoice = WaitChoice()) {
        let known = processes.indices.filter { processes[$0].noSwitches == nil }
        let chosen = known.flatMap { process in
            processes[process].threads.indices.filter { processes[process].isChosen(thread: $0, choice) }.map { (process, $0) }
        }
        let isAnyReady = chosen.contains { process, thread in
            processes[process].threads[thread].stretches.contains { $0.state == .runnable }
        }
        let cpus = isAnyReady ? Self.cpus(processes, known) : [:]
        threads = chosen.map { Self.ofThread(processes[$0], process: $0, thread: $1, cpus) }
    }

    package var voluntary: Int { threads.reduce(0) { $0 + $1.voluntary } }
    package var involuntary: Int { threads.reduce(0) { $0 + $1.involuntary } }
    package var ready: Nanoseconds { Nanoseconds(threads.reduce(0) { $0 &+ $1.ready.count }) }
    package var others: Nanoseconds { Nanoseconds(threads.reduce(0) { $0 &+ $1.others.count }) }

    /// Rivals of all threads together, the longest first.
    package var rivals: [Rival] { Self.sums(threads.flatMap(\.rivals)) }

    // MARK: - Who ran

    /// CLOCK_MONOTONIC.
    private struct Run: BitwiseCopyable {
        var begin: Int64
        var end: Int64
        var process: Int
        var thread: Int
    }

    /// When threads of the run had each CPU, in the order of time.
    private static func cpus(_ processes: [WaitSearch], _ known: [Int]) -> [UInt16: [Run]] {
        var cpus: [UInt16: [Run]] = [:]
        for process in known {
            let search = processes[process]
            for (thread, states) in search.threads.enumerated() {
                for stretch in states.stretches where stretch.state == .running {
                    cpus[stretch.cpu, default: []].append(
                        Run(begin: search.monotonic(stretch.begin), end: search.monotonic(stretch.end), process: process, thread: thread))
                }
            }
        }
        return cpus.mapValues { $0.sorted { ($0.begin, $0.end) < ($1.begin, $1.end) } }
    }

    private static func ofThread(_ search: WaitSearch, process: Int, thread: Int, _ cpus: [UInt16: [Run]]) -> OfThread {
        let states = search.threads[thread], window = search.trace.window
        var result = OfThread(process: process, thread: thread), rivals: [Rival] = []
        for (index, stretch) in states.stretches.enumerated() {
            // A switch is from running to something else: a thread that has just begun is ready without one.
            if index > 0, states.stretches[index - 1].state == .running, window.touches(stretch.begin, stretch.begin) {
                if stretch.state == .waiting { result.voluntary += 1 }
                if stretch.state == .runnable { result.involuntary += 1 }
            }
            guard stretch.state == .runnable else { continue }
            for part in window.parts(stretch) {
                let begin = search.monotonic(part.begin), end = max(search.monotonic(part.end), begin)
                result.ready.count &+= UInt64(bitPattern: end &- begin)
                let runs = cpus[part.cpu] ?? []
                var next = bisect(runs.count) { runs[$0].end <= begin }, from = begin
                while next < runs.count, runs[next].begin < end {
                    let run = runs[next], until = min(run.end, end)
                    from = max(from, run.begin)
                    next += 1
                    if from >= until || (run.process, run.thread) == (process, thread) { continue }
                    rivals.append(Rival(process: run.process, thread: run.thread, duration: Nanoseconds(UInt64(bitPattern: until &- from))))
                    from = until
                }
            }
        }
        result.rivals = sums(rivals)
        return result
    }

    private static func sums(_ all: [Rival]) -> [Rival] {
        struct Key: Hashable {
            var process: Int
            var thread: Int
        }
        return Dictionary(all.map { (Key(process: $0.process, thread: $0.thread), $0) }) { first, second in
            Rival(
                process: first.process, thread: first.thread, duration: Nanoseconds(first.duration.count &+ second.duration.count))
        }.values.sorted { ($0.duration, $1.process, $1.thread) > ($1.duration, $0.process, $0.thread) }
    }
}

// MARK: - Rows

/// The context switches of a run's threads.
struct SwitchRow: Record {
    let report: WaitReport
    let switches: ContextSwitches

    static let members = declare {
        Member("voluntary", "the thread waited for something", \.switches.voluntary)
        Member("involuntary", "it could have gone on", \.switches.involuntary)
        Member(
            "runnable_ns", "time in which threads were ready to run and had no CPU, from being preempted or begun until they ran",
            \.switches.ready)
        Member("ran_instead", rivalMeaning) { row in row.switches.rivals.map { RivalRow(report: row.report, rival: $0) } }
        Member("others_ns", othersMeaning, \.switches.others)
        Member("threads", "") { row in row.switches.threads.map { ThreadSwitchRow(report: row.report, switches: $0) } }
    }
}

private let rivalMeaning = "threads of the run that had the CPU meanwhile which the thread had lost or, if it had just begun, got"
private let othersMeaning = "the rest of runnable_ns: it was not a thread of the run that ran there"

private struct ThreadSwitchRow: Record {
    let report: WaitReport
    let switches: ContextSwitches.OfThread

    static let members = declare {
        Member("thread", "name", \.thread.name)
        Member("tid", \.thread.tid)
        Member("pid") { $0.report.processes[$0.switches.process].trace.header.pid }
        Member("voluntary", \.switches.voluntary)
        Member("involuntary", \.switches.involuntary)
        Member("runnable_ns", \.switches.ready)
        Member("ran_instead") { row in row.switches.rivals.map { RivalRow(report: row.report, rival: $0) } }
        Member("others_ns", \.switches.others)
    }

    private var thread: ThreadStates { report.processes[switches.process].threads[switches.thread] }
}

private struct RivalRow: Record {
    let report: WaitReport
    let rival: ContextSwitches.Rival

    static let members = declare {
        Member("thread", "name", \.thread.name)
        Member("tid", \.thread.tid)
        Member("pid") { $0.report.processes[$0.rival.process].trace.header.pid }
        Member("duration_ns", \.rival.duration)
    }

    private var thread: ThreadStates { report.processes[rival.process].threads[rival.thread] }
}

extension WaitReport {
    /// nil where the kernel has reported none of any process.
    var switchRow: SwitchRow? { switches.threads.isEmpty ? nil : SwitchRow(report: self, switches: switches) }

    /// "context switches: 1,204 voluntary, 31 involuntary; ready without a CPU for 43.120 ms, which worker/12 had for 40.002 ms, others for
    /// 3.118 ms"
    var switchText: String? {
        guard !switches.threads.isEmpty else { return nil }
        let text = "context switches: \(grouped(switches.voluntary)) voluntary, \(grouped(switches.involuntary)) involuntary"
        guard switches.ready.count > 0 else { return text }
        let rivals = switches.rivals, most = 3
        var had = rivals.prefix(most).map { (processes[$0.process].threads[$0.thread].title, $0.duration) }
        let rest = rivals.dropFirst(most)
        if !rest.isEmpty {
            had.append(("\(counted(rest.count, "more thread")) of the run", Nanoseconds(rest.reduce(0) { $0 &+ $1.duration.count })))
        }
        if switches.others.count > 0 { had.append(("others", switches.others)) }
        return text + "; ready without a CPU for \(readable(switches.ready)), which "
            + had.enumerated().map { "\($1.0)\($0 == 0 ? " had" : "") for \(readable($1.1))" }.joined(separator: ", ")
    }
}
