// The Trace Event Format of chrome://tracing, which many viewers read: microseconds with three decimals since the start,
// since a double does not hold nanoseconds of an epoch. Leaves are X events; what has calls in it is a B and an E, in
// time order, so that nothing overlaps.
import Presentation
import TraceFormat

struct ChromeSink: TimelineSink, ~Copyable {
    private let origin: UInt64
    private var text = ByteWriter(capacity: 1 << 20)
    private var thread: ExportThread!
    private var scale: ClockScale!
    private var names = FunctionTexts { _ in "" }
    /// "pid":…,"tid":…,"ts":
    private var threadMembers: [UInt8] = []
    private var arguments: RecordedValues?, result: RecordedValues?

    init(origin: UInt64) { self.origin = origin }

    static var wantsArguments: Bool { true }
    @inline(__always) mutating func nextArguments(_ values: RecordedValues?) { arguments = values }
    @inline(__always) mutating func nextResult(_ values: RecordedValues?) { result = values }

    mutating func start(_ thread: ExportThread) {
        if self.thread?.source !== thread.source {
            let source = thread.source
            names = FunctionTexts { function in
                ",\"name\":" + quoted(source.table.name(of: function).name) + ",\"cat\":" + quoted(source.category(of: function))
            }
            scale = ClockScale(thread.source)
        }
        self.thread = thread
        threadMembers = Array("\"pid\":\(thread.source.pid),\"tid\":\(thread.tid),\"ts\":".utf8)
    }

    @inline(__always) private func time(_ ticks: UInt64) -> Int64 { Int64(bitPattern: scale.monotonic(ticks) &- origin) }

    @inline(__always) private mutating func open(_ phase: StaticString, at time: Int64) {
        text.append(phase)
        text.append(threadMembers)
        text.reserve(32)
        text.storeMicroseconds(time)
    }

    private mutating func append(arguments: [(String, JSON)]) {
        if !arguments.isEmpty { text.append(",\"args\":" + JSON.object(arguments).text(lines: 0)) }
    }

    /// What the call that begins was passed, and how it began.
    @inline(__always) private mutating func appendArguments(_ note: String? = nil) {
        if _fastPath(arguments == nil && note == nil) { return }
        let values = thread.source.trace.metadata.arguments(arguments.take())?.values ?? []
        append(arguments: (note.map { [("began", .string($0))] } ?? []) + values.map { ($0.name, $0.value.json) })
    }

    /// What the call that ends has returned, and how it ended.
    @inline(__always) private mutating func appendResult(_ note: String?) {
        if _fastPath(result == nil && note == nil) { return }
        let values = thread.source.trace.metadata.result(result.take())
        append(
            arguments: (note.map { [("ended", .string($0))] } ?? []) + (values.map { [("result", $0.value.json)] } ?? [])
                + (values?.errno.map { [("errno", .string($0))] } ?? []))
    }

    @inline(__always) mutating func begin(_ function: UInt32, at time: UInt64, _ how: TimelineBegin) {
        open(",\n{\"ph\":\"B\",", at: self.time(time))
        text.append(names[function])
        appendArguments(how.note)
        text.append("}")
    }

    @inline(__always) mutating func end(_ function: UInt32, at time: UInt64, _ how: TimelineEnd) {
        open(",\n{\"ph\":\"E\",", at: self.time(time))
        appendResult(how.note)
        text.append("}")
    }

    @inline(__always) mutating func leaf(_ function: UInt32, from start: UInt64, to end: UInt64) {
        let start = time(start), end = time(end)
        open(",\n{\"ph\":\"X\",", at: start)
        text.append(",\"dur\":")
        text.reserve(24)
        text.storeMicroseconds(end &- start)
        text.append(names[function])
        appendArguments()
        text.append("}")
    }

    mutating func entered(_ function: UInt32, at time: UInt64) {
        open(",\n{\"ph\":\"i\",\"s\":\"t\",", at: self.time(time))
        text.append(names[function])
        appendArguments()
        text.append("}")
    }

    mutating func moment(_ moment: TimelineMoment, at time: UInt64) {
        let words = thread.text(of: moment)
        open(",\n{\"ph\":\"i\",\"s\":\"t\",", at: self.time(time))
        text.append(",\"name\":" + quoted(words.name) + ",\"cat\":" + quoted(words.category))
        append(arguments: words.details.map { ($0.0, .string($0.1)) })
        text.append("}")
    }

    mutating func takePiece() -> TimelinePiece {
        defer { text.removeAll() }
        return TimelinePiece(bytes: text.bytes)
    }
}

struct ChromeWriter: TimelineWriter {
    let write: ([UInt8]) throws -> Void
    private var isFirst = true

    init(_ write: @escaping ([UInt8]) throws -> Void) { self.write = write }

    private mutating func line(_ members: [(String, JSON)]) throws {
        try write(Array(((isFirst ? "\n" : ",\n") + JSON.object(members).text(lines: 0)).utf8))
        isFirst = false
    }

    mutating func begin(_ sources: [ExportSource]) throws {
        try write(Array("{\"displayTimeUnit\":\"ns\",\"traceEvents\":[".utf8))
        for source in sources {
            let pid = JSON.unsigned(UInt64(source.pid))
            try line([
                ("ph", .string("M")), ("pid", pid), ("name", .string("process_name")),
                ("args", .object([("name", .string(source.name))])),
            ])
            for (ticks, name) in source.marks {
                let time = Double(Int64(bitPattern: source.monotonic(ticks.raw) &- sources.origin)) / 1000 // may be < 0 if damaged
                try line([
                    ("ph", .string("i")), ("s", .string("p")), ("pid", pid), ("tid", pid), ("ts", .number(time)),
                    ("name", .string(name)), ("cat", .string("tracer")),
                ])
            }
        }
    }

    mutating func begin(_ thread: ExportThread) throws {
        try line([
            ("ph", .string("M")), ("pid", .unsigned(UInt64(thread.source.pid))), ("tid", .unsigned(UInt64(thread.tid))),
            ("name", .string("thread_name")), ("args", .object([("name", .string(thread.name))])),
        ])
    }

    mutating func write(_ piece: TimelinePiece, of thread: ExportThread) throws {
        if !piece.bytes.isEmpty { try write(piece.bytes) }
    }

    mutating func end(_ thread: ExportThread) throws {}
    mutating func end() throws { try write(Array("\n]}\n".utf8)) }
}
