// The snapshots that the user wants while a program is recorded, as `tracer record --keep` has them.
import TraceFormat

package struct SnapshotPlan: Equatable, Sendable {
    /// A function, as the agent finds it (Triggers.swift), and how long its calls may take, in nanoseconds; or another event.
    package struct Trigger: Equatable, Sendable {
        /// FUNCTION or MODULE!FUNCTION; globs. Or Variables.Triggers.stall, or exception.
        package var pattern: String
        /// It is no function's.
        package var isEvent: Bool { pattern.hasPrefix("(") }
        var name: String { isEvent ? String(pattern.dropFirst().dropLast()) : pattern }
        package var nanoseconds: UInt64

        package init(pattern: String, nanoseconds: UInt64) {
            self.pattern = pattern
            self.nanoseconds = nanoseconds
        }
    }

    /// Nanoseconds before a call that asks for a snapshot, and after its end.
    package var before: UInt64
    package var after: UInt64
    /// The longest calls get one, so many at a time.
    package var most: Int
    package var triggers: [Trigger]

    package static let usualMost = 10

    package init(before: UInt64, after: UInt64 = 0, most: Int = usualMost, triggers: [Trigger] = []) {
        self.before = before
        self.after = after
        self.most = most
        self.triggers = triggers
    }

    /// As the agent reads them; nil: there are none.
    var text: String? { triggers.isEmpty ? nil : triggers.map { "\($0.pattern)>\($0.nanoseconds)" }.joined(separator: ":") }
    /// What the ring must keep.
    var milliseconds: String { "\((before &+ after) / 1_000_000)." + String(1_000_000 + (before &+ after) % 1_000_000).dropFirst() }
}
