import CTraceLayout
import Presentation
import Symbols
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

private let begin: UInt64 = 100_000_000
private let runs = TRACE_SWITCH_IN, waits = TRACE_SWITCH_WAITS, preempted = TRACE_SWITCH_PREEMPTED

private func usage(_ at: UInt64, own: UInt64 = 0) -> trace_usage { TraceBuilder.usage(at: begin + at, own: own) }

/// One tick is one nanosecond. Exec 1 ms before the agent's start, a constructor from 100 to 600 us, main at 700, ready at 1500. The main
/// thread loses its CPU from 200 to 500 us, and waits from 900 to 1100.
private func start(_ body: (inout TraceBuilder) -> Void = { _ in }) throws -> TraceFile {
    var builder = TraceBuilder(program: "/usr/bin/app", start: begin)
    builder.module(0, "/usr/bin/app", bias: 0x1000_0000)
    builder.module(1, "/usr/lib/libslow.so", bias: 0x2000_0000)
    builder.phase(TRACE_PHASE_EXEC, trace_usage(), monotonic: begin - 1_000_000)
    builder.phase(TRACE_PHASE_AGENT, usage(0))
    builder.initializer(0, module: 1, address: 0x2000_0100, from: usage(100_000, own: 50_000), to: usage(600_000, own: 50_000))
    builder.phase(TRACE_PHASE_MAIN, usage(700_000, own: 50_000))
    builder.ready(TRACE_READY_MARK, at: begin + 1_500_000)
    builder.function(1, "work", module: 0)
    builder.steps(builder.thread(), [.call(1, 750_000, 1_400_000)])
    builder.kernel(from: begin - 1_000_000, until: begin + 3_000_000)
    builder.switches([
        (begin + 200_000, 4711, preempted), (begin + 500_000, 4711, runs), (begin + 900_000, 4711, waits), (begin + 1_100_000, 4711, runs),
    ])
    body(&builder)
    let file = TemporaryFile(builder.bytes(end: begin + 2_000_000))
    return try TraceFile(path: file.path)
}

private func found(_ trace: TraceFile, waited: UInt64?, from exec: UInt64 = begin - 1_000_000) -> CPUWaits {
    CPUWaits(trace, waited: waited.map { Nanoseconds($0) }, from: exec, until: begin + 1_500_000)
}

private func text(_ waits: CPUWaits) -> [String] {
    func us(_ ticks: UInt64) -> Int { (Int(ticks) - Int(begin)) / 1000 }
    return (waits.ofThread[0]?.moments ?? []).map { "\(us($0.lowerBound))-\(us($0.upperBound))" }
}

@Suite struct CPUWaitTests {
    @Test func aThreadThatWasPreemptedHadNoCPU() throws {
        let waits = found(try start(), waited: 300_000)
        #expect(text(waits) == ["200-500"] && waits.hidden.count == 0)
        #expect(text(found(try start(), waited: nil)) == ["200-500"])
    }

    @Test func whatElseTheKernelHasCountedIsTheDelayOfItsWakeUps() throws {
        #expect(text(found(try start(), waited: 340_000)) == ["200-500", "1060-1100"])
        // Beyond the one wait there is nothing that it can be.
        let waits = found(try start(), waited: 600_000)
        #expect(text(waits) == ["200-500", "900-1100"] && waits.hidden.count == 100_000)
    }

    /// Exec had been called 40 us before the kernel reported the first switch that it could.
    @Test func whatItWaitsForWithinExecIsCountedAndNotReported() throws {
        let trace = try start()
        #expect(text(found(trace, waited: 340_000, from: begin - 1_040_000)) == ["-1020--1000", "200-500", "1080-1100"])
        let waits = found(trace, waited: 700_000, from: begin - 1_500_000)
        #expect(text(waits) == ["-1200--1000", "200-500", "900-1100"] && waits.hidden.count == 0)
    }

    @Test func aThreadThatItWaitsForAndThatHasNoCPUDelaysIt() throws {
        func other(_ third: Bool) throws -> CPUWaits {
            found(
                try start {
                    $0.task(TRACE_TASK_BEGAN, 4712, at: begin + 800_000, by: 4711)
                    $0.switches([(begin + 1_000_000, 4712, runs), (begin + 1_090_000, 4712, waits)])
                    guard third else { return }
                    $0.task(TRACE_TASK_BEGAN, 4713, at: begin + 940_000, by: 4712)
                    $0.switches([(begin + 940_000, 4713, runs), (begin + 970_000, 4713, waits)])
                }, waited: 300_000)
        }
        #expect(text(try other(false)) == ["200-500", "900-1000"])
        // While a third one runs it may be that one that is waited for.
        #expect(text(try other(true)) == ["200-500", "900-940", "970-1000"])
    }

