// When the stages of a start begin and end, on the recording clock: for what is shown stage by stage.
import Presentation
import TraceFormat

struct StartStages {
    struct Stage {
        /// As in `tracer startup --json`; "ready": what comes after it.
        var kind: String
        var name: String
        var ticks: Range<UInt64>
    }
    let all: [Stage]

    /// None where the trace does not say how its program started.
    init(_ trace: TraceFile) {
        all =
            (try? StartMoments(trace)).map { moments in
                Self.all(
                    StartupStage.all(moments), trace, from: moments.clock.origin, total: moments.total,
                    isReady: !moments.ready.candidates.isEmpty)
            } ?? []
    }

    init(_ start: StartupTimeline, _ trace: TraceFile) {
        let isReady = if case .ready = start.outcome { true } else { false }
        all = Self.all(start.stages, trace, from: start.origin, total: start.total, isReady: isReady)
    }

    private static func all(
        _ stages: [StartupStage], _ trace: TraceFile, from origin: Ticks, total: Nanoseconds, isReady: Bool
    ) -> [Stage] {
        let end = origin.raw &+ trace.timeScale.ticks(total)
        var bounds = stages.map { ($0.kind.rawValue, $0.name, origin.raw &+ trace.timeScale.ticks($0.start)) }
        var last = end
        if isReady {
            bounds.append(("ready", "after ready", end))
            last = max(TraceEnd(trace).ticks.raw, end)
        }
        return bounds.enumerated().map { index, bound in
            let (kind, name, begin) = bound, end = index + 1 < bounds.count ? bounds[index + 1].2 : last
            return Stage(kind: kind, name: name, ticks: begin..<max(begin, end))
        }
    }

    func stage(at ticks: UInt64) -> Stage? { all.first { $0.ticks.contains(ticks) } }
}

extension StartupTimeline {
    /// Says of each stage what the main thread did in it, and of each part of the start how long its thread had no CPU, where the kernel
    /// reported it: what it reported of a program that ran in the process before is in that one's trace.
    /// - Parameter known: the waits until ready, if somebody has looked for them
    package mutating func addStates(_ trace: TraceFile, _ known: WaitSearch? = nil) {
        guard trace.noSwitches == nil else { return }
        let bounds = StartStages(self, trace).all
        guard let first = bounds.first, stages.count <= bounds.count else { return }
        let all = first.ticks.lowerBound..<max(first.ticks.lowerBound + 1, bounds[stages.count - 1].ticks.upperBound)
        let search = known ?? WaitSearch(trace.narrowed(to: TimeWindow([all])))
        // Waits for a CPU that are in no duration are no waits here, either.
        let cpuWaits = mainCPUWaits, areCPUWaitsOut = !cpuWaits.isEmpty
        if !areCPUWaitsOut { addOffCPU(search) }
        guard let main = search.threads.firstIndex(where: { $0.tid == trace.header.pid }) else { return }
        if !areCPUWaitsOut { addOffCPU(search, ofMain: main, until: bounds[stages.count - 1].ticks.upperBound) }
        let waits = search.waits[search.waitsOfThread[main]].filter { !search.isOfAgent($0) }
        let others = areCPUWaitsOut ? waits.filter { $0.kind != .processor } : Array(waits)
        mainWaits = others.map {
            MainWait(
                begin: $0.begin, length: $0.duration - min(cpuWaits.length(from: $0.begin, to: $0.end), $0.duration), kind: $0.kind.rawValue
            )
        }
        for index in stages.indices.dropFirst(earlierProgram == nil ? 0 : 1) {
            let stage = bounds[index].ticks
            var times: [WaitKind: UInt64] = [:]
            for wait in others where wait.end > stage.lowerBound && wait.begin < stage.upperBound {
                let begin = max(wait.begin, stage.lowerBound), end = min(wait.end, stage.upperBound)
                let inside = min(end - begin, wait.duration)
                times[wait.kind, default: 0] += inside - min(cpuWaits.length(from: begin, to: end), inside)
            }
            stages[index].states = StageStates(
                stage: stages[index].duration,
                waits: times.map { .init(kind: $0.key.rawValue, duration: trace.timeScale.nanoseconds($0.value)) })
        }
    }

