// How often each function of a trace was called, and when first; after a moment also by whom. By the ids of the trace, since two
// functions of a module may have one name.
import TraceFormat

package struct CallCounts: Sendable {
    package struct Pair: Hashable, Sendable {
        package var caller: UInt32
        package var callee: UInt32
    }
    package struct First: Sendable {
        package var function: UInt32
        package var ticks: Ticks
    }

    /// Calls by function id, only of functions that were called.
    package private(set) var calls: [UInt32: UInt64] = [:]
    /// First call of each function, in order of time.
    package private(set) var firsts: [First] = []
    /// Calls from one function to another that began after the moment.
    package private(set) var pairs: [Pair: UInt64] = [:]
    /// All calls that began after the moment, by function id.
    package private(set) var later: [UInt32: UInt64] = [:]

    /// - Parameter moment: nil: nothing comes after it
    package init(
        _ trace: TraceFile, after moment: Ticks? = nil, workers: Int = TraceFile.cpuCount, progress: ReadingProgress? = nil
    ) {
        let table = FunctionNames(apart: trace.metadata), ids = trace.metadata.functions.keys.sorted()
        let all = StreamWorker.read(trace, table, workers: workers, progress: progress) { CountingSink(table, moment: moment?.raw ?? .max) }
        all.withSink { sink in
            for (index, id) in ids.enumerated() {
                let sums = sink.sums[index + 1]
                guard sums.calls > 0 else { continue }
                calls[id] = sums.calls
                firsts.append(First(function: id, ticks: Ticks(sums.first)))
                if sums.later > 0 { later[id] = sums.later }
            }
            for (edge, count) in sink.edges where edge.from != 0 && Int(max(edge.from, edge.to)) <= ids.count {
                pairs[Pair(caller: ids[Int(edge.from) - 1], callee: ids[Int(edge.to) - 1])] = count
            }
        }
        firsts.sort { ($0.ticks, $0.function) < ($1.ticks, $1.function) }
    }
}

/// The last row is for functions that no record describes.
private struct CountingSink: StreamSink, ~Copyable {
    struct Sums: BitwiseCopyable {
        var calls: UInt64 = 0
        var first: UInt64 = .max
        /// Calls that began after the moment.
        var later: UInt64 = 0
    }
    struct Edge: Hashable {
        var from: UInt32
        var to: UInt32
    }
    private(set) var sums: PlainArray<Sums>
    private(set) var edges: [Edge: UInt64] = [:]
    private(set) var calls: UInt64 = 0
    var migratedCalls = Migrations()
    private let moment: UInt64
    private var standIns = CountedStandIns()
    private let rows: RowNumbers

    init(_ table: FunctionNames, moment: UInt64) {
        sums = PlainArray(repeating: Sums(), count: table.rowCount + 1)
        rows = RowNumbers(table)
        self.moment = moment
    }

    @inline(__always) mutating func row(of function: UInt32) -> UInt32 {
        let row = rows.known(function)
        return _fastPath(row != 0) ? row : UInt32(rows.knownCount)
    }

    @inline(__always) private mutating func count(_ row: UInt32, at time: UInt64, from parent: UInt32) {
        calls &+= 1
        sums[Int(row)].calls &+= 1
        sums[Int(row)].first = min(sums[Int(row)].first, time)
        var stoodFor: UInt64 = 0
        if _slowPath(row == standIns.row) {
            stoodFor = standIns.take()
            counted(row, stoodFor)
        }
        if time > moment {
            sums[Int(row)].later &+= 1 &+ stoodFor
            edges[Edge(from: parent, to: row), default: 0] &+= 1 &+ stoodFor
        }
    }

    mutating func sampled(_ row: UInt32, _ calls: UInt64) { standIns.expect(row, calls) }
    mutating func takeStood() -> [UInt32: UInt64] { standIns.takeStood() }
    mutating func counted(_ row: UInt32, _ calls: UInt64) {
        self.calls &+= calls
        sums[Int(row)].calls &+= calls
    }

    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        if isCall { count(frame.row, at: frame.enter, from: parent.row) }
    }
    mutating func leaf(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool) {
        count(row, at: start, from: parent.row)
    }
    mutating func add(_ other: borrowing CountingSink) {
        calls &+= other.calls
        for row in 0..<other.sums.count {
            sums[row].calls &+= other.sums[row].calls
            sums[row].first = min(sums[row].first, other.sums[row].first)
            sums[row].later &+= other.sums[row].later
        }
        edges.merge(other.edges) { $0 &+ $1 }
    }
}
