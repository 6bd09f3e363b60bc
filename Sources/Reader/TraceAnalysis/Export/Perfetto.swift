// Perfetto's own format: https://perfetto.dev/docs/reference/trace-packet-proto. A thread is a packet sequence, which
// has its names, its defaults (clock and track) and an incremental clock, so that a begin takes some 17 bytes and an end
// 13. Their constant bytes lie together, where a compressor finds them as one match: about 5 bytes are left of a call.
// The importer drops silently what it cannot place, so that the tests count slices.
import Symbols
import TraceFormat

/// Field numbers and values of perfetto_trace.proto.
enum PerfettoField {
    enum Trace { static let packet = 1 }
    enum Packet {
        static let clockSnapshot = 6, timestamp = 8, sequence = 10, trackEvent = 11, internedData = 12, flags = 13
        static let compressedPackets = 50, clock = 58, defaults = 59, trackDescriptor = 60, sample = 66, taskState = 117
    }
    enum Snapshot { static let clocks = 1, primaryClock = 2 }
    enum Clock { static let id = 1, timestamp = 2, isIncremental = 3 }
    enum Track { static let uuid = 1, name = 2, process = 3, thread = 4, parent = 5, counter = 8 }
    enum Process { static let pid = 1, commandLine = 2, name = 6 }
    enum Thread { static let pid = 1, tid = 2, name = 5 }
    enum Counter { static let unitName = 6 }
    enum Event {
        static let categoryID = 3, annotations = 4, type = 9, nameID = 10, track = 11, category = 22, name = 23, counterValue = 30
        static let flows = 47, endedFlows = 48
    }
    enum Interned {
        static let categories = 1, names = 2, functions = 5, frames = 6, stacks = 7, paths = 17, mappings = 19
    }
    enum InternedString { static let id = 1, text = 2 }
    /// GenericKernelTaskStateEvent
    enum TaskState { static let cpu = 1, name = 2, tid = 3, state = 4 }
    /// PerfSample and what it stands on (profile_common.proto)
    enum Sample { static let pid = 2, tid = 3, stack = 4 }
    enum SampleDefaults { static let samples = 12, timebase = 1, frequency = 2, name = 10 }
    enum Stack { static let id = 1, frames = 2 }
    enum StackFrame { static let id = 1, function = 2, mapping = 3 }
    enum Mapping { static let id = 1, path = 7 }
    enum Annotation { static let integer = 3, signed = 4, string = 6, name = 10 }

    /// TrackEvent.Type
    static let sliceBegin: UInt64 = 1, sliceEnd: UInt64 = 2, instant: UInt64 = 3, counter: UInt64 = 4
    /// TaskStateEnum
    static let runnable: UInt64 = 2, running: UInt64 = 3, sleeping: UInt64 = 4, stopped: UInt64 = 6, dead: UInt64 = 7
    /// TracePacket.SequenceFlags
    static let cleared: UInt64 = 1, needsState: UInt64 = 2
    /// BuiltinClock, and a number of the range that belongs to a sequence
    static let realtime: UInt64 = 1, monotonicClock: UInt64 = 3, ownClock: UInt64 = 64
}

private typealias Field = PerfettoField

extension ProtobufMessage {
    /// A TracePacket within a Trace.
    mutating func packet(sequence: UInt64, flags: UInt64 = 0, _ body: (inout ProtobufMessage) -> Void) {
        add(Field.Trace.packet) {
            $0.add(Field.Packet.sequence, sequence)
            if flags != 0 { $0.add(Field.Packet.flags, flags) }
            body(&$0)
        }
    }

    /// An event of the process, with the whole time and the name in it.
    mutating func event(
        _ type: UInt64, track: UInt64, at time: UInt64, category: String = "", _ name: String = "",
        _ body: (inout ProtobufMessage) -> Void
    ) {
        packet(sequence: PerfettoWriter.ownSequence) {
            $0.time(time)
            $0.add(Field.Packet.trackEvent) {
                $0.add(Field.Event.type, type)
                $0.add(Field.Event.track, track)
                if !category.isEmpty { $0.add(Field.Event.category, category) }
                if !name.isEmpty { $0.add(Field.Event.name, name) }
                body(&$0)
            }
        }
    }

