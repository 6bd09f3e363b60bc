import CTraceLayout
import Foundation
import Presentation
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

private typealias Run = TemporaryDirectory

extension TemporaryDirectory {
    /// Traces of one run.
    fileprivate convenience init(_ traces: [TraceBuilder]) throws {
        try self.init(Dictionary(uniqueKeysWithValues: traces.enumerated().map { ("\($0.offset).trace", $0.element.bytes()) }))
    }

    fileprivate var run: TraceRun {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: path)) ?? []
        return TraceRun(path: path, files: names.sorted().map { path + "/" + $0 })
    }

    fileprivate func summary(workers: Int = 2) -> RunSummary { RunSummary(run, workers: workers) }
}

/// Function 1 is `name`, called `count` times for `length` nanoseconds.
private func process(
    _ pid: UInt32, parent: UInt32 = 1, _ name: String = "work", module: String = "/lib/libwork.so", calls count: Int, of length: UInt64,
    ticksPerNanosecond rate: UInt64 = 1, id: UInt32 = 1, begun: UInt64 = 1_000_000, state: Int = Int(TRACE_FINISHED), isCopy: Bool = false
) -> TraceBuilder {
    var builder = TraceBuilder(program: "/usr/bin/p\(pid)", pid: pid, start: begun * rate, ticksPerNanosecond: rate)
    builder.header.parent_pid = parent
    builder.header.session = 77
    builder.header.state = UInt32(state)
    builder.header.first_realtime_ns = 1_700_000_000_000_000_000 + begun
    builder.text(TRACE_TEXT_ARGUMENTS, "p\(pid)\0-x\0")
    if !isCopy { builder.phase(TRACE_PHASE_AGENT, TraceBuilder.usage(at: begun * rate)) }
    builder.module(0, module)
    builder.function(id, name)
    let thread = builder.thread()
    var clock = begun * rate
    for _ in 0..<count {
        builder.complete(thread, id, from: clock, to: clock + length * rate)
        clock += length * rate
    }
    return builder
}

