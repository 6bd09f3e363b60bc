// Writes well-formed traces for tests and benchmarks, as docs/reference/format.md describes them.
import CTraceLayout
import TraceFormat

public struct TraceBuilder: Sendable {
    public var header = trace_file_header()
    private var threads: [ThreadWriter] = []
    private var finished: [(order: Int, bytes: [UInt8])] = []
    private var records: [UInt8] = []
    private var opened = 0
    /// CLOCK_MONOTONIC at a number of ticks, where they are not even.
    public var monotonic: (@Sendable (UInt64) -> UInt64)?

    /// One tick is one nanosecond unless `ticksPerNanosecond` says otherwise; the trace starts at tick 1_000_000.
    public init(
        program: String = "/usr/bin/demo", pid: UInt32 = 4711, start: UInt64 = 1_000_000,
        ticksPerNanosecond: UInt64 = 1
    ) {
        withUnsafeMutableBytes(of: &header.magic) { $0.copyBytes(from: Array("TRACER\u{1a}\n".utf8)) }
        header.version = UInt32(TRACE_VERSION)
        header.header_bytes = UInt32(TRACE_HEADER_BYTES)
        header.elf_machine = 62
        header.page_bytes = 4096
        header.pid = pid
        header.parent_pid = 1
        header.clock = UInt32(TRACE_CLOCK_TSC)
        header.state = UInt32(TRACE_FINISHED)
        header.ticks_per_second = 1_000_000_000 * ticksPerNanosecond
        header.first = trace_clock_sample(ticks: start, monotonic_ns: start / ticksPerNanosecond)
        header.last = header.first
        header.first_realtime_ns = 1_700_000_000_123_000_000
        text(TRACE_TEXT_PROGRAM, program)
    }

    /// What recording a call costs, in nanoseconds, and how much of that is within the call's own length.
    public mutating func cost(leaf: UInt32, inside: UInt32 = 0) {
        header.leaf_cost = leaf * UInt32(TRACE_COST_PARTS)
        header.inside_cost = inside * UInt32(TRACE_COST_PARTS)
    }

    // MARK: metadata

    public mutating func text(_ key: Int, _ text: String) { self.text(key, bytes: Array(text.utf8)) }

    public mutating func text(_ key: Int, bytes: [UInt8]) {
        let record = trace_text_record(record: trace_record(), text_bytes: UInt32(bytes.count), reserved: 0)
        self.record(TRACE_RECORD_TEXT, key: key, record, bytes)
    }

    public mutating func module(
        _ index: UInt32, _ path: String, buildID: [UInt8] = [], bias: UInt64 = 0x5000_0000,
        byteCount: UInt64 = 0x10000, loaded: UInt64? = nil
    ) {
        var record = trace_module_record()
        record.module = index
        record.path_bytes = UInt32(path.utf8.count)
        record.load_bias = bias
        record.low_address = bias
        record.high_address = bias + byteCount
        record.loaded_ticks = loaded ?? header.first.ticks
        record.build_id_bytes = UInt32(buildID.count)
        withUnsafeMutableBytes(of: &record.build_id) { $0.copyBytes(from: buildID) }
        self.record(TRACE_RECORD_MODULE, record, Array(path.utf8))
    }

    /// Adds a record of how many of a module's `functions` have entry patches.
    public mutating func patched(_ module: UInt32, functions: UInt32, patched: UInt32) {
        let record = trace_patched_record(record: trace_record(), module: module, functions: functions, patched: patched, running: 0)
        self.record(TRACE_RECORD_PATCHED, record, [])
    }

    public mutating func function(
        _ id: UInt32, _ name: String, module: UInt32 = 0, address: UInt64 = 0x5000_1000,
        isEntryOnly: Bool = false, flags: Int = 0
    ) {
        let record = trace_function_record(
            record: trace_record(), function: id, module: module, address: address,
            flags: UInt32(flags) | (isEntryOnly ? UInt32(TRACE_FUNCTION_ENTRY_ONLY) : 0), name_bytes: UInt32(name.utf8.count))
        self.record(TRACE_RECORD_FUNCTION, record, Array(name.utf8))
    }

