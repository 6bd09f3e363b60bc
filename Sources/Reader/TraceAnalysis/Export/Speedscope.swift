// speedscope's own format, one "evented" profile for each thread:
// https://github.com/jlfwong/speedscope/wiki/Importing-from-custom-sources. It knows nothing but begins and ends: marks,
// entries and what is missing are frames of no length, whose names say so.
import Presentation
import Synchronization
import TraceFormat

/// Numbers of frames, given when a worker first meets them.
final class SpeedscopeFrames: Sendable {
    private struct State {
        var numbers: [Key: Int] = [:]
        var frames: [Key] = []
    }
    private struct Key: Hashable {
        var name: String
        var module: String?
    }
    private let state = Mutex(State())

    func number(_ name: String, _ module: String?) -> Int {
        state.withLock { state in
            let key = Key(name: name, module: module)
            if let number = state.numbers[key] { return number }
            state.numbers[key] = state.frames.count
            state.frames.append(key)
            return state.frames.count - 1
        }
    }

    var json: JSON {
        .array(
            state.withLock { $0.frames }.map { frame in
                .object([("name", .string(frame.name))] + (frame.module.map { [("file", .string($0))] } ?? []))
            })
    }
}

struct SpeedscopeSink: TimelineSink, ~Copyable {
    private let origin: UInt64
    private let frames: SpeedscopeFrames
    private var text = ByteWriter(capacity: 1 << 20)
    private var thread: ExportThread!
    private var scale: ClockScale!
    /// Their frames' numbers.
    private var numbers = FunctionTexts { _ in "" }
    private var first: UInt64?

    init(origin: UInt64, _ frames: SpeedscopeFrames) {
        self.origin = origin
        self.frames = frames
    }

    mutating func start(_ thread: ExportThread) {
        if self.thread?.source !== thread.source {
            let table = thread.source.table, frames = frames
            numbers = FunctionTexts { function in
                let name = table.name(of: function)
                return String(frames.number(name.name, name.module))
            }
            scale = ClockScale(thread.source)
        }
        self.thread = thread
        first = nil
    }

    @inline(__always) private mutating func event(_ open: StaticString, _ number: [UInt8], at ticks: UInt64) {
        if _slowPath(first == nil) { first = ticks }
        text.append(open)
        text.append(number)
        text.append(",\"at\":")
        let time = Int64(bitPattern: scale.monotonic(ticks) &- origin)
        text.reserve(24)
        if _slowPath(time < 0) { text.store(UInt8(ascii: "-")) }
        text.storeDecimal(time.magnitude)
        text.store(UInt8(ascii: "}"))
    }

    @inline(__always) mutating func begin(_ function: UInt32, at time: UInt64, _ how: TimelineBegin) {
        event(",\n{\"type\":\"O\",\"frame\":", numbers[function], at: time)
        if let note = how.note, how != .continued { self.note("[began \(note)]", at: time) }
    }

    @inline(__always) mutating func end(_ function: UInt32, at time: UInt64, _ how: TimelineEnd) {
        if let note = how.note, how != .interrupted { self.note("[\(note)]", at: time) }
        event(",\n{\"type\":\"C\",\"frame\":", numbers[function], at: time)
    }

    @inline(__always) mutating func leaf(_ function: UInt32, from start: UInt64, to end: UInt64) {
        event(",\n{\"type\":\"O\",\"frame\":", numbers[function], at: start)
        event(",\n{\"type\":\"C\",\"frame\":", numbers[function], at: end)
    }

    @inline(never) private mutating func note(_ text: String, _ module: String? = nil, at time: UInt64) {
        let number = Array(String(frames.number(text, module)).utf8)
        event(",\n{\"type\":\"O\",\"frame\":", number, at: time)
        event(",\n{\"type\":\"C\",\"frame\":", number, at: time)
    }

    mutating func entered(_ function: UInt32, at time: UInt64) {
        let name = thread.source.table.name(of: function)
        note(name.name + " [entered]", name.module, at: time)
    }

    mutating func moment(_ moment: TimelineMoment, at time: UInt64) { note("[\(thread.text(of: moment).name)]", at: time) }

    mutating func takePiece() -> TimelinePiece {
        defer { text.removeAll() }
        return TimelinePiece(bytes: text.bytes, first: first)
    }
}

struct SpeedscopeWriter: TimelineWriter {
    private let frames: SpeedscopeFrames
    private let write: ([UInt8]) throws -> Void
    private var origin: UInt64 = 0
    private var isFirstThread = true
    private var isFirstEvent = true
    private var start: Int64 = 0
    private var name = ""

    init(_ frames: SpeedscopeFrames, _ write: @escaping ([UInt8]) throws -> Void) {
        self.frames = frames
        self.write = write
    }

    mutating func begin(_ sources: [ExportSource]) throws {
        origin = sources.origin
        name = sources.map { $0.name }.joined(separator: ", ")
        try write(Array("{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",\"profiles\":[".utf8))
    }

    mutating func begin(_ thread: ExportThread) throws {
        let name = "\(thread.source.name) \(thread.source.pid): \(thread.name.isEmpty ? "thread" : thread.name) \(thread.tid)"
        try write(
            Array("\(isFirstThread ? "" : ",")\n{\"type\":\"evented\",\"unit\":\"nanoseconds\",\"name\":\(quoted(name)),\"events\":[".utf8))
        isFirstThread = false
        isFirstEvent = true
        start = 0
    }

    private func time(_ ticks: UInt64, _ thread: ExportThread) -> Int64 {
        Int64(bitPattern: thread.source.monotonic(ticks) &- origin)
    }

    mutating func write(_ piece: TimelinePiece, of thread: ExportThread) throws {
        guard let first = piece.first else { return }
        try write(isFirstEvent ? Array(piece.bytes.dropFirst()) : piece.bytes) // every event begins with a comma
        if isFirstEvent { start = min(time(first, thread), 0) }
        isFirstEvent = false
    }

    mutating func end(_ thread: ExportThread) throws {
        try write(Array("],\"startValue\":\(start),\"endValue\":\(max(time(thread.source.end.raw, thread), start))}".utf8))
    }

    mutating func end() throws {
        try write(
            Array("],\n\"shared\":{\"frames\":\(frames.json.text(lines: 0))},\"name\":\(quoted(name)),\"exporter\":\"tracer\"}\n".utf8))
    }
}
