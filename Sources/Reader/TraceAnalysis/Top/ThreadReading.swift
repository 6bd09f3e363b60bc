// How far a thread of a growing trace has been read.
import TraceFormat

final class ThreadReading {
    let thread: UInt32
    let tid: UInt32
    /// Number of the chunk that is read, and nil until it is begun.
    var sequence: UInt64
    private(set) var chunk: Chunk?
    /// Offset in the chunk of the next word.
    var position = 0
    var decoder = EventDecoder(opened: 0, after: 0)
    /// The last word that was read was an enter: it becomes a complete call if nothing is called in it (trampoline.md).
    var endsInEnter = false
    /// Offsets of an empty word that others follow, and of the end of those that were there when it was met: it is waited for once, and with it
    /// all that are empty until there. nil: none is waited for.
    var awaited: (word: Int, end: Int)?
    /// The chunk has words that were not read, since they may still change.
    var hasUnread = false
    /// Words that were empty: those of trampolines that a signal had interrupted.
    var late: [LateWord] = []
    /// Chunks that have been found and not read, by their numbers: a copy is found once.
    private(set) var pending: [UInt64: Chunk] = [:]
    /// How often the chunk with this number was looked for in vain.
    var missed = 0
    /// The chunk before, if this one follows it.
    private(set) var previous: Chunk?
    /// Time of the latest event.
    var latest: UInt64 = 0
    /// The innermost calls that are open.
    var calls = SuspendedCalls()
    /// Counters of the chunk, as far as they have been added up.
    private var counters: (filtered: UInt64, dropped: UInt64) = (0, 0)

    /// Calls that have been reported of it since the beginning.
    var callsBefore: UInt64 = 0
    var interval = ThreadSums()
    var whole = ThreadSums()
    /// Its calls that were counted alone and for which recorded ones stand, and those that have been added up, by row.
    var stood: [UInt32: UInt64] = [:]
    var counted: [UInt32: UInt64] = [:]
    /// Up to here its time has been counted.
    var until: UInt64
    var hasEnded = false, wasEnded = false
    /// When it ended, where the whole trace says so.
    private(set) var ended: UInt64?
    /// Sums of the interval that has ended last.
    var shown = ThreadSums()

    struct LateWord {
        var chunk: Chunk
        var position: Int
        /// Ticks from which its time counts.
        var base: UInt64
        var looks = 0
    }

    /// - Parameters:
    ///   - sequence: number of its first chunk that is to be read
    ///   - until: ticks from which on its time counts
    init(_ chunk: Chunk, from sequence: UInt64, until: UInt64) {
        thread = chunk.thread
        tid = chunk.tid
        self.sequence = sequence
        self.until = until
    }

    func begin(_ chunk: Chunk, _ scale: TimeScale) {
        self.chunk = chunk
        position = chunk.bodyOffset
        decoder = EventDecoder(opened: chunk.base, after: chunk.sequence == 0 ? 0 : chunk.opened.ticks, scale.correction)
        counters = (0, 0)
        endsInEnter = false
        awaited = nil
        hasUnread = false
    }

    /// Takes note of a chunk, as its header is now.
    func add(_ chunk: Chunk) {
        guard chunk.sequence >= sequence else { return }
        // Two chunks have one number while one is being copied: the closed one is the copy, or the one further back in the file.
        if let known = pending[chunk.sequence],
            known.isClosed && !chunk.isClosed || known.isClosed == chunk.isClosed && known.offset > chunk.offset
        {
            return
        }
        pending[chunk.sequence] = chunk
    }
    func forgetPending() { pending = [:] }
    /// There is another chunk in its place by now.
    func remove(_ chunk: Chunk) { pending[chunk.sequence] = nil }

    /// The chunk has been read to its end.
    func end() {
        pending[sequence] = nil
        previous = chunk
        chunk = nil
        sequence &+= 1
    }

    func end(at time: UInt64) { ended = time }

    /// Everything that was found of it has been read.
    var isReadWhole: Bool { !hasUnread && pending.keys.allSatisfy { $0 == sequence && chunk != nil } }

    /// Goes on with a later chunk; what lies between is not known.
    func skip(to next: UInt64) {
        previous = nil
        chunk = nil
        sequence = next
        pending = pending.filter { $0.key >= next }
        missed = 0
        late = []
    }

    /// Returns what the chunk's counters say beyond what they said before.
    func newCounts(_ chunk: Chunk) -> (filtered: UInt64, dropped: UInt64) {
        let now = (filtered: chunk.filtered, dropped: chunk.dropped)
        guard chunk.sequence == self.chunk?.sequence else { return now } // it is skipped
        defer { counters = now }
        return (now.filtered &- min(counters.filtered, now.filtered), now.dropped &- min(counters.dropped, now.dropped))
    }
}

/// Sums of one thread, in ticks.
struct ThreadSums {
    var calls: UInt64 = 0
    var onlyCounted: UInt64 = 0
    /// How long it ran, and how much of that lay in recorded calls.
    var span: UInt64 = 0
    var inCalls: UInt64 = 0

    mutating func add(_ other: ThreadSums) {
        calls &+= other.calls
        onlyCounted &+= other.onlyCounted
        span &+= other.span
        inCalls &+= other.inCalls
    }
}
