import CTraceLayout
import Presentation
import Testing
import TraceAnalysis
import TraceTesting

private let runs = TRACE_SWITCH_IN, waits = TRACE_SWITCH_WAITS, preempted = TRACE_SWITCH_PREEMPTED

/// The demo with a kernel's account, which `body` may add to.
private func loaded(
    until: UInt64 = start + 1000, lost: UInt64 = 0, _ steps: [Step], _ switches: [(UInt64, UInt32, Int)]
) throws -> Loaded {
    var builder = demo(steps)
    builder.kernel(from: start, until: until, lost: lost)
    builder.switches(switches)
    return try Loaded(builder.bytes())
}

private func text(_ times: StateTimes) -> String { "\(times.running) \(times.waiting) \(times.runnable)" }

extension Summary {
    /// Self time and total of each function by state: running, waiting, runnable.
    fileprivate var split: [String: String] {
        Dictionary(
            uniqueKeysWithValues: functions.map {
                ($0.name, $0.states.map { "\(text($0.selfTime)), \(text($0.total))" } ?? "none")
            })
    }
}

@Suite struct StateTimeTests {
    private let nested: [Step] = [
        .enter(1, 0), .call(2, 200, 350), .enter(3, 360), .enter(4, 380), .exit(4, 420), .exit(3, 500), .exit(1, 600),
    ]
    private let switches: [(UInt64, UInt32, Int)] = [
        (start + 100, 4711, waits), (start + 300, 4711, runs), (start + 400, 4711, preempted), (start + 450, 4711, runs),
    ]