    /// Functions without records of their own: how far after the module's lowest address they begin, by ids that follow each other.
    public mutating func functions(_ first: UInt32, module: UInt32, offsets: [UInt32], count: UInt32? = nil) {
        let record = trace_functions_record(
            record: trace_record(), first: first, module: module, count: count ?? UInt32(offsets.count), reserved: 0)
        self.record(TRACE_RECORD_FUNCTIONS, record, offsets.flatMap { offset in withUnsafeBytes(of: offset) { Array($0) } })
    }

    /// Adds clock samples, as the agent does on either side of a change of the clock's rate.
    public mutating func clocks(_ moments: UInt64...) {
        for ticks in moments {
            let sample = trace_clock_sample(ticks: ticks, monotonic_ns: monotonic?(ticks) ?? 0)
            self.record(TRACE_RECORD_CLOCK, trace_clock_record(record: trace_record(), sample: sample), [])
        }
    }

    /// - Parameters:
    ///   - tid: nil: the thread's own
    ///   - pointer: nil: as older agents wrote it
    public mutating func threadBegin(_ thread: Int, tid: UInt32? = nil, at ticks: UInt64, cpuTime: UInt64 = 0, pointer: UInt64? = nil) {
        let life = trace_thread_record(record: trace_record(), thread: UInt32(thread), tid: tid ?? threads[thread].tid, ticks: ticks)
        let begin = trace_thread_begin_record(thread: life, cpu_ns: cpuTime)
        if let pointer {
            record(TRACE_RECORD_THREAD, trace_thread_pointer_record(begin: begin, pointer: pointer), [])
        } else {
            record(TRACE_RECORD_THREAD, begin, [])
        }
    }

    public mutating func threadEnd(_ thread: Int, at ticks: UInt64) {
        let record = trace_thread_record(record: trace_record(), thread: UInt32(thread), tid: threads[thread].tid, ticks: ticks)
        self.record(TRACE_RECORD_THREAD_END, record, [])
    }

    /// Any record: `fixed` begins with a trace_record, which is filled in here.
    public mutating func record<T: BitwiseCopyable>(_ type: Int, key: Int = 0, _ fixed: T, _ tail: [UInt8]) {
        var bytes = withUnsafeBytes(of: fixed) { Array($0) } + tail
        while bytes.count % 8 != 0 { bytes.append(0) }
        let head = trace_record(type: UInt16(type), key: UInt16(key), byte_count: UInt32(bytes.count))
        withUnsafeBytes(of: head) { bytes.replaceSubrange(0..<8, with: $0) }
        records += bytes
    }

    // MARK: threads and events

    public mutating func thread(tid: UInt32? = nil, _ name: String = "demo") -> Int {
        threads.append(ThreadWriter(tid: tid ?? header.pid + UInt32(threads.count), name: name))
        return threads.count - 1
    }

    /// The next call of the thread is made from there. After it nothing may come but the call.
    private mutating func site(_ thread: Int, _ address: UInt64, at ticks: UInt64) {
        guard address != 0 else { return }
        header.flags |= UInt32(TRACE_FLAG_CALL_SITES)
        threads[thread].hasSites = true
        _ = time(thread, of: ticks, reach: Event.startReach) // a base word, when it takes one, before
        push(thread, .control(.site, address), at: ticks)
    }

    /// Likewise: the next call is recorded with this argument.
    private mutating func object(_ thread: Int, _ bits: UInt64?, at ticks: UInt64) {
        guard let bits else { return }
        _ = time(thread, of: ticks, reach: Event.startReach)
        push(thread, .control(.argument, bits), at: ticks)
    }

