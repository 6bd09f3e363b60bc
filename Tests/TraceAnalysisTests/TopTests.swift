// A trace that is read while it is written: what may still change is read only as far as it cannot, and each call counts once.
import CTraceLayout
import Foundation
import Presentation
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

/// The trace of this process, to which a test writes as the agent does.
private final class LivingTrace {
    let file: TemporaryFile
    private let descriptor: Int32
    /// Ticks, which are nanoseconds of CLOCK_MONOTONIC, and where the chunk's words are.
    let start: UInt64, body: Int
    /// The chunk of the only thread.
    let chunk: Int

    /// The thread has called function 1, and not returned.
    init(_ change: (inout TraceBuilder) -> Void = { _ in }) throws {
        var info = stat()
        start = LivingTrace.now
        var builder = TraceBuilder(pid: UInt32(getpid()), start: start)
        builder.header.state = UInt32(TRACE_RECORDING)
        let boot = (try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)) ?? ""
        builder.header.boot = UInt64(boot.filter(\.isHexDigit).prefix(16), radix: 16) ?? 0
        try #require(stat("/proc/self/ns/pid", &info) == 0)
        builder.header.pid_namespace = UInt64(info.st_ino)
        builder.module(0, "/usr/bin/demo")
        for (id, name) in [(1, "main"), (2, "a"), (3, "b")] {
            builder.function(UInt32(id), name, address: 0x5000_0000 + UInt64(id) * 0x100)
        }
        let thread = builder.thread()
        builder.enter(thread, 1, at: start)
        change(&builder)
        let bytes = builder.bytes(closeChunks: false)
        chunk = stride(from: 4096, to: bytes.count, by: 4096).first { bytes[$0] == 0x54 && bytes[$0 + 4] == UInt8(TRACE_CHUNK_EVENTS) } ?? 0
        body = chunk + 128
        file = TemporaryFile(bytes)
        descriptor = open(file.path, O_RDWR)
    }

    deinit { close(descriptor) }

    static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    func write(_ bytes: [UInt8], at offset: Int) {
        _ = bytes.withUnsafeBytes { pwrite(descriptor, $0.baseAddress, $0.count, off_t(offset)) }
    }

    /// The thread's word of this number, after the enter of main.
    func set(_ number: Int, _ event: Event) { set(number, event, in: chunk) }
    func set(_ number: Int, _ event: Event, in chunk: Int) {
        withUnsafeBytes(of: event.word.littleEndian) { write(Array($0), at: chunk + 128 + 8 * (number + 1)) }
    }

    func header<T>(_ value: T, at offset: Int) { withUnsafeBytes(of: value) { write(Array($0), at: offset) } }

    /// The chunk is copied to the end of the file with so many words, and begun anew with main open, as a thread without a recorder does.
    func copyOut(words: Int, to end: Int, sequence: UInt64, isCopied: Bool = true) {
        let bytes = Array(file.bytes[chunk..<chunk + 4096])
        if isCopied {
            write(bytes, at: end)
            header(UInt16(TRACE_CHUNK_CLOSED), at: end + 6)
            header(UInt64(128 + 8 * (words + 1)), at: end + 48)
            header(UInt64(end + 4096), at: MemoryLayout<trace_file_header>.offset(of: \.next_offset)!)
        }
        header(UInt32(0), at: chunk)
        write([UInt8](repeating: 0, count: 4096 - 128), at: chunk + 128)
        header(sequence, at: chunk + 24)
        header(UInt32(128 + 16), at: chunk + 12)
        header(UInt32(1), at: chunk + 80)
        header(UInt32(1), at: chunk + 84)
        header(trace_open_frame(enter_ticks: start, function: 1, flags: 0), at: chunk + 128)
        header(UInt32(TRACE_CHUNK_MAGIC), at: chunk)
    }

    /// Complete calls of a function, each of 10 ns, one after the other from so many nanoseconds on.
    func complete(_ function: UInt32, _ numbers: Range<Int>, from time: UInt64, shift: Int = 0) {
        for (index, number) in numbers.enumerated() {
            set(number + shift, .complete(function, after: time + UInt64(index) * 20, duration: 10)!)
        }
    }
}

/// What the interval has of each function: calls, those whose length is known, those that are open.
private func interval(_ reading: TopReading) -> [String: [UInt64]] {
    reading.look()
    reading.endInterval()
    let rows = reading.snapshot(TopView()).rows.filter { $0.figures.name != "(own code)" }
    return Dictionary(uniqueKeysWithValues: rows.map { ($0.figures.name, [$0.figures.calls, $0.figures.timedCalls, UInt64($0.open)]) })
}

private func reading(_ trace: LivingTrace) throws -> TopReading { try TopReading([trace.file.path], fromStart: true) { [] } }

