import CTraceLayout
import Foundation
import Testing
import TraceFormat
import TraceTesting
@testable import TraceAnalysis

@Suite struct ReportTests {
    @Test func percentilesHaveTwoSignificantDigits() throws {
        let loaded = try Loaded(demo { builder, thread in
            var clock = start
            for index in 1 ... 10_000 as ClosedRange<UInt64> {
                let duration = index * 7919 % 10_000 + 1 // each of 1 ... 10,000 once
                builder.complete(thread, 1, from: clock, to: clock + duration)
                clock += duration
            }
        }.bytes(), workers: 1)
        let main = try #require(loaded["main"])
        let median = try #require(main.median), p99 = try #require(main.percentile99)
        #expect(abs(Double(median.count) - 5000) <= 50)
        #expect(abs(Double(p99.count) - 9900) <= 99)
    }

    @Test func percentilesOfOneCallAreItsLength() throws {
        let loaded = try Loaded(demo { builder, thread in builder.complete(thread, 1, from: start, to: start + 77_777) }.bytes())
        #expect(loaded["main"]?.median?.count == 77_777)
        #expect(loaded["main"]?.percentile99?.count == 77_777)
    }

    @Test func bucketsHoldEveryLengthWithinAHundredth() {
        var counts = DurationCounts()
        for shift in 0 ..< 62 as Range<UInt64> {
            for value in [1 << shift, (1 << shift) + 1, (1 << shift) * 3 / 2] as [UInt64] {
                let row = counts.addRow()
                counts.record(value, row: row)
                var seen: [UInt64] = []
                counts.forEach(row: row) { low, _ in seen.append(low) }
                #expect(seen.count == 1)
                #expect(seen[0] <= value && Double(value - seen[0]) <= Double(value) / 128)
            }
        }
        let row = counts.addRow()
        counts.record(.max, row: row)
        #expect(counts.percentiles([50], row: row, minimum: 0, maximum: .max) != nil)
    }

    @Test func theJSONObjectHasItsPromisedMembers() throws {
        var builder = program(seed: 2, events: 300)
        builder.header.dropped = 3
        let loaded = try Loaded(builder.bytes())
        let text = loaded.summary.json(loaded.trace).text()
        let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        #expect(Set(object.keys) == ["schema", "program", "pid", "duration_ns", "events", "dropped", "filtered", "threads", "functions"])
        #expect(object["schema"] as? Int == 1)
        #expect(object["program"] as? String == "/usr/bin/demo")
        #expect(object["pid"] as? Int == 4711)
        #expect(object["dropped"] as? Int == 3)
        #expect(object["duration_ns"] as? Int == Int(loaded.summary.duration.count))
        let threads = try #require(object["threads"] as? [[String: Any]])
        #expect(threads.map { Set($0.keys) } == [["tid", "name", "calls"]])
        #expect(threads[0]["calls"] as? Int == Int(loaded.summary.calls))
        let functions = try #require(object["functions"] as? [[String: Any]])
        for function in functions {
            #expect(Set(function.keys) == ["name", "symbol", "module", "calls", "total_ns", "self_ns", "min_ns", "max_ns", "p50_ns", "p99_ns"])
            #expect(function["calls"] is Int)
        }
        #expect(functions.compactMap { $0["calls"] as? Int }.reduce(0, +) == Int(loaded.summary.calls))
        let tail = try #require(functions.first { $0["name"] as? String == "setjmp" })
        #expect(tail["min_ns"] is NSNull)
    }

