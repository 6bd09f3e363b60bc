import CTraceLayout
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

@Suite struct CallTests {
    @Test func nestedCallsHaveTotalAndSelfTime() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                builder.enter(thread, 1, at: start)
                builder.enter(thread, 2, at: start + 100)
                builder.complete(thread, 3, from: start + 200, to: start + 230)
                builder.exit(thread, 2, at: start + 400)
                builder.exit(thread, 1, at: start + 1000)
            }.bytes())
        #expect(loaded["main"]?.total.count == 1000)
        #expect(loaded["main"]?.selfTime == 700)
        #expect(loaded["a"]?.total.count == 300)
        #expect(loaded["a"]?.selfTime == 270)
        #expect(loaded["b"]?.total.count == 30)
        #expect(loaded.summary.calls == 3)
        #expect(loaded.summary.duration.count == 1000)
        #expect(loaded.summary.events == 5)
        #expect(try loaded.lines() == ["main 1000", " a 300", "  b 30"])
    }

    @Test func totalOfARecursiveFunctionCountsItsOutermostCallOnly() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                builder.enter(thread, 2, at: start)
                builder.enter(thread, 2, at: start + 10)
                builder.complete(thread, 2, from: start + 20, to: start + 25)
                builder.exit(thread, 2, at: start + 60)
                builder.exit(thread, 2, at: start + 100)
            }.bytes())
        let a = try #require(loaded["a"])
        #expect(a.calls == 3)
        #expect(a.total.count == 100)
        #expect(a.selfTime == 100)
        #expect(a.minimum?.count == 5)
        #expect(a.maximum?.count == 100)
        #expect(a.average?.count == 51) // (100 + 50 + 5) / 3
    }

    @Test func selfTimesSumToTheOutermostCall() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                builder.enter(thread, 1, at: start)
                for index in 0..<100 as Range<UInt64> {
                    builder.enter(thread, 2, at: start + index * 100 + 10)
                    builder.complete(thread, UInt32(3 + index % 2), from: start + index * 100 + 20, to: start + index * 100 + 40)
                    builder.exit(thread, 2, at: start + index * 100 + 90)
                }
                builder.exit(thread, 1, at: start + 10_000)
            }.bytes())
        #expect(loaded.summary.functions.map { $0.selfTime }.reduce(0, +) == 10_000)
    }

    @Test func unwoundClosesTheInnermostFrames() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                builder.enter(thread, 1, at: start)
                builder.enter(thread, 2, at: start + 10)
                builder.enter(thread, 3, at: start + 20)
                builder.unwind(thread, 2, at: start + 50)
                builder.complete(thread, 4, from: start + 60, to: start + 70)
                builder.exit(thread, 1, at: start + 100)
            }.bytes())
        #expect(loaded.summary.unwound == 2)
        #expect(loaded["b"]?.total.count == 30)
        #expect(loaded["main"]?.selfTime == 50)
        #expect(try loaded.lines() == ["main 100", " a 40 unwound", "  b 30 unwound", " c 10"])
    }

    @Test func anUnwoundCountBeyondTheStackClosesWhatIsThere() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                builder.enter(thread, 1, at: start)
                builder.word(thread, at: start + 5) { .unwound(9000, after: $0) }
            }.bytes())
        #expect(loaded["main"]?.total.count == 5)
    }

    @Test func resumeClosesAFrameInsideTheStack() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                builder.enter(thread, 1, at: start)
                builder.enter(thread, 2, at: start + 10)
                builder.enter(thread, 3, at: start + 20)
                builder.word(thread, .control(.resume, start + 10), at: start + 40)
                builder.word(thread, at: start + 40) { .exit(2, after: $0) }
                builder.word(thread, at: start + 90) { .exit(3, after: $0) }
                builder.word(thread, at: start + 100) { .exit(1, after: $0) }
            }.bytes())
        #expect(loaded["a"]?.total.count == 30)
        #expect(loaded["b"]?.total.count == 70)
        #expect(loaded["main"]?.total.count == 100)
        #expect(loaded.summary.unwound == 0)
        #expect(loaded.summary.orphans == 0)
        #expect(loaded.summary.migrations == 0)
        #expect(try loaded.lines() == ["main 100", " a 30", "  b 70"])
    }

    /// As a coarse clock gives it to a caller and what it calls, or to calls on two stacks.
    @Test func resumeClosesTheFrameOfItsFunctionOfSeveralThatBeganAtOneMoment() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                builder.enter(thread, 1, at: start + 10)
                builder.enter(thread, 2, at: start + 10)
                builder.word(thread, .control(.resume, start + 10), at: start + 40)
                builder.exit(thread, 1, at: start + 40)
                builder.exit(thread, 2, at: start + 60)
            }.bytes())
        #expect(loaded["main"]?.total.count == 30)
        #expect(loaded["a"]?.total.count == 50)
        #expect(loaded["main"]?.timedCalls == 1 && loaded["a"]?.timedCalls == 1)
        #expect(loaded.summary.orphans == 0)
    }

    /// A process that was killed between the two words: what comes next is no end of that frame.
    @Test func resumeBeforeAnEmptyWordSaysNothing() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                builder.enter(thread, 1, at: start)
                builder.enter(thread, 2, at: start + 10)
                builder.word(thread, .control(.resume, start), at: start + 40)
                builder.word(thread, Event(word: 0), at: start + 40)
                builder.word(thread, at: start + 50) { .exit(2, after: $0) }
                builder.word(thread, at: start + 100) { .exit(1, after: $0) }
            }.bytes())
        #expect(try loaded.lines() == ["main 100", " a 40"])
        #expect(loaded.summary.migrations == 0)
    }

    @Test func resumeTellsWhichOfTwoFramesOfAFunctionReturns() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                builder.enter(thread, 2, at: start)
                builder.enter(thread, 2, at: start + 10)
                builder.word(thread, .control(.resume, start), at: start + 100)
                builder.word(thread, at: start + 100) { .exit(2, after: $0) }
                builder.word(thread, at: start + 110) { .exit(2, after: $0) }
            }.bytes())
        #expect(loaded["a"]?.minimum?.count == 100)
        #expect(loaded["a"]?.maximum?.count == 100)
    }

    @Test func resumeBeforeUnwoundClosesThatFrameAlone() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                builder.enter(thread, 1, at: start)
                builder.enter(thread, 2, at: start + 10)
                builder.word(thread, .control(.resume, start), at: start + 40)
                builder.word(thread, at: start + 40) { .unwound(1, after: $0) }
                builder.word(thread, at: start + 50) { .exit(2, after: $0) }
            }.bytes())
        #expect(try loaded.lines() == ["main 40 unwound", " a 40"])
    }

    @Test func aFrameDeepInAPileOfParkedCoroutinesIsFound() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                for index in 0..<2000 as Range<UInt64> { builder.enter(thread, 2, at: start + index * 10) }
                builder.word(thread, .control(.resume, start + 7000), at: start + 100_000)
                builder.word(thread, at: start + 100_000) { .exit(2, after: $0) }
            }.bytes())
        #expect(loaded.summary.migrations == 0)
        #expect(loaded["a"]?.timedCalls == 2000)
        #expect(try loaded.lines()[700].hasSuffix("a 93000"))
    }

    @Test func aCallThatMigratedCountsItsTimeWhereItEndedAndItsCallWhereItBegan() throws {
        var builder = demo { builder, thread in
            builder.enter(thread, 1, at: start)
            builder.enter(thread, 2, at: start + 10)
        }
        let other = builder.thread("other")
        builder.word(other, .control(.resume, start + 10), at: start + 500)
        builder.word(other, at: start + 500) { .exit(2, after: $0) }
        builder.complete(other, 3, from: start + 600, to: start + 1000)
        let loaded = try Loaded(builder.bytes())
        #expect(loaded["a"]?.calls == 1)
        #expect(loaded["a"]?.total.count == 490)
        #expect(loaded["a"]?.timedCalls == 1)
        #expect(loaded["main"]?.total.count == 1000) // still running at the end
        #expect(loaded.summary.migrations == 1)
        #expect(loaded.summary.calls == 3)
        #expect(try loaded.lines(thread: 1) == ["a migrated 490", "b 400"])
    }

    @Test func anExitThatDoesNotMatchClosesTheFramesAbove() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                builder.enter(thread, 1, at: start)
                builder.enter(thread, 2, at: start + 10)
                builder.enter(thread, 3, at: start + 20)
                builder.word(thread, at: start + 50) { .exit(1, after: $0) }
            }.bytes())
        #expect(loaded.summary.unwound == 2)
        #expect(try loaded.lines() == ["main 50", " a 40 unwound", "  b 30 unwound"])
    }

    @Test func anExitThatMatchesNothingIsAnOrphanAndClosesNothing() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                builder.enter(thread, 1, at: start)
                builder.word(thread, at: start + 20) { .exit(4, after: $0) }
                builder.exit(thread, 1, at: start + 50)
            }.bytes())
        #expect(loaded.summary.orphans == 1)
        #expect(loaded["c"] == nil)
        #expect(loaded["main"]?.total.count == 50)
        #expect(try loaded.lines() == ["main 50", " c orphan"])
    }

    @Test func aCallStillOpenRunsToTheEndOfTheTrace() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                builder.enter(thread, 1, at: start)
                builder.enter(thread, 2, at: start + 40)
            }.bytes(end: start + 1000, closeChunks: false))
        #expect(loaded["main"]?.calls == 1)
        #expect(loaded["main"]?.total.count == 1000)
        #expect(loaded["main"]?.selfTime == 40)
        #expect(loaded.summary.threads[0].openFrames == 2)
        #expect(try loaded.lines() == ["main 1000 open", " a 960 open"])
    }

    @Test func aCallOpenWhenItsThreadEndsRunsToThatMoment() throws {
        var builder = demo { builder, thread in builder.enter(thread, 1, at: start) }
        builder.threadEnd(0, at: start + 70)
        let loaded = try Loaded(builder.bytes(end: start + 1000))
        #expect(loaded["main"]?.total.count == 70)
        #expect(try loaded.lines() == ["main 70 unwound"])
    }

    @Test func anEntryWithoutExitCountsAsCallAndHasNoTime() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                builder.enter(thread, 1, at: start)
                builder.complete(thread, 5, from: start + 10, to: start + 10)
                builder.complete(thread, 5, from: start + 20, to: start + 20)
                builder.exit(thread, 1, at: start + 100)
            }.bytes())
        let tail = try #require(loaded["setjmp"])
        #expect(tail.calls == 2)
        #expect(tail.timedCalls == 0)
        #expect(tail.minimum == nil)
        #expect(tail.median == nil)
        #expect(loaded["main"]?.selfTime == 100)
        #expect(try loaded.lines() == ["main 100", " setjmp entered", " setjmp entered"])
    }

    @Test func functionsOfOneNameAndModuleAreOneRow() throws {
        var builder = demo { builder, thread in
            builder.enter(thread, 2, at: start)
            builder.complete(thread, 9, from: start + 10, to: start + 20) // recursion through another id
            builder.exit(thread, 2, at: start + 100)
            builder.complete(thread, 10, from: start + 200, to: start + 200)
        }
        builder.function(9, "a")
        builder.function(10, "a", isEntryOnly: true)
        let loaded = try Loaded(builder.bytes())
        #expect(loaded.summary.functions.count == 1)
        #expect(loaded["a"]?.calls == 3)
        #expect(loaded["a"]?.timedCalls == 2)
        #expect(loaded["a"]?.total.count == 100)
    }

    @Test func functionsThatNothingDescribesStillHaveANameEach() throws {
        var builder = demo { builder, thread in
            builder.complete(thread, 123, from: start, to: start + 10)
            builder.complete(thread, 124, from: start + 20, to: start + 30)
            builder.complete(thread, 7, from: start + 40, to: start + 50)
        }
        builder.function(7, "", address: 0x5000_1234)
        let loaded = try Loaded(builder.bytes(), workers: 2)
        #expect(Set(loaded.summary.functions.map { $0.name }) == ["?#123", "?#124", "libdemo.so.1+0x1234"])
        #expect(loaded.summary.functions.allSatisfy { !$0.module.isEmpty })
    }

    @Test func controlWordsOfAnotherKindAreCountedAndSkipped() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                builder.enter(thread, 1, at: start)
                builder.word(thread, unknownControl(55), at: start + 20)
                builder.exit(thread, 1, at: start + 30)
            }.bytes())
        #expect(loaded.summary.unknownWords == 1)
        #expect(try loaded.lines() == ["main 30"])
    }
}
