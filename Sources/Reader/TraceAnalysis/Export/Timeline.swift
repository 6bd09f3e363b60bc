// Calls as begins and ends that nest, which is what viewers of timelines ask for. Recorded calls nest but for
// coroutines, where a frame inside the stack returns while those above it are open: those are then interrupted for a
// moment, that is, ended and begun again, each piece marked as one. The lengths of the pieces add up to the call's.
import TraceFormat

package enum TimelineBegin {
    case called
    /// It was running already when the part of the thread began that the trace has.
    case inherited
    /// It was running already when the window of time began.
    case running
    /// The same call as one that was `interrupted` at this moment.
    case continued

    /// Words for the reader of an export; nil where there is nothing to say.
    var note: String? {
        switch self {
        case .called: nil
        case .inherited: "before the first event in the trace"
        case .running: "before the time window"
        case .continued: "continues the slice before"
        }
    }
}

package enum TimelineEnd {
    case returned, unwound, lost, open
    /// The window of time ends before it.
    case part
    case interrupted
    /// The call returned on another thread.
    case returnedElsewhere

    init(_ ending: Ending) {
        switch ending {
        case .returned: self = .returned
        case .unwound: self = .unwound
        case .lost: self = .lost
        case .open: self = .open
        case .part: self = .part
        case .elsewhere: self = .returnedElsewhere
        }
    }

    /// Words for the reader of an export; nil where there is nothing to say.
    var note: String? {
        switch self {
        case .returned: nil
        case .unwound: "unwound: left without returning"
        case .lost: "lost: its end is in a gap of the trace"
        case .open: "still running at the end"
        case .part: "only partly in the time window"
        case .interrupted: "continues in the next slice"
        case .returnedElsewhere: "returned on another thread"
        }
    }
}

package enum TimelineMoment {
    /// An exit of which no enter is known.
    case orphan(function: UInt32)
    /// A call that began on another thread, at these ticks, has returned here.
    case arrived(function: UInt32, start: UInt64)
    /// Number of chunks that are not in the file.
    case missing(UInt64)
}

/// Receives one thread after the other, in pieces: times in ticks that never go back within a piece, and
/// matching begins and ends.
package protocol TimelineSink: ~Copyable {
    mutating func start(_ thread: ExportThread)
    /// True if the sink takes recorded arguments and results.
    static var wantsArguments: Bool { get }
    /// Takes the arguments of the call that begins next, as a slice, a leaf or an entry; nil: none are recorded.
    mutating func nextArguments(_ values: RecordedValues?)
    /// Takes the result of the call whose slice ends next; nil: none is recorded.
    mutating func nextResult(_ values: RecordedValues?)
    mutating func begin(_ function: UInt32, at time: UInt64, _ how: TimelineBegin)
    mutating func end(_ function: UInt32, at time: UInt64, _ how: TimelineEnd)
    mutating func leaf(_ function: UInt32, from start: UInt64, to end: UInt64)
    /// Only the entry of the function is recorded.
    mutating func entered(_ function: UInt32, at time: UInt64)
    mutating func moment(_ moment: TimelineMoment, at time: UInt64)
    /// Returns what was written since `start`.
    mutating func takePiece() -> TimelinePiece
}

extension TimelineSink where Self: ~Copyable {
    package static var wantsArguments: Bool { false }
    package mutating func nextArguments(_ values: RecordedValues?) {}
    package mutating func nextResult(_ values: RecordedValues?) {}
}

package struct TimelinePiece: Sendable {
    package var bytes: [UInt8] = []
    /// Functions that it speaks of, each once, where the format must introduce them.
    var functions: [UInt32] = []
    /// Ticks of its first event, where the format must know.
    var first: UInt64?

    package init(bytes: [UInt8] = [], functions: [UInt32] = [], first: UInt64? = nil) {
        self.bytes = bytes
        self.functions = functions
        self.first = first
    }
}

struct Timeline<Sink: TimelineSink & ~Copyable>: CallSink, ~Copyable {
    var sink: Sink
    /// Function ids of the open frames, as the sink has heard of them.
    private var open = PlainArray<UInt32>()
    private var isEntryOnly: PlainArray<Bool>
    private var latest: UInt64 = 0
    /// Frames are taken up that the piece before has begun.
    var isSilent = false
    var isInherited = false
    private(set) var migrated: [CallEnds.Key: UInt64] = [:]
    private var arguments: RecordedValues?, result: RecordedValues?

