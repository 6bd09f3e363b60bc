// Every recorded call of a function that uses files, with its arguments and its result.
import TraceFormat

struct FileCall: Sendable {
    var function: FileFunction
    var thread: UInt32
    /// Rows of the function and of the one that calls it; 0: none that is recorded.
    var row: UInt32
    var caller: UInt32
    var begin: UInt64
    /// .max: it had not ended.
    var end: UInt64 = .max

    // Arguments by what they are; nil: there is none, or it could not be read.
    var paths: [String] = []
    /// nil: AT_FDCWD, or there is no such parameter.
    var folders: [Int32] = []
    var descriptor: Int32?
    /// A second one: where `copy` writes to, which `duplicate` makes.
    var other: Int32?
    /// Address of a FILE or DIR.
    var stream: UInt64?
    var size: UInt64 = 1
    var flags = ""

    /// nil: the call had not ended, or its result is not recorded.
    var result: Int64?
    var error: String?

    var hasFailed: Bool { error != nil || result.map { $0 == -1 } ?? false }
}

extension FileCall {
    init?(_ function: FileFunction, _ values: NamedArguments, thread: UInt32, row: UInt32, caller: UInt32, begin: UInt64) {
        self.init(function: function, thread: thread, row: row, caller: caller, begin: begin)
        for (name, value) in values.values {
            switch (name, value) {
            case ("path", .string(let bytes, .whole)), ("old", .string(let bytes, .whole)), ("new", .string(let bytes, .whole)),
                ("target", .string(let bytes, .whole)), ("template", .string(let bytes, .whole)):
                paths.append(String(decoding: bytes, as: UTF8.self))
            case ("directory", .integer(let number)), ("old_directory", .integer(let number)), ("new_directory", .integer(let number)):
                folders.append(Int32(truncatingIfNeeded: number))
            case ("directory", .name), ("old_directory", .name), ("new_directory", .name): folders.append(Self.currentFolder)
            case ("descriptor", .integer(let number)), ("in", .integer(let number)): descriptor = Int32(truncatingIfNeeded: number)
            case ("new", .integer(let number)), ("out", .integer(let number)): other = Int32(truncatingIfNeeded: number)
            case ("stream", .address(let address)), ("directory", .address(let address)): stream = address
            case ("size", .unsigned(let number)), ("length", .unsigned(let number)): size = number
            case ("flags", .name(let text)), ("command", .name(let text)): flags = text
            default: break
            }
        }
    }
    static let currentFolder: Int32 = -100 // AT_FDCWD

    mutating func end(at time: UInt64, _ result: (value: ArgumentValue, errno: String?)?) {
        end = time
        error = result?.errno
        switch result?.value {
        case .integer(let value): self.result = value
        case .unsigned(let value), .address(let value): self.result = Int64(bitPattern: value)
        default: break
        }
    }
}

struct FileCalls: StreamSink, ~Copyable {
    static var wantsArguments: Bool { true }

    /// In a frame's tag: it lies in a call that uses files, which stands for what is done in it. Without it: number of the frame's own call.
    private static var isInside: UInt64 { 1 << 63 }
    /// More are not kept.
    private static let most = 1 << 23

    private struct End {
        var at: UInt64
        var result: RecordedValues?
    }
    private struct Key: Hashable {
        var thread: UInt32
        var frame: FrameKey
    }

    private var rows: RowNumbers
    private let functions: [FileFunction?]
    private let metadata: Metadata
    private(set) var calls: UInt64 = 0
    var migratedCalls = Migrations()
    private var all: [FileCall] = []
    /// Ends of calls that began in another part of their thread.
    private var ends: [Key: End] = [:]
    /// Calls of these functions that are recorded without their arguments.
    private var without: UInt64 = 0, lookUpsWithout: UInt64 = 0
    private var isTooMany = false

    private var thread: UInt32 = 0
    private var arguments: RecordedValues?, result: RecordedValues?

    init(_ table: FunctionNames, _ functions: [FileFunction?], _ metadata: Metadata) {
        rows = RowNumbers(table)
        self.functions = functions
        self.metadata = metadata
    }

    struct Found {
        /// In no order.
        var calls: [FileCall]
        var without: UInt64, lookUpsWithout: UInt64
        var isTooMany: Bool
    }