    public mutating func enter(_ thread: Int, _ function: UInt32, at ticks: UInt64, site address: UInt64 = 0, object bits: UInt64? = nil) {
        site(thread, address, at: ticks)
        object(thread, bits, at: ticks)
        threads[thread].sites[ticks] = address
        word(thread, at: ticks, reach: Event.startReach) { .enter(function, after: $0) }
        threads[thread].frames.append(trace_open_frame(enter_ticks: ticks, function: function, flags: 0))
    }

    /// Returns from the innermost frame of the function, writing RESUME when it is not the top.
    public mutating func exit(_ thread: Int, _ function: UInt32, at ticks: UInt64) {
        let frames = threads[thread].frames
        guard let index = frames.lastIndex(where: { $0.function == function }) else {
            word(thread, at: ticks) { .exit(function, after: $0) }
            return
        }
        if index != frames.count - 1 {
            _ = time(thread, of: ticks, reach: Event.timeReach) // a base word, when it takes one, before RESUME
            push(thread, .control(.resume, frames[index].enter_ticks), at: ticks)
        }
        word(thread, at: ticks) { .exit(function, after: $0) }
        threads[thread].frames.remove(at: index)
    }

    public mutating func complete(
        _ thread: Int, _ function: UInt32, from start: UInt64, to end: UInt64, site address: UInt64 = 0, object bits: UInt64? = nil
    ) {
        let time = time(thread, of: start, reach: Event.startReach)
        if let event = Event.complete(function, after: time, duration: end - start) {
            site(thread, address, at: start)
            object(thread, bits, at: start)
            push(thread, event, at: end)
        } else {
            enter(thread, function, at: start, site: address, object: bits)
            exit(thread, function, at: end)
        }
    }

    public mutating func unwind(_ thread: Int, _ count: Int, at ticks: UInt64) {
        word(thread, at: ticks) { .unwound(UInt32(count), after: $0) }
        threads[thread].frames.removeLast(min(count, threads[thread].frames.count))
    }

    /// Any word, as it is. The builder's own idea of the open frames does not change.
    public mutating func word(_ thread: Int, _ event: Event, at ticks: UInt64) { push(thread, event, at: ticks) }

    /// Any word that has a time: `event` makes it of the ticks since the base, which is set anew when it has to.
    public mutating func word(_ thread: Int, at ticks: UInt64, reach: UInt64 = Event.timeReach, _ event: (UInt64) -> Event) {
        push(thread, event(time(thread, of: ticks, reach: reach)), at: ticks)
    }

    public mutating func base(_ thread: Int, _ ticks: UInt64) {
        open(thread, at: ticks)
        threads[thread].base = ticks
        threads[thread].words.append(Event.control(.base, ticks).word)
    }

    /// Changes what the next chunk of the thread takes for its open frames.
    public mutating func setFrames(_ thread: Int, _ frames: [trace_open_frame]) { threads[thread].frames = frames }

    /// Ticks since the base.
    private mutating func time(_ thread: Int, of ticks: UInt64, reach: UInt64) -> UInt64 {
        open(thread, at: ticks)
        let base = threads[thread].base
        if ticks >= base, ticks - base < reach { return ticks - base }
        self.base(thread, ticks)
        return 0
    }

    private mutating func push(_ thread: Int, _ event: Event, at ticks: UInt64) {
        open(thread, at: ticks)
        threads[thread].words.append(event.word)
        threads[thread].latest = max(threads[thread].latest, ticks)
        // RESUME, SITE and ARGUMENT speak of the word after them: the two are never parted.
        if threads[thread].words.count >= threads[thread].wordsPerChunk,
            event.kind != .control || ![.resume, .site, .argument].contains(event.controlKind)
        {
            split(thread)
        }
    }

    private mutating func open(_ thread: Int, at ticks: UInt64) {
        guard !threads[thread].isOpen else { return }
        threads[thread].open(at: ticks, order: opened)
        opened += 1
    }

