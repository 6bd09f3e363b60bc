// Moments of a start-up: ticks become nanoseconds since the beginning, and the agent's own share of a stretch is taken out, with the time
// in which its thread could have gone on and had no CPU, where somebody has found that out.
import Presentation
import TraceFormat

struct StartupClock {
    let scale: TimeScale
    let origin: Ticks
    /// The agent's own running total at moments it was noted, in the order of time, without `cpuWaits`.
    private let own: [(ticks: UInt64, total: UInt64)]
    /// Waits for a CPU by index of the thread.
    private let cpuWaits: [UInt32: TimeWindow]

    /// - Parameter cpuWaits: when the threads could have gone on and had no CPU; none: all of their time counts
    init(_ trace: TraceFile, origin: Ticks, cpuWaits: [UInt32: TimeWindow] = [:]) {
        scale = trace.timeScale
        self.origin = origin
        self.cpuWaits = cpuWaits
        let records = trace.metadata.start
        // The work on a descriptor's record is after the moment of the record, any other before that of the note.
        var notes = records.openings.map { (ticks: $0.ticks, own: $0.ownTicks, thread: $0.thread, isBefore: true) }
        func add(_ usage: Usage, _ thread: UInt32) { notes.append((usage.ticks, usage.ownTicks, thread, false)) }
        for phase in records.phases where phase.monotonic == nil { add(phase.usage, phase.thread) }
        for load in records.loads {
            add(load.mapped, load.thread)
            if let end = load.end { add(end, load.thread) }
        }
        for initializer in records.initializers {
            add(initializer.begin, initializer.thread)
            if let end = initializer.end { add(end.usage, initializer.thread) }
        }
        var total: UInt64 = 0, net: UInt64 = 0, last: UInt64 = 0
        own = notes.sorted { ($0.ticks.raw, $0.own) < ($1.ticks.raw, $1.own) }.map { note in
            let work = note.own > total ? note.own - total : 0 // another thread may have noted an older one later
            let end = note.isBefore ? note.ticks.raw &+ work : note.ticks.raw
            total = max(total, note.own)
            net += work
            if work > 0, let waits = cpuWaits[note.thread], last < end {
                net -= Self.inside(work, waits.intersection(last..<end).moments.map { $0.upperBound - $0.lowerBound })
            }
            last = end
            return (note.ticks.raw, net)
        }
    }

    /// How much of the agent's work between two notes it had no CPU for. Where in that time it worked was not noted, but a thread that loses
    /// the CPU loses it in one of the two, the agent's work or the program's: what is longer than the agent's work was the program's.
    private static func inside(_ work: UInt64, _ waits: [UInt64]) -> UInt64 {
        waits.sorted(by: >).reduce(0) { $0 + $1 <= work ? $0 + $1 : $0 }
    }

    /// Since the origin; 0 before it.
    func since(_ ticks: Ticks) -> Nanoseconds { scale.nanoseconds(from: origin, to: ticks) }

    func wall(_ from: Ticks, _ to: Ticks) -> Nanoseconds { scale.nanoseconds(from: from, to: to) }

    /// Returns the ticks that the agent's own work took from `from` to `to`, as far as it was noted by then.
    func agentTicks(_ from: Ticks, _ to: Ticks) -> UInt64 {
        let before = total(at: from), after = total(at: to)
        let share = after > before ? after - before : 0
        return min(share, to > from ? to.raw - from.raw : 0)
    }

    /// From `from` to `to` without the agent's own work, and without what the thread waited for a CPU.
    func net(_ from: Ticks, _ to: Ticks, on thread: UInt32) -> Nanoseconds { scale.nanoseconds(netTicks(from, to, on: thread)) }

    func netTicks(_ from: Ticks, _ to: Ticks, on thread: UInt32) -> UInt64 {
        guard to > from else { return 0 }
        let left = to.raw - from.raw - agentTicks(from, to)
        return left - min(cpuWaits[thread]?.length(from: from.raw, to: to.raw) ?? 0, left)
    }

    private func total(at ticks: Ticks) -> UInt64 {
        let next = bisect(own.count) { own[$0].ticks <= ticks.raw }
        return next == 0 ? 0 : own[next - 1].total
    }
}