    private mutating func addOffCPU(_ search: WaitSearch) {
        let numbers = Dictionary(search.threads.enumerated().map { ($1.tid, $0) }, uniquingKeysWith: { first, _ in first })
        func offCPU(_ tid: UInt32, in ranges: [Range<UInt64>]) -> OffCPUTime? {
            numbers[tid].map { search.offCPU($0, in: ranges) }
        }
        for index in constructors.indices {
            constructors[index].offCPU = offCPU(constructors[index].tid, in: [constructors[index].ticks])
            constructors[index].selfOffCPU = offCPU(constructors[index].tid, in: constructors[index].ownTicks)
        }
        for index in loads.indices { loads[index].offCPU = offCPU(loads[index].tid, in: [loads[index].ticks]) }
        for index in lazyInitializers.indices {
            let lazy = lazyInitializers[index]
            guard let end = lazy.end, lazy.begin < end else { continue }
            lazyInitializers[index].offCPU = offCPU(lazy.tid, in: [lazy.begin.raw..<end.raw])
        }
    }

    /// A function's self time contains what its thread waited while its call was the innermost one.
    private mutating func addOffCPU(_ search: WaitSearch, ofMain main: Int, until end: UInt64) {
        guard let stage = stages.last, stage.kind == .main else { return }
        let begin = origin.raw &+ search.trace.timeScale.ticks(stage.start)
        var times: [UInt32: (waiting: UInt64, runnable: UInt64)] = [:]
        for wait in search.waits[search.waitsOfThread[main]] where wait.begin >= begin && wait.begin < end {
            if wait.kind == .processor {
                times[wait.call.row, default: (0, 0)].runnable += wait.duration
            } else {
                times[wait.call.row, default: (0, 0)].waiting += wait.duration
            }
        }
        let rows = search.table.rowOfFunction, scale = search.trace.timeScale
        ownCode?.add(
            search.waits[search.waitsOfThread[main]].filter {
                !$0.call.isKnown && $0.begin >= begin && $0.begin < end && !search.isOfAgent($0)
            },
            scale.nanoseconds)
        for index in functionsOfMain.indices {
            let function = Int(functionsOfMain[index].function)
            guard function < rows.count, rows[function] != 0 else { continue }
            let time = times[rows[function]] ?? (0, 0)
            functionsOfMain[index].offCPU = OffCPUTime(
                waiting: scale.nanoseconds(time.waiting), runnable: scale.nanoseconds(time.runnable))
        }
    }
}

extension StartupOwnCode {
    /// - Parameter waits: of the main thread, outside of all recorded calls
    fileprivate mutating func add(_ waits: [Wait], _ length: (UInt64) -> Nanoseconds) {
        runnable = Nanoseconds(waits.reduce(0) { $0 &+ ($1.kind == .processor ? length($1.duration).count : 0) })
        self.waits = Dictionary(grouping: waits.filter { $0.kind != .processor }, by: \.kind).map { kind, waits in
            func sum(_ waits: [Wait]) -> Nanoseconds { Nanoseconds(waits.reduce(0) { $0 &+ length($1.duration).count }) }
            let objects = Dictionary(grouping: waits.filter { $0.object != nil }) { $0.object! }.map { (name: $0, duration: sum($1)) }
            return Waiting(
                kind: kind.rawValue, duration: sum(waits),
                objects: objects.sorted { ($1.duration, $0.name) < ($0.duration, $1.name) })
        }.sorted { ($1.duration, $0.kind) < ($0.duration, $1.kind) }
    }
}

extension WaitSearch {
    /// How long a thread had no CPU, without waits for the agent.
    fileprivate func offCPU(_ thread: Int, in ranges: [Range<UInt64>]) -> OffCPUTime {
        var waiting: UInt64 = 0, runnable: UInt64 = 0
        for range in ranges {
            var index = bisect(parts[thread].count) { parts[thread][$0].end <= range.lowerBound }
            while index < parts[thread].count, parts[thread][index].begin < range.upperBound {
                let part = parts[thread][index], inside = range.clamped(to: part.begin..<part.end)
                index += 1
                if part.kind == .processor {
                    runnable += inside.upperBound - inside.lowerBound
                } else if part.wait != nil {
                    waiting += inside.upperBound - inside.lowerBound
                }
            }
        }
        return OffCPUTime(waiting: trace.timeScale.nanoseconds(waiting), runnable: trace.timeScale.nanoseconds(runnable))
    }
}
