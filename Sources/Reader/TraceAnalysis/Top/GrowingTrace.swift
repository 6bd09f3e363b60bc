// One process's trace as it grows. Each look reads what was written since the last one; what may change while it is read (a chunk that is copied
// and filled anew, an enter that becomes a complete call, a call that is taken back for being short) is read only as far as it cannot change.
// The writer notices nothing: there are no locks, and the file is read, not mapped.
import CTraceLayout
import ELF
import Glibc
import Presentation
import TraceFormat

/// Used by one thread at a time.
package final class GrowingTrace {
    package enum State: Sendable { case recording, stopped, ended }

    let file: InputFile
    private(set) var header: trace_file_header
    private(set) var scale: TimeScale
    private let spans: ThreadSpans?
    private var places: ChunkPlaces
    let functions: TopFunctions
    private var stack: CallStack<TopSums>
    private(set) var threads: [UInt32: ThreadReading] = [:]
    /// Threads that there were when the reading began.
    private var threadsAtStart: Set<UInt32> = []
    /// Threads that have ended, by their last sequence: a ring shows their chunks again and again.
    private var forgotten: [UInt32: UInt64] = [:]
    private(set) var forgottenThreads = ThreadSums()
    /// Sums of the interval that has ended last, and since the beginning.
    private(set) var interval = SumTable(), whole = SumTable()
    private var reader: ChunkReader
    private var words = ByteBuffer(capacity: ChunkReader.pieceBytes), checked = ByteBuffer(capacity: 4096)
    package private(set) var state = State.recording
    /// Nobody writes to it: what is there is as it will stay.
    private var isFinal = false
    /// It was cut while it was read.
    package private(set) var isTruncated = false
    /// Nobody writes to it any more, and all of it has been read.
    package private(set) var isOver = false
    /// What is known of the process from what was there at the beginning.
    private(set) var identity: TraceFile
    /// From when on calls are shown, in ticks.
    private let begin: UInt64
    /// The beginning of the interval.
    private var intervalBegin: UInt64
    private(set) var intervalLength = Nanoseconds(0), wholeLength = Nanoseconds(0)
    private(set) var losses = TopLosses(), intervalLosses = TopLosses()
    private var lossesBefore = TopLosses()
    /// Number of threads that ran in the interval, and of all.
    private(set) var liveThreads = 0
    /// Bytes of events that were read in all, and how many can be read in a second.
    private var readBytes: UInt64 = 0, speed: UInt64 = 400_000_000

    /// - Parameter fromStart: whole, or from now on; a trace that nobody writes is always read as a whole
    package init(path: String, fromStart: Bool) throws {
        file = try InputFile(path: path)
        let trace = try TraceFile(file)
        identity = trace
        reader = ChunkReader(trace)
        header = trace.header
        scale = trace.timeScale
        let isLive = trace.mayChange && LivingProcess.isAlive(trace.header)
        places = ChunkPlaces(isRing: trace.isRing)
        functions = TopFunctions(file, machine: trace.header.elf_machine)
        let now = scale.ticks(monotonic: LivingProcess.monotonicTime, since: header.first)
        begin = isLive && !fromStart ? max(now, header.first.ticks) : 0
        intervalBegin = isLive ? max(begin, header.first.ticks) : header.first.ticks
        let window = begin > 0 ? TimeWindow([begin..<UInt64.max]) : trace.lifetime
        spans = isLive ? nil : ThreadSpans(trace)
        stack = CallStack(TopSums(functions, spans), rowCount: 1024, window: window)
        isFinal = !isLive
        identity.forgetChunks()
        if trace.hasCountsAlone {
            isOver = true
        } else {
            start()
        }
    }

    /// Somebody wrote to it when the reading began.
    package var isLive: Bool { spans == nil }
    package var hasCountsAlone: Bool { header.mode == UInt32(TRACE_MODE_COUNTS) }
    private var isRing: Bool { header.mode == UInt32(TRACE_MODE_RING) }
    private var isFromStart: Bool { begin == 0 }

    /// Finds the threads, and where they are.
    private func start() {
        let chunks = lookAtFile()
        for (thread, chunks) in Dictionary(grouping: chunks, by: \.thread) {
            let sorted = chunks.sorted { $0.sequence < $1.sequence }
            guard let first = isFromStart ? sorted.first : sorted.last else { continue }
            // Its calls are closed, or lie in a chunk that is about to be there and stores them.
            if !isFromStart, first.isClosed, hasEnded(thread) {
                forgotten[thread] = first.sequence
                continue
            }
            threads[thread] = ThreadReading(first, from: first.sequence, until: max(begin, threadBegin(thread, first)))
        }
        threadsAtStart = Set(functions.records.metadata.threads.keys)
        // Calls that were counted until now were made before.
        if !isFromStart { for (thread, calls) in functions.records.passedCalls(file) { threads[thread]?.counted = byRow(calls) } }
        read(chunks, most: .max)
    }

    private func hasEnded(_ thread: UInt32) -> Bool { functions.records.metadata.threads[thread]?.ended != nil }
    private func threadBegin(_ thread: UInt32, _ chunk: Chunk) -> UInt64 {
        let noted = functions.records.metadata.threads[thread]?.started?.raw ?? chunk.opened.ticks
        return max(min(noted, chunk.opened.ticks), header.first.ticks)
    }

    // MARK: - Looking

    /// Reads what has been written since the last look.
    /// - Parameter time: nanoseconds that it may take: what cannot be read in time is skipped, and counted; nil: all is read
    package func look(within time: UInt64? = nil) {
        if isOver { return }
        // Whoever had ended before the file was read has written nothing since.
        let mayWrite = mayWrite
        let chunks = lookAtFile()
        read(chunks, most: time.map { max(speed / 1_000_000 * $0 / 1_000, 1 << 20) } ?? .max)
        if !mayWrite { finishReading() }
    }

    private var mayWrite: Bool {
        guard header.state == UInt32(TRACE_RECORDING), header.ended_ns == 0, LivingProcess.isAlive(header) else { return false }
        if bytesBefore != readBytes {
            (bytesBefore, idleLooks) = (readBytes, 0)
        } else {
            idleLooks += 1
        }
        // It may have executed another program. This is asked seldom, since it takes a lock of the process.
        if idleLooks % 64 == 63 { return LivingProcess.now(header, file) != nil }
        return true
    }
    private var bytesBefore: UInt64 = 0, idleLooks = 0

    /// Chunks that were just copied, or given up for lost, are found by a second and third look.
    private func finishReading() {
        // `tracer record` moves full chunks for some time after the process has ended; on a busy machine it may have no CPU for a while.
        var quiet = 0, looksInVain = 0
        while isLive, quiet < 3, looksInVain < Self.mostLooksInVain {
            let before = readBytes
            read(lookAtFile(), most: .max)
            let isMissing = threads.values.contains { reading in reading.pending.keys.min().map { $0 > reading.sequence } ?? false }
            looksInVain = readBytes == before ? looksInVain + 1 : 0
            quiet = looksInVain > 0 && !isMissing && !places.mayMissChunks ? quiet + 1 : 0
            usleep(10_000)
        }
        isFinal = true
        for _ in 0..<3 { read(lookAtFile(), most: .max) }
        isOver = true
        state = header.state == UInt32(TRACE_STOPPED) ? .stopped : .ended
    }

    private func lookAtFile() -> [Chunk] {
        file.read(TRACE_HEADER_BYTES_INT, at: 0, into: &words)
        if let now = words.load(trace_file_header.self, at: 0), now.pid == header.pid, now.version == header.version {
            header = now
        } else {
            isTruncated = true
        }
        let found = places.look(file, words, nextOffset: header.next_offset, mayChange: header.state == UInt32(TRACE_RECORDING))
        if identity.timeScale.correction == nil {
            scale = TimeScale(clock: header.clock, ticksPerSecond: header.ticks_per_second, samples: [header.first, header.last])
        }
        var events: [Chunk] = []
        for chunk in found {
            if chunk.isMetadata { functions.records.follow(chunk) } else { events.append(chunk.even(scale)) }
        }
        functions.readRecords()
        return events
    }

    // MARK: - Reading

    private func read(_ chunks: [Chunk], most: UInt64) {
        let began = LivingProcess.monotonicTime, before = readBytes
        // A ring's are found again as long as they are there.
        if isRing { for reading in threads.values { reading.forgetPending() } }
        for chunk in chunks.sorted(by: { $0.sequence < $1.sequence }) {
            if threads[chunk.thread] == nil, forgotten[chunk.thread] == nil {
                // A new thread's first chunk may not be there yet, while a later one is.
                let first = isLive && !threadsAtStart.contains(chunk.thread) ? 0 : chunk.sequence
                threads[chunk.thread] = ThreadReading(
                    chunk, from: first, until: max(intervalBegin, threadBegin(chunk.thread, chunk)))
            }
            threads[chunk.thread]?.add(chunk)
        }
        skip(most: most)
        for thread in threads.keys.sorted() {
            guard let reading = threads[thread] else { continue }
            readLate(reading)
            if !reading.pending.isEmpty { advance(reading) }
        }
        // Once, names are looked up in between.
        let bytes = readBytes &- before, time = max(LivingProcess.monotonicTime &- began, 1000)
        if bytes > 1 << 20 {
            let now = bytes * 1_000_000 / (time / 1000)
            speed = max(now, (3 * speed + now) / 4)
        }
    }

    /// Leaves out the older chunks of each thread where there is more than can be read in time.
    private func skip(most: UInt64) {
        func bytes(_ chunk: Chunk) -> UInt64 { chunk.isClosed ? UInt64(max(chunk.endOffset - chunk.bodyOffset, 0)) : 0 }
        let all = threads.values.reduce(0) { $0 &+ $1.pending.values.reduce(0) { $0 &+ bytes($1) } }
        guard all > most else { return }
        for reading in threads.values {
            let sorted = reading.pending.values.sorted { $0.sequence < $1.sequence }
            var left = UInt64(Double(sorted.reduce(0) { $0 &+ bytes($1) }) * Double(most) / Double(all)), first = sorted.count
            while first > 0, bytes(sorted[first - 1]) <= left {
                first -= 1
                left -= bytes(sorted[first])
            }
            first = min(first, sorted.count - 1)
            guard first > 0, sorted[first].sequence > reading.sequence else { continue }
            for chunk in sorted[..<first] {
                let read = chunk.sequence == reading.sequence && reading.chunk != nil ? reading.position : chunk.bodyOffset
                losses.skippedWords &+= UInt64(max(chunk.endOffset - read, 0)) / 8
                addCounts(of: chunk, reading)
            }
            losses.skippedChunks &+= UInt64(first)
            reading.skip(to: sorted[first].sequence)
        }
    }

    private func addCounts(of chunk: Chunk, _ reading: ThreadReading) {
        let counts = reading.newCounts(chunk)
        losses.filtered &+= counts.filtered
        losses.dropped &+= counts.dropped
    }

    /// Most looks for a chunk that is on its way: whoever moved it may be gone.
    private static let mostLooksInVain = 200
    /// A ring's thread that has filled as many chunks since has the one before them in no place any more.
    private static let mostInTransit = 4

    /// Reads a thread's chunks as far as they go.
    private func advance(_ reading: ThreadReading) {
        stackThread = nil
        defer { leave(reading) }
        while true {
            if let chunk = reading.pending[reading.sequence] {
                reading.missed = 0
                guard read(chunk, reading) else {
                    reading.remove(chunk)
                    if isRing { continue } // it may have been overwritten, and the next ones will be soon
                    return
                }
                if !chunk.isClosed { return }
                reading.end()
            } else if let next = reading.pending.keys.min() {
                // A chunk that is being moved is in neither place until that is done.
                reading.missed += 1
                let isGone = isRing && reading.pending.count >= Self.mostInTransit
                if reading.missed < (isFinal ? 2 : places.mayMissChunks ? Self.mostLooksInVain : 4), !isGone { return }
                losses.missingChunks &+= next - reading.sequence
                reading.skip(to: next)
            } else {
                return
            }
        }
    }

    /// The thread whose calls are on the stack.
    private var stackThread: UInt32?
    private func enter(_ reading: ThreadReading) {
        if stackThread == reading.thread { return }
        stackThread = reading.thread
        stack.sink.begin(thread: reading.thread)
        reading.callsBefore = stack.sink.calls
        // What is open was counted before up to there.
        stack.beginPart(at: isFromStart && spans != nil ? 0 : reading.until)
        stack.resume(reading.calls)
    }
    private func leave(_ reading: ThreadReading, at time: UInt64? = nil) {
        guard stackThread == reading.thread else { return }
        reading.calls = stack.suspend(at: time)
        reading.interval.calls &+= stack.sink.calls &- reading.callsBefore
        reading.stood.merge(stack.sink.takeStood()) { $0 &+ $1 }
        stackThread = nil
    }

    /// Returns false if the chunk is another one by now: what was read of it before counts.
    private func read(_ chunk: Chunk, _ reading: ThreadReading) -> Bool {
        let stored = reading.chunk == nil ? reader.storedFrames(chunk) : []
        reading.hasUnread = false
        // A chunk that is being filled has mostly little that is new.
        var wanted = chunk.isClosed ? ChunkReader.pieceBytes : reading.chunk == nil ? 4096 : 512
        while true {
            let isNew = reading.chunk == nil, before = reading.position
            let position = isNew ? chunk.bodyOffset : reading.endsInEnter ? reading.position - 8 : reading.position
            let byteCount = min(wanted, max(chunk.endOffset - position, 0))
            file.read(byteCount, at: chunk.offset + UInt64(position), into: &words)
            let count = chunk.isClosed || isFinal ? words.count / 8 : settledCount(chunk, at: position, reading)
            if isLive, !isStill(chunk) { return false }
            if isNew {
                enter(reading)
                let isNext = reading.previous.map { $0.sequence &+ 1 == chunk.sequence } ?? false
                if isNext, !chunk.isCut { stack.leaveAll(but: stored, at: chunk.opened.ticks) }
                stack.begin(chunk, stored, after: reading.previous, latest: reading.latest, areCalls: chunk.sequence > 0)
                reading.begin(chunk, scale)
            }
            decode(count, of: chunk, at: position, reading)
            let end = max(reading.position, position + count * 8) // an enter at the end is read each time
            readBytes &+= UInt64(end - reading.position)
            reading.position = end
            if count * 8 < byteCount || reading.position >= chunk.endOffset || !isNew && reading.position == before { break }
            wanted = min(wanted * 8, ChunkReader.pieceBytes)
        }
        if isFinal { reading.endsInEnter = false }
        addCounts(of: chunk, reading)
        return true
    }

    private func isStill(_ chunk: Chunk) -> Bool {
        file.read(ChunkWalk.headerBytes, at: chunk.offset, into: &checked)
        guard let now = checked.load(trace_chunk_header.self, at: 0) else { return false }
        return now.magic == UInt32(TRACE_CHUNK_MAGIC) && now.thread == chunk.thread && now.sequence == chunk.sequence
            && now.kind == UInt16(TRACE_CHUNK_EVENTS)
    }

    /// Returns how many of the words in the buffer cannot change any more, but for an enter at their end. They are in the buffer then.
    private func settledCount(_ chunk: Chunk, at position: Int, _ reading: ThreadReading) -> Int {
        let all = words.count / 8
        let (first, written) = words.withWords { words in
            (words.firstIndex(of: 0) ?? all, words.lastIndex { $0 != 0 }.map { $0 + 1 } ?? 0)
        }
        var count = first
        if first >= written {
            reading.awaited = nil
        } else if let awaited = reading.awaited, awaited.word == position + first * 8 {
            // Nothing has come: it is passed over, and looked for later.
            let known = min(max((awaited.end - position) / 8, first + 1), all)
            count = words.withWords { words in words[known...].firstIndex(of: 0) ?? all }
            reading.awaited = count < written ? (position + count * 8, position + written * 8) : nil
        } else {
            reading.awaited = (position + first * 8, position + written * 8)
        }
        // What was there when the first reading ended, but for its end, is as it will stay: the second one has that.
        file.read(count * 8, at: chunk.offset + UInt64(position), into: &words)
        count = min(count, words.count / 8)
        if header.minimum_ticks > 0 { count = keptCount(count, from: reading.chunk == nil ? chunk.base : reading.decoder.base) }
        reading.hasUnread = count < written
        return count
    }

    /// Under a time filter, calls may be taken back that have not lasted so long.
    private func keptCount(_ count: Int, from start: UInt64) -> Int {
        let now = scale.ticks(monotonic: LivingProcess.monotonicTime, since: header.first)
        let kept = now - min(header.minimum_ticks, now)
        var base = start
        return words.withWords { words in
            for index in 0..<count {
                let event = Event(word: UInt64(littleEndian: words[index]))
                if event.isEmpty { continue }
                if event.kind == .enter, base &+ event.time > kept { return index }
                if event.kind == .control, event.controlKind == .base { base = completed(event.payload, near: Ticks(base)).raw }
            }
            return count
        }
    }

    private func decode(_ count: Int, of chunk: Chunk, at position: Int, _ reading: ThreadReading) {
        guard count > 0 else { return }
        let endsInEnter = reading.endsInEnter
        let first = words.withWords { UInt64(littleEndian: $0[0]) }
        var skipped = 0
        if endsInEnter {
            // The enter that was read before: as it was, or a complete call, whose end is new.
            let event = Event(word: first)
            skipped = 1
            if event.kind == .complete {
                enter(reading)
                withUnsafeTemporaryAllocation(of: UInt64.self, capacity: 1) { exit in
                    exit[0] = Event.exit(event.function, after: event.start &+ event.duration).word.littleEndian
                    let word = UnsafeBufferPointer(exit)
                    reading.decoder.decode(word, of: CurrentEventLayout.self, at: chunk.offset + UInt64(position), into: &stack)
                }
            } else if count == 1 {
                return // it is still the last
            }
            reading.endsInEnter = false
        }
        guard count > skipped else { return }
        enter(reading)
        let offset = chunk.offset + UInt64(position + skipped * 8)
        words.withWords { all in
            let new = UnsafeBufferPointer(rebasing: all[skipped..<count])
            if header.version == 1 {
                reading.decoder.decode(new, of: FirstEventLayout.self, at: offset, into: &stack)
            } else {
                noteEmpty(new, chunk, at: position + skipped * 8, reading)
                reading.decoder.decode(new, of: CurrentEventLayout.self, at: offset, into: &stack)
                let last = Event(word: UInt64(littleEndian: new[new.count - 1]))
                reading.endsInEnter = !chunk.isClosed && !isFinal && last.kind == .enter && !last.isEmpty
            }
        }
        reading.latest = max(reading.latest, reading.decoder.latest)
    }

    // MARK: - Words of interrupted trampolines

    private static let mostLateWords = 16
    private static let mostLooks = 1000

    private func noteEmpty(_ words: UnsafeBufferPointer<UInt64>, _ chunk: Chunk, at position: Int, _ reading: ThreadReading) {
        guard !isFinal, header.minimum_ticks == 0, header.state == UInt32(TRACE_RECORDING), reading.late.count < Self.mostLateWords,
            var empty = words.firstIndex(of: 0)
        else { return }
        var base = reading.decoder.base, from = 0
        while true {
            for word in words[from..<empty] {
                let event = Event(word: UInt64(littleEndian: word))
                if event.kind == .control, event.controlKind == .base { base = completed(event.payload, near: Ticks(base)).raw }
            }
            reading.late.append(ThreadReading.LateWord(chunk: chunk, position: position + empty * 8, base: base))
            from = empty + 1
            guard reading.late.count < Self.mostLateWords, let next = words[from...].firstIndex(of: 0) else { return }
            empty = next
        }
    }

    /// Looks for words that have come since: each is counted as if it came last.
    private func readLate(_ reading: ThreadReading) {
        guard !reading.late.isEmpty else { return }
        stackThread = nil
        defer { leave(reading) }
        var left: [ThreadReading.LateWord] = []
        for var word in reading.late {
            word.looks += 1
            file.read(8, at: word.chunk.offset + UInt64(word.position), into: &words)
            guard words.count == 8, isStill(word.chunk) else { continue }
            if words.isZero(at: 0, byteCount: 8) {
                if word.looks < Self.mostLooks { left.append(word) }
                continue
            }
            enter(reading)
            var decoder = EventDecoder(opened: word.base, after: reading.latest)
            words.withWords { decoder.decode($0, of: CurrentEventLayout.self, at: word.chunk.offset, into: &stack) }
            reading.latest = max(reading.latest, decoder.latest)
        }
        reading.late = left
    }

    // MARK: - Intervals

    /// Ends an interval: what has been read since the last one is its.
    package func endInterval() {
        guard !hasCountsAlone else { return }
        addCountedCalls()
        noteEnds()
        let now: UInt64
        if isOver, let trace = try? TraceFile(file), !isEnded {
            now = closeAll(trace)
            isEnded = true
        } else if isOver {
            now = intervalBegin
        } else {
            now = max(scale.ticks(monotonic: LivingProcess.monotonicTime, since: header.first), intervalBegin)
            for reading in threads.values { endInterval(of: reading, at: max(now, reading.latest)) }
        }
        addSpans(until: now)
        swap(&interval, &stack.sink.table)
        stack.sink.table.removeAll()
        whole.add(interval)
        intervalLength = scale.nanoseconds(now &- min(intervalBegin, now))
        wholeLength = scale.nanoseconds(now &- min(max(begin, header.first.ticks), now))
        intervalBegin = now
        losses.processDropped = header.dropped
        losses.orphans = stack.sink.orphans
        intervalLosses = losses.without(lossesBefore)
        lossesBefore = losses
    }
    private func endInterval(of reading: ThreadReading, at time: UInt64) {
        if reading.calls.frames.isEmpty { return }
        if !reading.hasEnded {
            enter(reading)
            leave(reading, at: time)
        } else if isReadWhole(reading) {
            enter(reading)
            stack.closeAll(at: reading.latest, .unwound)
            leave(reading)
        }
    }
    /// The calls that were open at the end have been closed.
    private(set) var isEnded = false

    /// Calls that had not returned last until their thread ended, or the process. Returns the end of the process.
    private func closeAll(_ trace: TraceFile) -> UInt64 {
        let opened = Dictionary(
            trace.chunksOfThread.compactMap { $0.last.map { ($0.thread, $0.opened.ticks) } }, uniquingKeysWith: { max($0, $1) })
        for reading in threads.values { reading.latest = max(reading.latest, opened[reading.thread] ?? 0) }
        let latest = threads.values.map(\.latest).max() ?? 0
        if spans != nil || trace.timeScale.correction == nil { scale = trace.timeScale }
        let migrated = stack.sink.migrated
        for thread in threads.keys.sorted() {
            guard let reading = threads[thread] else { continue }
            let end = CallEnds.End(trace.ends, of: thread, after: reading.latest, latest: latest)
            enter(reading)
            stack.closeDeparted { migrated.end(of: $0).map { min($0, end.time) } }
            if stack.frames.count > 0 { reading.latest = end.time }
            stack.closeAll(at: end.time, end.how)
            leave(reading)
            reading.end(at: end.time)
        }
        return max(trace.ends.process.raw, latest)
    }

    /// Adds the calls that threads have counted since, and for which no recorded call is there.
    private func addCountedCalls() {
        for (thread, calls) in functions.records.passedCalls(file) {
            guard let reading = threads[thread] else { continue }
            for (row, count) in byRow(calls) {
                let known = reading.counted[row] ?? 0, all = max(count, reading.stood[row] ?? 0)
                guard all > known else { continue }
                stack.sink.count(all - known, of: row)
                reading.counted[row] = all
                reading.interval.calls &+= all - known
                reading.interval.onlyCounted &+= all - known
            }
        }
    }
    private func byRow(_ calls: [UInt32: UInt64]) -> [UInt32: UInt64] {
        Dictionary(calls.map { (stack.sink.row(of: $0.key), $0.value) }) { $0 &+ $1 }
    }

    /// It had ended before the last look, which found all that it has written: nothing comes of it any more.
    private func isReadWhole(_ reading: ThreadReading) -> Bool {
        reading.wasEnded && !places.mayMissChunks && reading.isReadWhole
    }

    private func noteEnds() {
        if isOver { return }
        let living = livingThreads
        for (thread, reading) in threads {
            reading.wasEnded = reading.hasEnded
            reading.hasEnded = hasEnded(thread) || living?.contains(reading.tid) == false
        }
    }

    /// How long each thread ran in the interval, and how much of that in recorded calls.
    private func addSpans(until now: UInt64) {
        let covered = stack.sink.takeCoverage(spans)
        liveThreads = 0
        for (thread, reading) in threads {
            let time = covered[thread] ?? CoveredTime()
            if spans != nil {
                let span = spans?.settled(thread, end: reading.ended ?? now, latest: reading.latest)
                reading.interval.span = (span?.length ?? 0) &+ time.beside
                reading.interval.inCalls = reading.interval.span &- (span?.own(time) ?? 0)
            } else {
                let end = reading.hasEnded || isOver ? max(reading.ended ?? reading.latest, reading.until) : max(now, reading.latest)
                reading.interval.inCalls = time.inSpan &+ time.beside
                reading.interval.span = max(end &- min(reading.until, end), reading.interval.inCalls)
                reading.until = end
            }
            if !reading.hasEnded { liveThreads += 1 }
            reading.shown = reading.interval
            reading.whole.add(reading.interval)
            reading.interval = ThreadSums()
        }
        if isOver { liveThreads = threads.count } else { forgetThreads() }
    }

    /// Memory does not grow with threads that have ended: beyond some, they are one row.
    private func forgetThreads() {
        guard threads.count > 256 else { return }
        for (thread, reading) in threads where isReadWhole(reading) && reading.shown.calls == 0 && reading.interval.calls == 0 {
            forgottenThreads.add(reading.whole)
            forgotten[thread] = reading.sequence
            threads[thread] = nil
        }
    }

    /// Thread ids as the kernel has them; nil: that cannot be known here.
    private var livingThreads: Set<UInt32>? {
        guard !isOver, header.pid_namespace == ProcessNumbers.namespace(), let names = entryNames(in: "/proc/\(header.pid)/task") else {
            return nil
        }
        let all = Set(names.compactMap { UInt32($0) })
        return all.isEmpty ? nil : all
    }

    // MARK: - What is open

    /// Calls that are open now, with the moment since when: what has ended unseen is left out.
    func forEachOpen(_ body: (ThreadReading, Frame) -> Void) {
        guard !isOver else { return }
        let migrated = stack.sink.migrated
        for reading in threads.values where !reading.hasEnded {
            for frame in reading.calls.frames where migrated.end(of: frame) == nil { body(reading, frame) }
        }
    }
    func age(_ frame: Frame) -> Nanoseconds {
        let now = scale.ticks(monotonic: LivingProcess.monotonicTime, since: header.first)
        return scale.nanoseconds(now &- min(frame.enter, now))
    }

    func name(of thread: UInt32) -> String { places.threadNames[thread]?.name ?? "" }
    /// Rows of functions of which not all calls are recorded, nor are the others counted.
    var uncountedRows: Set<UInt32> {
        let records = functions.records.metadata
        return Set(records.suppressed.keys.filter { !records.isCounted($0) }.map { stack.sink.row(of: $0) })
    }
    var calls: UInt64 { stack.sink.calls }
}

