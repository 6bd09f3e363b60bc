// Until when the calls last that threads leave open: every reader has the same ends.
import CTraceLayout
import Foundation
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

/// Thread 0, 4711, has main open from the start; thread 1, 4712, has a open from 40 on. The last event is 100 after the start.
private func deadlock(_ change: (inout TraceBuilder) -> Void = { _ in }) -> TraceBuilder {
    demo { builder, main in
        builder.enter(main, 1, at: start)
        let other = builder.thread("other")
        builder.enter(other, 2, at: start + 40)
        builder.complete(main, 3, from: start + 90, to: start + 100)
        builder.header.state = UInt32(TRACE_RECORDING)
        change(&builder)
    }
}

/// What the readers say of main and a, as "total ending": the report without the ending; the tree, replay, and the timeline of the page.
private struct Ends: Equatable {
    var report: [UInt64]
    var tree: [String]
    var replay: [String]
    var timeline: [UInt64]
    var end: UInt64

    init(_ builder: TraceBuilder) throws {
        let loaded = try Loaded(builder.bytes()), trace = loaded.trace
        report = ["main", "a"].map { loaded[$0]?.total.count ?? 0 }
        let tree = CallTree(trace, workers: 1)
        self.tree = ["main", "a"].map { name in
            let node = tree.nodes.first { $0.function >= 0 && tree.functions[$0.function].name == name }
            return node.map { "\($0.total)\($0.open > 0 ? " open" : "")\($0.unwound > 0 ? " unwound" : "")" } ?? ""
        }
        replay = try [loaded.lines(thread: 0)[0], loaded.lines(thread: 1)[0]].map { String($0.split(separator: " ", maxSplits: 1)[1]) }
        end = TraceEnd(trace).ticks.raw - start
        timeline = CallTimeline.all(trace, from: start, until: start + end, mostThreads: 9, mostSlices: 1000).map { lane in
            lane.slices.filter { $0.slot != CallTimeline.ownCode }.map(\.length).max() ?? 0
        }
        #expect(loaded.summary.end.raw == start + end)
    }

    init(main: UInt64, _ mainEnd: String, a: UInt64, _ aEnd: String, end: UInt64) {
        report = [main, a]
        tree = ["\(main) \(mainEnd)", "\(a) \(aEnd)"]
        replay = tree
        timeline = report
        self.end = end
    }
}

@Suite struct ThreadEndTests {
    @Test func callsLastUntilTheRecorderSawTheProcessEnd() throws {
        let killed = deadlock { $0.header.ended_ns = start + 2_000_000 }
        #expect(try Ends(killed) == Ends(main: 2_000_000, "open", a: 1_999_960, "open", end: 2_000_000))
    }

    @Test func withoutAnEndTheyLastUntilTheLastEvent() throws {
        #expect(try Ends(deadlock()) == Ends(main: 100, "open", a: 60, "open", end: 100))
    }

    @Test func aThreadEndsWhenTheKernelSaysSo() throws {
        let found = try Ends(
            deadlock {
                $0.task(TRACE_TASK_ENDED, 4712, at: start + 70)
                $0.header.ended_ns = start + 5000
            })
        #expect(found == Ends(main: 5000, "open", a: 30, "unwound", end: 5000))
    }

    /// Nothing was recorded after them: the threads ended with the process.
    @Test func threadsThatEndWithTheProcessAreStillRunningThen() throws {
        let found = try Ends(
            deadlock {
                $0.task(TRACE_TASK_ENDED, 4712, at: start + 4990)
                $0.task(TRACE_TASK_ENDED, 4711, at: start + 5000)
            })
        #expect(found == Ends(main: 5000, "open", a: 4950, "open", end: 5000))
    }

    @Test func whereTheAgentFoundAThreadEndedItEndedWithItsLastEvent() throws {
        let found = try Ends(
            deadlock {
                $0.complete(1, 3, from: start + 50, to: start + 60)
                $0.threadEnd(1, at: start + 95)
            })
        #expect(found == Ends(main: 100, "open", a: 20, "unwound", end: 100))
    }

    /// The kernel's end may be that of a later thread with the same id; the agent's is never too early.
    @Test func aThreadHadEndedWhenTheAgentFoundItEnded() throws {
        let found = try Ends(
            deadlock {
                $0.task(TRACE_TASK_ENDED, 4712, at: start + 99)
                $0.threadEnd(1, at: start + 80)
            })
        #expect(found.report == [100, 40] && found.tree[1] == "40 unwound")
    }

    @Test func nothingEndsBeforeItsLastEvent() throws {
        let found = try Ends(
            deadlock {
                $0.task(TRACE_TASK_ENDED, 4711, at: start + 30)
                $0.task(TRACE_TASK_ENDED, 4712, at: start + 10) // before the thread began: another's
                $0.header.ended_ns = start + 20
            })
        #expect(found == Ends(main: 100, "unwound", a: 60, "open", end: 100))
    }

    /// Other threads have its id before and after it.
    @Test func theFirstEndAfterItsBeginningIsAThreadsOwn() throws {
        let found = try Ends(deadlock { for end in [90, 10, 70] as [UInt64] { $0.task(TRACE_TASK_ENDED, 4712, at: start + end) } })
        #expect(found == Ends(main: 100, "open", a: 30, "unwound", end: 100))
    }

    /// What happened after that is not known, whoever saw the end.
    @Test func nothingLastsLongerThanTheRecording() throws {
        let found = try Ends(
            deadlock {
                $0.header.state = UInt32(TRACE_STOPPED)
                $0.header.stopped_ticks = start + 500
                $0.header.ended_ns = start + 5000
                $0.task(TRACE_TASK_ENDED, 4712, at: start + 4000)
            })
        #expect(found == Ends(main: 500, "open", a: 460, "open", end: 500))
    }

