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
    private(set) var isTooMany = false
    private(set) var calls: UInt64 = 0
    var migratedCalls = Migrations()

    private static var most: Int { 1 << 22 }

    init(_ table: FunctionNames, _ isWanted: [Bool], _ isChosen: @escaping @Sendable (OpenCall) -> Bool) {
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
            sink.isTooMany ? nil : sink.found
        }
    }

    @inline(never) private mutating func note(_ call: OpenCall, isOver: Bool) {
        guard !isTooMany, isChosen(call) else { return }
        found.append(ThreadCall(thread: thread, call: call, isOver: isOver))
        limit()
    }

    private mutating func limit() {
        isTooMany = isTooMany || found.count > Self.most
        if isTooMany { found = [] }
    }

    @inline(__always) private func isWanted(_ row: UInt32) -> Bool { Int(row) < isWanted.count && isWanted[Int(row)] }

    mutating func row(of function: UInt32) -> UInt32 { rows.row(of: function) }
    mutating func leafSite(_ address: UInt64) { site = address }
    mutating func leafObject(_ bits: UInt64?) { object = bits }
    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        if isCall { calls &+= 1 }
    }
    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending) {
        guard isWanted(frame.row), ending != .elsewhere else { return }
        note(OpenCall(frame, below: parent, until: time, depth: depth), isOver: ending == .returned)
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

    mutating func begin(thread: UInt32) { self.thread = thread }
    mutating func add(_ other: borrowing ThreadCalls) {
        calls &+= other.calls
        isTooMany = isTooMany || other.isTooMany
        found += other.found
        limit()
        addMigratedCalls(of: other)
    }
}