    // MARK: chunks

    /// From now on chunks of the thread hold at most `words` words and at most `frames` frames. `areUnsettled`:
    /// every other one lists a frame that is not open and lacks one that is, and says that it may.
    public mutating func limit(_ thread: Int, words: Int = .max, frames: Int = .max, areUnsettled: Bool = false) {
        threads[thread].wordsPerChunk = words
        threads[thread].framesPerChunk = frames
        threads[thread].areUnsettled = areUnsettled
    }

    /// Ends the thread's chunk; its next event begins another.
    /// - Parameters:
    ///   - isClosed: false leaves it as a killed thread would
    ///   - isWritten: false loses it, as a ring does
    public mutating func split(_ thread: Int, isClosed: Bool = true, isWritten: Bool = true) {
        guard threads[thread].isOpen else { return }
        let (order, bytes) = threads[thread].close(clock: header, monotonic, isClosed: isClosed)
        if isWritten { finished.append((order, bytes)) }
    }

    public mutating func counters(_ thread: Int, byTime: UInt64 = 0, byDepth: UInt64 = 0, dropped: UInt64 = 0) {
        threads[thread].filteredByTime = byTime
        threads[thread].filteredByDepth = byDepth
        threads[thread].dropped = dropped
    }

    /// The file. `metadataLast` puts the names after the events, where a reader must find them as well.
    public func bytes(metadataLast: Bool = false, end: UInt64? = nil, closeChunks: Bool = true) -> [UInt8] {
        var copy = self
        return copy.finish(metadataLast, end, closeChunks)
    }

    private mutating func finish(_ metadataLast: Bool, _ end: UInt64?, _ closeChunks: Bool) -> [UInt8] {
        for thread in threads.indices { split(thread, isClosed: closeChunks) }
        let latest = end ?? threads.map { $0.latest }.max() ?? 0
        let scale = Double(header.ticks_per_second) / 1e9
        if latest > header.first.ticks {
            header.last = trace_clock_sample(
                ticks: latest,
                monotonic_ns: monotonic?(latest) ?? header.first.monotonic_ns + UInt64(Double(latest - header.first.ticks) / scale))
        }
        let events = finished.sorted { $0.order < $1.order }.flatMap { $0.bytes }
        let metadata = Self.metadataChunk(records)
        let body = metadataLast ? events + metadata : metadata + events
        header.next_offset = UInt64(TRACE_HEADER_BYTES) + UInt64(body.count)
        header.extended_offset = header.next_offset
        return Self.page(header) + body
    }

    public static func page(_ header: trace_file_header) -> [UInt8] {
        let bytes = withUnsafeBytes(of: header) { Array($0) }
        return bytes + [UInt8](repeating: 0, count: Int(TRACE_HEADER_BYTES) - bytes.count)
    }

    public static func metadataChunk(_ records: [UInt8]) -> [UInt8] {
        var chunk = trace_chunk_header()
        chunk.magic = UInt32(TRACE_CHUNK_MAGIC)
        chunk.kind = UInt16(TRACE_CHUNK_METADATA)
        chunk.body_offset = 128
        chunk.byte_count = rounded(128 + records.count + 8)
        let bytes = withUnsafeBytes(of: chunk) { Array($0) } + records
        return bytes + [UInt8](repeating: 0, count: Int(chunk.byte_count) - bytes.count)
    }

    public var metadataRecords: [UInt8] { records }

    static func rounded(_ byteCount: Int) -> UInt32 { UInt32((byteCount + 4095) / 4096 * 4096) }
}

