// A sink that keeps the sums of another one three times: of wall time, and of the parts of it in which the thread was running and waiting.
// What is left it was runnable. A reading that asks for no states has the other sink alone.

struct SplitSums<Base: StreamSink & ~Copyable>: StreamSink, ~Copyable {
    var wall: Base
    var running: Base
    var waiting: Base
    private let clocks: StateClocks
    private var clock = StateClock()

    // Off-CPU time in outermost calls, within the span of the thread (`CallCoverage`).
    private let spans: ThreadSpans
    private var thread: UInt32 = 0
    private var span = ThreadSpan.nothing
    private var covered = OffCPUTicks()
    private var ended: [UInt32: OffCPUTicks] = [:]

    init(_ clocks: StateClocks, _ spans: ThreadSpans, _ base: () -> Base) {
        (self.clocks, self.spans) = (clocks, spans)
        wall = base()
        running = base()
        waiting = base()
    }

    /// Changes that all three need alike.
    mutating func withEach(_ body: (inout Base) -> Void) {
        body(&wall)
        body(&running)
        body(&waiting)
    }

    private mutating func cover(_ begin: UInt64, _ end: UInt64, depth: Int) {
        guard depth == 0 else { return }
        covered &+= clock.offCPU(from: max(begin, span.begin), to: min(end, span.end))
    }

    /// Own code of all threads by state, in ticks; `running` is not set.
    /// - Parameter spans: when all is read
    func own(of trace: TraceFile, _ spans: ThreadSpans) -> StateTimes {
        var own = StateTimes()
        for thread in trace.chunksOfThread.compactMap({ $0.first?.thread }) {
            if let span = spans[thread] { own &+= StateTimes(whole: 0, ownOffCPU(thread, span, in: trace.window)) }
        }
        return own
    }

    /// Off-CPU time of a thread's own code, in ticks.
    /// - Parameter span: when all is read
    func ownOffCPU(_ thread: UInt32, _ span: ThreadSpan, in window: TimeWindow) -> OffCPUTicks {
        var own = clocks[thread].offCPU(from: span.begin, to: span.end, in: window), covered = ended[thread] ?? OffCPUTicks()
        if thread == self.thread { covered &+= self.covered }
        own.waiting &-= min(covered.waiting, own.waiting)
        own.runnable &-= min(covered.runnable, own.runnable)
        return own
    }
}

