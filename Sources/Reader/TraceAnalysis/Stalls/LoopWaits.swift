// Every call in which a thread may have waited as an event loop does, and what else tells where its turns end.
import TraceFormat

/// A call path, as far as it matters here, from which waits are made: those of one loop have one place, or few.
struct LoopPlace: Hashable, Sendable {
    /// Rows of the function that waits, and of the one that calls it; 0: none that is recorded.
    var row: UInt32
    var caller: UInt32
    /// Frames below it.
    var depth: UInt32
    /// How many of these are functions that run a loop.
    var loops: UInt32
    /// What was recorded with it: the descriptor of an epoll instance. `noArgument`: nothing.
    var object = noArgument
}

struct LoopWait: BitwiseCopyable, Sendable {
    enum End: UInt8 {
        case returned
        /// Chunks are missing that have it.
        case lost
        /// The thread waited until its end, or the trace's.
        case open
    }
    var begin: UInt64
    var end: UInt64
    /// Index in `ThreadWaits.places` or, while reading, the sink's.
    var place: UInt32
    var how: End
}

/// What a turn may end with, if no wait follows.
struct LoopLeave: BitwiseCopyable, Sendable {
    /// When the call began, and when the thread left it for good.
    var enter: UInt64
    var at: UInt64
    /// It was a call from which the program does not come back. Otherwise it had waits in it, and returned.
    var isEnd: Bool
}

/// One thread's, in the order of time. None lies within another.
struct ThreadWaits: Sendable {
    var waits: [LoopWait] = []
    var places: [LoopPlace] = []
    /// Sorted by `at`.
    var leaves: [LoopLeave] = []
    /// Times of which it is not known what the thread did.
    var gaps: [Range<UInt64>] = []
}

struct LoopWaits: StreamSink, ~Copyable {
    static var wantsObjects: Bool { true }

    /// Bit in a frame's tag: it began in another part of the thread, where it may have had waits in it. The rest is `LoopPlace.loops`.
    private static var isAdopted: UInt64 { 1 << 63 }
    /// More are not kept: of 24 bytes each.
    private static let most = 1 << 25

    private var rows: RowNumbers
    private let functions: [LoopFunction?]
    private(set) var calls: UInt64 = 0
    var migratedCalls = Migrations()
    /// Calls of functions that wait which were counted and not recorded.
    private(set) var unrecorded: UInt64 = 0
    private(set) var isTooMany = false

    private var places: [LoopPlace] = []
    private var numbers: [LoopPlace: UInt32] = [:]
    private var latestPlace = LoopPlace(row: .max, caller: 0, depth: 0, loops: 0), latestNumber: UInt32 = 0
    private var waits: [UInt32: [LoopWait]] = [:]
    private var leaves: [UInt32: [LoopLeave]] = [:]
    private var gaps: [UInt32: [Range<UInt64>]] = [:]
    private var count = 0

    // State of the thread's part that is being read.
    private var thread: UInt32 = 0
    private var current: [LoopWait] = []
    private var currentLeaves: [LoopLeave] = []
    /// When the last wait of the part began, and the one before.
    private var last: UInt64 = 0, previous: UInt64 = 0
    private var object: UInt64?

    init(_ table: FunctionNames, _ functions: [LoopFunction?]) {
        rows = RowNumbers(table)
        self.functions = functions
    }

    /// Returns what was found, by thread; nil where they are too many to keep. And the calls that wait but were only counted.
    static func all(in trace: TraceFile, _ table: FunctionNames, _ functions: [LoopFunction?], workers: Int, progress: ReadingProgress?)
        -> (threads: [UInt32: ThreadWaits]?, unrecorded: UInt64)
    {
        StreamWorker.read(trace, table, workers: workers, progress: progress) { LoopWaits(table, functions) }.withSink { sink in
            sink.leave()
            return (sink.isTooMany ? nil : sink.byThread, sink.unrecorded)
        }
    }

    private var byThread: [UInt32: ThreadWaits] {
        waits.reduce(into: [:]) { result, one in
            result[one.key] = ofThread(
                one.value, (leaves[one.key] ?? []).sorted { ($0.at, $0.enter) < ($1.at, $1.enter) }, gaps[one.key] ?? [])
        }
    }

    private func ofThread(_ waits: [LoopWait], _ leaves: [LoopLeave], _ gaps: [Range<UInt64>]) -> ThreadWaits {
        let isInOrder = zip(waits, waits.dropFirst()).allSatisfy { $0.begin < $1.begin }
        // The outer one comes first where two begin at once.
        let ordered =
            isInOrder ? waits : waits.sorted { ($0.begin, places[Int($0.place)].depth) < ($1.begin, places[Int($1.place)].depth) }
        var thread = ThreadWaits(leaves: leaves, gaps: gaps), numbers = [UInt32?](repeating: nil, count: places.count)
        let known = knownPlaces
        thread.waits.reserveCapacity(ordered.count)
        var end: UInt64 = 0, begin: UInt64?
        for wait in ordered where wait.begin >= end && wait.begin != begin {
            let place = known[Int(wait.place)]
            if numbers[place] == nil {
                numbers[place] = UInt32(thread.places.count)
                thread.places.append(places[place])
            }
            (begin, end) = (wait.begin, wait.end)
            thread.waits.append(LoopWait(begin: wait.begin, end: wait.end, place: numbers[place]!, how: wait.how))
        }
        return thread
    }

