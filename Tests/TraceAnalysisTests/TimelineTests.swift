// Calls in the order of time as exports write them: begins and ends that nest, whatever the trace is like.
import CTraceLayout
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

/// Writes what it hears, one event a line; times are ticks since the start of the trace.
private struct Listener: TimelineSink, ~Copyable {
    private var lines = ""
    private var table: FunctionNames!

    mutating func start(_ thread: ExportThread) { table = thread.source.table }
    private mutating func line(_ text: String, _ time: UInt64) {
        lines += "\(Int64(bitPattern: time &- TraceAnalysisTests.start)) \(text)\n"
    }
    private func name(_ function: UInt32) -> String { table.name(of: function).name }

    mutating func begin(_ function: UInt32, at time: UInt64, _ how: TimelineBegin) {
        line("begin \(name(function))" + (how == .called ? "" : " \(how)"), time)
    }
    mutating func end(_ function: UInt32, at time: UInt64, _ how: TimelineEnd) {
        line("end \(name(function))" + (how == .returned ? "" : " \(how)"), time)
    }
    mutating func leaf(_ function: UInt32, from start: UInt64, to end: UInt64) { line("leaf \(name(function)) \(end - start)", start) }
    mutating func entered(_ function: UInt32, at time: UInt64) { line("entered \(name(function))", time) }
    mutating func moment(_ moment: TimelineMoment, at time: UInt64) { line("\(moment)", time) }
    mutating func takePiece() -> TimelinePiece {
        defer { lines = "" }
        return TimelinePiece(bytes: Array(lines.utf8))
    }
}

private struct Lines: TimelineWriter {
    var ofThread: [UInt32: [String]] = [:]

    mutating func begin(_ sources: [ExportSource]) {}
    mutating func begin(_ thread: ExportThread) {}
    mutating func write(_ piece: TimelinePiece, of thread: ExportThread) {
        ofThread[thread.index, default: []] += String(decoding: piece.bytes, as: UTF8.self).split(separator: "\n").map(String.init)
    }
    mutating func end(_ thread: ExportThread) {}
    mutating func end() {}
}

private func lines(_ trace: TraceFile, workers: Int = 2) throws -> [UInt32: [String]] {
    var lines = Lines()
    try TimelineExport(workers: workers) { Listener() }.write(ExportSource.sources([trace]), to: &lines)
    return lines.ofThread
}

private func lines(_ steps: [Step]) throws -> [String] { try lines(Loaded(steps).trace)[0] ?? [] }

struct TimelineTests {
    @Test func callsBeginAndEndAndLeavesAreOne() throws {
        let found = try lines([.call(1, 10, 40, [.call(2, 20, 25), .call(5, 30, 30)])])
        #expect(found == ["10 begin main", "20 leaf a 5", "30 entered setjmp", "40 end main"])
    }

    @Test func unwoundAndOpenFramesSaySo() throws {
        let found = try lines([.enter(1, 0), .enter(2, 1), .enter(3, 2), .unwind(1, 10), .call(4, 20, 21)])
        #expect(found.suffix(4) == ["10 end b unwound", "20 leaf c 1", "21 end a open", "21 end main open"])
    }

    @Test func framesOfAThreadThatEndedAreUnwoundThen() throws {
        let builder = demo { builder, thread in
            builder.enter(thread, 1, at: start + 1)
            builder.task(TRACE_TASK_ENDED, 4711, at: start + 7)
            builder.complete(builder.thread("other"), 2, from: start + 90, to: start + 99)
        }
        #expect(try lines(Loaded(builder.bytes()).trace)[0] == ["1 begin main", "7 end main unwound"])
    }