private struct ThreadWriter: Sendable {
    let tid: UInt32
    let name: String
    var frames: [trace_open_frame] = []
    /// Call sites, by the ticks of their calls' enters.
    var sites: [UInt64: UInt64] = [:]
    var hasSites = false
    var words: [UInt64] = []
    var base: UInt64 = 0
    var isOpen = false
    var latest: UInt64 = 0
    var wordsPerChunk = Int.max
    var framesPerChunk = Int.max
    var areUnsettled = false
    var filteredByTime: UInt64 = 0
    var filteredByDepth: UInt64 = 0
    var dropped: UInt64 = 0
    private var order = 0
    private var sequence: UInt64 = 0
    private var openedAt: UInt64 = 0
    private var openedFrames: [trace_open_frame] = []

    init(tid: UInt32, name: String) {
        self.tid = tid
        self.name = name
    }

    private var isUnsettled: Bool { areUnsettled && sequence % 2 == 1 }

    mutating func open(at ticks: UInt64, order: Int) {
        isOpen = true
        self.order = order
        openedAt = ticks
        openedFrames = isUnsettled ? frames.dropLast() + [trace_open_frame(enter_ticks: ticks &- 1, function: 3, flags: 0)] : frames
        base = ticks
        words = []
    }

    mutating func close(clock: trace_file_header, _ monotonic: ((UInt64) -> UInt64)?, isClosed: Bool) -> (Int, [UInt8]) {
        let stored = Array(openedFrames.suffix(framesPerChunk))
        var chunk = trace_chunk_header()
        chunk.magic = UInt32(TRACE_CHUNK_MAGIC)
        chunk.kind = UInt16(TRACE_CHUNK_EVENTS)
        chunk.flags = UInt16(
            (isClosed ? TRACE_CHUNK_CLOSED : 0)
                | (stored.count < openedFrames.count ? TRACE_CHUNK_FRAMES_CUT : 0) | (isUnsettled ? TRACE_CHUNK_UNSETTLED : 0)
                | (hasSites ? TRACE_CHUNK_SITES : 0))
        let body = 128 + (hasSites ? 24 : 16) * stored.count, used = body + 8 * words.count
        chunk.body_offset = UInt32(body)
        chunk.byte_count = TraceBuilder.rounded(used)
        chunk.thread = tid &- clock.pid
        chunk.tid = tid
        chunk.sequence = sequence
        let scale = Double(clock.ticks_per_second) / 1e9
        let since = openedAt >= clock.first.ticks ? Double(openedAt - clock.first.ticks) / scale : 0
        chunk.opened = trace_clock_sample(ticks: openedAt, monotonic_ns: monotonic?(openedAt) ?? clock.first.monotonic_ns + UInt64(since))
        chunk.used_bytes = isClosed ? UInt64(used) : 0
        chunk.filtered_by_time = filteredByTime
        chunk.filtered_by_depth = filteredByDepth
        chunk.dropped = dropped
        chunk.open_frames = UInt32(openedFrames.count)
        chunk.stored_frames = UInt32(stored.count)
        withUnsafeMutableBytes(of: &chunk.thread_name) { $0.copyBytes(from: Array(name.utf8.prefix(15))) }
        var bytes = withUnsafeBytes(of: chunk) { Array($0) }
        for frame in stored { withUnsafeBytes(of: frame) { bytes += $0 } }
        if hasSites { for frame in stored { withUnsafeBytes(of: (sites[frame.enter_ticks] ?? 0).littleEndian) { bytes += $0 } } }
        for word in words { withUnsafeBytes(of: word.littleEndian) { bytes += $0 } }
        bytes += [UInt8](repeating: 0, count: Int(chunk.byte_count) - bytes.count)
        isOpen = false
        sequence += 1
        words = []
        filteredByTime = 0
        filteredByDepth = 0
        dropped = 0
        return (order, bytes)
    }
}

/// A control word of a kind that no writer knows.
public func unknownControl(_ payload: UInt64) -> Event {
    Event(word: 0x3f << UInt64(CONTROL_KIND_SHIFT) | payload << UInt64(CONTROL_PAYLOAD_SHIFT))
}
