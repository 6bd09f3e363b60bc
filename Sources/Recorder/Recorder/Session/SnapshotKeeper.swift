// Takes the snapshots that the processes of a run ask for, in the first page of their files (trace_request), and keeps those of the longest
// calls. It looks there at every turn of the recorder's loop.
import CRecorder
import CTraceLayout
import Glibc

package struct KeptSnapshots: Equatable, Sendable {
    package var paths: [String] = []
    /// Longer calls than these had their snapshots kept.
    package var passed: UInt64 = 0
    /// There were so many at once that the process wrote over requests that nobody had seen.
    package var missed: UInt64 = 0
    /// Functions with a trigger, in all processes.
    package var watched: UInt64 = 0
    /// As the user has named them.
    package var patterns: [String] = []
    /// What else was to be watched for: stall, exception.
    package var events: [String] = []
    /// How many could not be written, and why the first of them could not: one line.
    package var failed: UInt64 = 0
    package var problem: String?
}

struct SnapshotKeeper {
    private struct Process {
        let header: TraceHeader
        /// 0: it counts in another namespace.
        let pid: pid_t
        var seen: UInt64 = 0
        /// It has ended: how is asked until then, since its parent may still wait for it.
        var isAskedUntil: UInt64?
    }
    private struct Pending {
        let header: TraceHeader
        let request: trace_request
        /// CLOCK_MONOTONIC: the call's end.
        let end: UInt64
        let nanoseconds: UInt64
    }
    private struct Kept {
        let path: String
        let nanoseconds: UInt64
        /// tracer_snapshot asked for it: no longer call takes its place.
        let isOwn: Bool
    }

    private let plan: SnapshotPlan
    private let directory: String
    private var processes: [Process] = []
    private var pending: [Pending] = []
    private var kept: [Kept] = []
    private var result = KeptSnapshots()
    /// Knows when threads ran and waited; nil: nobody does.
    var kernel: KernelWatch?
    /// How a process has ended; nil: it is not known, or not yet.
    var exit: (pid_t) -> ProcessExit? = { _ in nil }
    /// When processes that have ended are let go: a descriptor each.
    private var nextFarewell: UInt64 = 0

    /// A call waits at most so long for its snapshot to begin.
    private static let interval: UInt64 = 10_000_000
    private static let patience: UInt64 = 5_000_000_000

    init(_ plan: SnapshotPlan, directory: String) {
        self.plan = plan
        result.patterns = plan.triggers.filter { !$0.isEvent }.map(\.pattern)
        result.events = plan.triggers.filter(\.isEvent).map(\.name)
        self.directory = directory
    }

    mutating func add(_ header: TraceHeader) {
        let state = header.current, countsHere = state.pid_namespace != 0 && state.pid_namespace == ProcessStatus.ownNamespace
        processes.append(Process(header: header, pid: countsHere ? pid_t(bitPattern: state.pid) : 0))
    }

    /// Returns after how many nanoseconds the next look is due.
    mutating func look() -> UInt64 {
        let now = clockTime()
        if now >= nextFarewell {
            // Before a last look at them.
            let gone = Set(processes.map(\.pid).filter { $0 != 0 && ProcessStatus.isGone($0) })
            for n in processes.indices { note(n) }
            let over = Set(processes.indices.filter { gone.contains(processes[$0].pid) && noteEnd($0, now) })
            for n in over { result.watched &+= processes[n].header.current.watched }
            processes = processes.indices.filter { !over.contains($0) }.map { processes[$0] }
            nextFarewell = now &+ 1_000_000_000
        } else {
            for n in processes.indices { note(n) }
        }
        take(until: now)
        return pending.map { due($0) > now ? due($0) &- now : 0 }.min().map { min($0, Self.interval) } ?? Self.interval
    }

    /// The program has ended: what is still to be taken is taken now.
    mutating func end() -> KeptSnapshots {
        _ = look()
        for n in processes.indices where processes[n].pid != 0 && ProcessStatus.isGone(processes[n].pid) { _ = noteEnd(n, .max) }
        take(until: .max)
        result.watched = processes.reduce(result.watched) { $0 &+ $1.header.current.watched }
        result.paths = kept.map(\.path)
        return result
    }

    private mutating func note(_ index: Int) {
        let process = processes[index], state = process.header.current, count = state.requests
        if count <= process.seen { return }
        let found = process.header.requests(after: process.seen, until: count)
        result.missed &+= count &- process.seen &- UInt64(found.count)
        processes[index].seen = count
        let scale = Scale(state)
        for request in found where request.end_ticks >= request.begin_ticks {
            pending.append(
                Pending(
                    header: process.header, request: request, end: scale.monotonic(request.end_ticks),
                    nanoseconds: scale.nanoseconds(request.end_ticks &- request.begin_ticks)))
        }
    }

