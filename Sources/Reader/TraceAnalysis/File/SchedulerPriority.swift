// Scheduling priority of a thread: of two that are ready, the kernel runs the one with the higher one (sched(7)).

package struct SchedulerPriority: Equatable, Sendable {
    /// SCHED_; those that this reader does not know come in no order.
    var policy: Int32
    var nice: Int32
    /// Priority for SCHED_FIFO and SCHED_RR, 1 to 99.
    var realTime: UInt32

    package init(policy: Int32, nice: Int32, realTime: UInt32) {
        self.policy = policy
        self.nice = nice
        self.realTime = realTime
    }

    private static let other: Int32 = 0, fifo: Int32 = 1, roundRobin: Int32 = 2, batch: Int32 = 3, idle: Int32 = 5, deadline: Int32 = 6

    /// Classes come one after another; within one, greater values come first.
    private var rank: (class: Int, within: Int)? {
        switch policy {
        case Self.deadline: (3, 0)
        case Self.fifo, Self.roundRobin: (2, Int(realTime))
        case Self.other, Self.batch: (1, -Int(nice))
        case Self.idle: (0, 0)
        default: nil
        }
    }

    /// The other one goes first.
    package func isLower(than other: SchedulerPriority) -> Bool {
        guard let rank, let others = other.rank else { return false }
        return rank < others
    }

    /// "real-time 10", "nice 5"
    package var text: String {
        switch policy {
        case Self.deadline: "deadline"
        case Self.fifo, Self.roundRobin: "real-time \(realTime)"
        case Self.idle: "idle"
        case Self.other, Self.batch: "nice \(nice)"
        default: "policy \(policy)"
        }
    }
}
