import CTraceLayout
import Foundation
import Presentation
import Symbols
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

private let begin: UInt64 = 100_000_000

/// Usage at a moment after the agent's start.
private func usage(_ at: Int, own: UInt64 = 0, cpu: UInt64 = 0, minor: UInt32 = 0, major: UInt32 = 0) -> trace_usage {
    TraceBuilder.usage(at: begin &+ UInt64(bitPattern: Int64(at)), own: own, cpu: cpu, minor: minor, major: major)
}

/// One tick is one nanosecond; the agent starts at `begin`. Module 0 is the executable, 1 a library, 2 one that nobody uses. The functions
/// of the library have numbers from 1 on.
/// - Parameters:
///   - main: when main is called
///   - steps: what the one thread does
private func started(
    exec: Bool = true, main: Int? = nil, returned: Int? = nil, _ functions: [String] = [], _ steps: [Step] = [],
    _ body: (inout TraceBuilder) -> Void = { _ in }
) -> TraceBuilder {
    var builder = TraceBuilder(program: "/usr/bin/app", start: begin)
    builder.module(0, "/usr/bin/app", bias: 0x1000_0000)
    builder.module(1, "/usr/lib/libslow.so", bias: 0x2000_0000)
    builder.module(2, "/usr/lib/libidle.so", bias: 0x3000_0000)
    builder.moduleDetail(0, relative: 10, symbols: 2, jumpSlots: 5, needed: ["libslow.so", "libidle.so"])
    builder.moduleDetail(1, relative: 100, symbols: 20, jumpSlots: 50, isLazy: true, soname: "libslow.so")
    builder.moduleDetail(2, relative: 1, soname: "libidle.so")
    builder.binding(0, to: 1, calls: 5)
    if exec { builder.phase(TRACE_PHASE_EXEC, trace_usage(), monotonic: begin - 9_000_000) }
    builder.phase(TRACE_PHASE_CREATED, trace_usage(), monotonic: begin - 10_000_000, error: 3_000_000)
    builder.phase(TRACE_PHASE_LOADER, usage(-8_000_000))
    builder.phase(TRACE_PHASE_AGENT, usage(0))
    if let main { builder.phase(TRACE_PHASE_MAIN, usage(main)) }
    if let returned { builder.phase(TRACE_PHASE_MAIN_RETURNED, usage(returned)) }
    for (index, name) in functions.enumerated() { builder.function(UInt32(1 + index), name, module: 1) }
    builder.steps(builder.thread(), steps)
    body(&builder)
    return builder
}

private func timeline(_ builder: TraceBuilder, ready: String? = nil, end: UInt64? = nil) throws -> StartupTimeline {
    let file = TemporaryFile(builder.bytes(end: end))
    return try StartupTimeline(TraceFile(path: file.path), symbolizer: Symbolizer(), options: .init(readySymbol: ready))
}

private func summary(_ timeline: StartupTimeline) -> [String] {
    timeline.stages.map { "\($0.kind) \($0.start.count) +\($0.duration.count)" + ($0.isExact ? "" : " ~") + ($0.isCut ? " cut" : "") }
}

@Suite struct StartupTimelineTests {
    private func whole(exec: Bool = true) -> TraceBuilder {
        started(exec: exec, ["listen"], [.call(1, 10_200_000, 10_201_000), .call(1, 12_200_000, 12_201_000)]) { builder in
            // 1 ms of the agent's own, a library's constructor of 5 ms, the executable's of 2 ms, each with 0.1 ms of the agent's.
            builder.initializer(
                0, module: 1, address: 0x2000_0100, from: usage(1_000_000, own: 1_000_000),
                to: usage(6_000_000, own: 1_000_000, cpu: 5_000_000, minor: 12, major: 2))
            builder.initializer(
                1, module: 0, address: 0x1000_0100, from: usage(6_100_000, own: 1_100_000), to: usage(8_100_000, own: 1_100_000, cpu: 0))
            builder.phase(TRACE_PHASE_MAIN, usage(8_200_000, own: 1_200_000, cpu: 7_000_000, minor: 40, major: 3))
        }
    }