    @Test func aWaitBelongsToTheCallsThatAreOpenInEachPartOfIt() throws {
        let trace = try loaded(nested, switches).trace
        let summary = Summary(trace, workers: 1, states: .ofFunctions(.wall))
        #expect(
            summary.split == [
                // It begins in main and ends in a.
                "main": "210 100 0, 350 200 50", "a": "50 100 0, 50 100 0",
                // Preempted in c, it goes on in b.
                "c": "20 0 20, 20 0 20", "b": "70 0 30, 90 0 50",
            ])
        #expect(summary.rows == Summary(trace, workers: 1).rows)
    }

    @Test func rowsShowTheTimeThatIsAskedFor() throws {
        let trace = try loaded(nested, switches).trace
        let running = Summary(trace, workers: 1, states: .ofFunctions(.running))
        #expect(running.rows == ["a 1 50 50", "b 1 90 70", "c 1 20 20", "main 1 350 210"])
        #expect(running.functions.allSatisfy { $0.minimum == $0.total && $0.maximum == $0.total })
        #expect(running.split == Summary(trace, workers: 1, states: .ofFunctions(.wall)).split)
        let waiting = Summary(trace, workers: 1, states: .ofFunctions(.waiting))
        #expect(waiting.rows == ["a 1 100 100", "b 1 0 0", "c 1 0 0", "main 1 200 100"])
        #expect(waiting.functions.allSatisfy { $0.recording == nil })
    }

    @Test func whatTheKernelHasNotReportedIsRunning() throws {
        let lost = Summary(try loaded(lost: 1, nested, Array(switches.dropFirst())).trace, workers: 1, states: .ofFunctions(.wall))
        // Until it ran at 300 nothing is known, nor after 450.
        #expect(lost.split["main"] == "310 0 0, 550 0 50")
        #expect(lost.unknownState.count >= 300)
        var bare = demo(nested)
        bare.function(6, "unused")
        let trace = try Loaded(bare.bytes()).trace
        #expect(Summary(trace, workers: 1, states: .ofFunctions(.wall)).functions.allSatisfy { $0.states == nil })
        #expect(Summary(trace, workers: 1, states: .ofFunctions(.wall)).states == nil)
        #expect(Summary(trace, workers: 1, states: .ofFunctions(.running)).rows == Summary(trace, workers: 1).rows)
    }

    @Test func aTreeHasTheTimesOfItsPaths() throws {
        let trace = try loaded(nested, switches).trace
        let tree = CallTree(trace, states: .ofFunctions(.waiting), workers: 1)
        func names(below node: Int) -> [String] {
            tree.children(of: node).map {
                "\(tree.functions[tree.nodes[$0].function].name) \(tree.nodes[$0].total) \(tree.nodes[$0].selfTime)"
            }
        }
        let main = tree.roots[0].node + 1
        #expect(tree.time == .waiting && tree.nodes[main].total == 200 && tree.nodes[main].selfTime == 100)
        #expect(names(below: main) == ["a 100 100", "b 0 0"])
        #expect(text(tree.nodes[main].states.total) == "350 200 50")
        let callers = tree.callers(of: tree.functions(matching: FunctionPattern("a")))
        #expect(callers.time == .waiting && text(callers.nodes[callers.roots[0].node + 1].states.total) == "50 100 0")
        let merged = CallTree([tree, CallTree(trace, workers: 1)])
        #expect(merged.time == nil && !merged.json.text().contains("self_running_ns"))
    }

    /// The parts of the trace in which the thread was in a state, read as windows of time, say the same without any of this: also where
    /// threads are read in parts, calls recur, or do not nest.
    @Test(arguments: 1..<UInt64(40)) func eachStateIsAWindowOfTime(seed: UInt64) throws {
        var builder = program(
            seed: seed, events: 600, wordsPerChunk: seed % 3 == 0 ? .max : 40, framesPerChunk: seed % 5 == 0 ? 3 : .max,
            hasResumes: seed % 2 == 0)
        var random = Xorshift(seed: seed &* 77 | 1), at = start + random.next() % 300, switches: [(UInt64, UInt32, Int)] = []
        var off: [Int: [Range<UInt64>]] = [waits: [], preempted: []]
        while switches.count < 400 {
            let kind = random.next() % 2 == 0 ? waits : preempted
            let length = 1 + random.next() % (random.next() % 8 == 0 ? 30_000_000 : 700)
            switches += [(at, 4711, kind), (at + length, 4711, runs)]
            off[kind]!.append(at..<at + length)
            at += length + 1 + random.next() % 900
        }
        builder.kernel(from: start, until: at + 1_000_000_000)
        builder.switches(switches)
        let bytes = builder.bytes(), file = TemporaryFile(bytes), trace = try TraceFile(path: file.path)
        for workers in [1, 3] {
            let split = Summary(trace, workers: workers, states: .ofFunctions(.wall))
            #expect(split.rows == Summary(trace, workers: 1).rows)
            let tree = CallTree(trace, states: .ofFunctions(.wall), workers: workers)
            for (state, ranges) in [(\StateTimes.waiting, off[waits]!), (\StateTimes.runnable, off[preempted]!)] {
                let part = trace.narrowed(to: TimeWindow(ranges)), alone = Summary(part, workers: 1)
                func times(_ rows: [FunctionSummary], _ time: (FunctionSummary) -> (Int64, Int64)) -> [String] {
                    rows.map { ($0.name, time($0)) }.filter { $0.1 != (0, 0) }.map { "\($0.0) \($0.1.0) \($0.1.1)" }.sorted()
                }
                let ofWindow = times(alone.functions + alone.ownCodes) { ($0.selfTime, Int64($0.total.count)) }
                let ofState = times(split.functions + split.ownCodes) {
                    ($0.states!.selfTime[keyPath: state], $0.states!.total[keyPath: state])
                }
                #expect(ofState == ofWindow)
                // A window finds a call that does not nest on the path that it has there, the whole trace on that where it began.
                if seed % 2 == 0 { continue }
                func paths(_ tree: CallTree, _ time: (CallTree.Node) -> (Int64, Int64)) -> [String] {
                    tree.nodes.indices.filter { tree.nodes[$0].function >= 0 && time(tree.nodes[$0]) != (0, 0) }.map { index in
                        tree.path(to: index).map(\.name).joined(separator: ">") + " \(time(tree.nodes[index]))"
                    }.sorted()
                }
                #expect(
                    paths(tree) { ($0.states.selfTime[keyPath: state], $0.states.total[keyPath: state]) }
                        == paths(CallTree(part, workers: 1)) { ($0.selfTime, Int64($0.total)) })
            }
            for row in split.functions + split.ownCodes {
                #expect(row.states?.selfTime.whole == row.selfTime && row.states?.total.whole == Int64(row.total.count))
            }
            for node in tree.nodes where node.function >= 0 {
                #expect(node.states.selfTime.whole == node.selfTime && node.states.total.whole == Int64(node.total))
            }
        }
    }

    /// Whatever adds up calls says the same of a function's states: rows by function, call sites, the function by itself, the whole.
    @Test(arguments: 1..<UInt64(12)) func everyReportOfAFunctionHasItsStates(seed: UInt64) throws {
        var builder = program(seed: seed, events: 400, wordsPerChunk: 60, hasResumes: false)
        var random = Xorshift(seed: seed &* 31), at = start, switches: [(UInt64, UInt32, Int)] = []
        while switches.count < 200 {
            at += 1 + random.next() % 3000
            switches += [(at, 4711, random.next() % 2 == 0 ? waits : preempted), (at + 500, 4711, runs)]
            at += 600
        }
        builder.kernel(from: start, until: at + 1_000_000_000)
        builder.switches(switches)
        let bytes = builder.bytes(), file = TemporaryFile(bytes), trace = try TraceFile(path: file.path)
        let threads = Summary(trace, workers: 1, states: .ofThreads)
        for time in CallTime.allCases {
            let all = Summary(trace, workers: 2, states: .ofFunctions(time))
            #expect(all.states == threads.states && all.unknownState == threads.unknownState)
            let sites = SiteReport([trace], states: .ofFunctions(time), workers: 2)
            #expect(sites.time == time)
            for row in all.functions where row.timedCalls > 0 {
                let site = try #require(sites.rows.first { $0.name == row.name })
                #expect(site.states == row.states && site.selfTime == row.selfTime && site.total == row.total, "\(time) \(row.name)")
                let report = try #require(FunctionReport(trace, FunctionPattern(row.name), time: time, slowest: 5, workers: 2))
                #expect(report.sums.states == row.states && report.sums.selfTime == row.selfTime && report.sums.total == row.total)
                #expect(report.sums.median == row.median && report.sums.maximum == row.maximum)
                #expect(report.histogram.reduce(0) { $0 + $1.calls } == row.timedCalls)
                let shown = try report.slowest.map { try #require($0.states)[time] }
                #expect(shown == shown.sorted(by: >) && report.slowest.allSatisfy { $0.states?.whole == Int64($0.length.count) })
                // A recursive function's list has its outermost calls alone.
                #expect(try shown[0] <= Int64(#require(row.maximum).count) || row.calls > row.timedCalls)
            }
        }
        #expect(try #require(FunctionReport(trace, FunctionPattern("a"), time: .running)).callees.time == .running)
    }

    @Test func aFunctionByItselfSaysWhatItsTimesAre() throws {
        let trace = try loaded(nested, switches).trace, locations = FunctionLocations([trace], lines: false)
        func lines(_ time: CallTime) throws -> [String] {
            var lines: [String] = []
            let report = try #require(FunctionReport(trace, FunctionPattern("a"), time: time, workers: 1))
            try report.lines(title: "", least: 0, width: nil, names: .usual, locations: locations, style: plain) { lines.append($0) }
            return lines
        }
        let wall = try lines(.wall), waiting = try lines(.waiting)
        #expect(wall.contains("total: running 50 ns, waiting 100 ns, runnable 0 ns; self: running 50 ns, waiting 100 ns, runnable 0 ns"))
        #expect(wall.contains("1 call, total 150 ns, self 150 ns") && waiting.contains("1 call, total 100 ns, self 100 ns"))
        #expect(waiting.contains("time spent waiting only (--time waiting)") && waiting.contains("how long the calls waited"))
        #expect(waiting.contains("slowest calls, by waiting time"))
        #expect(wall.contains { $0.contains("     150 ns      50 ns     100 ns       0 ns  4711") }, "\(wall)")
        let bare = try Loaded(demo(nested).bytes()).trace
        #expect(try #require(FunctionReport(bare, FunctionPattern("a"))).sums.states == nil)
    }

    @Test func allFunctionsTogetherHaveWhatTheThreadHas() throws {
        let loaded = try loaded(nested, switches), window = TimeWindow([start + 50..<start + 550])
        let trace = loaded.trace.narrowed(to: window), summary = Summary(trace, workers: 1, states: .ofFunctions(.wall))
        var sum = (running: Int64(0), waiting: Int64(0), runnable: Int64(0))
        for row in summary.functions + summary.ownCodes {
            let times = try #require(row.states).selfTime
            sum = (sum.running + times.running, sum.waiting + times.waiting, sum.runnable + times.runnable)
        }
        let thread = ThreadTimes(WaitSearch(trace, workers: 1), 0, in: window)
        #expect(sum.running == Int64(thread.running ?? 0) && sum.runnable == Int64(thread.runnable ?? 0))
        #expect(sum.waiting == Int64(thread.waiting))
        #expect(sum == (250, 200, 50))
    }

    @Test func severalTracesAreAddedUp() throws {
        let directory = try TemporaryDirectory()
        for pid in [4711, 4712] as [UInt32] {
            var builder = demo(nested)
            builder.header.pid = pid
            builder.kernel(from: start, until: start + 1000)
            builder.switches(switches)
            directory.write("demo.\(pid).trace", builder.bytes())
        }
        let traces = try [4711, 4712].map { try TraceFile(path: "\(directory.path)/demo.\($0).trace") }
        let summary = RunSummary(traces, path: directory.path, states: .ofFunctions(.running)).summary
        #expect(summary.split["main"] == "420 200 0, 700 400 100")
        #expect(summary.functions.first { $0.name == "main" }?.total.count == 700)
        let tree = CallTree.reading(traces, states: .ofFunctions(.running)).merged(.processes)
        #expect(text(tree.nodes[tree.roots[0].node + 1].states.total) == "700 400 100" && tree.nodes[tree.roots[0].node + 1].total == 700)
    }

    @Test func sidesAreComparedWithoutTheTimeThatOthersHadTheCPUs() throws {
        // The same work, the second time beside another program.
        let before = CallTree(try loaded([.call(1, 0, 100)], []).trace, states: .ofFunctions(.wall), workers: 1)
        let after = CallTree(
            try loaded([.call(1, 0, 400)], [(start + 50, 4711, preempted), (start + 350, 4711, runs)]).trace,
            states: .ofFunctions(.wall), workers: 1)
        let diff = TreeDiff(before: [before], after: [after])
        #expect(diff.time == .runningAndWaiting && diff.functions.allSatisfy { $0.row.difference == 0 })
        #expect(
            diff.text(top: 0, width: nil, plain).contains(
                "running and waiting; without 0 ns before and 300 ns after in which others had the CPUs"))
        #expect(TreeDiff(before: [before], after: [after], by: .wall).functions[0].row.difference == 300)
        let unknown = CallTree(try loaded([.call(1, 0, 100)], []).trace, workers: 1)
        #expect(TreeDiff(before: [unknown], after: [after]).time == .wall)
    }

    @Test func aReportSaysWhereWallTimesAreOfTheMachine() throws {
        let busy: [(UInt64, UInt32, Int)] = [(start + 100, 4711, preempted), (start + 300, 4711, runs)]
        func lines(_ switches: [(UInt64, UInt32, Int)], _ states: StateReading) throws -> String {
            let trace = try loaded(nested, switches).trace
            return RunSummary([trace], path: trace.path, states: states).table(by: .selfTime, top: 0, style: plain)
        }
        #expect(try lines(busy, .ofThreads).contains("others had the CPUs: --time running leaves it out"))
        #expect(try !lines(busy, .ofFunctions(.running)).contains("leaves it out"))
        #expect(try lines(busy, .ofFunctions(.running)).contains("time on a CPU only"))
        #expect(try !lines([(start + 100, 4711, waits), (start + 300, 4711, runs)], .ofThreads).contains("others had"))
        #expect(try !lines(busy, .nothing).contains("others had"))
    }
}