@Suite struct RunTests {
    @Test func programsWithoutATraceAreListedWithTheirReasons() throws {
        var root = process(10, calls: 3, of: 100)
        root.unrecorded("/opt/h-static", why: TRACE_UNRECORDED_STATIC, pid: 12, parent: 10, at: 1_100_000)
        root.unrecorded("/bin/su", why: TRACE_UNRECORDED_PRIVILEGED, pid: 13, at: 1_200_000)
        root.unrecorded("/opt/h-static", why: TRACE_UNRECORDED_STATIC, pid: 14, at: 1_300_000, count: 2)
        root.unrecorded("/opt/new", why: 77, pid: 15, at: 1_400_000)
        let whole = try Run([root, process(11, parent: 10, calls: 1, of: 100)]).summary()
        #expect(
            whole.unrecorded.text
                == "5 processes not recorded: static (h-static ×3), setuid (su), unknown reason (new)")
        #expect(whole.unrecorded.map(\.parentPid) == [10, nil, nil, nil] && whole.unrecorded.map(\.count) == [1, 1, 2, 1])
        #expect(whole.headline.contains(", 5 processes not recorded"))
        let table = whole.processTable(by: .calls, top: 0, width: nil, style: TextStyle(isColoured: false))
        #expect(table.hasSuffix("\n\(whole.unrecorded.text!)\n"))
        let nothing = try Run([process(10, calls: 3, of: 100)]).summary()
        #expect(nothing.unrecorded.text == nil && !nothing.headline.contains("recorded"))
    }

    @Test func aProcessThatWentOnWithoutATraceHasExecutedThatProgram() throws {
        var one = process(10, calls: 3, of: 100, state: Int(TRACE_RECORDING))
        one.header.exit_status = UInt64(TRACE_EXIT_KNOWN)
        one.unrecorded("/opt/p", why: TRACE_UNRECORDED_PRELOAD, pid: 10, at: 1_500_000)
        #expect(try Run([one]).summary().headline.hasSuffix("1 process not recorded, executed p"))
        var damaged = process(10, calls: 3, of: 100)
        damaged.unrecorded("/opt/p", why: TRACE_UNRECORDED_PRELOAD, pid: 10, at: 1_500_000, pathBytes: 5000)
        let whole = try Run([damaged]).summary()
        #expect(whole.unrecorded.isEmpty && !whole.warnings.isEmpty)
    }

    @Test func aFunctionOfSeveralTracesIsOneRowWhateverItsIdAndClock() throws {
        let whole = try Run([
            process(10, calls: 30, of: 100), process(11, calls: 10, of: 500, ticksPerNanosecond: 3, id: 9),
            process(12, "other", calls: 5, of: 7), process(13, module: "/opt/libelse.so", calls: 2, of: 40),
        ]).summary()
        let rows = whole.summary.functions.filter { $0.name == "work" && $0.module == "libwork.so" }
        let row = try #require(rows.count == 1 ? rows[0] : nil)
        #expect(row.calls == 40)
        #expect(row.total.count == 30 * 100 + 10 * 500)
        #expect(row.selfTime == 30 * 100 + 10 * 500)
        #expect([row.minimum?.count, row.maximum?.count] == [100, 500])
        #expect(abs(Double(row.median?.time.count ?? 0) - 100) <= 100 * 0.012)
        #expect(abs(Double(row.percentile99?.time.count ?? 0) - 500) <= 500 * 0.012)
        #expect(whole.summary.functions.first { $0.module == "libelse.so" }?.calls == 2)
        #expect(whole.summary.calls == 47)
        #expect(whole.processes.map { $0.calls } == [30, 10, 5, 2])
    }

    /// Buckets of each trace are counted anew, by their middles, in nanoseconds.
    @Test(arguments: 1..<UInt64(20)) func aPercentileOfARunIsNoFartherFromTheExactOneThanItSays(seed: UInt64) throws {
        var random = Xorshift(seed: seed &* 104_729), lengths: [UInt64] = []
        let traces = [1, 3].map { (rate: UInt64) in
            var builder = TraceBuilder(program: "/usr/bin/p", pid: UInt32(10 + rate), start: 1_000_000 * rate, ticksPerNanosecond: rate)
            builder.header.session = 77
            builder.module(0, "/lib/libwork.so")
            builder.function(1, "work")
            let thread = builder.thread()
            var clock = 1_000_000 * rate
            for _ in 0..<random.below(seed % 2 == 0 ? 1000 : 4) + 1 {
                let length = random.next() >> (63 - random.next() % 30)
                lengths.append(length)
                builder.complete(thread, 1, from: clock, to: clock + length * rate)
                clock += length * rate
            }
            return builder
        }
        lengths.sort()
        let row = try #require(try Run(traces).summary().summary.functions.first)
        for (percent, found) in [(50, row.median), (99, row.percentile99)] {
            let rank = max((percent * lengths.count + 99) / 100, 1), exact = lengths[rank - 1], found = try #require(found)
            let distance = max(found.time.count, exact) - min(found.time.count, exact)
            #expect(distance <= found.error.count, "\(percent): \(exact), \(found)")
            #expect(Double(found.error.count) <= 0.012 * Double(exact) + 1, "within 1.2%: \(exact), \(found)")
            #expect(rank > 1 && rank < lengths.count || found.error.count == 0, "the first and the last are known")
        }
    }

    @Test func aProcessHasItsThreadsTimesByState() throws {
        var builder = process(10, calls: 10, of: 100)
        builder.kernel(from: 1_000_000, until: 1_001_000)
        builder.switches([
            (1_000_200, 10, TRACE_SWITCH_WAITS), (1_000_500, 10, TRACE_SWITCH_IN), (1_000_700, 10, TRACE_SWITCH_PREEMPTED),
            (1_000_750, 10, TRACE_SWITCH_IN),
        ])
        let run = try Run([builder, process(11, calls: 5, of: 100)])
        func summary(_ states: StateReading) -> RunSummary { RunSummary(run.run, workers: 1, names: false, states: states) }
        let object = try jsonObject(ReportOutput(summary(.ofFunctions(.wall)), nil).json.text())
        let processes = try #require(object["processes"] as? [[String: Any]])
        let keys = ["running_ns", "waiting_ns", "runnable_ns"]
        #expect(
            keys.map { processes[0][$0] as? Int } == [650, 300, 50]
                && keys.map { processes[0]["in_calls_\($0)"] as? Int } == [650, 300, 50])
        #expect(keys.allSatisfy { processes[1][$0] == nil && processes[1]["in_calls_\($0)"] == nil }, "nothing is known of it")
        let lines = summary(.ofFunctions(.waiting)).processTable(by: .selfTime, top: 0, width: nil, style: plain).split(separator: "\n")
        #expect(lines[1] == "time spent waiting only (--time waiting)")
        #expect(
            lines.contains { $0.contains("in calls  of threads") } && lines.contains { $0.contains("   300 ns      300 ns") }, "\(lines)")
    }

    /// Two processes, of which the second begins 1,000 ns after the first and has a clock of its own.
    private func two() throws -> Run {
        try Run([process(10, calls: 30, of: 100), process(11, calls: 10, of: 500, ticksPerNanosecond: 3, id: 9, begun: 1_001_000)])
    }

    @Test func aWindowOfARunIsOfTheClockThatItsProcessesShare() throws {
        let run = try two(), traces = try run.run.open()
        // From 900 to 1,600 ns of the run: 7 calls of the one, and 600 ns of the other, in which two begin.
        let narrowed = traces.map { trace in
            let begin = trace.header.first.monotonic_ns - 1_000_000
            func ticks(_ time: UInt64) -> UInt64 {
                trace.firstTicks.raw + trace.timeScale.ticks(Nanoseconds(time > begin ? time - begin : 0))
            }
            return trace.narrowed(to: TimeWindow([ticks(900)..<ticks(1_600)]))
        }
        let window = try #require(RunWindow(narrowed))
        #expect(window.text == "window 900 ns to 1.600 us of 6.000 us")
        let whole = RunSummary(narrowed, path: run.path, window: window)
        let row = try #require(whole.summary.functions.first)
        #expect(row.calls == 9)
        #expect(row.total.count == 700 + 600)
        #expect(row.timedCalls == 8) // the other's second goes on after the window
        #expect(whole.headline.contains("window 900 ns to 1.600 us of 6.000 us"))
        #expect(RunWindow(traces) == nil)
        #expect(RunSummary(traces, path: run.path, window: nil).summary.calls == run.summary().summary.calls)
    }

    /// The second process was killed after two milliseconds, and by its two clock samples a nanosecond has half a tick.
    @Test func theTracesOfARunHaveTheRateThatWasMeasuredLongest() throws {
        func times(_ change: (inout TraceBuilder) -> Void = { _ in }) throws -> [UInt64?] {
            var long = process(10, "long", calls: 20, of: 1_000_000), short = process(11, "short", calls: 4, of: 500_000)
            (long.header.boot, short.header.boot) = (5, 5)
            short.monotonic = { 2 &* $0 &- 1_000_000 }
            change(&short)
            let run = try Run([long, short])
            let opened = try withExtendedLifetime(run) { try $0.run.open() }.first { $0.header.pid == 11 }
            let rows = run.summary().summary.functions(by: .name)
            return rows.map { Optional($0.total.count) } + [opened?.timeScale.nanoseconds(2_000_000).count]
        }
        #expect(try times() == [20_000_000, 2_000_000, 2_000_000])
        // Another run, another boot, another clock; nobody knows which.
        let own: [UInt64?] = [20_000_000, 4_000_000, 4_000_000]
        #expect(try times { $0.header.session = 78 } == own)
        #expect(try times { $0.header.boot = 6 } == own)
        #expect(try times { $0.header.boot = 0 } == own)
        #expect(try times { $0.header.clock = UInt32(TRACE_CLOCK_CNTVCT) } == own)
    }

    @Test func aRunWhoseClockHasChangedItsRateHasNoneForAll() throws {
        var long = process(10, "long", calls: 200, of: 1_000_000), short = process(11, "short", calls: 4, of: 500_000)
        (long.header.boot, short.header.boot) = (5, 5)
        // After 100 ms it has two ticks a nanosecond.
        long.monotonic = { $0 < 101_000_000 ? $0 : 101_000_000 + ($0 - 101_000_000) / 2 }
        long.clocks(100_900_000, 101_000_000)
        short.monotonic = { 2 &* $0 &- 1_000_000 }
        let traces = try withExtendedLifetime(Run([long, short])) { try $0.run.open() }
        #expect(traces.first { $0.header.pid == 10 }?.timeScale.correction != nil)
        #expect(traces.first { $0.header.pid == 11 }?.timeScale.nanosecondsPerTick == 2)
    }

    @Test func oneFunctionOfARunIsThatOfAllItsProcesses() throws {
        let run = try two(), traces = try run.run.open()
        let report = try #require(FunctionReport(traces, FunctionPattern("work"), slowest: 12))
        let row = try #require(run.summary().summary.functions.first)
        #expect(report.sums.calls == 40 && report.sums.total == row.total && report.sums.selfTime == row.selfTime)
        #expect(report.sums.median == row.median && report.sums.percentile99 == row.percentile99 && report.sums.maximum == row.maximum)
        #expect(report.histogram.reduce(0) { $0 + $1.calls } == 40)
        #expect(report.slowest.map(\.pid) == Array(repeating: 11, count: 10) + [10, 10])
        #expect(report.slowest.first?.start.count == 1_000)
        #expect(report.callees.nodes.first { $0.parent == 0 }?.calls == 40)
        #expect(FunctionReport(traces, FunctionPattern("nobody")) == nil)
    }

    @Test func theRunIsTheSameHoweverManyReadIt() throws {
        let traces = (0..<40).map { (n: UInt32) in
            process(100 + n, "f\(n % 7)", calls: Int(n) + 1, of: 10 + UInt64(n), begun: 1_000_000 + UInt64(n))
        }
        let run = try Run(traces)
        func text(_ workers: Int) -> String { ReportOutput(run.summary(workers: workers), nil).json.text() }
        let alone = text(1)
        for workers in [2, 3, 16] { #expect(text(workers) == alone) }
    }

    /// A clock of three ticks a nanosecond: 100 calls of 333 ns and a third.
    @Test func aTraceIsARunOfOneWithItsOwnFigures() throws {
        var builder = process(10, calls: 0, of: 0, ticksPerNanosecond: 3)
        for n in 0..<100 as Range<UInt64> { builder.complete(0, 1, from: 3_000_000 + n * 1000, to: 3_001_000 + n * 1000) }
        let run = try Run([builder]), one = run.summary()
        let trace = try withExtendedLifetime(run) { try TraceFile(path: $0.run.files[0].path) }
        let row = try #require(one.summary.functions.first), own = try #require(Summary(trace).functions.first)
        #expect(row.total == own.total && row.average == own.average && row.median == own.median && row.shape == own.shape)
        #expect(one.only?.path == trace.path && one.processes.count == 1 && one.summary.duration == Summary(trace).duration)
        #expect(RunSummary([trace], path: trace.path, workers: 1).only != nil)
        // Chosen from a run, or shown as one.
        let asRun = withExtendedLifetime(run) { RunSummary($0.run, asRun: true) }
        #expect(asRun.only == nil && asRun.summary.calls == 100 && asRun.summary.functions.count == 1)
        #expect(try two().summary().only == nil)
    }

    @Test func whatAProcessBecomesByExecIsTheSameProcess() throws {
        let processes = try Run([
            process(10, calls: 3, of: 10, begun: 1_000_000, state: Int(TRACE_RECORDING)), process(10, calls: 4, of: 10, begun: 2_000_000),
        ]).summary().processes
        #expect(processes.count == 1)
        #expect(processes[0].images.count == 2)
        #expect(processes[0].calls == 7)
        #expect(processes[0].duration.count >= 1_000_000)
    }

    @Test func aNumberThatIsGivenAgainIsAnotherProcess() throws {
        let finished = try Run([process(10, calls: 3, of: 10), process(10, calls: 4, of: 10, begun: 2_000_000)]).summary()
        #expect(finished.processes.count == 2)
        let forked = try Run([
            process(10, calls: 3, of: 10, state: Int(TRACE_RECORDING)), process(10, calls: 4, of: 10, begun: 2_000_000, isCopy: true),
        ]).summary()
        #expect(forked.processes.count == 2)
        var ends = process(10, calls: 4, of: 10, begun: 2_000_000, isCopy: true) // ends by exit, so it has that phase
        ends.phase(TRACE_PHASE_EXIT, TraceBuilder.usage(at: 2_900_000))
        #expect(try Run([process(10, calls: 3, of: 10, state: Int(TRACE_RECORDING)), ends]).summary().processes.count == 2)
    }

    @Test func parentsComeBeforeTheirChildren() throws {
        let processes = try Run([
            process(30, parent: 20, calls: 1, of: 1, begun: 3_000_000), process(20, parent: 10, calls: 1, of: 1, begun: 2_000_000),
            process(10, parent: 5, calls: 1, of: 1), process(21, parent: 10, calls: 1, of: 1, begun: 4_000_000),
        ]).summary().processes
        #expect(processes.map { $0.pid } == [10, 20, 30, 21])
        #expect(processes.map { $0.depth } == [0, 1, 2, 1])
    }

    @Test func theStatusIsWhatTheHeaderSaysAndUnknownOtherwise() throws {
        var ended = process(10, calls: 1, of: 1)
        ended.header.exit_status = UInt64(TRACE_EXIT_KNOWN) | 137
        let processes = try Run([ended, process(11, parent: 10, calls: 1, of: 1, begun: 2_000_000)]).summary().processes
        #expect(processes.map { $0.exitStatus } == [137, nil])
        #expect(processes[1].json.text(lines: 0).contains("\"status\": null"))
    }

    @Test func whatIsNoTraceIsNamedAndTheRestIsRead() throws {
        let run = try Run([process(10, calls: 3, of: 10)])
        run.write("empty.trace", [])
        run.write("text.trace", Array("hello, this is no trace".utf8))
        let whole = run.summary()
        #expect(whole.warnings.count == 2)
        #expect(whole.summary.calls == 3)
    }

    @Test func theTreeOfARunHasEveryProcess() throws {
        let run = try Run([process(10, calls: 3, of: 10), process(11, parent: 10, "other", calls: 4, of: 10, begun: 2_000_000)])
        let tree = try withExtendedLifetime(run) { CallTree.reading(try $0.run.open(), workers: 2) }
        #expect(tree.processes.map { $0.pid } == [10, 11])
        #expect(tree.calls == 7)
        #expect(tree.merged(.processes).roots.count == 1)
        #expect(Set(tree.rows(by: .process).map { $0.name }) == ["p10 10", "p11 11"])
    }

    /// The first process's threads have a path in common: merged, it has fewer nodes, and the second one's lie elsewhere.
    @Test func theRowOfAProcessHasTheTimeOfItsThreads() throws {
        let two = { (pid: UInt32, length: Int) -> TraceBuilder in
            var builder = demo { _, _ in }
            builder.header.pid = pid
            for _ in 0..<2 { builder.steps(builder.thread(), [.call(1, 0, length, [.call(2, 10, length - 10)])]) }
            return builder
        }
        let whole = try CallTree([tree(two(10, 1000)), tree(two(11, 300))])
        let expected = [0, 1].map { process in
            whole.roots.filter { $0.process == process }.reduce(UInt64(0)) { $0 + whole.nodes[$1.node].total }
        }
        #expect(whole.rows(by: .process).map { $0.total.count } == expected)
        #expect(expected[0] == 2000)
    }

    @Test func onlyWantedProcessesAreAddedUp() throws {
        let run = try Run([process(10, calls: 3, of: 10), process(11, parent: 10, calls: 4, of: 10, begun: 2_000_000)])
        #expect(RunSummary(run.run) { $0.header.pid == 11 }.summary.calls == 4)
    }

    /// The header, names, chunks: all of it may be anything.
    @Test func damagedTracesOfARunDoNotStopIt() throws {
        var state: UInt64 = 5
        func random(_ bound: Int) -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33) % bound
        }
        let bytes = process(11, parent: 10, calls: 40, of: 10).bytes()
        let run = try Run([process(10, calls: 3, of: 10)])
        for number in 0..<40 {
            var damaged = bytes
            for _ in 0..<8 { damaged[8 + random(damaged.count - 8)] = UInt8(random(256)) }
            run.write("d\(number).trace", damaged)
        }
        let whole = run.summary()
        _ = whole.processTree(width: 100, style: plain)
        _ = whole.headline
        #expect(whole.processes.contains { $0.images.contains { $0.path.hasSuffix("/0.trace") && $0.calls == 3 } })
    }
}
