import CPageFiles
import CTraceLayout
import Foundation
import Presentation
import Symbols
import Testing
import TraceAnalysis
import TraceFormat
import TracePage
import TraceTesting

private let begin: UInt64 = 100_000_000
private let runs = TRACE_SWITCH_IN, waits = TRACE_SWITCH_WAITS, preempted = TRACE_SWITCH_PREEMPTED

/// Thread 4712, settings, has a lock in parse from 1 ms on until 5 ms; thread 4711 wants it at 2 ms, and runs at 5.2 ms. Both are sampled.
private func contended(_ body: (inout TraceBuilder) -> Void = { _ in }) throws -> TraceFile {
    var builder = TraceBuilder(program: "/usr/bin/app", start: begin)
    builder.header.session = 1
    builder.module(0, "/usr/lib/libc.so.6", bias: 0x2000_0000)
    for (id, name) in [(1, "main"), (2, "parse"), (10, "pthread_mutex_lock"), (11, "pthread_mutex_unlock")] as [(UInt32, String)] {
        builder.function(id, name, module: 0)
    }
    for (address, name) in [(0x1000, "start"), (0x2000, "scan")] as [(UInt64, String)] { builder.codeName(address, 0x100, name) }
    let main = builder.thread("app"), other = builder.thread(tid: 4712, "settings")
    builder.steps(
        other,
        [
            .enter(2, 500_000), .call(10, 900_000, 1_000_000, object: 0x559c), .call(11, 5_000_000, 5_100_000, object: 0x559c),
            .exit(2, 9_000_000),
        ])
    builder.steps(main, [.enter(1, 600_000), .enter(10, 2_000_000, object: 0x559c), .exit(10, 5_300_000), .exit(1, 9_900_000)])
    builder.switches([(begin + 2_100_000, 4711, waits), (begin + 5_200_000, 4711, runs), (begin + 8_000_000, 4711, preempted)])
    func sample(_ milliseconds: UInt64, _ tid: UInt32, _ stack: [UInt64]) {
        builder.samples([(begin + milliseconds * 1_000_000, tid, TRACE_SAMPLE_WHOLE, stack)])
    }
    sample(1, 4711, [0x2010, 0x1010])
    sample(3, 4712, [0x2010, 0x1010])
    sample(4, 4712, [0x1010])
    sample(7, 4711, [0x1010])
    body(&builder)
    builder.kernel(
        asked: TRACE_KERNEL_SWITCHES | TRACE_KERNEL_MAJOR_FAULTS | TRACE_KERNEL_SAMPLES, from: begin, until: begin + 10_000_000,
        period: 1_000_000)
    return try PageText.trace(builder, end: begin + 10_000_000)
}

