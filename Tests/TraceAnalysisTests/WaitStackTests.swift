import CTraceLayout
import Presentation
import Testing
import TraceAnalysis
import TraceTesting

private let runs = TRACE_SWITCH_IN, waits = TRACE_SWITCH_WAITS
private let whole = TRACE_SAMPLE_WHOLE, call = UInt64(TRACE_SAMPLE_CALL)

/// The stacks in which threads were found waiting.
@Suite struct WaitStackTests {
    /// Code without a file, so that the trace has its names: pause, inner, outer and main at 0x1000, 0x2000, 0x3000 and 0x4000.
    private func report(
        _ stacks: [(ns: UInt64, tid: UInt32, flags: Int, addresses: [UInt64])], window: TimeWindow = .whole,
        _ change: (inout TraceBuilder) -> Void = { _ in }
    ) throws -> WaitReport {
        var builder = TraceBuilder()
        for (index, name) in ["pause", "inner", "outer", "main"].enumerated() {
            builder.codeName(UInt64(index + 1) * 0x1000, 0x100, name)
        }
        builder.module(0, "/usr/lib/libtracer.so", bias: 0x9000_0000)
        builder.function(14, "usleep")
        builder.steps(builder.thread("main"), [.call(14, 1000, 5000), .call(14, 6000, 9000)])
        builder.switches([
            (start + 1100, 4711, waits), (start + 2000, 4711, runs), (start + 2100, 4711, waits), (start + 4900, 4711, runs),
            (start + 6100, 4711, waits), (start + 8900, 4711, runs),
        ])
        builder.samples(stacks.map { (start + $0.ns, $0.tid, $0.flags, $0.addresses) }, type: TRACE_RECORD_WAIT_STACKS)
        change(&builder)
        builder.kernel(from: start, until: start + 20_000)
        return WaitReport([try Loaded(builder.bytes()).trace.narrowed(to: window)], workers: 1)
    }

    private func shown(_ report: WaitReport, deepest: Int = 0) -> [String] {
        report.lines(limit: 0, deepest: deepest, width: nil, names: .usual, style: TextStyle(isColoured: false))
            .filter { $0.hasPrefix("    stack: ") }.map { String($0.dropFirst(11)) }
    }

    @Test func aWaitHasTheStackThatItsThreadWasFoundIn() throws {
        // The first address is one to return to, as all are: it may be the first of the next function.
        let report = try report([
            (7000, 4711, whole, [0x1100, 0x2010, call, 0x3010, 0x4010]), (2500, 4711, 0, [0x1010, call, 0x2010]),
            (2500, 4712, whole, [0x4010]),
        ])
        #expect(
            shown(report) == [
                "pause ([made at run time]) ← inner ([made at run time]) ← …",
                "pause ([made at run time]) ← inner ([made at run time]) ← outer ([made at run time]) ← main ([made at run time])",
            ])
        let json = try #require(try jsonObject(WaitOutput(report, limit: 0).json.text())["waits"] as? [[String: Any]])
        let stacks = json.map { $0["stack"] as? [String: Any] }
        #expect(
            stacks.map { ($0?["frames"] as? [[String: Any]])?.compactMap { $0["name"] as? String } } == [
                ["pause", "inner"], ["pause", "inner", "outer", "main"],
            ])
        #expect(stacks.map { $0?["is_whole"] as? Bool } == [false, true])
        #expect(shown(report, deepest: 1) == ["pause ([made at run time]) ← … 1 more ← …", "pause ([made at run time]) ← … 3 more"])
    }

    @Test func aStackOfAnotherMomentBelongsToNoWait() throws {
        for ns in [900, 5500, 8900, 9500] as [UInt64] {
            #expect(try shown(report([(ns, 4711, whole, [0x1010])])).isEmpty, "\(ns)")
        }
    }

    @Test func aWindowThatCutsTheWaitLeavesItsStack() throws {
        let window = TimeWindow([start + 7000..<start + 7100])
        #expect(try shown(report([(6500, 4711, whole, [0x1010])], window: window)) == ["pause ([made at run time])"])
    }

    @Test func theAgentIsOneFrame() throws {
        let stack: [UInt64] = [0x1010, 0x9000_0010, 0x9000_0020, 0x4010]
        #expect(
            try shown(report([(7000, 4711, whole, stack)]))
                == ["pause ([made at run time]) ← (recording) (libtracer.so) ← main ([made at run time])"])
    }

    @Test func anUnknownAddressEndsTheStack() throws {
        #expect(try shown(report([(7000, 4711, whole, [0x1010, 0, 0x4010])])) == ["pause ([made at run time]) ← …"])
    }

    @Test func aDamagedRecordIsReported() throws {
        let report = try report([]) { builder in
            builder.samples([(start + 7000, 4711, whole, [0x1010])], count: 5, type: TRACE_RECORD_WAIT_STACKS)
        }
        #expect(shown(report) == ["pause ([made at run time])"])
        let lines = report.lines(limit: 0, width: nil, names: .usual, style: TextStyle(isColoured: false))
        #expect(lines.contains("1 damaged kernel record skipped"))
    }

    @Test func samplesAreNoStacksOfWaitsAndTheseNoSamples() throws {
        let trace = try report([(7000, 4711, whole, [0x1010])]) { $0.samples([(start + 7100, 4711, whole, [0x2010])]) }
        #expect(shown(trace) == ["pause ([made at run time])"])
    }
}
