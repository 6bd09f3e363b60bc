import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

/// A trace of which some threads are shown.
@Suite struct ChosenThreadTests {
    /// The main thread is in a from 0 to 400 and calls b in it twice; pool-1 is in a from 100 to 1000. The file's clock ends at 10.
    private func two() throws -> Loaded {
        var builder = demo { builder, thread in
            builder.enter(thread, 2, at: start)
            builder.complete(thread, 3, from: start + 100, to: start + 110)
            builder.complete(thread, 3, from: start + 200, to: start + 230)
            builder.exit(thread, 2, at: start + 400)
        }
        let pool = builder.thread("pool-1")
        builder.complete(pool, 2, from: start + 100, to: start + 1000)
        return try Loaded(builder.bytes(end: start + 10))
    }

    @Test(arguments: [1, 3])
    func theirCallsAloneAreAddedUp(workers: Int) throws {
        let loaded = try two()
        for (name, calls, total, own) in [("main", 3, 400, 360), ("pool*", 1, 900, 900), ("4712", 1, 900, 900)]
            as [(String, UInt64, UInt64, Int64)]
        {
            let trace = loaded.trace.only(ThreadPattern(name)), summary = Summary(trace, workers: workers)
            let a = try #require(summary.functions.first { $0.name == "a" })
            #expect(summary.calls == calls && summary.threads.count == 1, "\(name)")
            #expect(a.calls == 1 && a.total.count == total && a.selfTime == own, "\(name)")
            let tree = CallTree(trace, workers: workers)
            #expect(tree.calls == calls && tree.roots.count == 1, "\(name)")
            #expect(trace.ofAllThreads.threads.map { $0.tid } == [4711, 4712])
        }
        #expect(loaded.trace.only(ThreadPattern("nobody")).threads.isEmpty)
    }

    @Test func aTraceEndsWhenItsLastThreadDoesShownOrNot() throws {
        let loaded = try two(), main = loaded.trace.only(ThreadPattern("main"))
        #expect(loaded.summary.duration.count == 1000)
        #expect(Summary(main).duration.count == 1000)
        #expect(TraceEnd(main).ticks == TraceEnd(loaded.trace).ticks)
    }

    /// main calls a, which returns on a thread that is not shown: it does not run until main's end.
    @Test(arguments: [1, 3])
    func aCallMayReturnOnAThreadThatIsNotShown(workers: Int) throws {
        var builder = demo { builder, thread in
            builder.enter(thread, 1, at: start)
            builder.enter(thread, 2, at: start + 10)
        }
        let other = builder.thread("other")
        builder.word(other, .control(.resume, start + 10), at: start + 500)
        builder.word(other, at: start + 500) { .exit(2, after: $0) }
        builder.complete(other, 3, from: start + 600, to: start + 1000)
        let trace = try Loaded(builder.bytes()).trace
        func function(_ name: String, of thread: String) throws -> FunctionSummary {
            try #require(Summary(trace.only(ThreadPattern(thread)), workers: workers).functions.first { $0.name == name })
        }
        #expect(try function("a", of: "main").calls == 1)
        #expect(try function("a", of: "main").total.count == 0)
        #expect(try function("main", of: "main").total.count == 1000) // still running at the end
        #expect(try function("a", of: "other").total.count == 490)
    }
}