    /// Describes a track.
    mutating func track(_ uuid: UInt64, _ body: (inout ProtobufMessage) -> Void) {
        packet(sequence: PerfettoWriter.ownSequence) {
            $0.add(Field.Packet.trackDescriptor) {
                $0.add(Field.Track.uuid, uuid)
                body(&$0)
            }
        }
    }

    /// The thread that a track is of.
    mutating func thread(_ tid: UInt32, _ name: String, of source: ExportSource) {
        add(Field.Track.thread) {
            $0.add(Field.Thread.pid, UInt64(source.pid))
            $0.add(Field.Thread.tid, UInt64(tid))
            if !name.isEmpty { $0.add(Field.Thread.name, name) }
        }
    }

    mutating func interned(_ field: Int, _ id: UInt64, _ text: String) {
        add(field) {
            $0.add(Field.InternedString.id, id)
            $0.add(Field.InternedString.text, text)
        }
    }

    /// A clock of a snapshot.
    mutating func clock(_ id: UInt64, at time: UInt64, isIncremental: Bool = false) {
        add(Field.Snapshot.clocks) {
            $0.add(Field.Clock.id, id)
            $0.add(Field.Clock.timestamp, time)
            if isIncremental { $0.add(Field.Clock.isIncremental, 1) }
        }
    }

    /// The time of a packet that has no sequence's clock.
    mutating func time(_ nanoseconds: UInt64) {
        add(Field.Packet.timestamp, nanoseconds)
        add(Field.Packet.clock, Field.monotonicClock)
    }

    mutating func annotation(_ name: String, _ text: String) {
        add(Field.Event.annotations) {
            $0.add(Field.Annotation.name, name)
            $0.add(Field.Annotation.string, text)
        }
    }

    /// A recorded value: numbers as such, strings without quotes.
    mutating func annotation(_ name: String, _ value: ArgumentValue) {
        add(Field.Event.annotations) {
            $0.add(Field.Annotation.name, name)
            switch value {
            case .integer(let number): $0.add(Field.Annotation.signed, UInt64(bitPattern: number))
            case .unsigned(let number): $0.add(Field.Annotation.integer, number)
            case .string(let bytes, .whole): $0.add(Field.Annotation.string, String(decoding: bytes, as: UTF8.self))
            default: $0.add(Field.Annotation.string, value.text)
            }
        }
    }
}

private func categoryID(_ function: Function?) -> UInt32 {
    guard let function else { return 1 }
    return function.isMark ? 2 : function.isSpan ? 3 : function.module.map { categoryID(module: $0) } ?? 1
}

private func categoryID(module: UInt32) -> UInt32 { module &+ 4 }

/// Ids of a message are not 0; function ids of a damaged file may be.
private func nameID(_ function: UInt32) -> UInt64 { UInt64(function) + 1 }

extension ExportSource {
    var processTrack: UInt64 { UInt64(index + 1) << 32 }
}

extension ExportThread {
    var track: UInt64 { source.processTrack + 1 + UInt64(number) }
}

struct PerfettoSink: TimelineSink, ~Copyable {
    private var packets = ByteWriter(capacity: 1 << 20)
    private var done: [UInt8] = []
    private let compressor = Compressor(level: 1)
    private var thread: ExportThread!
    private var scale: ClockScale!
    private var sequence: UInt64 = 0
    private var last: UInt64 = 0
    private var isStarted = false
    /// Category of each function, indexed by id: its module's, or that of marks or spans.
    private var categories = PlainArray<UInt32>()
    /// Piece that each function was last seen in, indexed by id.
    private var seen = PlainArray<UInt32>()
    private var piece: UInt32 = 0
    private var functions: [UInt32] = []
    private var arguments: RecordedValues?, result: RecordedValues?