    @Test(arguments: [UInt64.max, UInt64.max / 2, 1]) func absurdEndsDoNotTrap(_ moment: UInt64) throws {
        let loaded = try Loaded(
            deadlock {
                $0.header.ended_ns = moment
                $0.task(TRACE_TASK_ENDED, 4712, at: moment)
                $0.task(TRACE_TASK_EXECUTED, 4711, at: moment)
            }.bytes())
        #expect(loaded["main"]?.total.count ?? 0 >= 100)
        #expect(try loaded.lines(thread: 1).count == 1)
        #expect(CallTree(loaded.trace, workers: 1).calls == 3)
    }

    // MARK: - The process

    private func end(_ change: (inout TraceBuilder) -> Void) throws -> ProcessEnd? { try Loaded(deadlock(change).bytes()).trace.processEnd }

    @Test func theHeaderSaysHowTheProcessEnded() throws {
        let known = UInt64(TRACE_EXIT_KNOWN), killed = known | UInt64(TRACE_EXIT_SIGNAL)
        #expect(try end { $0.header.exit_status = known | 143 } == .exited(status: 143))
        #expect(try end { $0.header.exit_status = killed | 143 } == .killed(signal: 15))
        #expect(try end { _ in } == nil)
        #expect(ProcessEnd.killed(signal: 15).text == "killed by signal 15 (SIGTERM)")
        #expect(ProcessEnd.killed(signal: 31).text == "killed by signal 31 (SIGSYS)")
        #expect(ProcessEnd.killed(signal: 40).text == "killed by signal 40")
        #expect(ProcessEnd.killed(signal: -128).text == "killed by signal -128")
    }

    @Test func aProgramThatWasExecutedAfterTheTraceBeganEndedIt() throws {
        #expect(
            try end {
                $0.task(TRACE_TASK_EXECUTED, 4711, at: start - 10, name: "demo")
                $0.task(TRACE_TASK_EXECUTED, 4711, at: start + 300, name: "ls")
            } == .executed("ls"))
        #expect(try end { $0.task(TRACE_TASK_EXECUTED, 4711, at: start - 10, name: "demo") } == nil)
    }

    @Test func theFirstLineSaysHowTheProcessEnded() throws {
        func headline(_ change: (inout TraceBuilder) -> Void) throws -> String { try Loaded(deadlock(change).bytes()).run.headline }
        let known = UInt64(TRACE_EXIT_KNOWN)
        let killed = known | UInt64(TRACE_EXIT_SIGNAL) | 137
        #expect(try headline { $0.header.exit_status = killed }.hasSuffix(", killed by signal 9 (SIGKILL)"))
        #expect(try headline { $0.header.exit_status = known | 3 }.hasSuffix(", exit status 3"))
        #expect(try headline { $0.header.exit_status = known }.hasSuffix(" 0 dropped"))
        #expect(try headline { _ in }.hasSuffix(", not finished"))
        let loaded = try Loaded(deadlock { $0.header.exit_status = killed }.bytes()), json = loaded.run.processes[0].json.text(lines: 0)
        #expect(loaded.trace.losses.isEmpty)
        #expect(json.contains("\"ended\": \"killed\"") && json.contains("\"signal\": 9"))
    }

    // MARK: - Alive

    private var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
    }

    private func ownTrace(begun: UInt64) -> TraceBuilder {
        var builder = TraceBuilder(pid: UInt32(getpid()), start: begun)
        builder.module(0, "/usr/lib/libdemo.so.1")
        builder.function(1, "main")
        let thread = builder.thread()
        builder.enter(thread, 1, at: begun + 10)
        builder.header.state = UInt32(TRACE_RECORDING)
        let boot = (try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8)) ?? ""
        builder.header.boot = UInt64(boot.filter(\.isHexDigit).prefix(16), radix: 16) ?? 0
        var info = stat()
        stat("/proc/self/ns/pid", &info)
        builder.header.pid_namespace = UInt64(info.st_ino)
        return builder
    }

    /// The file is opened while this process has it mapped, as the agent has.
    private func read(_ builder: TraceBuilder, isMapped: Bool = true) throws -> (trace: TraceFile, total: UInt64?) {
        let file = TemporaryFile(builder.bytes())
        return try withExtendedLifetime(file) {
            let descriptor = open(file.path, O_RDONLY)
            defer { close(descriptor) }
            let page = isMapped ? mmap(nil, 4096, PROT_READ, MAP_SHARED, descriptor, 0) : nil
            defer { if let page { munmap(page, 4096) } }
            let trace = try TraceFile(path: file.path)
            return (trace, Summary(trace, workers: 1).functions.first?.total.count)
        }
    }

    @Test func callsOfAProcessThatIsAliveLastUntilNow() throws {
        let begun = now
        let (trace, total) = try read(ownTrace(begun: begun))
        #expect(trace.processEnd == .running)
        #expect(total == trace.ends.process.raw - begun - 10)
        #expect(total ?? 0 > 0)
    }

    @Test func aProcessWithTheSameIdIsNotTheOneOfTheTrace() throws {
        let begun = now
        #expect(try read(ownTrace(begun: begun), isMapped: false).total == 0) // it executed another program
        #expect(try read(ownTrace(begun: 1_000_000)).total == 0) // it began later
        for change in [
            { $0.header.boot += 1 }, { $0.header.pid_namespace += 1 }, { $0.header.state = UInt32(TRACE_FINISHED) },
            { $0.header.ended_ns = begun + 10 },
        ] as [(inout TraceBuilder) -> Void] {
            var builder = ownTrace(begun: begun)
            change(&builder)
            let (trace, total) = try read(builder)
            #expect(trace.processEnd == nil && total == 0)
        }
    }
}
