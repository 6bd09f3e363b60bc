import CTraceLayout
import Presentation
import Symbols
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

private let begin: UInt64 = 100_000_000

@Suite struct StartupItemTests {
    @Test func aRegistrationIsReadFromTheNameOfItsSpan() {
        func facts(_ span: String) -> String? {
            StartupItem.Registration(span).map { "\($0.stage) \($0.name)|\($0.after.joined(separator: "|"))" }
        }
        #expect(facts("startup item log (stage 1)") == "1 log|")
        #expect(facts("startup item database (stage -2, after config, log)") == "-2 database|config|log")
        #expect(facts("startup item after (stage 3, after after)") == "3 after|after")
        #expect(facts("startup item of any name (stage 7 (stage 1, after é)") == "1 of any name (stage 7|é")
        // The agent has cut it, in the middle of a name.
        #expect(facts("startup item a (stage 1, after b, c, dee") == "1 a|b|c")
        #expect(facts("startup item a (stage 1") == "1 a|")
        for other in [
            "", "startup item", "startup item a", "startup item a (stage one)", "startup item a (stage )", "item a (stage 1)", "stage 1",
        ] {
            #expect(facts(other) == nil, "\(other)")
        }
    }

    /// A program whose main is called at once.
    private func started() -> TraceBuilder {
        var builder = TraceBuilder(program: "/usr/bin/app", start: begin)
        builder.module(0, "/usr/bin/app", bias: 0x1000_0000)
        builder.phase(TRACE_PHASE_AGENT, TraceBuilder.usage(at: begin))
        builder.phase(TRACE_PHASE_MAIN, TraceBuilder.usage(at: begin))
        return builder
    }

    /// Ready by a mark at 50 ms; times in tenths of a millisecond.
    private func items(
        _ spans: [(thread: Int, name: String, from: Int, to: Int)], isWithText: (StartupTimeline) throws -> Void = { _ in }
    ) throws -> [String] {
        var builder = started()
        let threads = (0..<3).map { _ in builder.thread() }
        builder.ready(TRACE_READY_MARK, at: begin + 50_000_000)
        let names = spans.map(\.name).reduce(into: [String]()) { if !$0.contains($1) { $0.append($1) } }
        for (number, name) in names.enumerated() { builder.function(UInt32(number + 1), name, flags: TRACE_FUNCTION_SPAN) }
        builder.function(100, "work", module: 0)
        for (number, thread) in threads.enumerated() {
            var steps: [(at: Int, step: Step)] = []
            for span in spans where span.thread == number {
                let id = UInt32(names.firstIndex(of: span.name)! + 1), from = span.from * 100_000, to = span.to * 100_000
                steps.append((from, .enter(id, from)))
                steps.append((from, .call(100, from + 1000, from + 2000)))
                steps.append((to, .exit(id, to)))
            }
            let sorted = steps.enumerated().sorted { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }
            builder.steps(thread, sorted.map { $0.element.step })
        }
        let file = TemporaryFile(builder.bytes(end: begin + 60_000_000))
        let timeline = try StartupTimeline(TraceFile(path: file.path), symbolizer: Symbolizer())
        try isWithText(timeline)
        return timeline.items.map { item in
            "\(item.registration.stageText) \(item.registration.name) \(item.isOnMain ? "main" : "pool") \(item.start.count / 100_000) own \(item.own.count / 100_000)"
                + " total \(item.total.count / 100_000) calls \(item.calls)"
                + (item.wait.map { " waited \($0.duration.count / 100_000) for \($0.name)" } ?? "") + (item.isOver ? "" : " open")
        }
    }

    @Test func ofEachThereIsThreadTimeAndWhatItsThreadWaitedFor() throws {
        let found = try items([
            (0, "startup item config (stage 1)", 10, 30),
            (1, "startup item fonts (stage 1, after config)", 31, 90),
            (2, "startup item icons (stage 1)", 11, 20),
            (0, "startup item log (stage 1, after config)", 30, 40),
            (0, "startup item window (stage 1, after fonts, icons)", 92, 100),
            (0, "startup item more (stage 2, after fonts)", 120, 130),
        ])
        #expect(
            found == [
                "stage 1 config main 10 own 20 total 20 calls 1", "stage 1 icons pool 11 own 9 total 9 calls 1",
                "stage 1 log main 30 own 10 total 10 calls 1",
                "stage 1 fonts pool 31 own 59 total 59 calls 1 waited 20 for config", // since the stage began
                "stage 1 window main 92 own 8 total 8 calls 1 waited 50 for fonts", // since log ended
                "stage 2 more main 120 own 10 total 10 calls 1", // long ended
            ])
    }

    @Test func anItemThatRunsAStageIsWithoutTheItemsOfThat() throws {
        let found = try items([
            (0, "startup item outer (stage 1)", 10, 60), (0, "startup item inner (stage 2)", 20, 30),
            (0, "startup item other (stage 2, after inner)", 30, 45), (0, "startup item behind (stage 1, after outer)", 61, 70),
        ])
        #expect(
            found == [
                "stage 1 outer main 10 own 25 total 50 calls 1", "stage 2 inner main 20 own 10 total 10 calls 1",
                "stage 2 other main 30 own 15 total 15 calls 1", "stage 1 behind main 61 own 9 total 9 calls 1",
            ])
    }

    @Test func whatIsNotOverWhenTheProgramIsReadyIsShown() throws {
        let found = try items([
            (0, "startup item slow (stage 1)", 400, 550), (1, "startup item late (stage 2)", 510, 520), (2, "a span", 5, 6),
        ]) { timeline in
            #expect(timeline.spans.map(\.name) == ["a span"])
            #expect(timeline.json.text().contains(#""name": "slow""#))
            let table = timeline.itemTable(style: plain)
            #expect(table.contains("1 start-up item before ready") && table.contains("not finished"), "\(table)")
            #expect(timeline.table(style: plain).contains("Start-up items, by own time\n"))
        }
        #expect(found == ["stage 1 slow main 400 own 100 total 100 calls 1 open"])
    }

    @Test func aProgramWithoutItemsIsShownHowToHaveThem() throws {
        _ = try items([]) { timeline in
            #expect(timeline.itemTable(style: plain).hasPrefix("no start-up item began before ready"))
            #expect(!timeline.table(style: plain).contains("Start-up items"))
        }
    }

    /// The launch lab compares launches by it.
    @Test func amongTheCallsOfALaunchAnItemIsCalledByStageAndName() throws {
        var builder = started()
        let thread = builder.thread()
        builder.ready(TRACE_READY_MARK, at: begin + 9_000)
        builder.function(1, "startup item database (stage 1, after config)", flags: TRACE_FUNCTION_SPAN)
        builder.function(2, "work", module: 0)
        builder.steps(thread, [.call(1, 1_000, 5_000, [.call(2, 2_000, 3_000)])])
        let file = TemporaryFile(builder.bytes(end: begin + 10_000))
        let trace = try TraceFile(path: file.path), symbolizer = Symbolizer()
        let calls = LaunchCalls.untilReady(trace, try StartupTimeline(trace, symbolizer: symbolizer), symbolizer)
        #expect(calls.map { "\($0.module) \($0.name) \($0.isItem) \($0.total.count)" } == ["stage 1 database true 4000"])
        #expect(calls.first?.children.map(\.name) == ["work"])
    }
}