    static var wantsArguments: Bool { true }
    @inline(__always) mutating func nextArguments(_ values: RecordedValues?) { arguments = values }
    @inline(__always) mutating func nextResult(_ values: RecordedValues?) { result = values }

    /// Compressed when there are this many bytes: fits a second-level cache.
    private static var blockBytes: Int { 768 << 10 }

    mutating func start(_ thread: ExportThread) {
        if self.thread?.source !== thread.source {
            categories = PlainArray(repeating: UInt32(1), count: 1)
            for (id, function) in thread.source.trace.metadata.functions {
                if Int(id) >= categories.count { categories.append(repeating: 1, count: Int(id) + 1 - categories.count) }
                categories[Int(id)] = categoryID(function)
            }
            scale = ClockScale(thread.source)
        }
        self.thread = thread
        sequence = PerfettoWriter.sequence(of: thread)
        piece &+= 1
        isStarted = false
    }

    /// Nanoseconds since the event before. The first of a piece comes with its own clock snapshot, so that pieces know
    /// nothing of each other.
    @inline(__always) private mutating func elapsed(_ ticks: UInt64) -> UInt64 {
        let now = scale.monotonic(ticks)
        if _slowPath(!isStarted) { startClock(now) }
        let elapsed = now &- last
        last = now
        return elapsed
    }

    @inline(never) private mutating func startClock(_ now: UInt64) {
        isStarted = true
        last = now
        packets.append(
            ProtobufMessage {
                $0.packet(sequence: sequence, flags: Field.needsState) {
                    $0.add(Field.Packet.clockSnapshot) {
                        $0.clock(Field.ownClock, at: now, isIncremental: true)
                        $0.clock(Field.monotonicClock, at: now)
                    }
                }
            }.bytes)
    }

    @inline(__always) private mutating func note(_ function: UInt32) {
        if _slowPath(Int(function) >= seen.count) { seen.append(repeating: 0, count: Int(function) + 1 - seen.count) }
        if _slowPath(seen[Int(function)] != piece) {
            seen[Int(function)] = piece
            functions.append(function)
        }
    }

    /// A packet up to the track event's length: what is the same in every one of the thread.
    @inline(__always) private mutating func open() -> (packet: Int, event: Int) {
        packets.reserve(64)
        packets.store(UInt8(Field.Trace.packet << 3 | 2))
        let packet = packets.count
        packets.store(0)
        packets.store(UInt8(Field.Packet.sequence << 3))
        packets.storeVarint(sequence)
        packets.store(UInt8(Field.Packet.flags << 3))
        packets.store(UInt8(Field.needsState))
        packets.store(UInt8(Field.Packet.trackEvent << 3 | 2))
        let event = packets.count
        packets.store(0)
        return (packet, event)
    }

    /// All lengths are below 64: one byte each.
    @inline(__always) private mutating func close(_ offsets: (packet: Int, event: Int), after elapsed: UInt64) {
        packets.patch(UInt8(truncatingIfNeeded: packets.count &- offsets.event &- 1), at: offsets.event)
        packets.store(UInt8(Field.Packet.timestamp << 3))
        packets.storeVarint(elapsed)
        packets.patch(UInt8(truncatingIfNeeded: packets.count &- offsets.packet &- 1), at: offsets.packet)
        if _slowPath(packets.count >= Self.blockBytes) { compress() }
    }

    @inline(__always) private mutating func event(_ type: UInt64, _ function: UInt32, at time: UInt64) {
        let elapsed = elapsed(time)
        note(function)
        let offsets = open()
        packets.store(UInt8(Field.Event.type << 3))
        packets.store(UInt8(truncatingIfNeeded: type))
        packets.store(UInt8(Field.Event.categoryID << 3))
        packets.storeVarint(UInt64(Int(function) < categories.count ? categories[Int(function)] : 1))
        packets.store(UInt8(Field.Event.nameID << 3))
        packets.storeVarint(nameID(function))
        close(offsets, after: elapsed)
    }

