import CTraceLayout
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

@Suite struct CallTests {
    @Test func nestedCallsHaveTotalAndSelfTime() throws {
        let loaded = try Loaded([.call(1, 0, 1000, [.call(2, 100, 400, [.call(3, 200, 230)])])])
        #expect(loaded.rows == ["a 1 300 270", "b 1 30 30", "main 1 1000 700"])
        #expect(loaded.summary.calls == 3)
        #expect(loaded.summary.duration.count == 1000)
        #expect(loaded.summary.events == 5)
        #expect(try loaded.lines() == ["main 1000", " a 300", "  b 30"])
    }

    @Test func totalOfARecursiveFunctionCountsItsOutermostCallOnly() throws {
        let loaded = try Loaded([.call(2, 0, 100, [.call(2, 10, 60, [.call(2, 20, 25)])])])
        let a = try #require(loaded["a"])
        #expect(loaded.rows == ["a 3 100 100"])
        #expect([a.minimum, a.maximum, a.average].map { $0?.count } == [5, 100, 51]) // (100 + 50 + 5) / 3
    }

    @Test func selfTimesSumToTheOutermostCall() throws {
        let inner = stride(from: 0, to: 10_000, by: 100).map { at -> Step in
            .call(2, at + 10, at + 90, [.call(at % 200 == 0 ? 3 : 4, at + 20, at + 40)])
        }
        let loaded = try Loaded([.call(1, 0, 10_000, inner)])
        #expect(loaded.summary.functions.map { $0.selfTime }.reduce(0, +) == 10_000)
    }

    @Test func unwoundClosesTheInnermostFrames() throws {
        let loaded = try Loaded([.enter(1, 0), .enter(2, 10), .enter(3, 20), .unwind(2, 50), .call(4, 60, 70), .exit(1, 100)])
        #expect(loaded.summary.unwound == 2)
        #expect(loaded.rows == ["a 1 40 10", "b 1 30 30", "c 1 10 10", "main 1 100 50"])
        #expect(try loaded.lines() == ["main 100", " a 40 unwound", "  b 30 unwound", " c 10"])
    }

    @Test func anUnwoundCountBeyondTheStackClosesWhatIsThere() throws {
        let loaded = try Loaded([.enter(1, 0), .at(5) { .unwound(9000, after: $0) }])
        #expect(loaded["main"]?.total.count == 5)
    }

    @Test func resumeClosesAFrameInsideTheStack() throws {
        let loaded = try Loaded([
            .enter(1, 0), .enter(2, 10), .enter(3, 20), .resume(10, 40), .bareExit(2, 40), .bareExit(3, 90), .bareExit(1, 100),
        ])
        #expect(loaded.totals == ["main": 100, "a": 30, "b": 70])
        #expect(loaded.summary.unwound == 0)
        #expect(loaded.summary.orphans == 0)
        #expect(loaded.summary.migrations == 0)
        #expect(try loaded.lines() == ["main 100", " a 30", "  b 70"])
    }

    /// As a coarse clock gives it to a caller and what it calls, or to calls on two stacks.
    @Test func resumeClosesTheFrameOfItsFunctionOfSeveralThatBeganAtOneMoment() throws {
        let loaded = try Loaded([.enter(1, 10), .enter(2, 10), .resume(10, 40), .exit(1, 40), .exit(2, 60)])
        #expect(loaded.totals == ["main": 30, "a": 50])
        #expect(loaded["main"]?.timedCalls == 1 && loaded["a"]?.timedCalls == 1)
        #expect(loaded.summary.orphans == 0)
    }

    /// A process that was killed between the two words: what comes next is no end of that frame.
    @Test func resumeBeforeAnEmptyWordSaysNothing() throws {
        let loaded = try Loaded([
            .enter(1, 0), .enter(2, 10), .resume(0, 40), .word(Event(word: 0), 40), .bareExit(2, 50), .bareExit(1, 100),
        ])
        #expect(try loaded.lines() == ["main 100", " a 40"])
        #expect(loaded.summary.migrations == 0)
    }

    @Test func resumeDeterminesWhichOfTwoFramesOfAFunctionReturns() throws {
        let loaded = try Loaded([.enter(2, 0), .enter(2, 10), .resume(0, 100), .bareExit(2, 100), .bareExit(2, 110)])
        #expect(loaded["a"]?.minimum?.count == 100)
        #expect(loaded["a"]?.maximum?.count == 100)
    }

    @Test func resumeBeforeUnwoundClosesThatFrameAlone() throws {
        let loaded = try Loaded([.enter(1, 0), .enter(2, 10), .resume(0, 40), .at(40) { .unwound(1, after: $0) }, .bareExit(2, 50)])
        #expect(try loaded.lines() == ["main 40 unwound", " a 40"])
    }

    @Test func aFrameDeepInAPileOfParkedCoroutinesIsFound() throws {
        let parked = (0..<2000).map { Step.enter(2, $0 * 10) }
        let loaded = try Loaded(parked + [.resume(7000, 100_000), .bareExit(2, 100_000)])
        #expect(loaded.summary.migrations == 0)
        #expect(loaded["a"]?.timedCalls == 2000)
        #expect(try loaded.lines()[700].hasSuffix("a 93000"))
    }