    static var wantsArguments: Bool { Sink.wantsArguments }
    @inline(__always) mutating func nextArguments(_ values: RecordedValues?) { arguments = values }
    @inline(__always) mutating func nextResult(_ values: RecordedValues?) { result = values }
    @inline(__always) private mutating func passArguments() { if Sink.wantsArguments { sink.nextArguments(arguments.take()) } }
    @inline(__always) private mutating func passResult() { if Sink.wantsArguments { sink.nextResult(result.take()) } }

    static var deepest: Int { deepestStack }
    static var mostMigrations: Int { 1 << 16 }

    init(_ sink: consuming Sink) {
        self.sink = sink
        isEntryOnly = PlainArray(repeating: false, count: 1)
    }

    mutating func setTable(_ table: FunctionNames) {
        isEntryOnly = PlainArray(repeating: false, count: table.rowOfFunction.count + 1)
        for (id, row) in table.rowOfFunction.enumerated() where row != 0 && table.rows[Int(row) - 1].isEntryOnly {
            isEntryOnly[id + 1] = true
        }
    }

    mutating func start(_ thread: ExportThread) {
        open.removeAll()
        latest = 0
        (arguments, result) = (nil, nil)
        sink.start(thread)
    }

    /// Begins another piece of the same thread, with the frames that are open.
    mutating func goOn(_ thread: ExportThread) {
        (arguments, result) = (nil, nil)
        sink.start(thread)
    }

    @inline(__always) private mutating func time(_ time: UInt64) -> UInt64 {
        latest = max(latest, time)
        return latest
    }

    @inline(__always) mutating func row(of function: UInt32) -> UInt32 { function &+ 1 } // 0 is nobody

    @inline(__always) mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        if Sink.wantsArguments, !isCall { arguments = nil } // a call outside the window had them
        guard depth < Self.deepest else { return }
        let function = frame.row &- 1
        if isSilent {
            open.append(function)
            return
        }
        let moment = self.time(time)
        if _fastPath(depth >= open.count) {
            passArguments()
            sink.begin(function, at: moment, isInherited ? .inherited : isCall ? .called : .running)
            open.append(function)
        } else {
            insert(function, at: depth, moment, isInherited ? .inherited : isCall ? .called : .running)
        }
    }

    @inline(__always) mutating func closed(
        _ frame: Frame, at time: UInt64, depth: Int, parent: Frame,
        isOutermost: Bool, _ ending: Ending
    ) {
        close(frame.row &- 1, at: self.time(time), depth: depth, TimelineEnd(ending))
    }

    @inline(__always) mutating func close(_ function: UInt32, at moment: UInt64, depth: Int, _ ending: TimelineEnd) {
        if _fastPath(depth == open.count &- 1) {
            _ = open.removeLast()
            passResult()
            sink.end(function, at: moment, ending)
        } else if depth < open.count {
            remove(at: depth, moment, ending)
        }
    }

    @inline(__always) mutating func leaf(
        _ row: UInt32, from start: UInt64, to end: UInt64, depth: Int,
        parent: Frame, isOutermost: Bool
    ) {
        let from = time(start), to = time(end)
        passArguments()
        if _slowPath(Int(row) < isEntryOnly.count && isEntryOnly[Int(row)]) {
            sink.entered(row &- 1, at: from)
        } else {
            sink.leaf(row &- 1, from: from, to: to)
        }
    }

    @inline(never) private mutating func insert(_ function: UInt32, at depth: Int, _ moment: UInt64, _ how: TimelineBegin) {
        let above = interrupt(above: depth, moment)
        passArguments()
        sink.begin(function, at: moment, how)
        open.append(function)
        resume(above, moment)
    }

    @inline(never) private mutating func remove(at depth: Int, _ moment: UInt64, _ ending: TimelineEnd) {
        let above = interrupt(above: depth + 1, moment)
        passResult()
        sink.end(open.removeLast(), at: moment, ending)
        resume(above, moment)
    }

    private mutating func interrupt(above depth: Int, _ moment: UInt64) -> [UInt32] {
        var above: [UInt32] = []
        while open.count > depth {
            above.append(open.removeLast())
            sink.end(above[above.count - 1], at: moment, .interrupted)
        }
        return above
    }

    private mutating func resume(_ above: [UInt32], _ moment: UInt64) {
        for function in above.reversed() {
            sink.begin(function, at: moment, .continued)
            open.append(function)
        }
    }

    mutating func migrated(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        if migrated.count < Self.mostMigrations { migrated[.init(enter: start, row: row)] = end }
        sink.moment(.arrived(function: row &- 1, start: start), at: time(end))
    }

    mutating func orphan(_ row: UInt32, at time: UInt64, depth: Int) {
        sink.moment(.orphan(function: row &- 1), at: self.time(time))
    }
    mutating func missing(_ count: UInt64, at time: UInt64) { sink.moment(.missing(count), at: self.time(time)) }
}
