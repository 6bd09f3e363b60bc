// Calls of some functions, one by one, with what was recorded of them.
import TraceFormat

struct ThreadCall: BitwiseCopyable, Sendable {
    /// Index in the trace.
    var thread: UInt32
    var call: OpenCall
    /// It has returned.
    var isOver: Bool

    /// .max: it has not ended.
    var end: UInt64 { isOver ? call.end : .max }
}

struct ThreadCalls: StreamSink, ~Copyable {
    static var wantsSites: Bool { true }
    static var wantsObjects: Bool { true }

    /// Functions that are asked for have records, and so rows of the table.
    private var rows: RowNumbers
    /// True for the functions that are asked for, by row.
    private let isWanted: [Bool]
    private let isChosen: @Sendable (OpenCall) -> Bool
    private var thread: UInt32 = 0
    private var site: UInt64 = 0
    private var object: UInt64?
    private(set) var found: [ThreadCall] = []
    /// A call may end in another chunk than the one that has its argument, which another worker may read. Calls with an argument that are
    /// open in the chunk being read, outermost first; those that were at the end of one; and calls that ended without it.
    private var open: [(key: CallKey, object: UInt64)] = []
    private var carried: [CallKey: UInt64] = [:]
    private var unresolved: [ThreadCall] = []
    /// nil: all calls that are chosen are wanted.
    private var pairs: LockPairs?
    private(set) var isTooMany = false
    private(set) var calls: UInt64 = 0
    var migratedCalls = Migrations()

    private static var most: Int { 1 << 22 }

    init(_ table: FunctionNames, _ isWanted: [Bool], pairs: LockPairs? = nil, _ isChosen: @escaping @Sendable (OpenCall) -> Bool) {
        self.pairs = pairs
        rows = RowNumbers(table)
        self.isWanted = isWanted
        self.isChosen = isChosen
    }

    /// - Parameter isWanted: by row
    /// - Returns: in no order; nil where they are too many
    static func all(
        in trace: TraceFile, _ table: FunctionNames, _ isWanted: [Bool], workers: Int, progress: ReadingProgress? = nil,
        where isChosen: @escaping @Sendable (OpenCall) -> Bool
    ) -> [ThreadCall]? {
        StreamWorker.read(trace, table, workers: workers, progress: progress) { ThreadCalls(table, isWanted, isChosen) }.withSink { sink in
            sink.resolve()
            return sink.isTooMany ? nil : sink.found
        }
    }

    /// Calls on locks, but for pairs in which nobody waited for the lock: of those only the moments.
    static func onLocks(
        in trace: TraceFile, _ table: FunctionNames, _ isWanted: [Bool], _ pairs: LockPairs, workers: Int,
        progress: ReadingProgress? = nil, where isChosen: @escaping @Sendable (OpenCall) -> Bool
    ) -> (acts: [ThreadCall], takings: [UInt64: [LockPairs.Taking]])? {
        StreamWorker.read(trace, table, workers: workers, progress: progress) { ThreadCalls(table, isWanted, pairs: pairs, isChosen) }
            .withSink { sink in
                sink.resolve()
                return sink.isTooMany ? nil : (sink.found, sink.pairs?.takings ?? [:])
            }
    }

    /// Completes calls whose argument stands in another chunk.
    private mutating func resolve() {
        leave()
        let calls = unresolved
        unresolved = []
        for var one in calls {
            one.call.argument = carried[CallKey(thread: one.thread, row: one.call.row, enter: one.call.enter)] ?? noArgument
            guard !isTooMany, isChosen(one.call) else { continue }
            found.append(one)
            limit()
        }
    }

    private mutating func leave() {
        for (key, object) in open { carried[key] = object }
        open = []
        pairs?.endPart(&found)
    }

    @inline(never) private mutating func note(_ call: OpenCall, isOver: Bool) {
        keep(ThreadCall(thread: thread, call: call, isOver: isOver))
    }

    private mutating func keep(_ call: ThreadCall) {
        guard !isTooMany, isChosen(call.call) else { return }
        if pairs == nil { found.append(call) } else { pairs!.add(call, to: &found) }
        limit()
    }

    /// Notes a call whose argument may stand in another chunk.
    @inline(never) private mutating func noteLater(_ call: OpenCall, isOver: Bool) {
        unresolved.append(ThreadCall(thread: thread, call: call, isOver: isOver))
        limit()
    }

    private mutating func limit() {
        isTooMany = isTooMany || found.count + unresolved.count > Self.most
        if isTooMany { (found, unresolved) = ([], []) }
    }

    @inline(__always) private func isWanted(_ row: UInt32) -> Bool { Int(row) < isWanted.count && isWanted[Int(row)] }

    mutating func row(of function: UInt32) -> UInt32 { rows.row(of: function) }
    mutating func leafSite(_ address: UInt64) { site = address }
    mutating func leafObject(_ bits: UInt64?) { object = bits }
    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        if isCall { calls &+= 1 }
        frame.tag = isCall ? 0 : 1 // it may have begun in another chunk
        if let object = frame.object, isWanted(frame.row) {
            open.append((CallKey(thread: thread, row: frame.row, enter: frame.enter), object))
        }
    }
    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending) {
        guard isWanted(frame.row) else { return }
        // Frames that end by unwinding, too, end from the innermost one on.
        while let last = open.last, last.key.enter > frame.enter || last.key == CallKey(thread: thread, row: frame.row, enter: frame.enter)
        {
            open.removeLast()
        }
        guard ending != .elsewhere else { return }
        let call = OpenCall(frame, below: parent, until: time, depth: depth)
        if frame.object == nil, frame.tag == 1 {
            noteLater(call, isOver: ending == .returned)
        } else {
            note(call, isOver: ending == .returned)
        }
    }
    @inline(__always) mutating func leaf(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool) {
        calls &+= 1
        guard isWanted(row) else { return }
        let frame = Frame(enter: start, row: row, site: site, object: object)
        note(OpenCall(frame, below: parent, until: end, depth: depth), isOver: true)
    }
    mutating func migrated(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        migratedCalls.insert(row, enter: start, end: end)
    }

    mutating func begin(thread: UInt32) {
        leave()
        self.thread = thread
    }
    mutating func add(_ other: borrowing ThreadCalls) {
        calls &+= other.calls
        isTooMany = isTooMany || other.isTooMany
        found += other.found
        if let theirs = other.pairs {
            found += theirs.held
            pairs?.add(theirs)
        }
        unresolved += other.unresolved
        carried.merge(other.carried) { first, _ in first }
        for (key, object) in other.open { carried[key] = object }
        limit()
        addMigratedCalls(of: other)
    }
}
