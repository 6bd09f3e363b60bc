// Moments of a start-up: ticks become nanoseconds since the beginning, and the agent's own share of a stretch is taken out.
import Presentation
import TraceFormat

struct StartupClock {
    let scale: TimeScale
    let origin: Ticks
    /// The agent's own running total at moments it was noted, in the order of time.
    private let own: [(ticks: UInt64, total: UInt64)]

    init(_ trace: TraceFile, origin: Ticks) {
        scale = trace.timeScale
        self.origin = origin
        let records = trace.metadata.start
        var usages =
            records.phases.lazy.filter { $0.monotonic == nil }.map { $0.usage } + records.loads.map { $0.mapped }
            + records.loads.compactMap { $0.end }
        for initializer in records.initializers {
            usages.append(initializer.begin)
            if let end = initializer.end { usages.append(end.usage) }
        }
        var total: UInt64 = 0
        own = usages.sorted { ($0.ticks.raw, $0.ownTicks) < ($1.ticks.raw, $1.ownTicks) }.map {
            total = max(total, $0.ownTicks) // another thread may have noted an older one later
            return ($0.ticks.raw, total)
        }
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

    /// From `from` to `to` without the agent's own work.
    func net(_ from: Ticks, _ to: Ticks) -> Nanoseconds { scale.nanoseconds(netTicks(from, to)) }

    func netTicks(_ from: Ticks, _ to: Ticks) -> UInt64 { to > from ? to.raw - from.raw - agentTicks(from, to) : 0 }

    private func total(at ticks: Ticks) -> UInt64 {
        let next = bisect(own.count) { own[$0].ticks <= ticks.raw }
        return next == 0 ? 0 : own[next - 1].total
    }
}
