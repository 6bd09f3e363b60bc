import CTraceLayout
import Foundation
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

private extension Summary {
    var threadsOpen: Int { threads.map { $0.openFrames }.reduce(0, +) }
}

@Suite struct ChunkTests {
    /// Everything that must not depend on where chunks end.
    private func fingerprint(_ loaded: Loaded) -> [String] {
        loaded.summary.functions(by: .name).map {
            "\($0.name) \($0.calls) \($0.timedCalls) \($0.total) \($0.selfTime) \($0.minimum?.count ?? 0) \($0.maximum?.count ?? 0) "
                + "\($0.median?.time.count ?? 0) \($0.percentile99?.time.count ?? 0)"
        } + [
            "\(loaded.summary.calls) \(loaded.summary.unwound) \(loaded.summary.orphans) \(loaded.summary.migrations)"
                + " \(loaded.summary.end) \(loaded.summary.threadsOpen)"
        ]
    }

    @Test(arguments: 1...6 as ClosedRange<UInt64>, [1, 2, 7, 100])
    func theResultDoesNotDependOnWhereChunksEnd(seed: UInt64, words: Int) throws {
        let whole = try Loaded(program(seed: seed, events: 600).bytes())
        let split = try Loaded(program(seed: seed, events: 600, wordsPerChunk: words).bytes(), workers: 2)
        #expect(split.summary.threads[0].chunks > 1)
        #expect(whole.summary.orphans == 0)
        #expect(whole.summary.migrations == 0)
        #expect(fingerprint(whole) == fingerprint(split))
        #expect(try whole.lines() == split.lines())
    }

    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func aStackDeeperThanTheStoredFramesIsCarriedOver(seed: UInt64) throws {
        let whole = try Loaded(program(seed: seed, events: 600).bytes())
        let cut = try Loaded(program(seed: seed, events: 600, wordsPerChunk: 5, framesPerChunk: 2).bytes(), workers: 2)
        #expect(fingerprint(whole) == fingerprint(cut))
        #expect(try whole.lines() == cut.lines())
    }

    /// A word that a signal interrupted was written into the chunk before after this one's list had been made.
    @Test(arguments: 1...4 as ClosedRange<UInt64>, [1, 3, 40])
    func theListOfAnUnsettledChunkIsNotBelieved(seed: UInt64, words: Int) throws {
        let whole = try Loaded(program(seed: seed, events: 600).bytes())
        let unsettled = try Loaded(program(seed: seed, events: 600, wordsPerChunk: words, areUnsettled: true).bytes(), workers: 2)
        #expect(fingerprint(whole) == fingerprint(unsettled))
        #expect(try whole.lines() == unsettled.lines())
        #expect(try whole.lines() == unsettled.lines(window: 8))
    }

    @Test func theListOfAnUnsettledChunkIsBelievedWhenTheChunkBeforeIsGone() throws {
        let builder = demo { builder, thread in
            builder.limit(thread, areUnsettled: true)
            builder.steps(thread, [.call(1, 0, 100, [.call(2, 10, 40, [.lose])])])
        }
        let loaded = try Loaded(builder.bytes())
        #expect(loaded.summary.threads[0].chunks == 1)
        #expect(try loaded.lines().contains { $0.hasPrefix("main 100") })
    }

    /// Durations come from looking ahead, and from reading twice where chunks do not store all frames.
    @Test(arguments: 1...6 as ClosedRange<UInt64>, [3, .max])
    func durationsAreTheSameWithAWindowOfAFewLines(seed: UInt64, frames: Int) throws {
        for words in [4, 50, 500] {
            let builder = program(seed: seed, events: 2000, wordsPerChunk: words, framesPerChunk: frames)
            let loaded = try Loaded(builder.bytes())
            let whole = try Loaded(program(seed: seed, events: 2000).bytes())
            #expect(try loaded.lines(window: 8) == whole.lines())
            #expect(try loaded.lines() == whole.lines())
        }
    }

    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func durationsFoundByLookingAheadAreTheSameInARing(seed: UInt64) throws {
        var builder = program(seed: seed, events: 2000, wordsPerChunk: 20)
        builder.header.mode = UInt32(TRACE_MODE_RING)
        var bytes = builder.bytes()
        for page in stride(from: 4096 * 12, to: bytes.count, by: 4096 * 9) { // overwritten
            for offset in page..<page + 4096 * 3 where offset < bytes.count { bytes[offset] = 0 }
        }
        let loaded = try Loaded(bytes)
        #expect(try loaded.lines(window: 8) == loaded.lines(window: .max))
        #expect(try loaded.lines() == loaded.lines(window: .max))
    }

