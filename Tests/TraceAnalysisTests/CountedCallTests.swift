import CTraceLayout
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

/// Calls that are counted and not recorded (SUPPRESSED, PASSED, SAMPLED).
@Suite struct CountedCallTests {
    /// a (2) is counted by the first counter, b (3) by the second.
    private func counted(_ counts: [UInt64], of thread: UInt32 = 0, hasCounters: Bool = true, _ steps: [Step]) throws -> Loaded {
        try Loaded(
            demo { builder, index in
                for function in [2, 3] as [UInt32] {
                    builder.record(
                        TRACE_RECORD_SUPPRESSED,
                        trace_suppressed_record(
                            record: trace_record(), function: function, counter: hasCounters ? function - 1 : 0, ticks: start), [])
                }
                builder.record(
                    TRACE_RECORD_PASSED, trace_passed_record(record: trace_record(), thread: thread, count: UInt32(counts.count)),
                    counts.flatMap { count in withUnsafeBytes(of: count.littleEndian) { Array($0) } })
                builder.steps(index, steps)
            }.bytes())
    }
    private func stands(_ function: UInt32, for calls: UInt64, _ time: Int) -> Step {
        .word(Event.sampled(function, calls: calls), time)
    }

    @Test func callsAreTheRecordedOnesAndThoseThatAreCounted() throws {
        let loaded = try counted([1000, 0], [.call(1, 0, 100, [stands(2, for: 700, 10), .call(2, 10, 20), .call(2, 30, 34)])])
        #expect(loaded.summary.calls == 1003)
        #expect(loaded.summary.onlyCounted == 1000)
        #expect(loaded["a"]?.calls == 1002)
        #expect(loaded["a"]?.timedCalls == 2)
        #expect(loaded["a"]?.counted?.calls == 1000)
        #expect(loaded["a"]?.isSuppressed == false)
        #expect(loaded["main"]?.holdsSuppressed == true)
        #expect(loaded.summary.threads.map(\.calls) == [1003])
    }

    @Test func aHandlersWordBeforeTheCallLosesNoCalls() throws {
        let loaded = try counted(
            [700, 300],
            [.call(1, 0, 100, [stands(2, for: 700, 10), stands(3, for: 299, 11), .call(3, 12, 14), .call(2, 15, 20)])])
        #expect(loaded["a"]?.calls == 701)
        #expect(loaded["b"]?.calls == 301)
    }

    @Test func aWordWithoutItsCallLosesNoCalls() throws {
        let loaded = try counted([700], [.call(1, 0, 100), stands(2, for: 650, 110)])
        #expect(loaded["a"]?.calls == 700)
    }

    /// The file of a process that goes on: its counters were read before its events.
    @Test func moreThanTheCountersSayIsWhatTheWordsSay() throws {
        let loaded = try counted([100], [.call(1, 0, 100, [stands(2, for: 150, 10), .call(2, 10, 20)])])
        #expect(loaded["a"]?.calls == 151)
    }

    @Test func withoutCountersThereWereMore() throws {
        let loaded = try counted([], hasCounters: false, [.call(1, 0, 100, [.call(2, 10, 20)])])
        #expect(loaded["a"]?.isSuppressed == true)
        #expect(loaded["a"]?.counted == nil)
    }

    @Test func theTreeHasThemWhereTheRecordedOnesAre() throws {
        let loaded = try counted(
            [1000],
            [
                .call(
                    1, 0, 100, [stands(2, for: 600, 10), .call(2, 10, 20), .call(4, 30, 60, [stands(2, for: 300, 35), .call(2, 36, 39)])])
            ])
        let tree = CallTree(loaded.trace)
        var calls: Set<String> = []
        for index in tree.nodes.indices where tree.nodes[index].function >= 0 {
            let names = tree.path(to: index).map { $0.name }.joined(separator: ".")
            if !names.hasPrefix("(") { calls.insert("\(names) \(tree.nodes[index].calls)") }
        }
        let expected: Set<String> = ["main 1", "main.a 701", "main.c 1", "main.c.a 301"]
        #expect(calls == expected)
        #expect(tree.calls == loaded.summary.calls)
    }

    @Test func theEstimateIsWithoutWhatRecordingCosts() throws {
        var words: [Step] = []
        for n in 0..<100 {
            words.append(stands(2, for: 10, n * 20 + 1))
            words.append(.call(2, n * 20 + 1, n * 20 + 11))
        }
        let loaded = try counted([1000], [.call(1, 0, 3000, words)])
        let estimate = try #require(loaded["a"]?.counted)
        #expect(estimate.time.count == 10_000)
        #expect(estimate.timeError.count == 0) // all are of one length, and the demo's cost is 0
    }

    @Test func countersOfNobodyAreNoCalls() throws {
        #expect(try counted([0, 0, 77], [.call(1, 0, 100)]).summary.calls == 1)
        #expect(try counted([77], of: 5, [.call(1, 0, 100)]).summary.calls == 1)
    }
}
