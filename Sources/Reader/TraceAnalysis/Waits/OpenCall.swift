// Finds the innermost open call of a thread at given moments. Chunks are read in any order, and only those in whose time a moment lies:
// among the calls open at a moment, the last to begin is kept.
import CTraceLayout
import TraceFormat

/// In place of what a call waits for, of which the trace has 56 bits.
package let noArgument = UInt64.max

package struct OpenCall: BitwiseCopyable, Sendable {
    /// Row of the function table; 0: no call was open.
    package var row: UInt32 = 0
    /// Row of the calling function; 0: none.
    package var parent: UInt32 = 0
    var enter: UInt64 = 0
    var end: UInt64 = 0
    var depth: UInt32 = 0
    /// Return address; 0 unknown.
    var site: UInt64 = 0
    var argument = noArgument

    package init() {}

    init(_ frame: Frame, below parent: Frame, until end: UInt64, depth: Int) {
        (row, self.parent, enter, self.end) = (frame.row, parent.row, frame.enter, end)
        (self.depth, site, argument) = (UInt32(truncatingIfNeeded: depth), frame.site, frame.object ?? noArgument)
    }

    var isKnown: Bool { row != 0 }
    func isSame(as other: OpenCall) -> Bool { row == other.row && enter == other.enter }

    /// - Parameter parts: by row
    func isSaidByCaller(_ parts: [LibraryPart]) -> Bool {
        func part(_ row: UInt32) -> LibraryPart { Int(row) < parts.count ? parts[Int(row)] : .none }
        return part(row).isSaid(by: part(parent))
    }
}

struct OpenCalls: StreamSink, ~Copyable {
    static var wantsSites: Bool { true }
    static var wantsObjects: Bool { true }

    private var rows: RowNumbers
    /// Requested moments by thread, in order.
    private let moments: [UInt32: [UInt64]]
    /// True for calls that do not count; nil: all count.
    private let isPassedOver: (@Sendable (OpenCall) -> Bool)?
    /// Calls found by thread, one for each moment.
    private(set) var found: [UInt32: [OpenCall]] = [:]
    private(set) var calls: UInt64 = 0
    var migratedCalls = Migrations()

    /// Recording did: of calls that were open then no more is known.
    private let isStopped: Bool

    // State of the thread being read.
    private var thread: UInt32?
    private var wanted: [UInt64] = []
    private var current: [OpenCall] = []
    /// The first moment after the call that ended last; nil: to be looked for.
    private var next: Int?
    /// When it is; 0 where that has to be looked for.
    private var nextMoment: UInt64 = 0
    /// Calls that ended last, each outside of those before it: at all of these moments a call is known that began with it or later. A
    /// call around it need not look there, or each of a million nested calls would look at all moments within it.
    private var settled: [(moments: Range<Int>, enter: UInt64, depth: UInt32)] = []
    private var site: UInt64 = 0
    private var object: UInt64?
    /// The call that began last may end where its argument does not stand any more: in the thread's next chunk, which another may read.
    private var latest = OpenCall()
    private var carried: [CallKey: UInt64] = [:]
    /// Calls that go on after the part that is being read, outermost first.
    private var goingOn: [OpenCall] = []
    /// Index of the first moment in the part that is being read; not of a thread's last part, in which all calls end.
    private var firstOfPart = 0

    init(_ table: FunctionNames, at moments: [UInt32: [UInt64]], isStopped: Bool, passingOver isPassedOver: (@Sendable (OpenCall) -> Bool)?)
    {
        self.isStopped = isStopped
        rows = RowNumbers(table)
        self.moments = moments
        self.isPassedOver = isPassedOver
    }

    /// Returns for each thread one call for each of its moments, and the function ids that no record describes.
    static func at(
        _ moments: [UInt32: [UInt64]], in trace: TraceFile, _ table: FunctionNames,
        passingOver isPassedOver: (@Sendable (OpenCall) -> Bool)? = nil, workers: Int, progress: ReadingProgress? = nil
    ) -> (calls: [UInt32: [OpenCall]], unknownFunctions: [UInt32]) {
        // Read without the window: a windowed reading clips calls that began before it.
        let trace = trace.narrowed(to: .whole).only(Set(moments.lazy.filter { !$0.value.isEmpty }.map { $0.key }))
        return StreamWorker.read(trace, table, workers: workers, progress: progress) {
            OpenCalls(table, at: moments, isStopped: Int(trace.header.state) == TRACE_STOPPED, passingOver: isPassedOver)
        }.withSink { sink in
            sink.settle()
            return (sink.found, sink.rows.unknownFunctions)
        }
    }

    private mutating func settle() {
        leave()
        for (thread, calls) in found {
            for (index, call) in calls.enumerated() where call.isKnown && call.argument == noArgument {
                if let argument = carried[CallKey(thread: thread, row: call.row, enter: call.enter)] {
                    found[thread]![index].argument = argument
                }
            }
        }
    }

    // MARK: - Moments