    static func found(
        in trace: TraceFile, _ table: FunctionNames, _ functions: [FileFunction?], workers: Int, progress: ReadingProgress?
    ) -> Found {
        StreamWorker.read(trace, table, workers: workers, progress: progress) { FileCalls(table, functions, trace.metadata) }.withSink {
            sink in
            if !sink.ends.isEmpty {
                for n in sink.all.indices where sink.all[n].end == .max {
                    let key = Key(thread: sink.all[n].thread, frame: FrameKey(enter: sink.all[n].begin, row: sink.all[n].row))
                    if let end = sink.ends[key] { sink.all[n].end(at: end.at, trace.metadata.result(end.result)) }
                }
            }
            return Found(calls: sink.all, without: sink.without, lookUpsWithout: sink.lookUpsWithout, isTooMany: sink.isTooMany)
        }
    }

    @inline(__always) private func function(_ row: UInt32) -> FileFunction? { Int(row) < functions.count ? functions[Int(row)] : nil }

    /// Returns the number of the call, from 1 on; 0: it is not kept.
    private mutating func note(
        _ function: FileFunction, _ values: RecordedValues?, row: UInt32, caller: UInt32, from begin: UInt64, isCall: Bool
    ) -> UInt64 {
        guard let named = metadata.arguments(values),
            let call = FileCall(function, named, thread: thread, row: row, caller: caller, begin: begin)
        else {
            if isCall {
                without &+= 1
                if case .lookUp = function { lookUpsWithout &+= 1 }
            }
            return 0
        }
        if all.count >= Self.most { isTooMany = true }
        if isTooMany { return 0 }
        all.append(call)
        return UInt64(all.count)
    }

    // MARK: - Calls

    mutating func begin(thread: UInt32) { self.thread = thread }
    mutating func row(of function: UInt32) -> UInt32 { rows.row(of: function) }
    mutating func nextArguments(_ values: RecordedValues?) { arguments = values }
    mutating func nextResult(_ values: RecordedValues?) { result = values }

    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        if isCall { calls &+= 1 }
        let values = arguments.take()
        frame.tag = parent.tag == 0 ? 0 : Self.isInside
        guard isCall, frame.tag == 0, let function = function(frame.row) else { return }
        frame.tag = note(function, values, row: frame.row, caller: parent.row, from: frame.enter, isCall: true)
    }

    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending) {
        let values = result.take()
        guard frame.tag & Self.isInside == 0, ending == .returned || ending == .unwound, function(frame.row) != nil else { return }
        if frame.tag > 0, frame.tag <= UInt64(all.count) {
            all[Int(frame.tag) - 1].end(at: time, metadata.result(values))
        } else if frame.tag == 0 {
            ends[Key(thread: thread, frame: frame.key)] = End(at: time, result: values)
        }
    }

    mutating func leaf(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool) {
        calls &+= 1
        let values = arguments.take()
        guard _slowPath(function(row) != nil), parent.tag == 0, let function = function(row) else { return }
        let number = note(function, values, row: row, caller: parent.row, from: start, isCall: true)
        if number > 0 { all[Int(number) - 1].end(at: end, nil) }
    }

    mutating func migrated(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        migratedCalls.insert(row, enter: start, end: end)
    }

    // MARK: - Parts of a trace

    mutating func translate(_ row: UInt32, from other: borrowing FileCalls) -> UInt32 { rows.translate(row, from: other.rows) }
    /// A frame's number counts the calls of its own sink: its end is found by its beginning.
    mutating func translate(_ frame: Frame, from other: borrowing FileCalls) -> Frame {
        var frame = frame
        frame.row = translate(frame.row, from: other)
        frame.tag &= Self.isInside
        return frame
    }

    mutating func add(_ other: borrowing FileCalls) {
        calls &+= other.calls
        without &+= other.without
        lookUpsWithout &+= other.lookUpsWithout
        isTooMany = isTooMany || other.isTooMany || all.count + other.all.count > Self.most
        addMigratedCalls(of: other)
        if isTooMany { return }
        let first = all.count
        all += other.all
        for n in first..<all.count {
            all[n].row = translate(all[n].row, from: other)
            all[n].caller = all[n].caller == 0 ? 0 : translate(all[n].caller, from: other)
        }
        for (key, end) in other.ends {
            ends[Key(thread: key.thread, frame: FrameKey(enter: key.frame.enter, row: translate(key.frame.row, from: other)))] = end
        }
    }
}
