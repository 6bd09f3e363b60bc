// CSV (RFC 4180): a row for each call, in the order in which calls end, so that a row is complete when it is written.
import Presentation
import TraceFormat

struct CallRows: CallSink, ~Copyable {
    private let origin: UInt64
    var text = ByteWriter(capacity: 1 << 20)
    private var thread: ExportThread!
    private var scale: ClockScale!
    private var names = FunctionTexts { _ in "" }
    /// The same, up to the end of a row without values.
    private var ends = FunctionTexts { _ in "" }
    private var threadFields: [UInt8] = []
    /// Ticks spent in the calls made by the frame of this depth.
    private var inCalls = PlainArray<UInt64>()
    /// Ticks that the call which ends next has in common with the one above it, which goes on.
    private var overlap: UInt64 = 0
    private var arguments: RecordedValues?, result: RecordedValues?
    /// Arguments of open calls, by the numbers in their frames' tags.
    private var passed: [UInt64: RecordedValues] = [:]
    private var number: UInt64 = 0

    static let header = "process,pid,thread,tid,depth,start_ns,duration_ns,self_ns,ended,function,module,arguments,result,errno\n"

    static var wantsArguments: Bool { true }
    @inline(__always) mutating func nextArguments(_ values: RecordedValues?) { arguments = values }
    @inline(__always) mutating func nextResult(_ values: RecordedValues?) { result = values }

    init(origin: UInt64) { self.origin = origin }

    mutating func start(_ thread: ExportThread) {
        if self.thread?.source !== thread.source {
            let table = thread.source.table
            func fields(_ function: UInt32) -> String {
                let name = table.name(of: function)
                return CSV.field(name.name) + "," + CSV.field(name.module)
            }
            names = FunctionTexts { fields($0) }
            ends = FunctionTexts { fields($0) + ",,,\n" }
            scale = ClockScale(thread.source)
        }
        self.thread = thread
        threadFields = Array("\(CSV.field(thread.source.name)),\(thread.source.pid),\(CSV.field(thread.name)),\(thread.tid),".utf8)
        inCalls.removeAll()
        passed = [:]
        (arguments, result) = (nil, nil)
    }

    /// The last columns of a row: the function, an object, a value, a name.
    @inline(__always) private mutating func finish(_ function: UInt32, _ arguments: RecordedValues? = nil, _ result: RecordedValues? = nil)
    {
        if _fastPath(arguments == nil && result == nil) { return text.append(ends[function]) }
        text.append(names[function])
        let metadata = thread.source.trace.metadata, end = metadata.result(result)
        let named = metadata.arguments(arguments, result).map { CSV.field($0.json.text(lines: 0)) } ?? ""
        text.append("," + named + "," + (end.map { CSV.field($0.value.text) } ?? "") + "," + (end?.errno ?? "") + "\n")
    }

    @inline(__always) private mutating func begin(_ depth: Int, from start: UInt64) {
        text.append(threadFields)
        text.append(decimal: UInt64(depth))
        text.append(",")
        text.append(signed: Int64(bitPattern: scale.monotonic(start) &- origin))
        text.append(",")
    }

    @inline(__always) private mutating func call(
        _ function: UInt32, from start: UInt64, to end: UInt64, inCalls: UInt64,
        depth: Int, _ ended: StaticString, _ arguments: RecordedValues? = nil, _ result: RecordedValues? = nil
    ) {
        let ticks = end &- start
        begin(depth, from: start)
        text.append(decimal: thread.source.trace.timeScale.nanoseconds(ticks).count)
        text.append(",")
        text.append(signed: thread.source.trace.timeScale.signedNanoseconds(Int64(truncatingIfNeeded: ticks &- inCalls)))
        text.append(ended)
        finish(function, arguments, result)
        if depth > 0, depth <= self.inCalls.count { self.inCalls[depth - 1] &+= ticks }
    }

    @inline(__always) mutating func row(of function: UInt32) -> UInt32 { function &+ 1 } // 0 is nobody