    /// A process has ended: perhaps by a signal that is waited for. Returns false if it is not known yet how.
    private mutating func noteEnd(_ index: Int, _ now: UInt64) -> Bool {
        let process = processes[index], isLast = !processes[(index + 1)...].contains { $0.pid == process.pid }
        guard plan.triggers.contains(where: \.isOfEnd), isLast else { return true }
        guard let exit = exit(process.pid) else {
            let end = process.isAskedUntil ?? (now &+ Self.patience)
            processes[index].isAskedUntil = end
            return now >= end
        }
        guard case .killed(let signal) = exit, let n = plan.triggers.firstIndex(where: { $0.ends(by: signal) }) else { return true }
        process.header.set(exit)
        let state = process.header.current, end = max(state.last.ticks, state.first.ticks)
        let request = trace_request(
            begin_ticks: end, end_ticks: end, thread: 0, function: UInt32(bitPattern: signal),
            trigger: UInt32(n) | UInt32(TRACE_REQUEST_ENDED), number: 1)
        pending.append(Pending(header: process.header, request: request, end: Scale(state).monotonic(end), nanoseconds: 0))
        return true
    }

    private func due(_ one: Pending) -> UInt64 { one.end &+ plan.after }
    private mutating func take(until now: UInt64) {
        let ready = pending.filter { due($0) <= now }
        if ready.isEmpty { return }
        pending = pending.filter { due($0) > now }
        // The longest first: of many at once the others need no copy.
        for one in ready.sorted(by: { $0.nanoseconds > $1.nanoseconds }) { take(one) }
    }

    private mutating func take(_ one: Pending) {
        let isEnd = one.request.trigger & UInt32(TRACE_REQUEST_ENDED) != 0
        let isOwn = one.request.trigger == TRACE_REQUEST_OWN || isEnd, rivals = kept.filter { $0.isOwn == isOwn }
        let smallest = isOwn ? nil : rivals.min { $0.nanoseconds < $1.nanoseconds }
        if rivals.count >= plan.most, smallest.map({ $0.nanoseconds >= one.nanoseconds }) ?? true {
            result.passed &+= 1
            return
        }
        let state = one.header.current, scale = Scale(state), name = name(of: one, scale, state)
        do throws(Snapshot.Failure) {
            let begin = one.request.begin_ticks, before = scale.ticks(plan.before)
            _ = try Snapshot.take(of: one.header.file, since: begin > before ? begin &- before : 0, request: one.request, to: name)
        } catch {
            result.failed &+= 1
            result.problem = result.problem ?? "\(name): \(error.text)"
            return
        }
        let begun = scale.monotonic(one.request.begin_ticks)
        kernel?.append(to: name, since: begun > plan.before ? begun - plan.before : 0)
        kept.append(Kept(path: name, nanoseconds: one.nanoseconds, isOwn: isOwn))
        if rivals.count >= plan.most, let smallest {
            unlink(smallest.path)
            kept.removeAll { $0.path == smallest.path }
            result.passed &+= 1
        }
    }

    /// PROGRAM.2026-11-26T10.04.11.312.FUNCTION-61ms.snapshot.trace, in local time; a later one of the same moment has a number.
    private func name(of one: Pending, _ scale: Scale, _ state: trace_file_header) -> String {
        let isOwn = one.request.trigger == TRACE_REQUEST_OWN, index = Int(one.request.trigger & UInt32(TRACE_REQUEST_INDEX))
        let isEnd = !isOwn && one.request.trigger & UInt32(TRACE_REQUEST_ENDED) != 0
        let reason =
            isEnd
            ? SignalName.text(Int32(bitPattern: one.request.function))
            : !isOwn && plan.triggers.indices.contains(index) ? "\(plan.triggers[index].name)-\(Self.short(one.nanoseconds))" : "own"
        let time = SnapshotName.time(state.first_realtime_ns &+ one.end &- state.first.monotonic_ns)
        return SnapshotName.free(in: directory, program: SnapshotName.program(of: one.header.path, pid: state.pid), time, reason)
    }
    private static func short(_ nanoseconds: UInt64) -> String {
        switch nanoseconds {
        case ..<1000: "\(nanoseconds)ns"
        case ..<1_000_000: "\(nanoseconds / 1000)us"
        case ..<10_000_000_000: "\(nanoseconds / 1_000_000)ms"
        default: "\(nanoseconds / 1_000_000_000)s"
        }
    }
}

/// What ticks of a trace are in time, of a process of this machine that runs, or has just ended.
struct Scale {
    private let first: trace_clock_sample
    private let perTick: Double

    /// The header's two samples may be of one moment yet, so the clocks of now are read where they are the same ones: not under an emulator.
    init(_ header: trace_file_header) {
        first = header.first
        var last = header.last
        if header.clock == UInt32(RECORDER_CYCLE_CLOCK) {
            last = trace_clock_sample(ticks: recorder_cycles(), monotonic_ns: clockTime())
        }
        let isLater = last.ticks > first.ticks && last.monotonic_ns > first.monotonic_ns
        perTick = isLater ? Double(last.monotonic_ns - first.monotonic_ns) / Double(last.ticks - first.ticks) : 1
    }
    func nanoseconds(_ ticks: UInt64) -> UInt64 { UInt64(Double(ticks) * perTick) }
    func ticks(_ nanoseconds: UInt64) -> UInt64 { UInt64(Double(nanoseconds) / perTick) }
    func monotonic(_ ticks: UInt64) -> UInt64 {
        ticks < first.ticks ? first.monotonic_ns : first.monotonic_ns &+ nanoseconds(ticks &- first.ticks)
    }
}