    @Test func stagesAndTheAgentsOwnTimeAddUpToTheWhole() throws {
        let timeline = try timeline(whole())
        #expect(
            summary(timeline) == [
                "exec 0 +1000000", "load 1000000 +8000000", "libraryConstructors 9000000 +5000000",
                "executableConstructors 15100000 +2000000", "main 17200000 +2000000",
            ])
        #expect(timeline.total.count == 19_200_000)
        #expect(timeline.tracerTime.count == 1_200_000)
        #expect(timeline.stages.reduce(0) { $0 + $1.duration.count } + timeline.tracerTime.count == timeline.total.count)
        #expect(timeline.outcome == .ready(ReadyMoment(reason: .listening("listen"), ticks: Ticks(begin + 10_200_000))))
        #expect([timeline.minorFaults, timeline.majorFaults] == [40, 3])
    }

    @Test func withoutTheMomentOfExecTheBeginningIsAnEstimate() throws {
        let timeline = try timeline(whole(exec: false))
        #expect(summary(timeline).first == "exec 0 +2000000 ~")
        #expect(timeline.beginError.count == 3_000_000)
        #expect(timeline.notes.contains { $0.contains("estimated") })
        #expect(timeline.json.text().contains("\"exact\": false"))
    }

    @Test func aProcessIsNotMadeAfterItsLoaderRan() throws {
        var builder = TraceBuilder(program: "/usr/bin/app", start: begin)
        builder.phase(TRACE_PHASE_CREATED, trace_usage(), monotonic: begin - 7_500_000, error: 3_000_000)
        builder.phase(TRACE_PHASE_LOADER, usage(-8_000_000))
        builder.phase(TRACE_PHASE_AGENT, usage(0))
        builder.phase(TRACE_PHASE_MAIN, usage(1_000_000))
        builder.phase(TRACE_PHASE_MAIN_RETURNED, usage(2_000_000))
        let timeline = try timeline(builder)
        #expect(timeline.total.count == 10_000_000)
        #expect(timeline.beginError.count == 2_500_000)
        #expect(summary(timeline).first == "exec 0 +0 ~")
    }

    @Test func constructorsHaveTheirTimesFaultsAndWaiting() throws {
        let runs = try timeline(whole()).constructors
        #expect(runs.map { $0.name.module } == ["libslow.so", "app"])
        #expect(runs.map { $0.name.name } == ["libslow.so+0x100", "app+0x100"])
        #expect(runs.map { $0.total.count } == [5_000_000, 2_000_000])
        #expect(runs.map { $0.withoutCPU.count } == [0, 2_000_000])
        #expect([runs[0].minorFaults, runs[0].majorFaults] == [12, 2])
    }

    @Test func aNestedLoadAndItsConstructorsAreNotSelfTime() throws {
        let timeline = try timeline(
            started(main: 11_000_000, returned: 12_000_000) { builder in
                // 0 opens a library from 2 to 8 ms, whose constructor 1 runs from 4 to 7 ms and has 2 nested inside from 5 to 6.
                builder.initializer(0, module: 1, from: usage(1_000_000), to: usage(10_000_000))
                builder.load(
                    1, "/usr/lib/libplug.so", caller: 1, initializer: 0, begin: begin + 2_000_000, opened: begin + 2_500_000,
                    mapped: usage(3_000_000), end: usage(8_000_000))
                builder.initializer(1, module: 2, parent: 0, load: 1, from: usage(4_000_000), to: usage(7_000_000))
                builder.initializer(2, module: 2, index: 1, parent: 1, load: 1, from: usage(5_000_000), to: usage(6_000_000))
            })
        #expect(timeline.constructors.map { $0.selfTime.count } == [3_000_000, 2_000_000, 1_000_000])
        let load = try #require(timeline.loads.first)
        #expect([load.total, load.constructors, load.loading].map { $0.count } == [6_000_000, 3_000_000, 3_000_000])
        #expect(load.caller == "libslow.so")
        #expect(timeline.outcome == .ready(ReadyMoment(reason: .mainReturned, ticks: Ticks(begin + 12_000_000))))
    }

    @Test func dyingInAConstructorShowsWhereItWas() throws {
        let timeline = try timeline(
            started(["read"], [.call(1, 2_000_000, 3_000_000)]) {
                $0.initializer(0, module: 1, address: 0x2000_0100, from: usage(1_000_000))
            })
        #expect(timeline.outcome == .neverReady)
        #expect(timeline.lastSeen == "in libslow.so+0x100 of libslow.so, a constructor that never returned")
        #expect(summary(timeline).last == "libraryConstructors 9000000 +3000000 cut")
        #expect(timeline.table(style: plain).contains("ended here"))
    }

    @Test func anUnknownReadySymbolIsSaidAndTheTableIsStillThere() throws {
        let timeline = try timeline(whole(), ready: "serve")
        #expect(timeline.outcome == .neverReady)
        #expect(timeline.notes.contains("not ready: there is no function serve in this trace"))
        #expect(timeline.stages.last?.isCut == true)
    }

    @Test func theSymbolThatWasNamedDecides() throws {
        var builder = whole()
        builder.function(2, "_ZN3app5serveEi", module: 0)
        builder.complete(0, 2, from: begin + 14_000_000, to: begin + 14_000_100)
        for name in ["_ZN3app5serveEi", "app::serve(int)", "app::serve"] {
            #expect(try timeline(builder, ready: name).total.count == 23_000_000)
        }
    }

    @Test func whatSaysMoreIsTakenBeforeWhatCameFirst() throws {
        var builder = whole()
        builder.ready(TRACE_READY_OUTPUT, at: begin + 9_000_000)
        var result = try timeline(builder)
        #expect(result.outcome == .ready(ReadyMoment(reason: .listening("listen"), ticks: Ticks(begin + 10_200_000))))
        #expect(result.otherMoments.map { $0.moment.key } == ["output"])
        builder.ready(TRACE_READY_MARK, at: begin + 13_000_000)
        result = try timeline(builder)
        #expect(result.outcome == .ready(ReadyMoment(reason: .mark, ticks: Ticks(begin + 13_000_000))))
    }

    @Test func aLocalStaticLastsFromAcquireToRelease() throws {
        let timeline = try timeline(
            started(
                main: 1_000_000, returned: 9_000_000, ["__cxa_guard_acquire", "__cxa_guard_release", "swift_once", "load_all"],
                [
                    .call(1, 2_000_010, 2_000_030), .enter(4, 2_500_000), .enter(3, 3_000_010), .exit(3, 4_000_000), .exit(4, 5_000_000),
                    .call(2, 6_000_000, 6_000_100),
                ]
            ) { builder in
                builder.once(1, at: begin + 2_000_000, token: 0x2000_0800)
                builder.once(3, at: begin + 3_000_000, code: 0x1000_0200)
            })
        #expect(timeline.lazyInitializers.map { $0.duration?.count } == [4_000_100, 1_000_000])
        #expect(timeline.lazyInitializers.map { $0.name.name } == ["libslow.so+0x800", "app+0x200"])
        #expect(timeline.lazyInitializers.map { $0.during } == [nil, "load_all"])
    }

    /// 0.1 ms each, of which 0.04 are in its own length.
    @Test func whatRecordingCallsTookIsShownAndNotPromisedAsASaving() throws {
        func built(_ cost: UInt32) -> TraceBuilder {
            func step(_ at: Int) -> Step { .call(1, at, at + 50_000) }
            let before = [1_500_000, 4_500_000, 5_500_000, 7_500_000, 9_000_000].map(step)
            let work: [Step] = [.call(2, 12_100_010, 12_150_000), step(12_200_000), .call(3, 13_000_000, 13_050_000)]
            return started(
                main: 11_000_000, returned: 17_000_000, ["step", "__cxa_guard_acquire", "__cxa_guard_release", "work"],
                before + [.call(4, 12_000_000, 16_000_000, work), step(18_000_000)]
            ) { builder in
                builder.cost(leaf: cost, inside: cost * 2 / 5)
                builder.initializer(0, module: 1, from: usage(1_000_000), to: usage(10_000_000))
                builder.load(
                    1, "/usr/lib/libplug.so", caller: 1, initializer: 0, begin: begin + 2_000_000, opened: begin + 2_500_000,
                    mapped: usage(3_000_000), end: usage(8_000_000))
                builder.initializer(1, module: 2, parent: 0, load: 1, from: usage(4_000_000), to: usage(7_000_000))
                builder.once(2, at: begin + 12_100_000, token: 0x2000_0800)
            }
        }
        let costly = try timeline(built(100_000)), free = try timeline(built(0))
        #expect(costly.recordedCalls == 9 && costly.recordingTime.count == 900_000)
        #expect(costly.constructors.map { $0.calls } == [5, 2])
        #expect(costly.constructors.map { $0.recording.count } == [500_000, 200_000])
        #expect(costly.constructors.map { $0.selfRecording.count } == [200_000, 200_000])
        #expect(costly.loads.map { $0.recording.count } == [300_000])
        #expect(costly.lazyInitializers.map { $0.recording.count } == [300_000])
        // Its own 40 us, and 60 of each of the three calls that it makes; of these 40 each are in their own 50.
        #expect(
            costly.functionsOfMain.map { "\($0.name) \($0.recording.count)" } == [
                "work 220000", "step 40000", "__cxa_guard_release 40000", "__cxa_guard_acquire 40000",
            ])
        // Times are reported as they were measured.
        #expect(costly.constructors.map { $0.total } == free.constructors.map { $0.total })
        #expect(summary(costly) == summary(free) && costly.tracerTime == free.tracerTime)
        let table = costly.table(style: plain)
        #expect(table.contains(#/\n  recording 9 calls +~900.000 us  within the stages, not subtracted\n/#))
        let share = percent(900_000, of: costly.programTime.count)
        #expect(table.contains("(page faults 0 until main; ~\(share) of it recording)\n"))
        #expect(table.contains("(__cxa_guard_acquire), in work, ~300.000 us of it recording"))
        #expect(!free.table(style: plain).contains("recording"))
        func saving(_ timeline: StartupTimeline, _ text: String) -> UInt64? {
            timeline.advice(atMost: 20).first { $0.text.contains(text) }?.saving.count
        }
        for (text, cost) in [("libplug.so: opened", 300_000 as UInt64), ("libslow.so+0x800 is initialized", 300_000)] {
            guard let was = saving(free, text) else { continue }
            #expect(saving(costly, text) == was - cost)
        }
        #expect(saving(free, "libslow.so+0x800 is initialized") != nil)
    }

    /// The agent starts in the first 0.8 ms, and takes 0.1 ms more until the first constructor runs.
    @Test func theAgentsStartIsInNoStage() throws {
        let builder = started(main: 10_000_000, ["listen"], [.call(1, 12_200_000, 12_201_000)]) { builder in
            builder.header.start_ticks = begin
            builder.header.started_ticks = begin + 800_000
            builder.initializer(0, module: 1, from: usage(1_000_000, own: 900_000), to: usage(2_000_000, own: 900_000))
        }
        let timeline = try timeline(builder)
        #expect(timeline.total.count == 21_200_000 && timeline.tracerTime.count == 900_000 && timeline.programTime.count == 20_300_000)
        #expect(timeline.stages.reduce(0) { $0 + $1.duration.count } == 20_300_000)
        #expect(timeline.stages.map { $0.tracerTime.count } == [0, 0, 900_000, 0, 0])
        let library = timeline.stretches.filter { $0.name == "constructors of libraries" || $0.name == "tracer's own start" }
        #expect(library.map { $0.name } == ["tracer's own start", "constructors of libraries"])
        #expect(library.map { $0.time } == [9_000_000..<9_800_000, 9_800_000..<19_000_000])
        #expect(library.map { $0.tracer } == [800_000, 100_000])
        #expect(timeline.stretches.reduce(0) { $0 + $1.length - $1.tracer } == 20_300_000)
        for (at, program) in [(9_000_000, 9_000_000), (19_000_000, 18_100_000), (21_200_000, 20_300_000)] as [(UInt64, UInt64)] {
            #expect(timeline.programTime(at: Nanoseconds(at)).count == program)
        }
        let table = timeline.table(style: plain)
        #expect(table.hasPrefix("exec → ready") && table.contains(#/^exec → ready +20.300 ms  \(page faults 0 until main\)\n/#))
        #expect(table.contains(#/\ntracer's own time +900.000 us  not in the lines above: 21.200 ms with it\n/#))
    }

    @Test(arguments: [1 << 62, 1 << 63, UInt64.max - 1] as [UInt64]) func aDamagedFileMayHaveTimesBeyondThoseOfAnySignedNumber(
        _ end: UInt64
    ) throws {
        let builder = started(main: 1_000_000, ["work", "step"], [.enter(1, 2_000_000), .enter(2, 3_000_000)]) {
            $0.phase(TRACE_PHASE_MAIN_RETURNED, TraceBuilder.usage(at: end))
        }
        let timeline = try timeline(builder)
        #expect(timeline.recordedCalls == 2)
        #expect(!timeline.table(style: plain).isEmpty && !timeline.json.text().isEmpty && !timeline.stretches.isEmpty)
    }

    @Test func functionsWithoutANameAreCalledAsInTheReport() throws {
        let steps: [Step] = [
            .enter(1, 2_000_000), .enter(2, 3_000_010), .exit(2, 4_000_000), .call(3, 4_100_000, 4_200_000), .call(4, 4_300_000, 4_400_000),
            .exit(1, 8_000_000),
        ]
        let builder = started(main: 1_000_000, returned: 9_000_000, [], steps) { builder in
            builder.function(1, "", module: 1, address: 0x2000_0340)
            builder.function(2, "swift_once", module: 1)
            builder.function(3, "_ZN4demo4workEv", module: 9)
            builder.once(2, at: begin + 3_000_000, code: 0x1000_0200)
        }
        let file = TemporaryFile(builder.bytes())
        try withExtendedLifetime(file) {
            let trace = try TraceFile(path: file.path)
            let timeline = try StartupTimeline(trace, symbolizer: Symbolizer(), options: .init())
            let report = Set(Summary(trace).functions.map { "\($0.name) [\($0.module)]" })
            #expect(report == ["libslow.so+0x340 [libslow.so]", "swift_once [libslow.so]", "demo::work() [[module 9]]", "?#4 [?]"])
            #expect(Set(timeline.functionsOfMain.map { "\($0.name) [\($0.module)]" }) == report)
            #expect(timeline.lazyInitializers.map { $0.during } == ["libslow.so+0x340"])
            #expect(
                timeline.advice(atMost: 10).contains {
                    $0.text.hasPrefix("libslow.so+0x340 [libslow.so], called once between main and ready")
                })
            func all(_ nodes: [LaunchCalls.Node]) -> [String] {
                nodes.flatMap { ($0.isLazy ? [] : ["\($0.name) [\($0.module)]"]) + all($0.children) }
            }
            #expect(Set(all(LaunchCalls.untilReady(trace, timeline, Symbolizer()))) == report)
        }
    }

    @Test func aDependencyThatNothingIsBoundToIsNamed() throws {
        var builder = whole()
        builder.initializer(
            2, module: 2, address: 0x3000_0100, from: usage(8_100_000, own: 1_100_000),
            to: usage(8_190_000, own: 1_100_000)) // long enough that omitting it is worth a line
        let timeline = try timeline(builder)
        #expect(timeline.libraries.map { $0.name } == ["libslow.so", "libidle.so"])
        #expect(timeline.libraries.map { $0.neededBy } == [["app"], ["app"]])
        #expect(timeline.libraries.map { $0.boundFromOthers } == [5, 0])
        #expect(timeline.libraries.map { $0.lookups } == [20, 0])
        #expect(timeline.libraries[0].calls == 1) // the second listen came after ready
        #expect(
            timeline.advice(atMost: 10).contains { $0.text.hasPrefix("libidle.so: linked, but nothing is bound to it") && $0.isEstimate })
    }

    @Test func adviceNamesTheLargestFirstWithItsSaving() throws {
        let advice = try timeline(whole()).advice(atMost: 10)
        #expect(advice.first?.text.hasPrefix("libslow.so: libslow.so+0x100") == true)
        #expect(advice.first?.saving.count == 5_000_000)
        // Nobody knows whether it waited, or others had the CPUs.
        #expect(advice.contains { $0.text.contains("off-CPU for 2.000 ms") && $0.isEstimate })
        #expect(advice.map { $0.saving.count } == advice.map { $0.saving.count }.sorted(by: >))
    }

    @Test func marksAndSpansAreShownWithTheirMoments() throws {
        let timeline = try timeline(
            started(main: 1_000_000, returned: 9_000_000, [], [.call(2, 2_000_000, 5_000_000, [.call(1, 3_000_000, 3_000_000)])]) {
                $0.function(1, "loaded", flags: TRACE_FUNCTION_MARK | TRACE_FUNCTION_ENTRY_ONLY)
                $0.function(2, "parse", flags: TRACE_FUNCTION_SPAN)
            })
        #expect(timeline.marks.map { "\($0.name) \($0.at.count)" } == ["loaded 12000000"])
        #expect(timeline.spans.map { "\($0.name) \($0.at.count) \($0.duration?.count ?? 0)" } == ["parse 11000000 3000000"])
    }

    @Test func callsInsideConstructorsAreCountedWithNestedOnes() throws {
        let timeline = try timeline(
            started(
                main: 7_000_000, returned: 8_000_000, ["read"],
                [500_000, 1_500_000, 2_500_000, 2_600_000, 4_000_000, 6_000_000].map { .call(1, $0, $0 + 10) }
            ) {
                $0.initializer(0, module: 1, from: usage(1_000_000), to: usage(5_000_000))
                $0.initializer(1, module: 1, index: 1, parent: 0, from: usage(2_000_000), to: usage(3_000_000))
            })
        #expect(timeline.constructors.map { $0.calls } == [4, 2])
    }

    @Test func aTraceWithoutStartRecordsIsRefusedInOneLine() throws {
        let file = TemporaryFile(TraceBuilder().bytes())
        #expect(throws: StartupError.self) { try StartupTimeline(TraceFile(path: file.path), symbolizer: Symbolizer()) }
    }

    @Test func recordsThatContradictThemselvesAreNoTrap() throws {
        let timeline = try timeline(
            started([], [.call(3, 0, 1)]) { builder in
                // An end before its beginning, a parent that does not exist, a module that is not there, time before exec.
                builder.initializer(
                    7, module: 99, parent: 7, load: 42, from: usage(5_000_000, own: .max, cpu: 9, minor: 9),
                    to: usage(1_000_000, own: 3, cpu: 1, minor: 1))
                builder.initializer(
                    7, module: 1, thread: 77, address: .max, from: TraceBuilder.usage(at: 1), to: TraceBuilder.usage(at: .max))
                builder.load(
                    1, "", caller: 55, initializer: 7, begin: .max, mapped: TraceBuilder.usage(at: 3), end: TraceBuilder.usage(at: 2))
                builder.once(1234, at: begin, code: .max, token: .max, thread: 9)
                builder.phase(TRACE_PHASE_MAIN, usage(2_000_000, own: 77))
                builder.phase(TRACE_PHASE_MAIN_RETURNED, usage(1_500_000))
                builder.ready(TRACE_READY_OUTPUT, at: 1, function: 999, thread: 5)
            })
        #expect(!timeline.table(style: TextStyle(isColoured: true)).isEmpty)
        #expect(!timeline.json.text().isEmpty)
    }
}

