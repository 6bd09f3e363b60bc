// How long threads waited until the agent had space for their events: while one mapped a chunk, or wrote one that was full.
import Presentation

package struct AgentWaits: Sendable {
    package var count: UInt64
    package var total: Nanoseconds
    package var longest: Nanoseconds

    /// Elapsed time, so with what other programs had the CPU meanwhile.
    package var text: String { "\(readable(total)) in \(counted(count, "wait")), the longest \(readable(longest))" }

    static let none = AgentWaits(count: 0, total: Nanoseconds(0), longest: Nanoseconds(0))

    static func + (a: AgentWaits, b: AgentWaits) -> AgentWaits {
        AgentWaits(count: a.count &+ b.count, total: Nanoseconds(a.total.count &+ b.total.count), longest: max(a.longest, b.longest))
    }
}

extension TraceFile {
    /// Waits in the whole trace. An earlier agent did not note them.
    package var agentWaits: AgentWaits {
        AgentWaits(
            count: header.waits, total: timeScale.nanoseconds(header.waited_ticks), longest: timeScale.nanoseconds(header.longest_wait))
    }
}

extension RunSummary {
    package var agentWaits: AgentWaits { processes.reduce(.none) { $1.images.reduce($0) { $0 + $1.agentWaits } } }

    /// nil: they did not matter.
    var agentWaitNote: String? {
        let waits = agentWaits
        guard waits.longest.count >= Self.longWait || Double(waits.total.count) >= Self.leastShare * Double(summary.duration.count) else {
            return nil
        }
        return "threads waited \(waits.text), until the agent had space for their calls"
    }
    /// Nanoseconds.
    private static let longWait: UInt64 = 1_000_000
    private static let leastShare = 0.01
}
