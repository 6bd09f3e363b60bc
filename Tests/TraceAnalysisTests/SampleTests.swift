import CTraceLayout
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

/// Samples and the calls that are open at them become one stack.
@Suite struct SampleTests {
    /// Code without a file, so that the trace has its names: outer, f, g and main at 0x1000, 0x2000, 0x3000 and 0x4000, and the calls of
    /// the first three, which are functions 1 to 3; the agent lies at 0x9000_0000.
    private static let outer: UInt64 = 0x1010, f: UInt64 = 0x2010, g: UInt64 = 0x3010, main: UInt64 = 0x4010, agent: UInt64 = 0x9000_0010
    private static let call = UInt64(TRACE_SAMPLE_CALL), whole = TRACE_SAMPLE_WHOLE

    private func builder() -> (TraceBuilder, Int) {
        var builder = TraceBuilder()
        for (index, name) in ["outer", "f", "g", "main"].enumerated() {
            builder.codeName(UInt64(index + 1) * 0x1000, 0x100, name)
            if name != "main" { builder.function(UInt32(index + 1), name, module: .max, address: UInt64(index + 1) * 0x1000) }
        }
        builder.module(0, "/usr/lib/libtracer.so", bias: 0x9000_0000)
        builder.kernel(asked: TRACE_KERNEL_SAMPLES, until: 10_000_000, period: 1_000_000)
        let thread = builder.thread()
        return (builder, thread)
    }

    /// The path of one sample, while these functions' calls are open, outermost first.
    /// - Parameters:
    ///   - short: the innermost call lasts some 20 ns, which the clocks may differ by
    ///   - apart: nanoseconds between the ends of two calls
    ///   - change: adds other records
    private func path(
        _ open: [UInt32], _ stack: [UInt64], _ flags: Int = whole, short: Bool = false, apart: UInt64 = 1,
        _ change: (inout TraceBuilder) -> Void = { _ in }
    ) throws -> String {
        var (builder, thread) = builder()
        change(&builder)
        for (index, function) in open.enumerated() {
            builder.enter(thread, function, at: short && index + 1 == open.count ? 1_000_490 : 1_000_100 + UInt64(index))
        }
        for (index, function) in open.reversed().enumerated() {
            builder.exit(thread, function, at: short && index == 0 ? 1_000_510 : 1_000_900 + UInt64(index) * apart)
        }
        builder.samples([(1_000_500, 4711, flags, stack)])
        let report = SampleReport([try Loaded(builder.bytes()).trace])
        #expect(report.samples == 1 && report.damagedRecords == 0)
        return report.tree.path(to: report.tree.nodes.count - 1).map { $0.name }.joined(separator: " ")
    }

    @Test func aCallIsTheFrameInFrontOfItsMark() throws {
        #expect(try path([2], [Self.f, Self.call, Self.main]) == "main f")
        #expect(try path([1, 2], [Self.g, Self.f, Self.call, Self.outer, Self.call, Self.main]) == "main outer f g")
        #expect(try path([2, 2], [Self.f, Self.f, Self.call, Self.f, Self.call, Self.main]) == "main f f f")
        #expect(try path([], [Self.g, Self.main]) == "main g")
    }

    @Test func aCallThatWentOnByAJumpHasNoFrameAndIsThere() throws {
        #expect(try path([1, 2], [Self.g, Self.call, Self.outer, Self.call, Self.main]) == "main outer f g")
    }

    @Test func callsThatWentOnToEachOtherByJumpsShareAMark() throws {
        #expect(try path([1, 2, 3], [Self.g, Self.call, Self.outer, Self.call, Self.main]) == "main outer f g")
        let stack = [Self.g, Self.call, Self.outer, Self.call]
        #expect(try path([1, 2, 3, 1, 2, 3], stack + stack + [Self.main]) == "main outer f g outer f g")
        // From the last of them by a jump to code that records nothing.
        #expect(try path([1, 2, 3], [Self.main, Self.call, Self.outer, Self.call, Self.main]) == "main outer f g main")
        #expect(try path([1, 2, 3], [Self.g, Self.call, Self.outer, Self.call], 0) == "… outer f g")
    }

