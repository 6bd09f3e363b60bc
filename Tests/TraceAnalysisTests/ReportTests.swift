import CTraceLayout
import Foundation
import Presentation
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

@Suite struct ReportTests {
    @Test func percentilesAreAtMostABucketAboveTheExactOnes() throws {
        let loaded = try Loaded(
            demo { builder, thread in
                var clock = start
                for index in 1...10_000 as ClosedRange<UInt64> {
                    let duration = index * 7919 % 10_000 + 1 // each of 1 ... 10,000 once
                    builder.complete(thread, 1, from: clock, to: clock + duration)
                    clock += duration
                }
            }.bytes(), workers: 1)
        let main = try #require(loaded["main"])
        let median = try #require(main.median).time, p99 = try #require(main.percentile99).time
        #expect((5000...5000 * 1008 / 1000).contains(Int(median.count)))
        #expect((9900...9900 * 1008 / 1000).contains(Int(p99.count)))
    }

    /// Percentiles are compared with exact order statistics: of few calls and many, of one magnitude or of all.
    @Test(arguments: 1..<UInt64(30)) func aPercentileIsNoFartherFromTheExactOneThanItSays(seed: UInt64) throws {
        var random = Xorshift(seed: seed &* 7919)
        let count = seed % 4 == 0 ? random.below(5000) + 100 : random.below(120) + 1, magnitude = UInt64(random.below(40) + 1)
        let lengths = (0..<count).map { _ in random.next() >> (63 - (seed % 3 == 0 ? random.next() % magnitude : magnitude)) }
        let loaded = try Loaded(
            demo { builder, thread in
                var clock = start
                for length in lengths {
                    builder.complete(thread, 1, from: clock, to: clock + length)
                    clock += length
                }
            }.bytes(), workers: 1)
        let sorted = lengths.sorted(), row = try #require(loaded["main"])
        for (percent, found) in [(50, row.median), (99, row.percentile99)] {
            let rank = max((percent * count + 99) / 100, 1), exact = sorted[rank - 1], found = try #require(found)
            #expect(found.time.count >= exact && found.time.count - exact <= found.error.count, "\(percent): \(exact), \(found)")
            #expect(Double(found.error.count) <= Double(exact) / 128, "at most 0.8% above: \(exact), \(found)")
            #expect(rank > 1 && rank < count || found.error.count == 0, "the first and the last are known")
            #expect(exact >= 256 || found.error.count == 0)
            #expect(found.text.hasPrefix("~") == (found.error.count > 0))
        }
    }

    @Test func sharesAreOfAllSelfTimesWhateverARowStandsFor() throws {
        let trace = try Loaded(program(seed: 4, events: 900).bytes()).trace, tree = CallTree(trace, workers: 1)
        for grouping in [ReportGrouping.function, .module, .caller, .thread] {
            var run = RunSummary([trace], path: trace.path, names: grouping == .function)
            if grouping != .function { run.summary.replaceRows(tree.rows(by: grouping)) }
            let object = try jsonObject(ReportOutput(run, nil).json.text())
            let shares = try #require(object["functions"] as? [[String: Any]]).reduce(0) { $0 + ($1["share"] as? Double ?? 0) }
            let own = run.summary.ownCodes.reduce(0) { $0 + Double($1.selfTime) } / Double(run.summary.selfTime.count)
            #expect(abs(shares + own - 1) < 0.001, "\(grouping)")
        }
    }

    @Test func percentilesOfOneCallAreItsLength() throws {
        let loaded = try Loaded(demo { builder, thread in builder.complete(thread, 1, from: start, to: start + 77_777) }.bytes())
        let row = try #require(loaded["main"])
        for percentile in [row.median, row.percentile99] {
            #expect(percentile?.time.count == 77_777 && percentile?.error.count == 0 && percentile?.text == "77.777 us")
        }
    }

