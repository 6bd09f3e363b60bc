// The snapshots that the user wants while a program is recorded, as `tracer record --keep` has them.
import TraceFormat

package struct SnapshotPlan: Equatable, Sendable {
    /// A function, as the agent finds it (Triggers.swift), and how long its calls may take, in nanoseconds; or another event.
    package struct Trigger: Equatable, Sendable {
        /// FUNCTION or MODULE!FUNCTION; globs. Or Variables.Triggers.stall, or exception; or `crash`, or a signal's name in parentheses, by which a
        /// process ends: the agent knows nothing of these.
        package var pattern: String
        /// It is no function's.
        package var isEvent: Bool { pattern.hasPrefix("(") }
        package static let crash = "(crash)"
        /// The end of a process by this signal; nil: it has no such name.
        package static func end(by name: String) -> Trigger? {
            SignalName.number(name).map { .init(pattern: "(\(SignalName.text($0)))", nanoseconds: 0) }
        }
        /// It is about how a process ends.
        package var isOfEnd: Bool { pattern == Self.crash || isEvent && SignalName.number(name) != nil }
        package func ends(by signal: Int32) -> Bool {
            pattern == Self.crash ? SignalName.dumpsCore(signal) : isEvent && SignalName.number(name) == signal
        }
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
    package var text: String? {
        let told = triggers.filter { !$0.isOfEnd }
        return told.isEmpty ? nil : told.map { "\($0.pattern)>\($0.nanoseconds)" }.joined(separator: ":")
    }
    /// What the ring must keep.
    var milliseconds: String { "\((before &+ after) / 1_000_000)." + String(1_000_000 + (before &+ after) % 1_000_000).dropFirst() }
}