    @Test func beyondACutStackAreTheCallsThatWereOpen() throws {
        #expect(try path([1, 2], [Self.f, Self.call, Self.main], 0) == "outer … main f")
        #expect(try path([1, 2], [Self.g], 0) == "outer f … g")
        #expect(try path([1, 2], [Self.f], 0) == "outer … f") // -finstrument-functions: a call without a mark
        #expect(try path([], [Self.g], 0) == "… g")
        #expect(try path([1, 2], [Self.f, Self.call, Self.main, UInt64(TRACE_SAMPLE_UNKNOWN)], Self.whole) == "outer … main f")
        #expect(try path([1], [], TRACE_SAMPLE_KERNEL) == "outer … (kernel)")
    }

    @Test func theTrampolineMayBeAheadOfTheTraceOrBehindIt() throws {
        // The mark is there before the call has begun in the trace; it is gone before the call has ended.
        #expect(try path([1], [Self.agent, Self.call, Self.outer, Self.call, Self.main]) == "main outer (recording)")
        #expect(try path([1, 2], [Self.agent, Self.outer, Self.call, Self.main]) == "main outer (recording)")
        #expect(try path([], [Self.agent, Self.call, Self.main]) == "main (recording)")
        // The clocks may be ahead or behind, too: a short call that the sample lacks, and one that only the sample has.
        #expect(try path([1, 3], [Self.f, Self.outer, Self.call, Self.main]) == "main outer f")
        #expect(try path([1], [Self.f, Self.call, Self.outer, Self.call, Self.main]) == "main outer f")
        #expect(
            try path([1, 2], [Self.agent, Self.agent + 8, Self.f, Self.call, Self.outer, Self.call, Self.main])
                == "main outer f (recording)")
    }

    /// The agent calls main through a label, and has no call of it.
    @Test func whatMainDoesIsNotTheCallerOfMain() throws {
        let stack = [Self.f, Self.main, Self.call, Self.outer]
        for short in [true, false] {
            #expect(try path([3], [Self.agent] + stack, short: short) == "outer main f (recording)")
            #expect(try path([3], [Self.agent, Self.call] + stack, short: short) == "outer main f (recording)")
            #expect(try path([3], [Self.g, Self.call] + stack, short: short) == "outer main f g")
        }
        // The clocks say that the call is open, and the stack that it is not.
        #expect(try path([3], stack, short: true) == "outer main f")
        #expect(
            try path([2, 3], [Self.agent, Self.f, Self.call, Self.main, Self.call, Self.outer], short: true) == "outer main f (recording)")
        // main has no name here, but the trace says when it was called, or what the loader ran.
        let nameless = [Self.agent, Self.f, Self.g, Self.call, Self.outer]
        #expect(
            try path([1], nameless) { builder in
                builder.phase(TRACE_PHASE_MAIN, TraceBuilder.usage(at: 1_000_050))
            } == "outer g f (recording)")
        #expect(
            try path([1], Array(nameless.dropFirst())) { builder in
                builder.initializer(0, address: 0x3000, from: TraceBuilder.usage(at: 1_000_050))
            } == "outer g f")
    }

    @Test func aShortCallIsInTheStackOnlyIfItsFunctionIs() throws {
        #expect(try path([2], [Self.g, Self.call, Self.outer, Self.call, Self.main], short: true) == "main outer g")
        #expect(try path([2], [Self.f, Self.call, Self.main], short: true) == "main f")
        #expect(try path([1, 2], [Self.g], 0, short: true) == "outer … g")
    }

    @Test func aCallThatEndsLaterHasNotGoneOnByAJump() throws {
        let stack = [Self.g, Self.call, Self.outer, Self.call, Self.main]
        #expect(try path([1, 2, 3], stack) == "main outer f g")
        // The call of f is on another stack: a coroutine's.
        #expect(try path([1, 2, 3], stack, apart: 10_000) == "main outer g")
        #expect(try path([2, 3], [Self.g, Self.call, Self.main], apart: 10_000) == "main g")
    }

    @Test func theKernelIsBelowTheFunctionThatWasInterrupted() throws {
        let kernel: [UInt64] = [0xffff_ffff_8100_0010, 0xffff_ffff_8100_1100]
        let stack = [Self.f, Self.call, Self.main], flags = Self.whole | TRACE_SAMPLE_KERNEL
        func named(_ builder: inout TraceBuilder) {
            builder.codeName(0xffff_ffff_8100_0000, 0x100, "vfs_read", type: TRACE_RECORD_KERNEL_NAME)
            // The address is where the call returns to, behind the function's end.
            builder.codeName(0xffff_ffff_8100_1000, 0x100, "ksys_read", type: TRACE_RECORD_KERNEL_NAME)
        }
        #expect(try path([2], kernel + stack, flags, named) == "main f (kernel) ksys_read vfs_read")
        #expect(try path([2], [0xffff_ffff_8200_0000] + stack, flags, named) == "main f (kernel) [unknown]")
        #expect(try path([2], kernel + stack, flags) == "main f (kernel)") // the system did not tell the names
        #expect(try path([2], stack, flags) == "main f (kernel)")
        #expect(try path([2], kernel, TRACE_SAMPLE_KERNEL, named) == "f … (kernel) ksys_read vfs_read")
        #expect(try path([], [kernel[0], Self.agent, Self.main], flags, named) == "main (recording) (kernel) vfs_read")
    }

    @Test func samplesAddUpByThread() throws {
        var (builder, thread) = builder()
        builder.complete(thread, 1, from: 1_000_100, to: 1_000_200)
        builder.enter(thread, 1, at: 1_001_000)
        builder.enter(thread, 2, at: 1_002_000)
        builder.samples([
            (1_000_150, 4711, 0, [Self.outer]), (1_000_250, 4711, 0, [Self.main]), (1_002_500, 4711, 0, [Self.g]),
            (1_002_600, 4711, 0, [Self.g]), (1_002_700, 99, Self.whole, [Self.g, Self.main]),
        ])
        builder.samples([(1_002_550, 4711, 0, [Self.main])])
        for workers in [1, 3] {
            let report = SampleReport([try Loaded(builder.bytes()).trace], workers: workers)
            #expect(report.samples == 6 && report.cut == 5 && report.period?.count == 1_000_000)
            #expect(report.threads.map { $0.tid } == [4711, 99] && report.threads.map { $0.samples } == [5, 1])
            // The names of code and those of the calls are of different modules here.
            let shares = Dictionary(report.functions.map { ($0.function.name, ($0.own, $0.total)) }) { ($0.0 + $1.0, $0.1 + $1.1) }
            #expect(shares["g"]! == (3, 3) && shares["main"]! == (2, 3) && shares["outer"]! == (1, 4) && shares["f"]! == (0, 3))
            var folded = ""
            try report.writeFolded { folded += String(decoding: $0, as: UTF8.self) }
            #expect(folded.contains("demo 4711;demo 4711;?`outer;?`f;?`…;[made at run time]`g 2\n"))
        }
    }

    /// Also of a thread that made no recorded call.
    @Test func ofChosenThreadsThereAreTheirSamplesAlone() throws {
        var (builder, thread) = builder()
        builder.complete(thread, 1, from: 1_000_100, to: 1_000_200)
        builder.samples([
            (1_000_150, 4711, 0, [Self.outer]), (1_000_250, 4711, Self.whole, [Self.main]),
            (1_002_700, 99, Self.whole, [Self.g, Self.main]),
        ])
        let trace = try Loaded(builder.bytes()).trace
        for (thread, samples, cut) in [("main", 2, 1), ("de*", 2, 1), ("99", 1, 0)] as [(String, UInt64, UInt64)] {
            let report = SampleReport([trace.only(ThreadPattern(thread))])
            #expect(report.samples == samples && report.cut == cut && report.threads.count == 1, "\(thread)")
        }
        let none = trace.only(ThreadPattern("nobody"))
        #expect(SampleReport([none]).samples == 0)
        #expect(none.sampledThreads.map { $0.tid } == [99, 4711] && none.sampledThreads.map { $0.name } == ["", "demo"])
    }

    @Test func aTraceWithoutSamplesHasNone() throws {
        let report = SampleReport([
            try Loaded(demo { builder, thread in builder.complete(thread, 1, from: 1_000_000, to: 1_000_010) }.bytes()).trace
        ])
        #expect(report.samples == 0 && report.functions.isEmpty && report.tree.roots.isEmpty)
    }

    @Test func namesBeyondTheirRecordsAreDamage() throws {
        var (builder, _) = builder()
        var name = trace_code_name_record()
        name.name_bytes = .max
        builder.record(TRACE_RECORD_CODE_NAME, name, [])
        #expect(SampleReport([try Loaded(builder.bytes()).trace]).damagedRecords == 1)
    }
}