    @Test(arguments: 1...6 as ClosedRange<UInt64>)
    func theEndOfTheTraceIsFoundWithoutReadingIt(seed: UInt64) throws {
        let loaded = try Loaded(program(seed: seed, events: 300, wordsPerChunk: 20).bytes(end: start + 1))
        #expect(TraceEnd(loaded.trace).ticks == loaded.summary.end)
    }

    @Test func replayOfSomeLevelsSkipsTheRest() throws {
        let loaded = try Loaded(program(seed: 9, events: 500).bytes())
        let all = try loaded.lines()
        #expect(try loaded.lines(deepest: 2) == all.filter { !$0.hasPrefix("  ") })
    }

    @Test func aFrameThatChunksStoreIsOneCall() throws {
        let loaded = try Loaded([.call(1, 0, 500, [.split, .call(2, 100, 110), .split])], workers: 3)
        #expect(loaded.rows == ["a 1 10 10", "main 1 500 490"])
    }

    @Test func framesOpenWhenARingBeginsAreCalls() throws {
        let loaded = try Loaded(demo(isRing: true, [.call(1, 0, 500, [.lose, .call(2, 100, 110)])]).bytes())
        #expect(loaded.rows == ["a 1 10 10", "main 1 500 390"]) // self time: only what the ring has
        #expect(loaded.summary.calls == 2)
        #expect(loaded.summary.threads[0].missingChunks == 1)
        #expect(try loaded.lines() == ["missing 1", "main 500 inherited", " a 10"])
    }

    @Test func framesInheritedByAForkedChildAreNotItsCalls() throws {
        let loaded = try Loaded([.inherit(1, -500), .call(2, 100, 110), .exit(1, 500)])
        #expect(loaded["main"]?.calls == 0)
        #expect(loaded["main"]?.total.count == 500) // from its birth on
        #expect(loaded.summary.calls == 1)
    }

    @Test func callsAcrossAGapInARingGoOnAndThoseThatEndedInItHaveNoLength() throws {
        let ring = demo(
            isRing: true,
            [
                .enter(1, 0), .enter(2, 10), .call(4, 20, 40), .split, .exit(2, 100), // in the chunk that is lost
                .call(3, 110, 300, [.lose]), .exit(1, 400),
            ])
        let loaded = try Loaded(ring.bytes(), workers: 2)
        // a ran until the last event before the gap at least.
        #expect(loaded.totals == ["main": 400, "a": 30, "b": 190, "c": 20])
        #expect(["main", "a", "b"].map { loaded[$0]?.calls } == [1, 1, 1])
        #expect(loaded["a"]?.timedCalls == 0)
        #expect(loaded.summary.orphans == 0)
        #expect(loaded.summary.threads[0].missingChunks == 1)
        #expect(try loaded.lines() == ["main 400", " a 30 lost", "  c 20", "missing 1", " b 190 inherited"])
    }

    @Test func chunksOfAThreadAreReadInItsOrderWhereverTheyLie() throws {
        var bytes = program(seed: 3, events: 300, wordsPerChunk: 100).bytes()
        let whole = try Loaded(bytes)
        let chunkStart = bytes.count - 3 * 4096 // the last three chunks, of one page each
        let last = Array(bytes[chunkStart...])
        bytes.replaceSubrange(chunkStart..., with: last[8192...] + last[0..<4096] + last[4096..<8192])
        #expect(fingerprint(whole) == fingerprint(try Loaded(bytes)))
    }

    /// The agent copies a full chunk to the end of the file and then begins the next one at the same offset.
    @Test(arguments: 1...4 as ClosedRange<UInt64>)
    func aStagingChunkAndItsCopyAreOneChunk(seed: UInt64) throws {
        let builder = program(seed: seed, events: 300, wordsPerChunk: 100)
        let whole = try Loaded(builder.bytes())
        var bytes = builder.bytes()
        let last = bytes.count - 4096 // offset of the last chunk, which is one page
        // Killed between the copying of a chunk and the beginning of the next: the original still lies in front.
        for isLast in [true, false] {
            let chunk = isLast ? last : last - 4096
            var original = Array(bytes[chunk..<chunk + 4096])
            original[6] = 0 // not closed
            original.replaceSubrange(48..<56, with: [UInt8](repeating: 0, count: 8)) // used_bytes
            original[56] ^= 0xff // a counter that would show if both were read
            for offset in [4096, chunk + 4096] {
                var both = bytes
                both.insert(contentsOf: original, at: offset)
                let loaded = try Loaded(both, workers: 2)
                #expect(fingerprint(loaded) == fingerprint(whole))
                #expect(loaded.summary.filteredByTime == whole.summary.filteredByTime)
                #expect(loaded.summary.threads[0].chunks == whole.summary.threads[0].chunks)
                #expect(try loaded.lines() == whole.lines())
            }
        }
        // The staging chunk, the first of the file, holds the thread's last words.
        let newest = Array(bytes[last...])
        bytes.removeLast(4096)
        bytes.insert(contentsOf: newest, at: 4096)
        #expect(fingerprint(try Loaded(bytes)) == fingerprint(whole))
    }