/// What is missing of a trace, since the beginning or of an interval.
package struct TopLosses: Sendable, Equatable {
    /// Calls that could not be written: those that chunks count, and those that the process does.
    var dropped: UInt64 = 0
    var processDropped: UInt64 = 0
    /// Calls that were not to be kept.
    package var filtered: UInt64 = 0
    /// Chunks that a ring had overwritten before they were read.
    package var missingChunks: UInt64 = 0
    /// Words that were not read, since more was written than could be.
    package var skippedWords: UInt64 = 0
    package var skippedChunks: UInt64 = 0
    package var orphans: UInt64 = 0
    package var droppedCalls: UInt64 { dropped &+ processDropped }

    func without(_ other: TopLosses) -> TopLosses {
        TopLosses(
            dropped: dropped &- other.dropped, processDropped: processDropped &- other.processDropped, filtered: filtered &- other.filtered,
            missingChunks: missingChunks &- other.missingChunks, skippedWords: skippedWords &- other.skippedWords,
            skippedChunks: skippedChunks &- other.skippedChunks,
            orphans: orphans &- other.orphans)
    }

    func adding(_ other: TopLosses) -> TopLosses {
        TopLosses(
            dropped: dropped &+ other.dropped, processDropped: processDropped &+ other.processDropped, filtered: filtered &+ other.filtered,
            missingChunks: missingChunks &+ other.missingChunks, skippedWords: skippedWords &+ other.skippedWords,
            skippedChunks: skippedChunks &+ other.skippedChunks,
            orphans: orphans &+ other.orphans)
    }
}