@Suite struct LoaderAuditTests {
    private let lines = """
        V 1000 4711
        O 1100 
        O 1200 /lib64/ld-linux-x86-64.so.2
        A 1250 1
        S 1300 liba.so
        O 1500 /lib/liba.so
        S 1510 libb.so
        O 1600 /lib/libb.so
        A 2000 0
        P 3000 0
        S 4000 libplug.so
        O 5000 /lib/libplug.so
        A 5100 0

        """

    @Test func librariesOfTheStartHaveTheTimeFromSearchToMapping() throws {
        let audit = try #require(LoaderAudit(lines: Array(lines.utf8), pid: 4711, agentStarted: 2500))
        #expect(
            audit.objects == [
                .init(path: "/lib/liba.so", duration: Nanoseconds(200)), .init(path: "/lib/libb.so", duration: Nanoseconds(90)),
            ])
        #expect(audit.mapped == 1600)
        #expect(audit.relocated == 2000)
    }

    @Test func theImageThatWasTracedIsTheLastBeforeTheAgentStarted() throws {
        let both = lines + lines.replacingOccurrences(of: " 1", with: " 8").replacingOccurrences(of: " 2000", with: " 8900")
        #expect(LoaderAudit(lines: Array(both.utf8), pid: 4711, agentStarted: 8950)?.mapped == 8600)
        #expect(LoaderAudit(lines: Array(both.utf8), pid: 4711, agentStarted: 2500)?.mapped == 1600)
        #expect(LoaderAudit(lines: Array(both.utf8), pid: 4712, agentStarted: 8950) == nil)
    }

    @Test func whatIsCutOrDamagedIsNotBelieved() {
        for end in 0..<lines.utf8.count {
            let audit = LoaderAudit(lines: Array(lines.utf8.prefix(end)), pid: 4711, agentStarted: 2500)
            #expect(audit == nil || audit?.relocated == 2000)
        }
        #expect(LoaderAudit(lines: Array("V x 4711\n".utf8), pid: 4711, agentStarted: 2500) == nil)
    }
}
