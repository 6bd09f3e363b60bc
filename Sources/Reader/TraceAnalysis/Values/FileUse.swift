// What a run did with one file, by all its processes.
import Presentation
import TraceFormat

package struct FileUse: Sendable {
    package enum Kind: Int, CaseIterable, Sendable { case open, read, write, sync, lookUp, change }
    struct Counts: Sendable {
        var calls = 0, failed = 0
        var time = Nanoseconds(0)
        var bytes: UInt64 = 0
    }
    struct Opener: Sendable {
        /// Name and module of the function that called; nil: none that is recorded.
        var caller: (name: String, module: String)?
        var pid: UInt32
    }

    package let path: String
    private var counts = [Counts](repeating: Counts(), count: Kind.allCases.count)
    /// Mapped into memory: how often, and bytes.
    var maps = Counts()
    /// Off-CPU in these calls.
    var waiting = Nanoseconds(0)
    /// The kernel has reported that of all these calls.
    var isWaitingKnown = true
    /// When the first call began and the last one ended, since the run's beginning.
    var first = Int64.max, last = Int64.min
    /// Process and thread id of each.
    var threads: Set<UInt64> = []
    var processes: Set<UInt32> = []
    var opener: Opener?
    var openedAt = Int64.max
    /// Error of the last call that failed.
    var error: String?

    init(path: String) { self.path = path }

    subscript(kind: Kind) -> Counts {
        get { counts[kind.rawValue] }
        set { counts[kind.rawValue] = newValue }
    }
    var time: Nanoseconds { Nanoseconds(counts.reduce(0) { $0 &+ $1.time.count }) }
    var calls: Int { counts.reduce(0) { $0 + $1.calls } }
    package var hasSucceeded: Bool { counts.contains { $0.calls > $0.failed } }

    /// Origin of what was read, as far as waits show it.
    enum Source: String, JSONChoice { case disk, cache }
    var source: Source? {
        guard isWaitingKnown, self[.read].calls > 0 else { return nil }
        return readWaits ? .disk : .cache
    }
    /// A thread was off-CPU in a call that read.
    var readWaits = false
}
