// States of the main thread in a stage of the start, as far as kernel events show them: they add up to the stage's duration.
import Presentation

/// A wait of the main thread: when it was off-CPU, and why.
package struct MainWait: Sendable {
    var begin: UInt64
    /// Ticks off-CPU, from then on, without those in which it could have gone on if that is in no duration.
    var length: UInt64
    /// As of `tracer waits`.
    var kind: String

    static func text(_ kind: String) -> String {
        switch kind {
        case "processor": "waiting for a CPU"
        case "disk": "waiting for the disk"
        case "event": "waiting for an event"
        case "sleep": "sleeping"
        case "other": "waiting"
        case "join": "waiting for the end of a thread"
        default: "waiting for a \(kind)"
        }
    }
}

/// How long a thread had no CPU in a part of the start: it waited for something; it was runnable, and others had the CPUs.
package struct OffCPUTime: Sendable, Equatable {
    package var waiting: Nanoseconds
    package var runnable: Nanoseconds
}

package struct StageStates: Sendable, Equatable, Record {
    package struct Share: Sendable, Equatable {
        /// "disk", "lock", … as `tracer waits` calls them; "processor": it could have gone on, and others ran.
        package var kind: String
        package var duration: Nanoseconds
        /// "waiting for the disk"
        package var text: String { MainWait.text(kind) }
    }
    package var running: Nanoseconds
    /// The longest first.
    package var waits: [Share]

    /// - Parameter waits: without those for the agent
    package init(stage: Nanoseconds, waits: [Share]) {
        self.waits = waits.filter { $0.duration.count > 0 }.sorted { ($1.duration, $0.kind) < ($0.duration, $1.kind) }
        let waited = self.waits.reduce(0) { $0 &+ $1.duration.count }
        running = Nanoseconds(stage.count > waited ? stage.count - waited : 0)
    }

    /// "running 61%, disk 22%, waiting for a CPU 8%"; nil where it did nothing but run.
    var text: String? {
        let all = waits.reduce(running.count) { $0 &+ $1.duration.count }
        let shown = waits.filter { $0.duration.count >= all / 50 }
        guard all > 0, !shown.isEmpty else { return nil }
        func share(_ duration: Nanoseconds) -> String { percent(Double(duration.count) / Double(all)) }
        return
            (["running \(share(running))"]
            + shown.map { ($0.kind == "processor" ? "waiting for a CPU" : $0.kind) + " " + share($0.duration) }).joined(
                separator: ", ")
    }

    package static let members = declare {
        Member("running_ns", \.running)
        // The longest stands first: the order is that of the waits, not of their kinds.
        Member(
            "waits", "by kind, as of tracer waits; processor: it could have gone on, and others had the CPUs",
            .object(WaitKind.allCases.map { JSONMember(optional: $0.rawValue, .unsigned) })
        ) { .object($0.waits.map { ($0.kind, $0.duration.json) }) }
    }
}
