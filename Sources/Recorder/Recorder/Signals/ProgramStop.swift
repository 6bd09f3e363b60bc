// Ends a program that would run on, politely first.
import Glibc

struct ProgramStop {
    /// Path of the trace, once there is one.
    var path: String?
    private let isReached: (String) -> Bool
    private let pid: pid_t
    private var nextLook: UInt64 = 0
    private var killAt: UInt64?

    var isUnderWay: Bool { killAt != nil }

    /// Between two looks: asking may take a while, and takes its time from the same CPUs.
    private static let interval: UInt64 = 20_000_000
    /// From SIGTERM to SIGKILL, in nanoseconds.
    private static let grace: UInt64 = 2_000_000_000

    /// - Parameter isReached: asked now and then, with the path of the program's trace
    init(_ pid: pid_t, isReached: @escaping (String) -> Bool) { (self.pid, self.isReached) = (pid, isReached) }

    /// Does what is due. Nanoseconds until something is due again; nil when nothing will be.
    mutating func look() -> UInt64? {
        let now = clockTime()
        if let killAt {
            guard killAt != .max else { return nil }
            if now < killAt { return killAt - now }
            kill(pid, SIGKILL)
            self.killAt = .max
            return nil
        }
        guard let path else { return Self.interval }
        guard now >= nextLook else { return nextLook - now }
        guard isReached(path) else {
            let after = clockTime()
            nextLook = after + max(Self.interval, (after - now) * 10)
            return nextLook - after
        }
        kill(pid, SIGTERM)
        kill(pid, SIGCONT) // a stopped one could not hear it
        killAt = clockTime() + Self.grace
        return Self.grace
    }
}
