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
                builder.complete(thread, 2, from: start, to: start + 50) // a constructor's
                builder.enter(thread, 2, at: start + 200)
                builder.complete(thread, 3, from: start + 210, to: start + 290)
                builder.exit(thread, 2, at: start + 300)
                builder.complete(thread, 2, from: start + 900, to: start + 1100) // half of it after main, as a handler of exit
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
                builder.complete(thread, 2, from: start + 500, to: start + 600)
                builder.complete(thread, 2, from: start + 700, to: start + 800)
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
        let loaded = try Loaded(
            demo { builder, thread in
                builder.enter(thread, 2, at: start - 500)
                builder.split(thread)
                builder.exit(thread, 2, at: start + 10)
                builder.complete(thread, 2, from: start + 110, to: start + 120)
            }.bytes())
        #expect(loaded.summary.threads[0].span == Nanoseconds(120))
        #expect(loaded.summary.threads[0].own == Nanoseconds(100))
    }

    @Test func isNotToldWhereEventsOfTheMiddleAreMissing() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                builder.complete(thread, 1, from: start, to: start + 10)
                builder.split(thread)
                builder.complete(thread, 1, from: start + 20, to: start + 30)
                builder.split(thread, isWritten: false)
                builder.complete(thread, 1, from: start + 40, to: start + 50)
            }.bytes())
        #expect(loaded.summary.threads[0].own == nil)
        #expect(!loaded.run.headline.contains("in calls"))
    }
}