    /// A thread sleeps from 150 to 950 us, and ends the main thread's wait, which began at 900, at 1090.
    @Test func aThreadThatSleepsMeanwhileMayHideADelayOrMakeOne() throws {
        func waits(_ waited: UInt64) throws -> CPUWaits {
            found(
                try start {
                    $0.task(TRACE_TASK_BEGAN, 4712, at: begin + 100_000, by: 4711)
                    $0.function(2, "nanosleep", module: 1)
                    $0.steps($0.thread(tid: 4712), [.call(2, 140_000, 960_000)])
                    $0.switches([
                        (begin + 110_000, 4712, runs), (begin + 150_000, 4712, TRACE_SWITCH_WAITS), (begin + 950_000, 4712, runs),
                        (begin + 1_090_000, 4712, TRACE_SWITCH_WAITS),
                    ])
                }, waited: waited)
        }
        func text(_ window: TimeWindow) -> [String] {
            window.moments.map { "\((Int($0.lowerBound) - Int(begin)) / 1000)-\((Int($0.upperBound) - Int(begin)) / 1000)" }
        }
        // It slept on while the main thread was preempted. It may have had its CPU late by 150 us, as the main thread on an average: of that
        // the main thread waited 50.
        let launch = try waits(300_000)
        #expect(text(launch.concurrent) == ["200-500"] && text(launch.uncertain) == ["900-950"])
    }

    @Test func withoutContextSwitchesNobodyKnowsWhen() throws {
        var builder = TraceBuilder(program: "/usr/bin/app", start: begin)
        builder.steps(builder.thread(), [])
        let file = TemporaryFile(builder.bytes(end: begin + 2_000_000))
        let waits = found(try TraceFile(path: file.path), waited: 300_000)
        #expect(waits.ofThread.isEmpty && waits.hidden.count == 300_000)
    }

    @Test func timesOfALaunchAreWithoutThem() throws {
        let trace = try start(), symbolizer = Symbolizer(), waits = found(trace, waited: 340_000)
        func timeline(_ waits: [UInt32: TimeWindow]) throws -> StartupTimeline {
            var timeline = try StartupTimeline(trace, symbolizer: symbolizer, options: .init(cpuWaits: waits))
            timeline.addStates(trace)
            return timeline
        }
        let wall = try timeline([:]), net = try timeline(waits.ofThread)
        #expect(wall.constructors.map(\.total.count) == [500_000] && net.constructors.map(\.total.count) == [200_000])
        #expect(wall.stages.last?.duration.count == 800_000 && net.stages.last?.duration.count == 760_000)
        #expect(wall.total == net.total)
        let sum = net.stages.reduce(0) { $0 + $1.duration.count }
        #expect(sum + net.tracerTime.count + 340_000 == net.total.count && sum == net.programTime.count)
        #expect(net.stages.allSatisfy { $0.states?.waits.contains { $0.kind == "processor" } == false })
        let calls = LaunchCalls.untilReady(trace, net, symbolizer)
        #expect(calls.map { "\($0.name) \($0.total.count)" } == ["work 610000"])
        #expect(calls.first?.children.filter(\.isWait).map(\.total.count) == [160_000])
    }

    @Test func whatAnEarlierProgramOfTheProcessDidIsNotSaid() throws {
        let trace = try start(), earlier = try #require(StartupTimeline.EarlierProgram(trace))
        var timeline = try StartupTimeline(trace, symbolizer: Symbolizer(), options: .init(earlier: earlier))
        timeline.addStates(trace)
        #expect(timeline.stages.map { $0.states == nil } == [true] + Array(repeating: false, count: timeline.stages.count - 1))
        #expect(timeline.stages.count > 2)
    }

    /// The agent notes how long it has worked, in ticks, and these go on while it has no CPU.
    @Test func theAgentsWorkIsNotTakenOutTwice() throws {
        func sum(own: UInt64, opening: (at: UInt64, own: UInt64)? = nil) throws -> [UInt64] {
            var builder = TraceBuilder(program: "/usr/bin/app", start: begin)
            builder.module(0, "/usr/bin/app", bias: 0x1000_0000)
            builder.phase(TRACE_PHASE_EXEC, trace_usage(), monotonic: begin - 1_000_000)
            builder.phase(TRACE_PHASE_AGENT, usage(0))
            builder.phase(TRACE_PHASE_MAIN, usage(1_000_000, own: opening?.own ?? own))
            if let opening { builder.opened(3, at: begin + opening.at, "/file", own: opening.own) }
            builder.ready(TRACE_READY_MARK, at: begin + 1_500_000)
            builder.function(1, "work", module: 0)
            builder.steps(builder.thread(), [.call(1, 1_100_000, 1_400_000)])
            builder.kernel(from: begin - 1_000_000, until: begin + 3_000_000)
            builder.switches([(begin + 100_000, 4711, preempted), (begin + 800_000, 4711, runs)])
            let file = TemporaryFile(builder.bytes(end: begin + 2_000_000)), trace = try TraceFile(path: file.path)
            let timeline = try StartupTimeline(
                trace, symbolizer: Symbolizer(), options: .init(cpuWaits: found(trace, waited: nil).ofThread))
            return [timeline.stages.reduce(0) { $0 + $1.duration.count }, timeline.tracerTime.count]
        }
        // The same of work on a descriptor's record, which is after the record's moment.
        #expect(try sum(own: 0, opening: (50_000, 900_000)) == [1_600_000, 200_000])
        // 0.7 of the 2.5 ms without a CPU: within the agent's work, or longer than it.
        #expect(try sum(own: 900_000) == [1_600_000, 200_000])
        #expect(try sum(own: 150_000) == [1_650_000, 150_000])
    }
}