    @Test func aFrameThatReturnsBelowOthersInterruptsThem() throws {
        let found = try lines([.enter(1, 1), .enter(2, 2), .enter(3, 3), .exit(2, 10), .exit(3, 11), .exit(1, 12)])
        #expect(
            found == [
                "1 begin main", "2 begin a", "3 begin b", "10 end b interrupted", "10 end a", "10 begin b continued",
                "11 end b", "12 end main",
            ])
    }

    @Test func aGapEndsWhatIsNotThereAfterItAndSaysHowMuchIsMissing() throws {
        let found = try lines([.call(1, 1, 50, [.call(2, 2, 10, [.split]), .call(3, 20, 40, [.lose, .call(4, 30, 31)])])])
        #expect(
            found == [
                "1 begin main", "2 begin a", "2 end a lost", "20 begin b inherited", "30 missing(1)", "30 leaf c 1",
                "40 end b", "50 end main",
            ])
    }

    @Test func framesOfTheParentProcessBeganBefore() throws {
        let found = try lines([.inherit(1, -5), .call(2, 1, 2), .exit(1, 3)])
        #expect(found == ["-5 begin main inherited", "1 leaf a 1", "3 end main"])
    }

    @Test func aCallThatReturnsOnAnotherThreadEndsOnItsOwn() throws {
        let builder = demo { builder, thread in
            let other = builder.thread("other")
            builder.enter(thread, 1, at: start + 1)
            builder.steps(other, [.resume(1, 50), .bareExit(1, 60), .call(2, 70, 80)])
        }
        let found = try lines(Loaded(builder.bytes()).trace)
        #expect(found[1] == ["60 arrived(function: 1, start: \(start + 1))", "70 leaf a 10"])
        #expect(found[0]?.first == "1 begin main")
        #expect(found[0]?.count == 2)
    }

    @Test func anOrphanIsAMoment() throws {
        let found = try lines([.word(unknownControl(3), 5), .bareExit(4, 9)])
        #expect(found == ["9 orphan(function: 4)"])
    }

    /// However the trace is cut into chunks, by however many workers it is read: the same lengths, each begin with its end.
    @Test(arguments: [1, 2, 3, 4, 5, 6] as [UInt64])
    func lengthsAddUpToThoseOfTheReport(seed: UInt64) throws {
        for (words, frames, areUnsettled) in [
            (Int.max, Int.max, false), (7, Int.max, false), (40, 3, false), (3, 1, false), (9, Int.max, true),
        ] {
            for workers in [1, 3] {
                let loaded = try Loaded(
                    program(seed: seed, events: 3000, wordsPerChunk: words, framesPerChunk: frames, areUnsettled: areUnsettled).bytes())
                var lengths: [String: Int64] = [:], calls: [String: UInt64] = [:]
                var stack: [(name: String, time: Int64)] = []
                var latest = Int64.min
                for line in try lines(loaded.trace, workers: workers)[0] ?? [] {
                    let parts = line.split(separator: " ").map(String.init)
                    let time = try #require(Int64(parts[0]))
                    #expect(time >= latest)
                    latest = time
                    switch parts[1] {
                    case "begin":
                        stack.append((parts[2], time))
                        if parts.last != "continued" { calls[parts[2], default: 0] += 1 }
                    case "end":
                        let last = stack.popLast()
                        let frame = try #require(last)
                        #expect(frame.name == parts[2])
                        lengths[frame.name, default: 0] += time - frame.time
                    case "leaf":
                        let length = try #require(Int64(parts[3]))
                        calls[parts[2], default: 0] += 1
                        lengths[parts[2], default: 0] += length
                        latest += length
                    case "entered": calls[parts[2], default: 0] += 1
                    default: Issue.record("\(line)")
                    }
                }
                #expect(stack.isEmpty)
                for function in loaded.summary.functions {
                    #expect(calls[function.name] == function.calls)
                    // Not self times: what lies above a frame that returns below it is not its child to the report.
                    let average = UInt64(lengths[function.name] ?? 0) / max(function.timedCalls, 1)
                    #expect(average == function.average?.count ?? 0, "\(function.name), \(words) words and \(frames) frames a chunk")
                }
            }
        }
    }
}