    @Test func ofCallsThatOverlapTheLaterHasTheTime() throws {
        let loaded = try Loaded([
            .enter(1, 0), .enter(2, 10), .enter(2, 30), .enter(3, 40), .resume(10, 60), .bareExit(2, 60), .resume(30, 70), .bareExit(2, 70),
            .bareExit(3, 90), .bareExit(1, 100),
        ])
        #expect(loaded.rows.sorted() == ["a 2 60 30", "b 1 50 50", "main 1 100 20"]) // a from 10 to 70
    }

    @Test func aCallThatHasLeftForAnotherThreadHasNoTimeAfterwards() throws {
        var builder = demo([
            .enter(1, 0), .enter(2, 10), .resume(10, 50), .at(50) { .unwound(0, after: $0) }, .call(3, 60, 70), .exit(1, 100),
        ])
        let other = builder.thread("other")
        builder.steps(other, [.resume(10, 50), .bareExit(2, 50)])
        let loaded = try Loaded(builder.bytes())
        #expect(loaded.rows.sorted() == ["a 1 40 40", "b 1 10 10", "main 1 100 50"])
        #expect(try loaded.lines() == ["main 100", " a 40", " b 10"])
    }

    @Test func aCallThatMigratedCountsItsTimeWhereItEndedAndItsCallWhereItBegan() throws {
        var builder = demo([.enter(1, 0), .enter(2, 10)])
        let other = builder.thread("other")
        builder.steps(other, [.resume(10, 500), .bareExit(2, 500), .call(3, 600, 1000)])
        let loaded = try Loaded(builder.bytes())
        #expect(loaded.totals == ["a": 490, "b": 400, "main": 1000]) // main is still running at the end
        #expect(loaded["a"]?.calls == 1 && loaded["a"]?.timedCalls == 1)
        #expect(loaded.summary.migrations == 1)
        #expect(loaded.summary.calls == 3)
        #expect(try loaded.lines(thread: 1) == ["a migrated 490", "b 400"])
    }

    @Test func anExitThatDoesNotMatchClosesTheFramesAbove() throws {
        let loaded = try Loaded([.enter(1, 0), .enter(2, 10), .enter(3, 20), .bareExit(1, 50)])
        #expect(loaded.summary.unwound == 2)
        #expect(try loaded.lines() == ["main 50", " a 40 unwound", "  b 30 unwound"])
    }

    @Test func anExitThatMatchesNothingIsAnOrphanAndClosesNothing() throws {
        let loaded = try Loaded([.enter(1, 0), .bareExit(4, 20), .exit(1, 50)])
        #expect(loaded.summary.orphans == 1)
        #expect(loaded.totals == ["main": 50])
        #expect(try loaded.lines() == ["main 50", " c orphan"])
    }

    @Test func aCallStillOpenRunsToTheEndOfTheTrace() throws {
        let loaded = try Loaded(demo([.enter(1, 0), .enter(2, 40)]).bytes(end: start + 1000, closeChunks: false))
        #expect(loaded.rows == ["a 1 960 960", "main 1 1000 40"])
        #expect(loaded.summary.threads[0].openFrames == 2)
        #expect(try loaded.lines() == ["main 1000 open", " a 960 open"])
    }

    /// ThreadEndTests has the rest.
    @Test func aCallOpenWhenItsThreadEndsLastsUntilThen() throws {
        var builder = demo([.enter(1, 0), .call(2, 10, 20)])
        builder.threadEnd(0, at: start + 70)
        let loaded = try Loaded(builder.bytes(end: start + 1000))
        #expect(loaded["main"]?.total.count == 20)
        #expect(try loaded.lines() == ["main 20 unwound", " a 10"])
    }

    @Test func anEntryWithoutExitCountsAsCallAndHasNoTime() throws {
        let loaded = try Loaded([.call(1, 0, 100, [.call(5, 10, 10), .call(5, 20, 20)])])
        let tail = try #require(loaded["setjmp"])
        #expect(tail.timedCalls == 0)
        #expect(tail.minimum == nil && tail.median == nil)
        #expect(loaded.rows == ["main 1 100 100", "setjmp 2 0 0"])
        #expect(try loaded.lines() == ["main 100", " setjmp entered", " setjmp entered"])
    }

    @Test func functionsOfOneNameAndModuleAreOneRow() throws {
        var builder = demo([
            .enter(2, 0), .call(9, 10, 20), // recursion through another id
            .exit(2, 100), .call(10, 200, 200),
        ])
        builder.function(9, "a")
        builder.function(10, "a", isEntryOnly: true)
        let loaded = try Loaded(builder.bytes())
        #expect(loaded.rows == ["a 3 100 100"])
        #expect(loaded["a"]?.timedCalls == 2)
    }

    @Test func functionsThatNothingDescribesStillHaveANameEach() throws {
        var builder = demo([.call(123, 0, 10), .call(124, 20, 30), .call(7, 40, 50)])
        builder.function(7, "", address: 0x5000_1234)
        let loaded = try Loaded(builder.bytes(), workers: 2)
        #expect(Set(loaded.summary.functions.map { $0.name }) == ["?#123", "?#124", "libdemo.so.1+0x1234"])
        #expect(loaded.summary.functions.allSatisfy { !$0.module.isEmpty })
    }

    @Test func controlWordsOfAnotherKindAreCountedAndSkipped() throws {
        let loaded = try Loaded([.call(1, 0, 30, [.word(unknownControl(55), 20)])])
        #expect(loaded.summary.unknownWords == 1)
        #expect(try loaded.lines() == ["main 30"])
    }
}