    @inline(__always) private mutating func end(at time: UInt64) {
        let elapsed = elapsed(time)
        let offsets = open()
        packets.store(UInt8(Field.Event.type << 3))
        packets.store(UInt8(Field.sliceEnd))
        close(offsets, after: elapsed)
    }

    /// An event that has more to say.
    @inline(never) private mutating func event(_ type: UInt64, at time: UInt64, _ body: (inout ProtobufMessage) -> Void) {
        let elapsed = elapsed(time)
        packets.append(
            ProtobufMessage {
                $0.packet(sequence: sequence, flags: Field.needsState) {
                    $0.add(Field.Packet.trackEvent) {
                        $0.add(Field.Event.type, type)
                        body(&$0)
                    }
                    $0.add(Field.Packet.timestamp, elapsed)
                }
            }.bytes)
    }

    @inline(__always) mutating func begin(_ function: UInt32, at time: UInt64, _ how: TimelineBegin) {
        if _fastPath(how == .called && arguments == nil) {
            event(Field.sliceBegin, function, at: time)
        } else {
            event(Field.sliceBegin, function, at: time, note: how.note)
        }
    }

    /// An event of a function that has more to say: the arguments of its call, and how that began.
    private mutating func event(_ type: UInt64, _ function: UInt32, at time: UInt64, note text: String?) {
        note(function)
        let (category, id) = (Int(function) < categories.count ? categories[Int(function)] : 1, nameID(function))
        let values = thread.source.trace.metadata.arguments(arguments.take())?.values ?? []
        event(type, at: time) {
            $0.add(Field.Event.categoryID, UInt64(category))
            $0.add(Field.Event.nameID, id)
            if let text { $0.annotation("began", text) }
            for (name, value) in values { $0.annotation(name, value) }
        }
    }

    @inline(__always) mutating func end(_ function: UInt32, at time: UInt64, _ how: TimelineEnd) {
        if _fastPath(how == .returned && result == nil) {
            end(at: time)
        } else {
            let values = thread.source.trace.metadata.result(result.take())
            event(Field.sliceEnd, at: time) {
                if let note = how.note { $0.annotation("ended", note) }
                if let (value, errno) = values {
                    $0.annotation("result", value)
                    if let errno { $0.annotation("errno", errno) }
                }
            }
        }
    }

    @inline(__always) mutating func leaf(_ function: UInt32, from start: UInt64, to end: UInt64) {
        begin(function, at: start, .called)
        self.end(at: end)
    }

    mutating func entered(_ function: UInt32, at time: UInt64) {
        if arguments == nil { event(Field.instant, function, at: time) } else { event(Field.instant, function, at: time, note: nil) }
    }

    mutating func moment(_ moment: TimelineMoment, at time: UInt64) {
        let text = thread.text(of: moment)
        event(Field.instant, at: time) {
            $0.add(Field.Event.category, text.category)
            $0.add(Field.Event.name, text.name)
            for (name, value) in text.details { $0.annotation(name, value) }
        }
    }

    private mutating func compress() {
        guard packets.count > 0 else { return }
        var compressed: [UInt8] = []
        packets.compressed(by: compressor, to: &compressed)
        done += ProtobufMessage { $0.add(Field.Trace.packet) { $0.add(Field.Packet.compressedPackets, compressed) } }.bytes
        packets.removeAll()
    }

    mutating func takePiece() -> TimelinePiece {
        compress()
        defer {
            done = []
            functions = []
        }
        return TimelinePiece(bytes: done, functions: functions)
    }
}

struct PerfettoWriter: TimelineWriter {
    private let write: ([UInt8]) throws -> Void
    private var sources: [ExportSource] = []
    /// Names that the thread's sequence has.
    private var known: Set<UInt32> = []