extension SplitSums where Base: ~Copyable {
    mutating func row(of function: UInt32) -> UInt32 {
        // Each of them numbers functions that no record describes.
        _ = running.row(of: function)
        _ = waiting.row(of: function)
        return wall.row(of: function)
    }

    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        // They see the same calls in the same order, and so give a frame the same tag.
        var (one, other) = (frame, frame)
        running.opened(&one, parent: parent, at: time, depth: depth, isCall: isCall)
        waiting.opened(&other, parent: parent, at: time, depth: depth, isCall: isCall)
        wall.opened(&frame, parent: parent, at: time, depth: depth, isCall: isCall)
    }

    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending) {
        let whole = clock.offCPU(from: frame.began, to: time)
        let here = frame.since == frame.began ? whole : clock.offCPU(from: frame.since, to: time)
        cover(frame.since, time, depth: depth)
        func length(_ begin: UInt64) -> UInt64 { time > begin ? time &- begin : 0 }
        /// The call as long as a part of it: `whole` from its beginning, and `here` in this part of the thread.
        func part(_ whole: UInt64, _ here: UInt64) -> (frame: Frame, end: UInt64) {
            let end = frame.began &+ whole
            var part = frame
            part.since = end &- min(here, whole)
            return (part, end)
        }
        let ran = part(
            length(frame.began) &- whole.waiting &- whole.runnable, length(frame.since) &- here.waiting &- here.runnable)
        let waited = part(whole.waiting, here.waiting)
        wall.closed(frame, at: time, depth: depth, parent: parent, isOutermost: isOutermost, ending)
        running.closed(ran.frame, at: ran.end, depth: depth, parent: parent, isOutermost: isOutermost, ending)
        waiting.closed(waited.frame, at: waited.end, depth: depth, parent: parent, isOutermost: isOutermost, ending)
    }

    mutating func leaf(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool) {
        let off = clock.offCPU(from: start, to: end), ran = end &- start &- off.waiting &- off.runnable
        cover(start, end, depth: depth)
        wall.leaf(row, from: start, to: end, depth: depth, parent: parent, isOutermost: isOutermost)
        running.leaf(row, from: start, to: start &+ ran, depth: depth, parent: parent, isOutermost: isOutermost)
        waiting.leaf(row, from: start, to: start &+ off.waiting, depth: depth, parent: parent, isOutermost: isOutermost)
    }

    mutating func carried(_ frame: Frame, until time: UInt64, depth: Int, parent: Frame) {
        let off = clock.offCPU(from: frame.since, to: time)
        cover(frame.since, time, depth: depth)
        wall.carried(frame, until: time, depth: depth, parent: parent)
        running.carried(frame, until: time &- off.waiting &- off.runnable, depth: depth, parent: parent)
        waiting.carried(frame, until: frame.since &+ off.waiting, depth: depth, parent: parent)
    }

    mutating func interleaved(_ frame: Frame, _ overlap: Overlap, depth: Int, parent: Frame) {
        let off = clock.offCPU(from: overlap.end &- overlap.length, to: overlap.end)
        let outermost = overlap.outermost.map { ($0, clock.offCPU(from: overlap.began, to: overlap.began &+ $0)) }
        if depth == 0 { covered &-= clock.offCPU(from: max(overlap.end &- overlap.length, span.begin), to: min(overlap.end, span.end)) }
        var (ran, waited) = (overlap, overlap)
        ran.length = overlap.length &- off.waiting &- off.runnable
        ran.outermost = outermost.map { $0 &- $1.waiting &- $1.runnable }
        waited.length = off.waiting
        waited.outermost = outermost.map { $1.waiting }
        wall.interleaved(frame, overlap, depth: depth, parent: parent)
        running.interleaved(frame, ran, depth: depth, parent: parent)
        waiting.interleaved(frame, waited, depth: depth, parent: parent)
    }

    /// A call that went from thread to thread has no state of one: its length counts as running.
    mutating func migrated(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        wall.migrated(row, from: start, to: end, depth: depth)
        running.migrated(row, from: start, to: end, depth: depth)
        waiting.migrated(row, from: start, to: start, depth: depth)
    }

    mutating func orphan(_ row: UInt32, at time: UInt64, depth: Int) { wall.orphan(row, at: time, depth: depth) }

    static var wantsArguments: Bool { Base.wantsArguments }
    mutating func nextArguments(_ values: RecordedValues?) { withEach { $0.nextArguments(values) } }

    static var wantsSites: Bool { Base.wantsSites }
    mutating func leafSite(_ address: UInt64) { withEach { $0.leafSite(address) } }

    mutating func sampled(_ row: UInt32, _ calls: UInt64) { withEach { $0.sampled(row, calls) } }
    mutating func takeStood() -> [UInt32: UInt64] {
        _ = running.takeStood()
        _ = waiting.takeStood()
        return wall.takeStood()
    }
    mutating func counted(_ row: UInt32, _ calls: UInt64) { withEach { $0.counted(row, calls) } }

    mutating func unseen(_ frame: Frame, depth: Int, from begin: UInt64, to end: UInt64) {
        let off = clock.offCPU(from: begin, to: end)
        wall.unseen(frame, depth: depth, from: begin, to: end)
        running.unseen(frame, depth: depth, from: begin, to: end &- off.waiting &- off.runnable)
        waiting.unseen(frame, depth: depth, from: begin, to: begin &+ off.waiting)
    }

    mutating func unknown() { wall.unknown() }

    // MARK: - Parts of a trace

    var calls: UInt64 { wall.calls }
    var migratedCalls: Migrations {
        get { wall.migratedCalls }
        _modify { yield &wall.migratedCalls }
    }

    mutating func begin(thread: UInt32) {
        withEach { $0.begin(thread: thread) }
        ended[self.thread, default: OffCPUTicks()] &+= covered
        covered = OffCPUTicks()
        if thread != self.thread || span == .nothing {
            self.thread = thread
            span = spans[thread] ?? .nothing
            clock = clocks[thread]
        }
    }

    mutating func add(_ other: borrowing Self) {
        wall.add(other.wall)
        running.add(other.running)
        waiting.add(other.waiting)
        for (thread, off) in other.ended { ended[thread, default: OffCPUTicks()] &+= off }
        ended[other.thread, default: OffCPUTicks()] &+= other.covered
    }

    mutating func translate(_ row: UInt32, from other: borrowing Self) -> UInt32 {
        _ = running.translate(row, from: other.running)
        _ = waiting.translate(row, from: other.waiting)
        return wall.translate(row, from: other.wall)
    }

    mutating func translate(_ frame: Frame, from other: borrowing Self) -> Frame {
        _ = running.translate(frame, from: other.running)
        _ = waiting.translate(frame, from: other.waiting)
        return wall.translate(frame, from: other.wall)
    }
}
