import CTraceLayout
import Presentation
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

/// The threads' time in the program's own code, which no recorded call covers.
@Suite struct OwnCodeTests {
    /// Span and own time of each thread.
    private func times(_ threads: [ThreadSummary]) -> [[UInt64?]] { threads.map { [$0.span?.count, $0.own?.count] } }

    @Test func ofTheMainThreadIsFromMainsCallToItsReturn() throws {
        var builder = demo([
            .call(2, 0, 50), // a constructor's
            .call(2, 200, 300, [.call(3, 210, 290)]), .call(2, 900, 1100), // half of it after main, as a handler of exit
        ])
        builder.phase(TRACE_PHASE_MAIN, TraceBuilder.usage(at: start + 100))
        builder.phase(TRACE_PHASE_MAIN_RETURNED, TraceBuilder.usage(at: start + 1000))
        let summary = try Loaded(builder.bytes()).summary
        #expect(times(summary.threads) == [[1050, 700]]) // the calls before and after main are the thread's, too
        #expect(summary.inCalls == Nanoseconds(350))
        #expect(summary.ownCode?.total == Nanoseconds(700))
        #expect(summary.ownCode?.module == "demo")
    }

    /// A thread that has run for 100 when its first call begins, at 500.
    private func threads(_ steps: [Step]) throws -> [ThreadSummary] {
        var builder = demo([.call(2, 0, 1000)])
        let thread = builder.thread()
        builder.threadBegin(thread, tid: 4712, at: start + 500, cpuTime: 100)
        builder.steps(thread, steps)
        return try Loaded(builder.bytes()).summary.threads
    }

    @Test func ofAThreadBeginsAsLongBeforeItsFirstCallAsItHadRun() throws {
        #expect(times(try threads([.call(2, 500, 600), .call(2, 700, 800)])) == [[1000, 0], [400, 200]])
    }

    @Test func lastsAsLongAsACallThatDoesNotReturn() throws {
        #expect(times(try threads([.enter(2, 500)])).last == [600, 100])
    }

    /// The call in which the child was made began long before.
    @Test func ofAForkedChildBeginsWithItsBirth() throws {
        let loaded = try Loaded([.inherit(2, -500), .exit(2, 10), .call(2, 110, 120)])
        #expect(times(loaded.summary.threads) == [[120, 100]])
    }

    @Test func ofARingBeginsAfterTheLastGap() throws {
        let steps: [Step] = [.call(1, 0, 10), .split, .call(1, 20, 30), .lose, .call(1, 40, 50), .split, .call(1, 80, 100)]
        let threads = try Loaded(demo(isRing: true, steps).bytes()).summary.threads
        #expect(times(threads) == [[70, 30]]) // the call before the gap lasted 10; then 60 from 40 on
    }

    @Test func isNotShownWhereEventsOfTheMiddleAreMissing() throws {
        let loaded = try Loaded([.call(1, 0, 10), .split, .call(1, 20, 30), .lose, .call(1, 40, 50)])
        #expect(loaded.summary.threads[0].own == nil)
        #expect(!loaded.run.headline.contains("in calls"))
    }
}
