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

    package init(
        _ traces: [TraceFile], window: RunWindow? = nil, _ choice: WaitChoice = WaitChoice(), hasStages: Bool = true,
        workers: Int = TraceFile.processorCount, progress: ReadingProgress? = nil
    ) {
        self.window = window
        processes = traces.map { trace in
            let search = WaitSearch(trace, workers: workers, progress: progress)
            let threads = search.threads.indices.filter { choice.isThread?(search.threads[$0]) ?? true }
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

    var missing: [String] {
        var texts: [String] = []
        for text in processes.compactMap({ $0.search.noSwitches }) where !texts.contains(text) { texts.append(text) }
        return texts
    }
}

// MARK: - JSON

extension ThreadReport {
    package var json: JSON {
        .object([
            ("schema", .unsigned(1)), ("window", window?.json ?? .null), ("missing", missing.first.map { .string($0) } ?? .null),
            ("notes", .array(WaitSearch.notes(processes.map { $0.search }).map { .string($0) })),
            ("threads", .array(processes.flatMap { Self.json($0, $0.whole) })),
            (
                "stages",
                .array(
                    processes.flatMap { process in
                        process.stages.map { stage in
                            .object([
                                ("stage", .string(stage.kind)), ("name", .string(stage.name)),
                                ("pid", .unsigned(UInt64(process.search.trace.header.pid))), ("start_ns", .signed(stage.start)),
                                ("duration_ns", .time(stage.duration)), ("threads", .array(Self.json(process, stage.times))),
                            ])
                        }
                    })
            ),
        ])
    }

    private static func json(_ process: Process, _ times: [ThreadTimes]) -> [JSON] {
        let search = process.search, scale = search.trace.timeScale
        func time(_ ticks: UInt64?) -> JSON { .time(ticks.map { scale.nanoseconds($0) }) }
        return zip(process.threads, times).map { thread, times in
            .object([
                ("thread", .string(search.threads[thread].name)), ("tid", .unsigned(UInt64(search.threads[thread].tid))),
                ("pid", .unsigned(UInt64(search.trace.header.pid))),
                ("running_ns", time(times.running)), ("runnable_ns", time(times.runnable)), ("waiting_ns", time(times.waiting)),
                ("unknown_ns", time(times.unknown)), ("kernel_ns", time(times.kernel)),
                ("waits", .object(WaitKind.allCases.compactMap { kind in times.waits[kind].map { (kind.rawValue, time($0)) } })),
            ])
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
                let pid = processes.count > 1 ? "\(process.search.trace.programName)/\(process.search.trace.header.pid): " : ""
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
        let all = parts.flatMap { $0.times }
        let kinds = WaitKind.allCases.filter { kind in all.contains { $0.waits[kind] != nil } }
        let hasKernel = all.contains { $0.kernel != nil }, hasUnknown = all.contains { $0.unknown ?? 0 > 0 }
        var table = TextTable(
            ["running"] + (hasKernel ? ["in kernel"] : []) + ["runnable", "waiting"] + kinds.map { $0.rawValue }
                + (hasUnknown ? ["unknown"] : [])
                + ["thread"], leftAligned: [3 + kinds.count + (hasKernel ? 1 : 0) + (hasUnknown ? 1 : 0)])
        for (process, times) in parts {
            let scale = process.search.trace.timeScale
            func time(_ ticks: UInt64?) -> String { ticks.map { $0 == 0 ? "-" : column(readable(scale.nanoseconds($0))) } ?? "?" }
            for (thread, times) in zip(process.threads, times) where isWhole || !times.isEmpty {
                table.add(
                    [time(times.running)] + (hasKernel ? [time(times.kernel)] : []) + [time(times.runnable), time(times.waiting)]
                        + kinds.map { time(times.waits[$0] ?? 0) } + (hasUnknown ? [time(times.unknown)] : [])
                        + [process.search.threads[thread].title])
            }
        }
        return table.lines(style, width: width)
    }
}
