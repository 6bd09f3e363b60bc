// The moment up to which a launch is measured, and what the program did until then, as the kernel accounts for it. On a busy machine much of
// the time from exec to that moment is other programs': it is no part of the launch.

package struct LaunchMoment: Equatable, Sendable {
    /// How long a thread ran since exec, and how long it could have run and had no CPU, nanoseconds.
    package struct Account: Equatable, Sendable {
        var ran: UInt64, waited: UInt64
        package init(ran: UInt64, waited: UInt64) { (self.ran, self.waited) = (ran, waited) }
    }

    /// Moments of CLOCK_MONOTONIC, nanoseconds.
    package let exec: UInt64, at: UInt64
    /// When the tool heard of it, not before `at`. `at` is an estimate on a busy machine, and may be too early by as long as the program
    /// waited for the disk while the tool had no CPU; until here, what the program did is part of the launch: who reports the end of it
    /// waits until the tool has heard.
    package let heard: UInt64
    /// CPU time of all threads, nanoseconds.
    package let cpu: UInt64
    /// How long the first thread could have run and had no CPU, nanoseconds; nil where the kernel does not say.
    package let cpuWait: UInt64?
    /// How long other threads that were there could have run and had no CPU, in all: the first one may have waited for them.
    package let othersWait: UInt64

    /// - Parameters:
    ///   - heard: when the tool heard of it
    ///   - late: how long the tool itself had no CPU until then, at most since it happened. The launch lasted as long as its first thread
    ///     ran, and waited to run, in any case.
    package init(exec: UInt64, at heard: UInt64, late: UInt64 = 0, cpu: UInt64, firstThread: Account?, othersWait: UInt64 = 0) {
        self.exec = exec
        self.heard = max(heard, exec)
        self.cpu = cpu
        self.othersWait = othersWait
        cpuWait = firstThread?.waited
        let most = self.heard - exec, least = firstThread.map { min($0.ran &+ $0.waited, most) } ?? 0
        at = exec + max(most - min(late, most), least)
    }

    /// From exec to here.
    package var wall: UInt64 { at - exec }
    /// The same without the time in which the first thread had no CPU: how long the launch took.
    package var net: UInt64 { wall - min(cpuWait ?? 0, wall) }
}