    /// Between the walk over the file and the reading of a chunk its thread may have filled it and gone on.
    @Test func aChunkThatWasCopiedAwaySinceTheWalkIsReadWhereItIsNow() throws {
        var builder = program(seed: 2, events: 300, wordsPerChunk: 100)
        builder.header.state = UInt32(TRACE_RECORDING)
        let bytes = builder.bytes()
        let whole = try Loaded(bytes)
        let file = TemporaryFile([])
        let first = 2 * 4096, second = 3 * 4096
        var before = Array(bytes[..<second]) // the staging chunk, not closed
        before[first + 6] = 0
        before.replaceSubrange(first + 48..<first + 56, with: [UInt8](repeating: 0, count: 8))
        file.write(before)
        let trace = try TraceFile(path: file.path)
        #expect(trace.chunksOfThread[0].map { $0.isClosed } == [false])
        // The first chunk moves to the end, the second begins in its place.
        let handle = try #require(FileHandle(forWritingAtPath: file.path))
        try handle.seek(toOffset: UInt64(first))
        try handle.write(contentsOf: Data(bytes[second..<second + 4096]))
        try handle.write(contentsOf: Data(bytes[first..<second]))
        let summary = Summary(trace, workers: 1)
        #expect(summary.overwritten == 0)
        #expect(summary.calls == (try Loaded(Array(bytes[..<second]))).summary.calls)
        // All of it is seen by who looks now.
        try handle.write(contentsOf: Data(bytes[(second + 4096)...]))
        let now = try TraceFile(path: file.path)
        #expect(now.warnings == [])
        #expect(Summary(now, workers: 1).calls == whole.summary.calls)
    }

    @Test func aChunkThatIsBeingRewrittenIsNoDamage() throws {
        let whole = program(seed: 5, events: 100).bytes()
        var rewritten = [UInt8](repeating: 0xab, count: 3 * 4096) // half cleared, or half copied: its magic comes last
        rewritten.replaceSubrange(0..<4, with: [0, 0, 0, 0])
        let loaded = try Loaded(Array(whole[..<4096]) + rewritten + Array(whole[4096...]))
        #expect(loaded.trace.warnings == [])
        #expect(fingerprint(loaded) == fingerprint(try Loaded(whole)))
    }

    @Test func everyThreadHasItsOwnStackAndCount() throws {
        var builder = demo([.enter(1, 0), .call(2, 10, 20)])
        let other = builder.thread(tid: 4999, "worker")
        builder.complete(other, 2, from: start + 12, to: start + 17)
        builder.exit(0, 1, at: start + 100)
        let loaded = try Loaded(builder.bytes(), workers: 2)
        #expect(loaded.summary.threads.map { "\($0.tid) \($0.name) \($0.calls)" } == ["4711 demo 2", "4999 worker 1"])
        #expect(loaded["main"]?.selfTime == 90)
    }

    @Test func countersOfChunksAndOfTheHeaderAreAddedUp() throws {
        var builder = demo([
            .call(1, 0, 1), .counters(byTime: 5, byDepth: 7, dropped: 1), .split,
            .call(1, 10, 11), .counters(byTime: 50, byDepth: 70, dropped: 10),
        ])
        builder.header.dropped = 100
        let loaded = try Loaded(builder.bytes())
        #expect(loaded.summary.filteredByTime == 55)
        #expect(loaded.summary.filteredByDepth == 77)
        #expect(loaded.summary.dropped == 111)
    }

    @Test func zeroWordsBetweenEventsAreSkipped() throws {
        let loaded = try Loaded(demo([.call(1, 0, 10, [.word(Event(word: 0), 0)])]).bytes(closeChunks: false))
        #expect(loaded["main"]?.total.count == 10)
        #expect(loaded.trace.warnings == [])
    }

    @Test func aChunkReservedByAKilledThreadIsSteppedOver() throws {
        let whole = program(seed: 5, events: 100).bytes()
        let gapped = Array(whole[..<4096]) + [UInt8](repeating: 0, count: 5 * 4096) + Array(whole[4096...])
        let loaded = try Loaded(gapped)
        #expect(loaded.trace.warnings == [])
        #expect(fingerprint(loaded) == fingerprint(try Loaded(whole)))
    }

