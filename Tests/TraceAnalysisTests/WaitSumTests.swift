import CTraceLayout
import Foundation
import Presentation
import Testing
import TraceAnalysis
import TraceTesting

private let runs = TRACE_SWITCH_IN, waits = TRACE_SWITCH_WAITS, preempted = TRACE_SWITCH_PREEMPTED

@Suite struct WaitSumTests {
    @Test func percentilesAreLengthsThatTheShareDoesNotExceed() {
        var random = SystemRandomNumberGenerator()
        for count in Array(1...30) + [99, 100, 101, 1000] {
            let lengths = (0..<count).map { _ in UInt64.random(in: 1...500, using: &random) }
            let sums = WaitLengths(lengths.map { Nanoseconds($0) })
            for percentage in [1, 50, 90, 99, 100] {
                let value = sums.percentile(percentage).count
                let within = lengths.count { $0 <= value }, below = lengths.count { $0 < value }
                // At least so many are not longer, and with a shorter one fewer would be.
                #expect(lengths.contains(value) && within * 100 >= percentage * count && below * 100 < percentage * count)
            }
            #expect(sums.longest.count == lengths.max() && sums.duration.count == lengths.reduce(0, +) && sums.count == count)
        }
        #expect(WaitLengths([]).percentile(99).count == 0)
    }

    /// Reads of two descriptors and one usleep, called by main, and a read that parse calls.
    @Test func waitsAreSummedUpByKindAndByPlace() throws {
        let calls: [(function: UInt32, from: UInt64, to: UInt64, object: UInt64?)] = [
            (16, 1000, 1300, 3), (16, 2000, 2200, 4), (16, 3000, 3400, 3), (14, 4000, 4050, nil), (16, 5000, 5500, 3),
        ]
        var builder = TraceBuilder()
        builder.module(0, "/usr/lib/libdemo.so.1")
        for (id, name) in [(1, "main"), (2, "parse"), (14, "usleep"), (16, "read")] as [(UInt32, String)] { builder.function(id, name) }
        let steps = calls.map { Step.call($0.function, Int($0.from), Int($0.to), object: $0.object) }
        builder.steps(builder.thread("main"), [.call(1, 10, 9000, Array(steps.prefix(4)) + [.call(2, 4900, 5600, [steps[4]])])])
        for call in calls { builder.switches([(start + call.from, 4711, waits), (start + call.to, 4711, runs)]) }
        builder.switches([(start + 6000, 4711, preempted), (start + 6070, 4711, runs)])
        for number in [3, 4] as [Int32] { builder.opened(number, at: start + 20, "/etc/\(number)") }
        builder.kernel(from: start, until: start + 10_000)
        let report = WaitReport([try Loaded(builder.bytes()).trace], workers: 1)
        let places = report.places.map {
            "\($0.function ?? "-") \($0.caller ?? "-") \($0.lengths.count) \($0.lengths.duration.count) \($0.objects)"
        }
        #expect(places == ["read main 3 900 2", "read parse 1 500 1", "usleep main 1 50 0"])
        #expect(report.places.map(\.library) == ["libdemo.so.1", "libdemo.so.1", "libdemo.so.1"])
        let lines = report.lines(limit: 0, width: nil, names: .usual, style: plain)
        #expect(
            lines.prefix(2) == [
                "demo: 6 waits, 1.520 us",
                "context switches: 5 voluntary, 1 involuntary; ready without a CPU for 70 ns, which others had for 70 ns",
            ])
        func words(_ line: String) -> [String] { line.split(separator: " ").map(String.init) }
        #expect(lines.contains { words($0) == ["1.400", "us", "4", "300", "ns", "500", "ns", "500", "ns", "disk"] })
        #expect(
            lines.contains {
                words($0) == ["900", "ns", "3", "300", "ns", "400", "ns", "disk", "read(2", "objects)", "in", "main", "(libdemo.so.1)"]
            })
    }

    /// Two CPUs. Thread 4711 loses the first at 1,000 and has it again at 2,000; 4712 has that one from 1,100 to 1,500, 4713 runs on the other.
    @Test func whoRanInsteadHadTheCPUThatWasLost() throws {
        var builder = TraceBuilder()
        builder.module(0, "/usr/lib/libdemo.so.1")
        builder.function(1, "main")
        for (index, name) in ["main", "rival", "other"].enumerated() {
            builder.steps(builder.thread(tid: 4711 + UInt32(index), name), [.call(1, 10, 9000)])
        }
        builder.switches([
            (start + 1000, 4711, preempted), (start + 2000, 4711, runs), (start + 4000, 4711, waits), (start + 4500, 4711, runs),
        ])
        builder.switches([(start + 50, 4712, waits), (start + 1100, 4712, runs), (start + 1500, 4712, waits)])
        builder.switches([(start + 60, 4713, waits), (start + 900, 4713, runs), (start + 2100, 4713, waits)], cpu: 1)
        builder.kernel(from: start, until: start + 10_000)
        let trace = try Loaded(builder.bytes()).trace
        let switches = ContextSwitches([WaitSearch(trace, workers: 1)])
        #expect(
            switches.threads.map { [$0.voluntary, $0.involuntary, Int($0.ready.count), Int($0.others.count)] } == [
                [1, 1, 1000, 600], [2, 0, 0, 0], [2, 0, 0, 0],
            ])
        #expect(switches.threads[0].rivals.map { [$0.thread, Int($0.duration.count)] } == [[1, 400]])
        // A part of it.
        let part = ContextSwitches([WaitSearch(trace.narrowed(to: TimeWindow([start + 1200..<start + 1600])), workers: 1)])
        #expect(part.voluntary == 1 && part.involuntary == 0 && part.ready.count == 400 && part.others.count == 100)
    }

    @Test func withoutContextSwitchesThereIsNoFigureOfThem() throws {
        var builder = TraceBuilder()
        builder.module(0, "/usr/lib/libdemo.so.1")
        builder.function(14, "usleep")
        builder.steps(builder.thread("main"), [.call(14, 1000, 50_000)])
        let report = WaitReport([try Loaded(builder.bytes()).trace], workers: 1)
        let json = try jsonObject(WaitOutput(report, limit: 0).json.text())
        #expect(
            json["switches"] is NSNull
                && report.lines(limit: 0, width: nil, names: .usual, style: plain).allSatisfy {
                    !$0.contains("context switches:") || $0.hasPrefix("no ")
                })
    }
}