    @inline(__always) mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        let values = arguments.take()
        frame.tag = 0
        if _slowPath(values != nil), isCall {
            number += 1
            frame.tag = number
            passed[number] = values
        }
        if _fastPath(depth >= inCalls.count) { inCalls.append(repeating: 0, count: depth + 1 - inCalls.count) } else { insert(at: depth) }
    }
    /// A call below others that are open, of which a chunk is the first to say.
    @inline(never) private mutating func insert(at depth: Int) {
        var index = inCalls.count
        inCalls.append(0)
        while index > depth {
            inCalls[index] = inCalls[index - 1]
            index -= 1
        }
        inCalls[depth] = 0
    }

    @inline(__always) mutating func closed(
        _ frame: Frame, at time: UInt64, depth: Int, parent: Frame,
        isOutermost: Bool, _ ending: Ending
    ) {
        let inCalls = (depth < self.inCalls.count ? self.inCalls.remove(at: depth) : 0) &+ overlap
        if _slowPath(overlap > 0) {
            if depth > 0 { self.inCalls[depth - 1] &-= overlap }
            overlap = 0
        }
        let end = max(time, frame.since), values = frame.tag == 0 ? nil : passed.removeValue(forKey: frame.tag), result = result.take()
        let how: StaticString =
            switch ending {
            case .returned: ",returned,"
            case .unwound: ",unwound,"
            case .lost: ",lost,"
            case .open: ",open,"
            case .part: ",part,"
            case .elsewhere: ",returned elsewhere,"
            }
        call(frame.row &- 1, from: frame.since, to: end, inCalls: inCalls, depth: depth, how, values, ending == .returned ? result : nil)
    }

    mutating func interleaved(_ frame: Frame, _ overlap: Overlap, depth: Int, parent: Frame) { self.overlap = overlap.length }

    @inline(__always) mutating func leaf(
        _ row: UInt32, from start: UInt64, to end: UInt64, depth: Int,
        parent: Frame, isOutermost: Bool
    ) {
        let values = arguments.take()
        if _slowPath(start == end), thread.source.table.isEntryOnly(row &- 1) {
            begin(depth, from: start)
            text.append(",,entered,")
            finish(row &- 1, values)
        } else {
            call(row &- 1, from: start, to: end, inCalls: 0, depth: depth, ",returned,", values)
        }
    }

    mutating func migrated(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        // Its own time is that of the thread where it began.
        call(row &- 1, from: start, to: end, inCalls: end &- start, depth: 0, ",returned here,", nil, result.take())
    }

    private mutating func moment(_ moment: TimelineMoment, at time: UInt64, depth: Int) {
        let words = thread.text(of: moment)
        begin(depth, from: time)
        text.append(",," + words.category + "," + CSV.field(words.name) + ",,,,\n")
    }

    mutating func orphan(_ row: UInt32, at time: UInt64, depth: Int) {
        begin(depth, from: time)
        text.append(",,orphan,")
        finish(row &- 1)
    }
    mutating func unseen(_ frame: Frame, depth: Int, from begin: UInt64, to end: UInt64) {
        if depth < inCalls.count { inCalls[depth] &+= end &- begin }
    }
    mutating func missing(_ count: UInt64, at time: UInt64) { moment(.missing(count), at: time, depth: 0) }
}

struct CallRowExport {
    /// Threads one after the other, each read from its first chunk to its last.
    static func write(_ sources: [ExportSource], to output: ([UInt8]) throws -> Void) throws {
        try output(Array(CallRows.header.utf8))
        let origin = sources.origin
        for source in sources {
            var stack = CallStack(CallRows(origin: origin), rowCount: 0, window: source.trace.lifetime)
            var reader = ChunkReader(source.trace)
            for thread in source.threads {
                stack.sink.start(thread)
                stack.seek(0)
                var previous: Chunk?
                var latest: UInt64 = 0
                for listed in thread.chunks {
                    guard let chunk = reader.settled(listed) else { continue }
                    let stored = reader.storedFrames(chunk)
                    let missing = chunk.sequence &- (previous.map { $0.sequence &+ 1 } ?? 0)
                    if missing > 0, stack.isInside { stack.sink.missing(missing, at: chunk.opened.ticks) }
                    stack.begin(chunk, stored, after: previous, latest: latest, areCalls: true)
                    latest = max(latest, reader.read(chunk, into: &stack))
                    previous = chunk
                    try output(stack.sink.text.bytes)
                    stack.sink.text.removeAll()
                }
                let end = thread.atEnd
                stack.closeAll(at: end.time, end.how)
                try output(stack.sink.text.bytes)
                stack.sink.text.removeAll()
            }
        }
    }
}
