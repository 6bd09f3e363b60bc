import CTraceLayout
import Foundation
import Testing
import TraceAnalysis
import TraceFormat
import TracePage
import TraceTesting

private func names(_ key: String) throws -> [String] { try PageText.names(key) }
private func data(_ html: String) throws -> [String: Any] { try PageText.data(html) }
nonisolated(unsafe) private let schema = PageText.schema

private func keys(_ object: Any?) throws -> Set<String> { Set(try #require(object as? [String: Any]).keys) }

private let begin: UInt64 = 100_000_000

/// Two threads: main runs for `length` and calls outer, which calls inner, and one call of each is not over; the other has calls too
/// short to be drawn by themselves, and is cut. With the start of the process, a constructor and a mark.
private func trace(length: Int) throws -> TraceFile {
    var builder = TraceBuilder(program: "/usr/bin/app", start: begin)
    builder.module(0, "/usr/bin/app", bias: 0x1000_0000)
    builder.module(1, "/usr/lib/libslow.so", bias: 0x2000_0000)
    for (id, name, module) in [(1, "main", 0), (2, "outer", 1), (3, "inner", 1), (4, "short", 1)] as [(UInt32, String, UInt32)] {
        builder.function(id, name, module: module)
    }
    builder.function(5, "loaded", flags: TRACE_FUNCTION_MARK | TRACE_FUNCTION_ENTRY_ONLY)
    builder.phase(TRACE_PHASE_EXEC, trace_usage(), monotonic: begin - 9_000_000)
    builder.phase(TRACE_PHASE_LOADER, TraceBuilder.usage(at: begin - 8_000_000))
    builder.phase(TRACE_PHASE_AGENT, TraceBuilder.usage(at: begin))
    builder.initializer(
        0, module: 1, address: 0x2000_0100, from: TraceBuilder.usage(at: begin + 1_000), to: TraceBuilder.usage(at: begin + 900_000))
    builder.phase(TRACE_PHASE_MAIN, TraceBuilder.usage(at: begin + 1_000_000))
    let main = builder.thread(), other = builder.thread(tid: 4712, "other")
    builder.steps(main, [.enter(1, 1_000_000), .call(2, 2_000_000, 5_000_000 + length, [.call(3, 3_000_000, 3_000_000 + length)])])
    builder.steps(main, [.enter(2, 6_000_000 + length), .call(5, 6_500_000 + length, 6_500_000 + length), .unwind(1, 7_000_000 + length)])
    builder.steps(other, (0..<40).map { .call(4, 8_000_000 + $0 * 20, 8_000_010 + $0 * 20) })
    return try PageText.trace(builder, end: begin + 20_000_000)
}

/// Swift writes the page's data, and the page's script reads them; names and positions are stated in one file, and both are tested against
/// it (the script in Tests/PageTests).
@Suite struct PageSchemaTests {
    @Test func aTracesPageIsAsTheSchemaSays() throws {
        let page = try data(ViewPage([trace(length: 4_000_000)]).html)
        #expect(try keys(page) == Set(names("page")))
        #expect(try keys(page["startup"]) == Set(names("startup")))
        for (list, name) in [("stages", "stage"), ("constructors", "constructor"), ("marks", "mark")] {
            let items = try #require((page["startup"] as? [String: Any])?[list] as? [Any])
            #expect(!items.isEmpty, "\(list)")
            for item in items { #expect(try keys(item) == Set(names(name))) }
        }
        #expect(try keys(page["tree"]) == Set(names("tree")))
        let threads = try #require(page["threads"] as? [[String: Any]])
        #expect(threads.count == 2)
        for thread in threads {
            #expect(try Set(thread.keys) == Set(names("thread")))
            #expect((thread["stages"] as? [Any])?.isEmpty == true)
        }
        #expect(page["samples"] is NSNull && threads.allSatisfy { $0["states"] is NSNull })
        #expect(page["threadCount"] as? Int == 2)
        #expect(page["served"] as? Bool == false)
        let row = try names("row"),
            states = row.indices.filter { index in ["Running", "Waiting", "Runnable"].contains { row[index].hasSuffix($0) } }
        for row in try #require(page["table"] as? [[Any]]) {
            #expect(try row.count == names("row").count)
            #expect(states.count == 6 && states.allSatisfy { row[$0] is NSNull }, "the kernel has reported nothing")
        }
        for function in try #require(page["functions"] as? [[String]]) { #expect(try function.count == names("function").count) }
    }

    /// Each trace a process: stages stand above the first thread of each.
    @Test func aRunsPageIsAsTheSchemaSays() throws {
        let page = try data(ViewPage([trace(length: 4_000_000), trace(length: 5_000_000)], title: "make").html)
        #expect(try keys(page) == Set(names("page")))
        #expect(page["startup"] is NSNull)
        let threads = try #require(page["threads"] as? [[String: Any]])
        #expect(threads.count == 4)
        for (index, thread) in threads.enumerated() {
            #expect(try Set(thread.keys) == Set(names("thread")))
            #expect(thread["process"] as? String == "app 4711")
            let stages = try #require(thread["stages"] as? [Any])
            #expect(stages.isEmpty == (index % 2 == 1))
            for stage in stages { #expect(try keys(stage) == Set(names("stage"))) }
        }
    }

    private func answer(_ page: ViewPage, _ question: ViewPage.Question, _ time: Range<UInt64>, _ lanes: [Int]) throws -> [String: Any] {
        try PageText.object(page.answer(question, time, lanes: lanes))
    }

    @Test func answersAreAsTheSchemaSays() throws {
        #expect(
            schema["questions"] as? [String: String]
                == Dictionary(uniqueKeysWithValues: ViewPage.Question.allCases.map { ($0.rawValue, $0.rawValue) }))
        let page = try ViewPage([trace(length: 4_000_000)])
        let calls = try answer(page, .calls, 16_000_000..<18_000_000, [0, 1, 7])
        #expect(try Set(calls.keys) == Set(names("calls")))
        let parts = try #require(calls["parts"] as? [[String: Any]])
        #expect(parts.map { $0["lane"] as? Int } == [0, 1])
        for part in parts { #expect(try Set(part.keys) == Set(names("part"))) }
        let sums = try answer(page, .sums, 0..<30_000_000, [0, 1])
        #expect(try Set(sums.keys) == Set(names("sums")))
        for row in try #require(sums["rows"] as? [[Any]]) { #expect(try row.count == names("row").count) }
    }

    /// In the whole page the forty calls of the other thread are a band, asked for they are forty; sums count what the page has as bands.
    @Test func aPartOfTheTimeHasTheCallsThatThePageHasAsBands() throws {
        let page = try ViewPage([trace(length: 4_000_000)])
        let calls = try answer(page, .calls, 16_999_000..<17_001_000, [1])
        let part = try #require((calls["parts"] as? [[String: Any]])?.first)
        #expect((part["slices"] as? [Any])?.count == (40 + 40) * 4) // own code is before each
        #expect((part["dense"] as? [Any])?.isEmpty == true)
        let functions = try #require(calls["functions"] as? [[String]])
        #expect(Set(functions.map { $0[0] }) == ["short", "(own code)"])
        func counts(_ time: Range<UInt64>, _ lanes: [Int]) throws -> [String: Int] {
            let sums = try answer(page, .sums, time, lanes), names = try #require(sums["functions"] as? [[String]])
            return Dictionary(
                uniqueKeysWithValues: try #require(sums["rows"] as? [[Any]]).map {
                    let row = try columns($0, "row")
                    return (names[row["fn"]!][0], row["calls"]!)
                })
        }
        #expect(try counts(16_999_990..<17_000_205, [1])["short"] == 11)
        #expect(try counts(0..<30_000_000, [0])["short"] == nil)
        #expect(try counts(0..<30_000_000, [0])["outer"] == 2)
    }

    @Test func ownCodeIsDrawnBetweenTheCallsOfTheLowestLevelFromTheThreadsBeginToItsEnd() throws {
        #expect(schema["ownCode"] as? String == FunctionNames.ownCode)
        let page = try data(ViewPage([trace(length: 4_000_000)]).html)
        let threads = try #require(page["threads"] as? [[String: Any]]), functions = try #require(page["functions"] as? [[String]])
        func own(_ thread: Int) throws -> [[Int]] {
            let values = try #require(threads[thread]["slices"] as? [Int])
            return stride(from: 0, to: values.count, by: 4).map { Array(values[$0..<$0 + 4]) }.filter {
                functions[$0[2]][0] == FunctionNames.ownCode
            }
        }
        // main is called where the span of the main thread begins, and is open at its end.
        #expect(try own(0).isEmpty)
        #expect(threads[0]["own"] as? Int == 0)
        #expect([threads[0]["begin"] as? Int, threads[0]["end"] as? Int] == [10_000_000, 29_000_000])
        // The other has no record of its beginning: it is there from the trace's. What lies between its calls is too short to be drawn.
        #expect(try own(1).map { [$0[0], $0[1], $0[3]] } == [[9_000_000, 8_000_000, 0]])
        #expect(threads[1]["own"] as? Int == 8_000_000 + 39 * 10)
        #expect([threads[1]["begin"] as? Int, threads[1]["end"] as? Int] == [9_000_000, 17_000_790])
        let rows = try rows(page, "row")
        let all = threads.reduce(0) { $0 + ($1["own"] as? Int ?? 0) }
        #expect(abs((rows[FunctionNames.ownCode]?["self"] ?? 0) - all) <= 2)
    }

    @Test func aComparisonsPageIsAsTheSchemaSays() throws {
        let trees = try [4_000_000, 5_000_000].map { CallTree(try trace(length: $0)) }
        let page = try data(DiffPage(TreeDiff(before: [trees[0]], after: [trees[1]]), title: "", facts: "", notes: []).html)
        #expect(try keys(page) == Set(names("page")))
        #expect(try keys(page["tree"]) == Set(names("comparedTree")))
        #expect(page["threads"] is NSNull && page["startup"] is NSNull)
        for row in try #require(page["table"] as? [[Any]]) { #expect(try row.count == names("comparedRow").count) }
    }

    private func columns(_ values: [Any], _ kind: String) throws -> [String: Int] {
        Dictionary(uniqueKeysWithValues: zip(try names(kind), values.map { ($0 as? NSNumber)?.intValue ?? -1 }))
    }

    private func rows(_ page: [String: Any], _ kind: String) throws -> [String: [String: Int]] {
        let functions = try #require(page["functions"] as? [[String]])
        return Dictionary(
            uniqueKeysWithValues: try #require(page["table"] as? [[Any]]).map {
                let row = try columns($0, kind)
                return (functions[row["fn"]!][0], row)
            })
    }

    @Test func indicesOfARowAreThoseOfTheSchema() throws {
        let page = try data(ViewPage([trace(length: 4_000_000)]).html), outer = try #require(try rows(page, "row")["outer"])
        #expect(["calls", "total", "self", "maximum", "p99"].map { outer[$0] } == [2, 8_000_000, 4_000_000, 7_000_000, 7_000_000])
        #expect(try #require(outer["p50"]) > 900_000)
        let trees = try [4_000_000, 5_000_000].map { CallTree(try trace(length: $0)) }
        let compared = try data(
            DiffPage(TreeDiff(before: [trees[0], trees[0]], after: [trees[1], trees[0]]), title: "", facts: "", notes: []).html)
        let inner = try #require(try rows(compared, "comparedRow")["inner"])
        #expect(["self", "before", "calls", "callsBefore", "noise"].map { inner[$0] } == [4_500_000, 4_000_000, 1, 1, 1])
    }

    @Test func indicesOfASliceAndOfABandAreThoseOfTheSchema() throws {
        let page = try data(ViewPage([trace(length: 4_000_000)]).html)
        let threads = try #require(page["threads"] as? [[String: Any]]), functions = try #require(page["functions"] as? [[String]])
        func groups(_ thread: Int, _ list: String, _ kind: String) throws -> [[String: Any]] {
            let values = try #require(threads[thread][list] as? [Any]), names = try names(kind)
            #expect(values.count % names.count == 0)
            return stride(from: 0, to: values.count, by: names.count).map { Dictionary(uniqueKeysWithValues: zip(names, values[$0...])) }
        }
        let slices = try groups(0, "slices", "slice")
        let inner = try #require(slices.first { ($0["fn"] as? Int).map { functions[$0][0] } == "inner" })
        // The process began 9 ms before the agent.
        #expect(["start", "length", "level"].map { inner[$0] as? Int } == [12_000_000, 4_000_000, 2])
        let bands = try groups(1, "dense", "band")
        let band = try #require(bands.first)
        #expect(band["level"] as? Int == 0)
        #expect(abs(try #require(band["start"] as? Int) - 17_000_000) < 10_000)
        #expect(try #require(band["share"] as? Double) <= 1)
        #expect(try #require(band["length"] as? Int) > 1)
    }

    @Test func flagsAreThoseOfTheSchema() throws {
        let known = Dictionary(uniqueKeysWithValues: NodeFlag.allCases.map { ("\($0)", $0.rawValue) })
        #expect(schema["flags"] as? [String: Int] == known)
        let page = try data(ViewPage([trace(length: 4_000_000)]).html), tree = try #require(page["tree"] as? [String: Any])
        let flags = try #require(tree["flags"] as? [Int])
        #expect(Set(flags) == [0, NodeFlag.open.rawValue, NodeFlag.unwound.rawValue])
    }

    @Test func dataMayHaveBracesAndEndOfScript() throws {
        let html = ViewPage.document(PageData(title: "{{style}}</script>", facts: "", notes: [], tree: "{}", table: "[]", functions: "[]"))
        #expect(try data(html)["title"] as? String == "{{style}}</script>")
        #expect(html.components(separatedBy: "</script>").count == 3)
        #expect(!html.contains("\nimport ") && !html.contains("\nexport "))
    }
}