@Suite struct TopTests {
    @Test func anEnterThatBecomesACompleteCallIsOneCall() throws {
        let trace = try LivingTrace(), reading = try reading(trace)
        trace.set(0, .enter(2, after: 100))
        #expect(interval(reading) == ["main": [1, 0, 1], "a": [1, 0, 1]])
        #expect(interval(reading) == ["main": [0, 0, 1], "a": [0, 0, 1]])
        trace.set(0, .complete(2, after: 100, duration: 50)!)
        #expect(interval(reading) == ["main": [0, 0, 1], "a": [0, 1, 0]])
        trace.set(1, .enter(3, after: 200))
        #expect(interval(reading) == ["main": [0, 0, 1], "b": [1, 0, 1]])
        // It calls something: it stays an enter, with an exit of its own.
        trace.set(2, .complete(2, after: 210, duration: 5)!)
        trace.set(3, .exit(3, after: 300))
        #expect(interval(reading) == ["main": [0, 0, 1], "a": [1, 1, 0], "b": [0, 1, 0]])
    }

    @Test func aChunkThatIsCopiedAndBegunAnewIsReadOnce() throws {
        let trace = try LivingTrace(), reading = try reading(trace)
        trace.complete(2, 0..<10, from: 100)
        #expect(interval(reading)["a"] == [10, 10, 0])
        trace.complete(2, 10..<15, from: 400)
        let end = trace.file.bytes.count
        trace.copyOut(words: 15, to: end, sequence: 1)
        trace.complete(3, 0..<3, from: 900, shift: 1)
        #expect(interval(reading) == ["main": [0, 0, 1], "a": [5, 5, 0], "b": [3, 3, 0]])
        #expect(interval(reading) == ["main": [0, 0, 1]])
    }

    @Test func aChunkThatIsLostIsSaidAndWhatIsOpenStays() throws {
        let trace = try LivingTrace(), reading = try reading(trace)
        trace.complete(2, 0..<10, from: 100)
        _ = interval(reading)
        trace.copyOut(words: 10, to: 0, sequence: 4, isCopied: false)
        trace.complete(3, 0..<3, from: 900, shift: 1)
        for _ in 0..<4 { reading.look() }
        #expect(interval(reading) == ["main": [0, 0, 1], "b": [3, 3, 0]])
        #expect(reading.snapshot(TopView()).losses.missingChunks == 4)
    }

    /// It is read again each time, since it may have become a complete call.
    @Test func theReadingEndsWhereTheLastWordIsAnEnter() throws {
        let trace = try LivingTrace(), reading = try reading(trace)
        trace.set(0, .enter(2, after: 100))
        #expect(interval(reading) == ["main": [1, 0, 1], "a": [1, 0, 1]])
        trace.header(UInt64(1), at: MemoryLayout<trace_file_header>.offset(of: \.ended_ns)!)
        #expect(interval(reading)["a"]?.first == 0) // here it learns of the end
        #expect(interval(reading)["a"]?.first == 0)
        #expect(reading.snapshot(TopView()).isOver)
    }

