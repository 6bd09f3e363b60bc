// How much of each thread's span lies in recorded calls. What does not is own code.

struct CallCoverage {
    private let spans: ThreadSpans
    private var thread: UInt32 = 0
    private var span = ThreadSpan.nothing
    private var covered: UInt64 = 0
    /// Ticks of the threads before this one, and of parts of it.
    private var ended: [UInt32: UInt64] = [:]

    init(_ spans: ThreadSpans) { self.spans = spans }

    /// For each chunk or so: no copy of what was kept.
    mutating func begin(thread: UInt32) {
        if covered > 0 { ended[self.thread, default: 0] &+= covered }
        covered = 0
        self.thread = thread
        span = spans[thread] ?? .nothing
    }

    /// A call, which counts when it is an outermost one.
    @inline(__always) mutating func add(_ start: UInt64, _ end: UInt64, depth: Int) {
        if depth == 0 { covered &+= span.overlap(start, end) }
    }

    /// Takes back the part of an outermost call that the call above it has, which becomes an outermost one.
    mutating func remove(_ overlap: Overlap, depth: Int) {
        if depth == 0 { covered &-= span.overlap(overlap.end &- overlap.length, overlap.end) }
    }

    mutating func add(_ other: CallCoverage) { ended.merge(other.byThread) { $0 &+ $1 } }

    /// Ticks in calls.
    var byThread: [UInt32: UInt64] {
        var sums = ended
        if covered > 0 { sums[thread, default: 0] &+= covered }
        return sums
    }
}
