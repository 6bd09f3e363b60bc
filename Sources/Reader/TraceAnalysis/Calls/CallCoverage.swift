// How much of each thread's span lies in recorded calls. What does not is own code.

/// Ticks of a thread in recorded calls: in its span, and beside it, before main and after it.
struct CoveredTime {
    var inSpan: UInt64 = 0
    var beside: UInt64 = 0

    mutating func add(_ other: CoveredTime) {
        inSpan &+= other.inSpan
        beside &+= other.beside
    }
}

struct CallCoverage {
    private let spans: ThreadSpans?
    private var thread: UInt32 = 0
    private var span = ThreadSpan.nothing
    private var covered = CoveredTime()
    /// Times of the threads before this one, and of parts of it.
    private var ended: [UInt32: CoveredTime] = [:]

    /// - Parameter spans: nil: they are not known yet, and all calls lie beside them
    init(_ spans: ThreadSpans?) { self.spans = spans }

    /// For each chunk or so: no copy of what was kept.
    mutating func begin(thread: UInt32) {
        ended[self.thread, default: CoveredTime()].add(covered)
        covered = CoveredTime()
        self.thread = thread
        span = spans?[thread] ?? .nothing
    }

    /// A call, which counts when it is an outermost one.
    @inline(__always) mutating func add(_ start: UInt64, _ end: UInt64, depth: Int) {
        guard depth == 0 else { return }
        if _fastPath(span.begin <= start && start <= end && end <= span.end) {
            covered.inSpan &+= end &- start
            return
        }
        let inSpan = span.overlap(start, end)
        covered.inSpan &+= inSpan
        covered.beside &+= max(end, start) &- start &- inSpan
    }

    /// Takes back the part of an outermost call that the call above it has, which becomes an outermost one.
    mutating func remove(_ overlap: Overlap, depth: Int) {
        guard depth == 0 else { return }
        let inSpan = span.overlap(overlap.end &- overlap.length, overlap.end)
        covered.inSpan &-= inSpan
        covered.beside &-= overlap.length &- inSpan
    }

    mutating func add(_ other: CallCoverage) { for (thread, time) in other.byThread { ended[thread, default: CoveredTime()].add(time) } }

    var byThread: [UInt32: CoveredTime] {
        var sums = ended
        sums[thread, default: CoveredTime()].add(covered)
        return sums
    }
}