    @Test func aThreadThatHasEndedIsOverWhenNoChunkIsOnItsWay() throws {
        let trace = try LivingTrace()
        trace.header(UInt32(1) << 30, at: trace.chunk + MemoryLayout<trace_chunk_header>.offset(of: \.tid)!) // the kernel gives no such id
        let reading = try reading(trace)
        func spare(_ state: Int) {
            trace.header(
                trace_spare(offset: UInt64(trace.chunk), destination: 0, state: UInt32(state), byte_count: 4096),
                at: Int(TRACE_SPARES_OFFSET))
        }
        trace.complete(2, 0..<10, from: 100)
        #expect(interval(reading) == ["main": [1, 0, 0], "a": [10, 10, 0]])
        trace.copyOut(words: 10, to: trace.file.bytes.count, sequence: 1)
        trace.complete(3, 0..<3, from: 900, shift: 1)
        spare(TRACE_SPARE_COPIED)
        trace.header(UInt32(0), at: trace.chunk)
        for _ in 0..<8 { #expect(interval(reading).filter { $0.value != [0, 0, 0] } == [:]) }
        // The chunk has main open: it is the call that was counted before.
        trace.header(UInt32(TRACE_CHUNK_MAGIC), at: trace.chunk)
        spare(TRACE_SPARE_FREE)
        #expect(interval(reading) == ["main": [0, 1, 0], "b": [3, 3, 0]])
    }

    /// A signal handler makes calls between the reservation of a word and its writing.
    @Test func aWordThatComesLateCounts() throws {
        let trace = try LivingTrace(), reading = try reading(trace)
        trace.complete(2, 0..<3, from: 100)
        trace.complete(3, 4..<8, from: 200)
        #expect(interval(reading)["a"] == [3, 3, 0])
        #expect(interval(reading)["b"] == [4, 4, 0]) // nothing has come: what is after it is read
        trace.set(3, .complete(2, after: 180, duration: 10)!)
        #expect(interval(reading) == ["main": [0, 0, 1], "a": [1, 1, 0]])
        #expect(interval(reading) == ["main": [0, 0, 1]])
    }

    /// A chunk that is being filled is read up to a word that is empty, until it is passed over. An interval may have ended by then.
    @Test func callsFromBeforeTheReadingAreNotCountedThoughTheyAreReadLater() throws {
        let trace = try LivingTrace()
        trace.complete(2, 0..<3, from: 10)
        trace.complete(2, 4..<6, from: 100)
        trace.complete(2, 7..<8, from: 200)
        let reading = try TopReading([trace.file.path]) { [] }
        reading.endInterval()
        for _ in 0..<4 { #expect(interval(reading) == ["main": [0, 0, 1]]) }
        trace.set(8, .control(.base, LivingTrace.now))
        trace.complete(3, 9..<12, from: 1)
        #expect(interval(reading) == ["main": [0, 0, 1], "b": [3, 3, 0]])
    }

    /// All that were there when the first one was met are waited for once, together.
    @Test func emptyWordsAreWaitedForTogether() throws {
        let trace = try LivingTrace(), reading = try reading(trace)
        for number in 0..<20 { trace.complete(2, 2 * number..<2 * number + 1, from: UInt64(100 * number)) }
        #expect(interval(reading)["a"] == [1, 1, 0])
        #expect(interval(reading)["a"] == [19, 19, 0])
    }

    @Test func callsThatMayBeTakenBackAreNotRead() throws {
        let trace = try LivingTrace { $0.header.minimum_ticks = 3_600_000_000_000 }, reading = try reading(trace)
        trace.set(0, .enter(2, after: 100))
        #expect(interval(reading).isEmpty)
        trace.set(0, Event(word: 0))
        trace.set(0, .enter(3, after: 300))
        #expect(interval(reading).isEmpty)
    }

    @Test func anEmptyRowOfChunksIsLookedAtAgain() throws {
        let trace = try LivingTrace(), reading = try reading(trace)
        #expect(interval(reading) == ["main": [1, 0, 1]])
        // Space for four chunks is reserved; the third is used first.
        let end = trace.file.bytes.count, chunk = Array(trace.file.bytes[trace.chunk..<trace.chunk + 4096])
        trace.write([0], at: end + 4 * 4096 - 1)
        trace.header(UInt64(end + 4 * 4096), at: MemoryLayout<trace_file_header>.offset(of: \.next_offset)!)
        #expect(interval(reading) == ["main": [0, 0, 1]])
        for (place, thread) in [(2, UInt32(5)), (0, UInt32(6))] {
            trace.write(chunk, at: end + place * 4096)
            trace.header(thread, at: end + place * 4096 + 16)
            trace.set(0, .complete(2, after: 10, duration: 1)!, in: end + place * 4096)
            #expect(interval(reading)["a"] == [1, 1, 0])
        }
    }

    @Test func aFunctionHasItsNameThoughItsRecordComesLater() throws {
        let trace = try LivingTrace(), reading = try reading(trace)
        trace.set(0, .complete(7, after: 100, duration: 5)!)
        #expect(interval(reading)["?#7"] == [1, 1, 0])
        var builder = TraceBuilder(pid: UInt32(getpid()))
        builder.function(7, "late", address: 0x5000_0700)
        let end = trace.file.bytes.count
        trace.write(TraceBuilder.metadataChunk(builder.metadataRecords), at: end)
        trace.header(UInt64(end + 4096), at: MemoryLayout<trace_file_header>.offset(of: \.next_offset)!)
        trace.set(1, .complete(7, after: 200, duration: 5)!)
        #expect(interval(reading)["late"] == [1, 1, 0])
    }

    /// However it is cut or damaged.
    @Test func anyFileIsRead() throws {
        let trace = try LivingTrace()
        trace.complete(2, 0..<100, from: 100)
        let bytes = trace.file.bytes
        var random = Xorshift(seed: 7)
        for _ in 0..<300 {
            var changed = bytes
            for _ in 0..<4 { changed[Int(random.next() % UInt64(changed.count))] = UInt8(truncatingIfNeeded: random.next()) }
            let file = TemporaryFile(Array(changed.prefix(random.below(changed.count))))
            guard let reading = try? TopReading([file.path], find: { [] }) else { continue }
            reading.look()
            reading.endInterval()
            _ = reading.snapshot(TopView()).json
        }
    }
}