    @inline(never) private mutating func note(_ call: OpenCall) {
        if let isPassedOver, isPassedOver(call) { return }
        var index = next ?? bisect(wanted.count) { wanted[$0] <= call.end }
        while index < wanted.count, wanted[index] <= call.end { index += 1 }
        next = index
        nextMoment = index < wanted.count ? wanted[index] : .max
        let end = index
        while index > 0, wanted[index - 1] >= call.enter {
            if let last = settled.last, last.moments.contains(index - 1), (call.enter, call.depth) <= (last.enter, last.depth) {
                index = last.moments.lowerBound
                settled.removeLast()
                continue
            }
            index -= 1
            // Calls inside this one ended, and were noted, before it.
            if !current[index].isKnown || (call.enter, call.depth) > (current[index].enter, current[index].depth) { current[index] = call }
        }
        if settled.count > wanted.count { settled = [] } // calls that do not nest
        if index < end { settled.append((index..<end, call.enter, call.depth)) }
    }

    /// Notes the calls that go on, which may end in a part that is not read. Of the moments left, each goes to the innermost.
    mutating func endPart() {
        var index = wanted.count
        for call in goingOn.reversed() {
            if let isPassedOver, isPassedOver(call) { continue }
            index = min(index, bisect(wanted.count) { wanted[$0] <= call.end })
            while index > firstOfPart, wanted[index - 1] >= call.enter {
                index -= 1
                if !current[index].isKnown || (call.enter, call.depth) > (current[index].enter, current[index].depth) {
                    current[index] = call
                }
            }
        }
        goingOn = []
    }

    /// Ends the current thread: moves what was found for it to `found` and `carried`.
    private mutating func leave() {
        if let thread {
            if latest.isKnown, latest.argument != noArgument {
                carried[CallKey(thread: thread, row: latest.row, enter: latest.enter)] = latest.argument
            }
            found[thread] = current
        }
        thread = nil
        latest = OpenCall()
    }

    mutating func wants(thread: UInt32, from begin: UInt64, to end: UInt64) -> Bool {
        guard let moments = moments[thread] else { return false }
        firstOfPart = bisect(moments.count) { moments[$0] < begin }
        return firstOfPart < moments.count && moments[firstOfPart] <= end
    }

    mutating func carried(_ frame: Frame, until time: UInt64, depth: Int, parent: Frame) {
        goingOn.append(OpenCall(frame, below: parent, until: time, depth: depth))
    }

    mutating func begin(thread: UInt32) {
        leave()
        self.thread = thread
        wanted = moments[thread] ?? []
        current = found.removeValue(forKey: thread) ?? [OpenCall](repeating: OpenCall(), count: wanted.count)
        next = nil
        settled = []
        nextMoment = wanted.isEmpty ? .max : 0
    }

    // MARK: - Calls

    mutating func row(of function: UInt32) -> UInt32 { rows.row(of: function) }
    mutating func leafSite(_ address: UInt64) { site = address }
    mutating func leafObject(_ bits: UInt64?) { object = bits }

    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        if isCall { calls &+= 1 }
        if frame.object != nil { latest = OpenCall(frame, below: parent, until: 0, depth: depth) }
    }
    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending) {
        if latest.row == frame.row, latest.enter == frame.enter { latest = OpenCall() }
        if wanted.isEmpty || ending == .elsewhere { return }
        // The kernel may have reported for longer than the trace goes on.
        let time = ending == .open && !isStopped ? .max : time
        note(OpenCall(frame, below: parent, until: time, depth: depth))
    }
    @inline(__always) mutating func leaf(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool) {
        calls &+= 1
        if _fastPath(end < nextMoment) { return }
        note(OpenCall(Frame(enter: start, row: row, site: site, object: object), below: parent, until: end, depth: depth))
    }
    /// A call that was open on two threads: on neither is known when.
    mutating func migrated(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        migratedCalls.insert(row, enter: start, end: end)
    }

    // MARK: - Parts of a trace

    mutating func translate(_ row: UInt32, from other: borrowing OpenCalls) -> UInt32 { rows.translate(row, from: other.rows) }

    mutating func add(_ other: borrowing OpenCalls) {
        leave()
        calls &+= other.calls
        var theirs = other.found
        if let thread = other.thread { theirs[thread] = other.current }
        for (thread, all) in theirs {
            var mine = found.removeValue(forKey: thread) ?? [OpenCall](repeating: OpenCall(), count: all.count)
            for (index, call) in all.enumerated() where call.isKnown {
                guard !mine[index].isKnown || (call.enter, call.depth) > (mine[index].enter, mine[index].depth) else { continue }
                mine[index] = call
                mine[index].row = translate(call.row, from: other)
                if call.parent != 0 { mine[index].parent = translate(call.parent, from: other) }
            }
            found[thread] = mine
        }
        for (key, argument) in other.carried {
            carried[CallKey(thread: key.thread, row: translate(key.row, from: other), enter: key.enter)] = argument
        }
        if let thread = other.thread, other.latest.isKnown {
            carried[CallKey(thread: thread, row: translate(other.latest.row, from: other), enter: other.latest.enter)] =
                other.latest.argument
        }
        addMigratedCalls(of: other)
    }
}

struct CallKey: Hashable {
    var thread: UInt32
    var row: UInt32
    var enter: UInt64
}