    /// For each place itself or, where the object stands in a chunk before, another that has one and is the same otherwise.
    private var knownPlaces: [Int] {
        var known: [LoopPlace: Int] = [:]
        for (index, place) in places.enumerated() where place.object != noArgument {
            var unknown = place
            unknown.object = noArgument
            if known[unknown] == nil { known[unknown] = index }
        }
        return places.enumerated().map { known[$1] ?? $0 }
    }

    @inline(__always) private func function(_ row: UInt32) -> LoopFunction? { Int(row) < functions.count ? functions[Int(row)] : nil }

    private mutating func number(_ place: LoopPlace) -> UInt32 {
        if place == latestPlace { return latestNumber }
        latestPlace = place
        if let known = numbers[place] {
            latestNumber = known
        } else {
            latestNumber = UInt32(places.count)
            numbers[place] = latestNumber
            places.append(place)
        }
        return latestNumber
    }

    @inline(never) private mutating func note(_ frame: Frame, until end: UInt64, depth: Int, parent: Frame, _ how: LoopWait.End) {
        guard !isTooMany else { return }
        let place = number(
            LoopPlace(
                row: frame.row, caller: parent.row, depth: UInt32(truncatingIfNeeded: depth),
                loops: UInt32(truncatingIfNeeded: parent.tag & ~Self.isAdopted), object: frame.object ?? noArgument))
        current.append(LoopWait(begin: frame.enter, end: max(end, frame.enter), place: place, how: how))
        (previous, last) = (last, max(last, frame.enter))
        count += 1
        if count > Self.most { (isTooMany, current, waits) = (true, [], [:]) }
    }

    private mutating func leave() {
        if !current.isEmpty { waits[thread, default: []] += current }
        if !currentLeaves.isEmpty { leaves[thread, default: []] += currentLeaves }
        (current, currentLeaves, last, previous) = ([], [], 0, 0)
    }

    // MARK: - Calls

    mutating func begin(thread: UInt32) {
        leave()
        self.thread = thread
    }

    mutating func row(of function: UInt32) -> UInt32 { rows.row(of: function) }
    mutating func leafObject(_ bits: UInt64?) { object = bits }

    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        if isCall { calls &+= 1 }
        let loops = parent.tag & ~Self.isAdopted
        frame.tag = (function(frame.row) == .runs ? loops &+ 1 : loops) | (isCall ? 0 : Self.isAdopted)
    }

    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending) {
        if ending == .elsewhere { return }
        switch function(frame.row) {
        case .waits:
            note(
                frame, until: ending == .open ? .max : time, depth: depth, parent: parent,
                ending == .open ? .open : ending == .lost ? .lost : .returned)
        case .ends where ending == .open || ending == .unwound:
            currentLeaves.append(LoopLeave(enter: frame.enter, at: frame.enter, isEnd: true))
        default:
            // A frame with one wait in it is a part of a turn. When a frame of another part of the thread had one, nobody knows here.
            guard frame.enter <= previous || frame.tag & Self.isAdopted != 0, ending == .returned || ending == .unwound else { return }
            currentLeaves.append(LoopLeave(enter: frame.enter, at: time, isEnd: false))
        }
    }

    mutating func leaf(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool) {
        calls &+= 1
        guard _slowPath(function(row) == .waits) else { return }
        note(Frame(enter: start, row: row, object: object), until: end, depth: depth, parent: parent, .returned)
    }

    mutating func migrated(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        migratedCalls.insert(row, enter: start, end: end)
    }

    mutating func unseen(_ frame: Frame, depth: Int, from begin: UInt64, to end: UInt64) {
        if begin < end { gaps[thread, default: []].append(begin..<end) }
    }

    mutating func sampled(_ row: UInt32, _ calls: UInt64) { counted(row, calls) }
    mutating func counted(_ row: UInt32, _ calls: UInt64) { if function(row) == .waits { unrecorded &+= calls } }

    // MARK: - Parts of a trace

    mutating func translate(_ row: UInt32, from other: borrowing LoopWaits) -> UInt32 { rows.translate(row, from: other.rows) }

    mutating func add(_ other: borrowing LoopWaits) {
        leave()
        calls &+= other.calls
        unrecorded &+= other.unrecorded
        count += other.count
        isTooMany = isTooMany || other.isTooMany || count > Self.most
        addMigratedCalls(of: other)
        if isTooMany { return waits = [:] }
        var numbers: [UInt32] = []
        for var place in other.places {
            place.caller = place.caller == 0 ? 0 : translate(place.caller, from: other)
            numbers.append(number(place))
        }
        func add(_ others: [LoopWait], to thread: UInt32) {
            waits[thread, default: []] += others.lazy.map { wait in
                var wait = wait
                wait.place = numbers[Int(wait.place)]
                return wait
            }
        }
        for (thread, all) in other.waits { add(all, to: thread) }
        add(other.current, to: other.thread)
        for (thread, all) in other.leaves { leaves[thread, default: []] += all }
        leaves[other.thread, default: []] += other.currentLeaves
        for (thread, all) in other.gaps { gaps[thread, default: []] += all }
    }
}