    init(_ write: @escaping ([UInt8]) throws -> Void) { self.write = write }

    static let ownSequence: UInt64 = 1

    static func sequence(of thread: ExportThread) -> UInt64 { ownSequence + 1 + UInt64(thread.number) }

    mutating func begin(_ sources: [ExportSource]) throws {
        self.sources = sources
        let first = sources.map { $0.trace.header }.min { $0.first.monotonic_ns < $1.first.monotonic_ns }
        try write(
            ProtobufMessage {
                $0.packet(sequence: Self.ownSequence, flags: Field.cleared) {
                    $0.add(Field.Packet.clockSnapshot) {
                        $0.clock(Field.monotonicClock, at: first?.first.monotonic_ns ?? 0)
                        if let realtime = first?.first_realtime_ns, realtime != 0 { $0.clock(Field.realtime, at: realtime) }
                        $0.add(Field.Snapshot.primaryClock, Field.monotonicClock)
                    }
                }
                for source in sources { Self.describe(source, &$0) }
            }.bytes)
        let symbolizer = Symbolizer()
        for source in sources {
            try PerfettoStates(source).write(write)
            try PerfettoSamples(source).write(write, symbolizer)
        }
        try PerfettoWaits(sources)?.write(write, symbolizer)
    }

    private static func describe(_ source: ExportSource, _ message: inout ProtobufMessage) {
        let process = source.processTrack
        message.track(process) {
            $0.add(Field.Track.process) {
                $0.add(Field.Process.pid, UInt64(source.pid))
                for argument in source.trace.arguments { $0.add(Field.Process.commandLine, argument) }
                $0.add(Field.Process.name, source.name)
            }
        }
        // Without it, calls still running would end with the last event of all.
        for (time, name) in source.marks {
            message.event(Field.instant, track: process, at: source.monotonic(time.raw), category: "tracer", name) { _ in }
        }
        let window = source.trace.window
        if window.isWhole || window.hull.lowerBound <= source.trace.firstTicks.raw { PerfettoStart(source).write(to: &message) }
    }

    mutating func begin(_ thread: ExportThread) throws {
        known = []
        try write(
            ProtobufMessage {
                $0.track(thread.track) {
                    $0.add(Field.Track.parent, thread.source.processTrack)
                    $0.thread(thread.tid, thread.name, of: thread.source)
                }
                $0.packet(sequence: Self.sequence(of: thread), flags: Field.cleared) {
                    $0.add(Field.Packet.defaults) {
                        $0.add(Field.Packet.clock, Field.ownClock)
                        $0.add(Field.Packet.trackEvent) { $0.add(Field.Event.track, thread.track) }
                    }
                    $0.add(Field.Packet.internedData) {
                        let modules = thread.source.trace.metadata.modules.values.sorted { $0.index < $1.index }
                        for (id, name) in [(UInt32(1), FunctionNames.noModule), (2, "mark"), (3, "span")]
                            + modules.map({ (categoryID(module: $0.index), $0.name) })
                        {
                            $0.interned(Field.Interned.categories, UInt64(id), name)
                        }
                    }
                }
            }.bytes)
    }

    mutating func write(_ piece: TimelinePiece, of thread: ExportThread) throws {
        let new = piece.functions.filter { known.insert($0).inserted }
        if !new.isEmpty {
            try write(
                ProtobufMessage {
                    $0.packet(sequence: Self.sequence(of: thread), flags: Field.needsState) {
                        $0.add(Field.Packet.internedData) {
                            for function in new {
                                $0.interned(Field.Interned.names, nameID(function), thread.source.table.name(of: function).name)
                            }
                        }
                    }
                }.bytes)
        }
        if !piece.bytes.isEmpty { try write(piece.bytes) }
    }

    mutating func end(_ thread: ExportThread) throws {}
    mutating func end() throws {}
}
