import CTraceLayout
import Presentation
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

/// The threads' time in the program's own code, which no recorded call covers.
@Suite struct OwnCodeTests {
    private func phase(_ builder: inout TraceBuilder, _ kind: Int, at ticks: UInt64) {
        var record = trace_phase_record()
        record.usage.ticks = ticks
        builder.record(TRACE_RECORD_PHASE, key: kind, record, [])
    }

    @Test func ofTheMainThreadIsFromMainsCallToItsReturn() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                phase(&builder, TRACE_PHASE_MAIN, at: start + 100)
                builder.steps(thread, [
                    .call(2, 0, 50), // a constructor's
                    .call(2, 200, 300, [.call(3, 210, 290)]), .call(2, 900, 1100), // half of it after main, as a handler of exit
                ])
                phase(&builder, TRACE_PHASE_MAIN_RETURNED, at: start + 1000)
            }.bytes())
        let summary = loaded.summary
        #expect(summary.threads[0].span == Nanoseconds(900))
        #expect(summary.threads[0].own == Nanoseconds(700))
        #expect(summary.inCalls == Nanoseconds(200))
        #expect(summary.ownCode?.total == Nanoseconds(700))
        #expect(summary.ownCode?.module == "demo")
    }

    @Test func ofAThreadBeginsAsLongBeforeItsFirstCallAsItHadRun() throws {
        let loaded = try Loaded(
            demo { builder, main in
                builder.complete(main, 2, from: start, to: start + 1000)
                let thread = builder.thread()
                builder.threadBegin(thread, tid: 4712, at: start + 500, cpuTime: 100)
                builder.steps(thread, [.call(2, 500, 600), .call(2, 700, 800)])
            }.bytes())
        #expect(loaded.summary.threads.map { $0.span } == [Nanoseconds(1000), Nanoseconds(400)])
        #expect(loaded.summary.threads.map { $0.own } == [Nanoseconds(0), Nanoseconds(200)])
    }

    @Test func lastsAsLongAsACallThatDoesNotReturn() throws {
        let loaded = try Loaded(
            demo { builder, main in
                builder.complete(main, 2, from: start, to: start + 1000)
                let thread = builder.thread()
                builder.threadBegin(thread, tid: 4712, at: start + 500, cpuTime: 100)
                builder.enter(thread, 2, at: start + 500)
            }.bytes())
        #expect(loaded.summary.threads[1].span == Nanoseconds(600))
        #expect(loaded.summary.threads[1].own == Nanoseconds(100))
    }

    /// The call in which the child was made began long before.
    @Test func ofAForkedChildBeginsWithItsBirth() throws {
        let loaded = try Loaded([.call(2, -500, 10, [.split]), .call(2, 110, 120)])
        #expect(loaded.summary.threads[0].span == Nanoseconds(120))
        #expect(loaded.summary.threads[0].own == Nanoseconds(100))
    }

    @Test func isNotToldWhereEventsOfTheMiddleAreMissing() throws {
        let loaded = try Loaded([.call(1, 0, 10), .split, .call(1, 20, 30), .lose, .call(1, 40, 50)])
        #expect(loaded.summary.threads[0].own == nil)
        #expect(!loaded.run.headline.contains("in calls"))
    }
}