/// Kernel records in the page: states, waits, samples.
@Suite struct PageStateTests {
    /// The whole trace's, and those of a part of its time.
    @Test func theTableHasWhatFunctionsWereRunningWaitingAndRunnable() throws {
        let trace = try contended(), page = try ViewPage([trace]), names = try PageText.names("row")
        func check(_ object: [String: Any], _ rows: String, _ summary: Summary) throws {
            let functions = try #require(object["functions"] as? [[String]]), table = try #require(object[rows] as? [[Any]])
            let known = summary.functions + summary.ownCodes
            #expect(table.count == known.count)
            for values in table {
                let row = Dictionary(uniqueKeysWithValues: zip(names, values.map { ($0 as? NSNumber)?.int64Value }))
                let figures = try #require(known.first { $0.name == functions[Int(row["fn"]!!)][0] }), states = try #require(figures.states)
                for (time, found) in [(states.selfTime, "self"), (states.total, "total")] {
                    #expect(
                        ["Running", "Waiting", "Runnable"].map { row[found + $0]! } == [time.running, time.waiting, time.runnable],
                        "\(figures.name)")
                }
                #expect(row["p50Error"]! == figures.median.map { Int64($0.error.count) })
            }
        }
        let summary = Summary(trace, workers: 1, states: .ofFunctions(.wall))
        #expect(
            summary.functions.contains { $0.states!.total.waiting > 3_000_000 }
                && summary.functions.contains { $0.states!.total.runnable > 0 })
        try check(PageText.data(page.html), "table", summary)
        // The page's time begins where the trace does.
        let part = trace.narrowed(to: TimeWindow([begin + 3_000_000..<begin + 6_000_000]))
        let asked = try PageText.object(page.answer(.sums, 3_000_000..<6_000_000, lanes: [0, 1]))
        try check(asked, "rows", Summary(part, workers: 1, states: .ofFunctions(.wall)))
    }

    private func threads(_ page: ViewPage) throws -> [[String: Any]] {
        try #require(PageText.data(page.html)["threads"] as? [[String: Any]])
    }

    private func groups(_ values: Any?, _ kind: String) throws -> [[String: Double]] {
        let values = try #require(values as? [NSNumber]), names = try PageText.names(kind)
        #expect(values.count % names.count == 0)
        return stride(from: 0, to: values.count, by: names.count).map {
            Dictionary(uniqueKeysWithValues: zip(names, values[$0..<$0 + names.count].map(\.doubleValue)))
        }
    }

    private func states(_ thread: [String: Any]) throws -> [String: Any] {
        let states = try #require(thread["states"] as? [String: Any])
        #expect(try Set(states.keys) == Set(PageText.names("states")))
        return states
    }

    @Test func statesAreInTheOrderOfTimeUnderTheNamesOfTheSchema() throws {
        let names = try PageText.names("stateNames")
        #expect(names == StateTimeline.State.allCases.map(\.rawValue))
        let states = try states(threads(ViewPage([contended()]))[0]), spans = try groups(states["spans"], "span")
        #expect(spans.map { names[Int($0["state"]!)] } == ["running", "lock", "running", "runnable"])
        #expect(spans.map { $0["start"]! } == [0, 2_100_000, 5_200_000, 8_000_000])
        #expect(spans.map { $0["length"]! } == [2_100_000, 3_100_000, 2_800_000, 2_000_000])
        #expect(spans.map { $0["wait"]! } == [-1, 0, -1, 1])
        #expect((states["bands"] as? [Any])?.isEmpty == true)
    }

    @Test func aWaitSaysWhatTracerWaitsSays() throws {
        let trace = try contended(), states = try states(threads(ViewPage([trace]))[0])
        let wait = try #require((states["waits"] as? [[String: Any]])?.first)
        #expect(try Set(wait.keys) == Set(PageText.names("wait")))
        let details = try #require(wait["details"] as? [String]), what = try #require(wait["what"] as? String)
        let lines = WaitReport([trace]).lines(limit: 0, width: nil, names: .usual, style: TextStyle(isColoured: false))
        #expect(
            lines.contains { $0.hasSuffix("  " + what) } && lines.contains("    " + details.joined(separator: "; ")), "\(lines) \(details)")
        #expect(what == "pthread_mutex_lock(0x559c) in main")
        #expect(details.first == "held by settings/4712 since 1.000 ms, in parse")
        #expect(details.last == "woken by pthread_mutex_unlock of settings/4712, ran 200.000 us after it")
        #expect([wait["waker"], wait["woken"], wait["ran"]].map { $0 as? Int } == [1, 5_000_000, 5_200_000])
    }

    @Test func aServedPartHasItsStates() throws {
        let page = try ViewPage([contended()])
        let answer = try PageText.object(page.answer(.calls, 2_000_000..<3_000_000, lanes: [0, 1]))
        let parts = try #require(answer["parts"] as? [[String: Any]])
        let spans = try groups(states(parts[0])["spans"], "span")
        #expect(spans.map { $0["start"]! } == [2_000_000, 2_100_000] && spans.map { $0["length"]! } == [100_000, 900_000])
        // Who is not asked for may have woken one who is.
        #expect((try states(parts[0])["waits"] as? [[String: Any]])?.first?["waker"] as? Int == 1)
    }

    /// 60,000 spans of 10 and 20 ns, after each other.
    @Test func whatIsTooMuchForAPageIsSharesAndIsSaid() throws {
        var switches: [(ns: UInt64, tid: UInt32, kind: Int)] = []
        for n in 0..<30_000 as Range<UInt64> {
            switches.append((begin + 5_300_000 + n * 30, 4712, waits))
            switches.append((begin + 5_300_010 + n * 30, 4712, runs))
        }
        let page = try PageText.data(ViewPage([contended { $0.switches(switches) }]).html)
        let states = try states(try #require(page["threads"] as? [[String: Any]])[1])
        let spans = try groups(states["spans"], "span"), bands = try groups(states["bands"], "stateBand")
        #expect(spans.count <= ViewPage.mostSpans && !bands.isEmpty)
        #expect((states["waits"] as? [Any])!.count <= ViewPage.mostWaits)
        // Nothing is lost: shares are rounded to a thousandth.
        let long = spans.map { $0["length"]! }.reduce(0, +), short = bands.map { $0["length"]! * $0["share"]! }.reduce(0, +),
            whole = long + short
        #expect(abs(whole - 10_000_000) < 10_000, "\(whole)")
        let notes = try #require(page["notes"] as? [String])
        #expect(notes.contains { $0.contains("short states drawn as shares, not one by one") }, "\(notes)")
    }

    @Test func samplesAreATreeAndMoments() throws {
        #expect(PageText.schema["unknown"] as? String == MergedStack.unknown.name)
        let page = try PageText.data(ViewPage([contended()]).html), samples = try #require(page["samples"] as? [String: Any])
        #expect(try Set(samples.keys) == Set(PageText.names("samples")))
        #expect(samples["period"] as? Int == 1_000_000 && samples["step"] as? Int == 0 && samples["lanes"] as? [Int] == [0, 1])
        let functions = try #require(page["functions"] as? [[String]]), texts = try #require(samples["names"] as? [String])
        let names = try #require(samples["fn"] as? [Int]).map { $0 < 0 ? texts[-1 - $0] : functions[$0][0] }
        let moments = try groups(samples["moments"], "moment")
        #expect(moments.map { $0["at"]! } == [1_000_000, 3_000_000, 4_000_000, 7_000_000] && moments.allSatisfy { $0["count"] == 1 })
        #expect(moments.map { names[Int($0["node"]!)] } == ["scan", "scan", "start", "start"])
    }

    @Test func ofAWindowThereAreItsStatesAndSamples() throws {
        let trace = try contended().narrowed(to: TimeWindow([begin + 2_500_000..<begin + 3_500_000]))
        let page = try PageText.data(ViewPage([trace]).html), samples = try #require(page["samples"] as? [String: Any])
        #expect(try groups(samples["moments"], "moment").map { $0["at"]! } == [3_000_000])
        let spans = try groups(states(try #require(page["threads"] as? [[String: Any]])[0])["spans"], "span")
        #expect(spans.map { $0["start"]! } == [2_500_000] && spans.map { $0["length"]! } == [1_000_000])
    }

    /// Threads that are not shown are still who held the lock and woke the one that waited.
    @Test func ofChosenThreadsThereAreTheirLanesSamplesAndWaits() throws {
        let page = try PageText.data(ViewPage([contended().only(ThreadPattern("main"))]).html)
        let threads = try #require(page["threads"] as? [[String: Any]])
        #expect(threads.map { $0["tid"] as? Int } == [4711])
        let wait = try #require((states(threads[0])["waits"] as? [[String: Any]])?.first)
        let details = try #require(wait["details"] as? [String])
        #expect(details.first == "held by settings/4712 since 1.000 ms, in parse" && wait["waker"] as? Int == nil)
        let samples = try #require(page["samples"] as? [String: Any])
        #expect(try groups(samples["moments"], "moment").map { $0["at"]! } == [1_000_000, 7_000_000])
        #expect((page["notes"] as? [String])?.contains("threads \"main\": other threads are not shown") == true)
    }

    /// As many as there are in all, wherever they count.
    @Test func tooManySamplesCountInSteps() throws {
        var many: [(ns: UInt64, tid: UInt32, flags: Int, addresses: [UInt64])] = []
        for n in 0..<1000 as Range<UInt64> {
            many.append((begin + 1_000_000 + n * 1000, 4711, TRACE_SAMPLE_WHOLE, [0x1010 + n % 2 * 0x1000]))
        }
        let trace = try contended { $0.samples(many) }
        var functions = FunctionNumbers()
        let process = PageSamples.Process(trace: trace, stacks: SampledStacks(trace, Symbolizer()), index: nil)
        let few = try #require(
            PageSamples(
                [process], begun: begin, duration: 10_000_000, least: 0, mostNodes: 100, mostMoments: 20, lane: { _, _ in nil }, &functions)
        )
        let samples = try PageText.object(few.text)
        let moments = try groups(samples["moments"], "moment")
        #expect(few.step > 0 && moments.count <= 20 && moments.reduce(0) { $0 + $1["count"]! } == 1004)
        #expect(samples["lanes"] as? [Int] == [-1, -1])
    }
}