    @Test func bucketsHoldEveryLengthWithinAHundredth() {
        var counts = DurationCounts()
        for shift in 0..<62 as Range<UInt64> {
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
        let object = try jsonObject(ReportOutput(loaded.run, nil).json.text())
        #expect(
            Set(object.keys) == [
                "schema", "program", "pid", "duration_ns", "window", "events", "dropped", "filtered", "in_calls_ns", "threads", "modules",
                "agent_waits", "agent_wait_ns", "longest_agent_wait_ns", "functions", "calls", "only_counted", "processes", "unrecorded",
                "time", "states", "exclusion", "where",
            ])
        #expect(object["program"] as? String == "/usr/bin/demo")
        #expect(
            ["schema", "pid", "dropped", "duration_ns"].map { object[$0] as? Int } == [1, 4711, 3, Int(loaded.summary.duration.count)])
        #expect(object["window"] is NSNull)
        let threads = try #require(object["threads"] as? [[String: Any]])
        #expect(threads.map { Set($0.keys) } == [["pid", "tid", "name", "calls", "span_ns", "own_ns"]])
        #expect(threads[0]["calls"] as? Int == Int(loaded.summary.calls))
        let functions = try #require(object["functions"] as? [[String: Any]])
        let modules = try #require(object["modules"] as? [[String: Any]])
        let whole = (functions + modules).reduce(0) { $0 + ($1["self_ns"] as? Double ?? $1["own_ns"] as? Double ?? 0) }
        for function in functions {
            #expect(
                Set(function.keys) == [
                    "name", "symbol", "module", "calls", "total_ns", "self_ns", "share", "min_ns", "max_ns", "p50_ns", "p99_ns",
                    "p50_error_ns", "p99_error_ns", "recording_ns",
                ])
            #expect(function["calls"] is Int)
            let share = try #require(function["share"] as? Double), own = try #require(function["self_ns"] as? Double)
            #expect(abs(share * whole - own) < 1)
        }
        #expect(functions.compactMap { $0["calls"] as? Int }.reduce(0, +) == Int(loaded.summary.calls))
        let tail = try #require(functions.first { $0["name"] as? String == "setjmp" })
        #expect(tail["min_ns"] is NSNull)
    }

    @Test func textOfJSONIsQuoted() throws {
        let text = JSON.object([("a\"\\\n\u{1}é", .array([.signed(-5), .null, .bool(true), .unsigned(.max), .string("")]))]).text()
        let object = try jsonObject(text)
        #expect(object.mapValues { ($0 as? [Any])?.count } == ["a\"\\\n\u{1}é": 5])
    }

    @Test func theTableSaysWhatItCutsAndSortsAsAsked() throws {
        let loaded = try Loaded([.call(1, 0, 500), .call(2, 600, 610), .call(2, 700, 710), .call(5, 800, 800)])
        let lines = loaded.run.table(by: .calls, top: 1, style: plain).split(separator: "\n").map(String.init)
        #expect(lines[0] == "demo (pid 4711), 800 ns, in calls 520 ns of 800 ns, 1 thread, 4 calls, 0 dropped")
        #expect(lines[1] == "calls  total   self  share  average  minimum    p50    p99  maximum  function  module")
        #expect(lines[2] == "    2  20 ns  20 ns   2.5%    10 ns    10 ns  10 ns  10 ns    10 ns  a         libdemo.so.1")
        #expect(lines[3] == "… 3 more: --top 0")
        #expect(loaded.summary.functions(by: .selfTime).map { $0.name } == ["main", "a", "setjmp"])
        #expect(loaded.summary.functions(by: .name).map { $0.name } == ["a", "main", "setjmp"])
        #expect(loaded.summary.functions(by: .minimum).last?.name == "setjmp")
    }

    @Test func aWideTableHasPercentilesAndMarksWhatTheAverageHides() throws {
        let short = (0..<99).map { Step.call(2, $0 * 100, $0 * 100 + 60) }
        let others = (700..<800).map { Step.call(3, $0 * 100, $0 * 100 + 60) }
        let loaded = try Loaded(short + [.call(2, 10_000, 60_000)] + others)
        let wide = loaded.run.table(by: .median, top: 0, width: 120, style: plain)
        #expect(wide.contains("p50") && wide.contains("p99"))
        #expect(wide.contains("* 559 ns"))
        #expect(wide.contains("* far from the median (p50): calls of very different lengths"))
        #expect(wide.split(separator: "\n").filter { $0.contains("* ") }.count == 2)
        let narrow = loaded.run.table(by: .selfTime, top: 0, width: 50, style: plain)
        #expect(!narrow.contains("* ") && narrow.contains("not shown for lack of columns: minimum, maximum"), "\(narrow)")
        #expect(loaded.summary.functions(by: .percentile99).first?.name == "a")
    }

    @Test func aFunctionHasTheShapeOfItsTimesAndItsSlowestCalls() throws {
        let loaded = try Loaded(program(seed: 6, events: 1500, wordsPerChunk: 50).bytes())
        let report = try #require(FunctionReport(loaded.trace, FunctionPattern("b"), slowest: 3, workers: 2))
        let row = try #require(loaded["b"])
        #expect(report.sums.calls == row.calls && report.sums.total == row.total && report.sums.selfTime == row.selfTime)
        #expect(report.sums.median == row.median && report.sums.percentile99 == row.percentile99)
        #expect(report.histogram.reduce(0) { $0 + $1.calls } == row.timedCalls)
        for (bar, next) in zip(report.histogram, report.histogram.dropFirst()) { #expect(bar.range.upperBound == next.range.lowerBound) }
        #expect(try report.histogram[0].range.contains(#require(row.minimum).count))
        #expect(try #require(report.histogram.last).range.contains(#require(row.maximum).count))
        #expect(report.slowest.count == 3)
        let both = try #require(FunctionReport(loaded.trace, FunctionPattern("[bc]")))
        #expect(both.functions.map(\.name) == ["b", "c"])
        #expect(both.sums.calls == row.calls + loaded["c"]!.calls)
        #expect(FunctionReport(loaded.trace, FunctionPattern("nobody")) == nil)
    }

    @Test func aProgramGoesByTheLinkThatItWasCalledBy() throws {
        let directory = try TemporaryDirectory(["dash": []]), target = directory.path + "/dash"
        try FileManager.default.createSymbolicLink(atPath: directory.path + "/sh", withDestinationPath: "dash")
        func name(_ word: String) throws -> String {
            var builder = TraceBuilder(program: target)
            builder.text(TRACE_TEXT_ARGUMENTS, word + "\0-c\0true\0")
            builder.text(TRACE_TEXT_DIRECTORY, directory.path)
            _ = builder.thread()
            let loaded = try Loaded(builder.bytes())
            #expect(loaded.run.headline.hasPrefix(loaded.trace.programName + " (pid"))
            return loaded.trace.programName
        }
        #expect(try name(directory.path + "/sh") == "sh")
        #expect(try name("./sh") == "sh" && name("sh") == "sh" && name("-sh") == "sh")
        #expect(try name("anything it likes") == "dash" && name("dash") == "dash" && name("") == "dash")
    }

    @Test(arguments: [
        ("/usr/bin/python3.12", ["python3", "app.py", "two words"], "perf record -g python3 -X perf app.py 'two words'"),
        ("/usr/bin/python3.11", ["/usr/bin/python3", "app.py"], "/usr/bin/python3 -m cProfile -s cumulative app.py"),
        // cProfile takes a script: what it would do with other arguments is not what was run.
        ("/usr/bin/python3.9", ["python3", "-c", "pass"], "python3 -m cProfile -s cumulative …"),
        ("/usr/bin/node", ["node", "--trace-gc", "app.js"], "perf record -g node --perf-basic-prof --trace-gc app.js"),
        ("/usr/bin/ruby3.1", ["ruby"], "perf record -g ruby --yjit --yjit-perf …"),
        (
            "/opt/jdk/bin/java", ["java", "-jar", "a.jar"],
            "java -XX:StartFlightRecording=filename=app.jfr -jar a.jar, then jfr print app.jfr"
        ),
    ])
    func aTraceOfAnInterpreterSaysWhatShowsItsFunctions(program: String, arguments: [String], command: String) throws {
        var builder = TraceBuilder(program: program)
        builder.text(TRACE_TEXT_ARGUMENTS, arguments.map { $0 + "\0" }.joined())
        let hint = try #require(try Loaded(builder.bytes()).trace.interpreterHint)
        #expect(hint.hasPrefix(basename(program) + ": these are calls between its libraries, not functions written in "))
        #expect(hint.hasSuffix(": " + command))
    }

    @Test(arguments: ["/usr/bin/pythonic", "/usr/bin/nodejs-helper", "/usr/bin/javac", "/usr/bin/git", "/usr/bin/", ""])
    func otherProgramsAreNoInterpreters(program: String) throws {
        #expect(try Loaded(TraceBuilder(program: program).bytes()).trace.interpreterHint == nil)
    }

    @Test func aCallOfDlopenNamesTheFileThatItBrought() throws {
        var builder = demo([.call(20, 10, 50), .call(20, 60, 70), .call(20, 80, 90), .call(2, 100, 200)])
        builder.function(20, "dlopen", module: 0)
        builder.load(1, "libplug4.so", begin: start + 12, opened: start + 13, mapped: TraceBuilder.usage(at: start + 20))
        builder.load(2, "libplug5.so", begin: start + 81, opened: start + 82, mapped: TraceBuilder.usage(at: start + 85))
        builder.load(3, "libelse.so", thread: 7, begin: start + 61, opened: start + 62, mapped: TraceBuilder.usage(at: start + 65))
        let loaded = try Loaded(builder.bytes())
        let report = try #require(FunctionReport(loaded.trace, FunctionPattern("*")))
        #expect(report.slowest.map(\.file) == [nil, "libplug4.so", nil, "libplug5.so"])
        let known = LoadedFiles(loaded.trace)
        #expect(known.file("dlopen", thread: 0, from: start + 10, to: start + 50) == "libplug4.so")
        #expect(known.file("dlopen", thread: 0, from: start + 60, to: start + 70) == nil)
        #expect(known.file("dlopen", thread: 0, from: start + 80, to: start + 90) == "libplug5.so")
        #expect(known.file("open", thread: 0, from: start + 10, to: start + 50) == nil)
    }

    @Test func callsOfAnyLengthHaveARow() throws {
        let builder = demo { builder, thread in
            for n in 0..<20 as Range<UInt64> {
                builder.enter(thread, 2, at: start + n)
                builder.exit(thread, 2, at: .max / 2)
            }
        }
        #expect(try Loaded(builder.bytes()).run.table(by: .median, top: 0, width: 200, style: plain).contains("libdemo.so.1"))
    }

    /// The process went on for long after that; whether the call did nobody knows.
    @Test(arguments: [1, 3]) func callsThatWereOpenWhenRecordingStoppedCountUntilThen(workers: Int) throws {
        var builder = demo([.enter(1, 0), .call(2, 100, 400)])
        builder.header.state = UInt32(TRACE_STOPPED)
        builder.header.stop_reason = UInt32(TRACE_STOP_LIMIT)
        builder.header.stopped_ticks = start + 500
        let loaded = try Loaded(builder.bytes(end: start + 1_000_000), workers: workers)
        #expect(loaded.rows == ["a 1 300 300", "main 1 500 200"])
        #expect(TraceEnd(loaded.trace).ticks.raw == start + 500)
    }

    @Test func theHeadlineSaysWhatIsMissing() throws {
        var builder = demo(
            isRing: true,
            [.call(1, 0, 1), .counters(byTime: 1200, byDepth: 34), .split, .call(1, 2, 3), .lose, .call(1, 4, 5)])
        builder.header.state = UInt32(TRACE_STOPPED)
        builder.header.stop_reason = UInt32(TRACE_STOP_LIMIT)
        let loaded = try Loaded(builder.bytes())
        #expect(
            loaded.run.headline == "demo (pid 4711), 5 ns, in calls 2 ns of 2 ns, 1 thread, 2 calls, 1,234 filtered, 0 dropped, "
                + "1 chunk overwritten, stopped: the size limit was reached (TRACER_MAXSIZE)")
    }

    @Test func aChunkThatARingHasReusedSinceIsSkipped() throws {
        var builder = demo(isRing: true, [.call(1, 0, 1), .split, .call(2, 2, 3)])
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

    @Test func infoShowsTheProgramAndItsModules() throws {
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
        _ = try jsonObject(loaded.run.info.text())
    }

    @Test func theShapeOfTimesHasADecadeACharacter() {
        var shape = DurationShape()
        #expect(shape.text == "")
        for (time, count) in [(9, 1), (10, 700), (99, 70), (1_000, 55), (2_000_000_000, 385)] as [(UInt64, UInt64)] {
            shape.add(Nanoseconds(time), count)
        }
        #expect(shape.text == "▁█ ▁     ▄")
        #expect(shape.text.count == DurationShape.title.count)
    }

    @Test func aFrameOfTheParentCountsFromTheBirthOfAForkedProcess() throws {
        let builder = demo([.inherit(1, -50_000), .call(2, 100, 300), .exit(1, 1_000)])
        let loaded = try Loaded(builder.bytes())
        #expect(loaded.rows == ["a 1 200 200", "main 0 1000 800"])
        #expect(try #require(loaded["main"]).average == nil)
        #expect(try lines(tree(builder)) == ["= 1000", "main 0 1000 800", " a 1 200 200"])
    }

    /// The ring has only the last of the child's own chunks; `a` began in one that is gone, `main` before the child's birth. What they did
    /// until 500 is not known.
    @Test func aFrameOfTheParentCountsFromTheBirthOfAProcessWhoseRingCameRound() throws {
        let builder = demo(
            isRing: true, [.inherit(1, -50_000), .call(2, 100, 700, [.lose, .call(3, 500, 600)]), .exit(1, 1_000)])
        #expect(try Loaded(builder.bytes()).rows == ["a 1 600 100", "b 1 100 100", "main 0 1000 300"])
    }

    @Test func aTraceWithoutAnEndSaysWhatMayHaveHappened() throws {
        var builder = program(seed: 2, events: 30)
        builder.header.state = UInt32(TRACE_RECORDING)
        #expect(try Loaded(builder.bytes()).trace.stateText == "still recording, or ended abruptly (killed, exec)")
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