    @Test func trailingZerosAreNothing() throws {
        let whole = program(seed: 5, events: 100).bytes()
        let loaded = try Loaded(whole + [UInt8](repeating: 0, count: 300_000))
        #expect(loaded.trace.warnings == [])
        #expect(fingerprint(loaded) == fingerprint(try Loaded(whole)))
    }

    @Test func namesAreFoundBehindTheEvents() throws {
        let loaded = try Loaded(program(seed: 5, events: 100).bytes(metadataLast: true))
        #expect(loaded["main"] != nil)
    }
}

@Suite struct TimeTests {
    @Test func timesGoOnPastTheReachOfABase() throws {
        let late = start + 3 << 42
        let builder = demo { builder, thread in
            builder.enter(thread, 1, at: start)
            var clock = start
            while clock < late {
                clock += 1 << 40
                builder.complete(thread, 2, from: clock, to: clock + 5)
            }
            builder.exit(thread, 1, at: clock + 100)
        }
        let loaded = try Loaded(builder.bytes())
        let main = try #require(loaded["main"]), a = try #require(loaded["a"])
        #expect(main.total.count == a.calls << 40 + 100)
        #expect(a.minimum?.count == 5)
        #expect(a.maximum?.count == 5)
    }

    @Test func anExitMayLieAsFarFromTheBaseAs42BitsSay() throws {
        let end = Int(Event.timeReach - 1)
        let loaded = try Loaded([.enter(1, 0), .word(.exit(1, after: Event.timeReach - 1), end)])
        #expect(loaded.totals == ["main": UInt64(end)])
    }

    @Test func aBaseMayBeEarlierThanTheOneBeforeIt() throws {
        let loaded = try Loaded([.enter(1, 0), .base(5000), .base(-700), .word(.exit(1, after: 1000), 300)])
        #expect(loaded["main"]?.total.count == 300)
    }

    @Test func aBaseIsCompletedNearTheOneBeforeIt() throws {
        let far: UInt64 = 5 << 56 - 100 // the low 56 bits begin again soon
        var builder = TraceBuilder(start: far)
        builder.function(1, "main")
        let thread = builder.thread()
        builder.steps(thread, [.enter(1, 0), .base(20_000_000), .exit(1, 20_000_300)])
        #expect(try Loaded(builder.bytes())["main"]?.total.count == 20_000_300)
    }

    @Test func aBaseBetweenResumeAndItsWordDoesNotPartThem() throws {
        let loaded = try Loaded([
            .enter(1, 0), .enter(2, 10), .resume(0, 50), .base(60), .word(.exit(1, after: 0), 60), .exit(2, 100),
        ])
        #expect(try loaded.lines() == ["main 60", " a 90"])
    }

    @Test func eventsThatASignalInvertedAreClampedToTheirNeighbour() throws {
        let loaded = try Loaded([.enter(1, 100), .at(90) { Event.complete(2, after: $0, duration: 30)! }, .bareExit(1, 110)])
        #expect(loaded.totals == ["a": 20, "main": 20]) // 100 ... 120, not 110
    }

    @Test func theEventThatOpensAChunkMayBeOlderThanIt() throws {
        // The first word opens the chunk.
        let loaded = try Loaded([.word(unknownControl(0), 0), .at(-50) { .enter(1, after: $0) }, .bareExit(1, 50)])
        #expect(loaded["main"]?.total.count == 100)
    }

    @Test func ticksAreScaledByTheWidestPairOfSamples() throws {
        var builder = TraceBuilder(ticksPerNanosecond: 3)
        builder.function(1, "main")
        let thread = builder.thread()
        builder.steps(thread, [.enter(1, 0), .exit(1, 6_000_000)])
        builder.header.ticks_per_second = 3_000_000_000
        let bytes = builder.bytes()
        #expect(try Loaded(bytes)["main"]?.total.count == 2_000_000)
    }

    @Test func aShortTraceUsesTheNominalRate() {
        let near = [trace_clock_sample(ticks: 1000, monotonic_ns: 1000), trace_clock_sample(ticks: 2000, monotonic_ns: 1900)]
        #expect(TimeScale(clock: 1, ticksPerSecond: 2_000_000_000, samples: near).nanosecondsPerTick == 0.5)
        #expect(TimeScale(clock: 1, ticksPerSecond: 0, samples: near).nanosecondsPerTick == 0.9)
        #expect(TimeScale(clock: UInt32(TRACE_CLOCK_MONOTONIC), ticksPerSecond: 5, samples: near).nanosecondsPerTick == 1)
        #expect(!TimeScale(clock: 1, ticksPerSecond: 0, samples: []).isKnown)
        #expect(TimeScale(clock: 1, ticksPerSecond: 0, samples: [near[0], near[0]]).isKnown == false)
    }
}