    @Test func textOfJSONIsQuoted() throws {
        let text = JSON.object([("a\"\\\n\u{1}é", .array([.signed(-5), .null, .bool(true), .unsigned(.max), .string("")]))]).text()
        let object = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: [Any]])
        #expect(object.keys.first == "a\"\\\n\u{1}é")
        #expect(object.values.first?.count == 5)
    }

    @Test func theTableSaysWhatItCutsAndSortsAsAsked() throws {
        let loaded = try Loaded(demo { builder, thread in
            builder.complete(thread, 1, from: start, to: start + 500)
            builder.complete(thread, 2, from: start + 600, to: start + 610)
            builder.complete(thread, 2, from: start + 700, to: start + 710)
            builder.complete(thread, 5, from: start + 800, to: start + 800)
        }.bytes())
        let plain = TextStyle(isColoured: false)
        let lines = loaded.summary.table(loaded.trace, by: .calls, top: 1, style: plain).split(separator: "\n").map(String.init)
        #expect(lines[0] == "demo (pid 4711), 800 ns, 1 thread, 4 calls, 0 dropped")
        #expect(lines[1] == "calls  total   self  average  minimum  maximum  function  module")
        #expect(lines[2] == "    2  20 ns  20 ns    10 ns    10 ns    10 ns  a         libdemo.so.1")
        #expect(lines[3] == "… 2 more: --top 0")
        #expect(loaded.summary.functions(by: .selfTime).map { $0.name } == ["main", "a", "setjmp"])
        #expect(loaded.summary.functions(by: .name).map { $0.name } == ["a", "main", "setjmp"])
        #expect(loaded.summary.functions(by: .minimum).last?.name == "setjmp")
    }

    @Test func theHeadlineSaysWhatIsMissing() throws {
        var builder = demo { builder, thread in
            builder.complete(thread, 1, from: start, to: start + 1)
            builder.counters(thread, byTime: 1200, byDepth: 34)
            builder.split(thread)
            builder.complete(thread, 1, from: start + 2, to: start + 3)
            builder.split(thread, isWritten: false)
            builder.complete(thread, 1, from: start + 4, to: start + 5)
        }
        builder.header.mode = UInt32(TRACE_MODE_RING)
        builder.header.state = UInt32(TRACE_STOPPED)
        builder.header.stop_reason = UInt32(TRACE_STOP_LIMIT)
        let loaded = try Loaded(builder.bytes())
        #expect(loaded.summary.headline(loaded.trace) == "demo (pid 4711), 5 ns, 1 thread, 2 calls, 1,234 filtered, 0 dropped, "
            + "1 chunk overwritten, stopped: the size limit was reached (TRACER_MAXSIZE)")
    }

    @Test func aChunkThatARingHasReusedSinceIsLeftOut() throws {
        var builder = demo { builder, thread in
            builder.complete(thread, 1, from: start, to: start + 1)
            builder.split(thread)
            builder.complete(thread, 2, from: start + 2, to: start + 3)
        }
        builder.header.mode = UInt32(TRACE_MODE_RING)
        builder.header.state = UInt32(TRACE_RECORDING)
        var bytes = builder.bytes()
        let file = TemporaryFile(bytes)
        let trace = try TraceFile(path: file.path)
        bytes[2 * 4096 + 24] = 9 // the sequence of the first event chunk
        let handle = try FileHandle(forWritingTo: URL(fileURLWithPath: file.path)) // the same file, not a new one
        try handle.write(contentsOf: Data(bytes))
        try handle.close()
        let summary = Summary(trace, workers: 1)
        #expect(summary.overwritten == 1)
        #expect(summary.functions.map { $0.name } == ["a"])
    }

    @Test(arguments: [
        (0, "0 ns"), (999, "999 ns"), (1000, "1.000 us"), (1_234_567, "1.234 ms"), (2_005_000_000, "2.005 s"),
        (7_200_000_000_000, "7200.000 s"),
    ] as [(UInt64, String)])
    func unitsFit(time: UInt64, text: String) { #expect(readable(Nanoseconds(time)) == text) }

    @Test func infoTellsTheProgramAndItsModules() throws {
        var builder = program(seed: 2, events: 30)
        builder.text(TRACE_TEXT_ARGUMENTS, bytes: Array("./demo\0two words\0\0".utf8))
        builder.text(TRACE_TEXT_SETTINGS, bytes: Array("TRACER_MINMS=0.5\0".utf8))
        builder.text(TRACE_TEXT_MESSAGE, "one line")
        builder.header.state = UInt32(TRACE_STOPPED)
        builder.header.stop_reason = UInt32(TRACE_STOP_SPACE)
        let loaded = try Loaded(builder.bytes())
        let trace = loaded.trace
        #expect(trace.arguments == ["./demo", "two words", ""])
        #expect(trace.commandLine == "./demo 'two words' ''")
        #expect(trace.settings == ["TRACER_MINMS=0.5"])
        #expect(trace.messages == ["one line"])
        #expect(trace.stateText == "stopped: no space left on the device")
        #expect(trace.startedAt == "2023-11-14T22:13:20.123Z")
        #expect(trace.sortedModules.map { $0.name } == ["libdemo.so.1"])
        #expect(trace.sortedModules[0].buildID == [0xde, 0xad])
        let text = trace.infoJSON(loaded.summary).text()
        #expect(try JSONSerialization.jsonObject(with: Data(text.utf8)) is [String: Any])
    }

    @Test func aTraceWithoutAnEndSaysWhatMayHaveHappened() throws {
        var builder = program(seed: 2, events: 30)
        builder.header.state = UInt32(TRACE_RECORDING)
        #expect(try Loaded(builder.bytes()).trace.stateText == "recording, or ended without a word (killed, _exit, exec)")
    }

    @Test(arguments: [0, 9, 10, 999, 1000, 1001, 999_999, 1_000_000, 1_234_567, 999_999_999, 1_000_000_000, 12_345_678_901, .max] as [UInt64])
    func bytesOfALineAreThoseOfTheStrings(count: UInt64) {
        func text(_ body: (inout [UInt8]) -> Void) -> String {
            var bytes = Array("before ".utf8)
            body(&bytes)
            return String(decoding: bytes.dropFirst(7), as: UTF8.self)
        }
        #expect(text { $0.append(count) } == String(count))
        #expect(text { $0.append(column: Nanoseconds(count)) } == column(readable(Nanoseconds(count))))
        #expect(text { $0.append(seconds: Nanoseconds(count)) } == secondsText(Nanoseconds(count)))
        let aligned = text { $0.append(count); $0.align(from: 7, width: 15) }
        #expect(aligned == String(repeating: " ", count: max(15 - String(count).count, 0)) + String(count))
    }

    @Test(arguments: [
        ("_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<int, std::allocator<int> >::push_back(int const&)"),
        ("$s4main3fooyS2iF", "main.foo(Swift.Int) -> Swift.Int"),
        ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"),
        ("_ZN49_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$Drop$GT$4drop17h0123456789abcdefE", "<alloc::vec::Vec<T> as Drop>::drop"),
        ("_ZN4core3fmt9Formatter3pad17h0123456789abcdefE.llvm.1234567890", "core::fmt::Formatter::pad"),
        ("_RNvCskwGfYPst2Cb_3foo16example_function", "foo::example_function"),
        ("_RNvMs_Cs4Cv8Wi1oAIB_7mycrateNtB4_7Example3foo", "<mycrate::Example>::foo"),
        ("_RINvNtC3std3mem8align_ofdEB2_", "std::mem::align_of::<f64>"),
        ("_RNvC6_123foo3bar", "123foo::bar"), ("_Rbroken", "_Rbroken"), ("_R", "_R"),
        ("malloc", "malloc"), ("_Zbroken", "_Zbroken"), ("$s", "$s"), ("", ""),
    ])
    func namesAreDemangled(raw: String, readable: String) { #expect(demangled(raw) == readable) }
}
