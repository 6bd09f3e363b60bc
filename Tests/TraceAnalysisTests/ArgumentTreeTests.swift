import CTraceLayout
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

@Suite struct ArgumentTreeTests {
    /// The words of an argument of up to eight bytes, of the next call: seven bytes and one.
    private func passing(_ value: UInt64, at time: Int) -> [Step] {
        [
            .base(time), .word(.control(.data, value & (1 << 56 - 1)), time),
            .word(.values(7, words: 1, tail: UInt32(value >> 56), isResult: false), time),
        ]
    }

    private func demo(_ prototype: String, _ steps: [Step]) -> TraceBuilder {
        TraceAnalysisTests.demo { builder, thread in
            builder.record(
                TRACE_RECORD_PROTOTYPE,
                trace_prototype_record(record: trace_record(), program: 7, text_bytes: UInt32(prototype.utf8.count)),
                Array(prototype.utf8))
            builder.steps(thread, steps)
        }
    }

    /// Name and arguments, calls, total and self time of each node.
    private func rows(_ tree: CallTree) -> [String] {
        tree.nodes.filter { $0.function >= 0 && !tree.functions[$0.function].isOwnCode }.map { node in
            let function = tree.functions[node.function]
            return "\(function.name)\(function.arguments.map { "(\($0))" } ?? "") \(node.calls) \(node.total) \(node.selfTime)"
        }
    }
    private func read(_ builder: TraceBuilder, mostTexts: Int? = nil) throws -> CallTree {
        let file = TemporaryFile(builder.bytes())
        return try withExtendedLifetime(file) {
            let trace = try TraceFile(path: file.path)
            return mostTexts.map { CallTree(trace, mostTexts: $0) } ?? CallTree(trace, byArguments: true)
        }
    }

    @Test func callsWithDifferentArgumentsAreDifferentPaths() throws {
        let steps =
            passing(1, at: 0) + [.enter(2, 0), .call(3, 10, 15), .exit(2, 50)] + passing(2, at: 60) + [.call(2, 60, 70)]
            + passing(1, at: 80) + [.call(2, 80, 100), .call(2, 110, 115)]
        let builder = demo("a(n: int)", steps)
        #expect(try rows(read(builder)) == ["a(1) 2 70 65", "b 1 5 5", "a(2) 1 10 10", "a 1 5 5"])
        #expect(try rows(tree(builder)) == ["a 4 85 80", "b 1 5 5"])
    }

    @Test func olderAgentsSaidWhoseTheyAreInAWordOfItsOwn() throws {
        // A number of two DATA words, of which it fills eight bytes.
        let older: [Step] = [
            .word(.control(.data, 5), 0), .word(.control(.data, 0), 0), .word(.control(.arguments, 7 | 2 << 24), 0), .call(2, 0, 10),
        ]
        #expect(try rows(read(demo("a(n: long)", older))) == ["a(5) 1 10 10"])
    }

    @Test func aCallWithItsResultBesideIsOneThatEntersAndExits() throws {
        func steps(_ call: [Step], _ next: [Step]) -> [Step] { [.enter(3, 0)] + call + next + [.exit(3, 50)] }
        func result(_ value: UInt32) -> [Step] { [.word(.values(7, words: 0, tail: value, isResult: true), 5)] }
        let apart = steps(
            passing(1, at: 5) + [.enter(2, 5)] + result(3) + [.exit(2, 9)],
            passing(2, at: 10) + [.enter(2, 10)] + result(4) + [.exit(2, 19)])
        // Before an enter, the word of a result is space for one.
        let beside = steps(
            passing(1, at: 5) + result(3) + [.call(2, 5, 9)], passing(2, at: 10) + result(0) + [.enter(2, 10)] + result(4) + [.exit(2, 19)])
        let prototype = "a(n: int) -> int"
        #expect(try rows(read(demo(prototype, apart))) == rows(read(demo(prototype, beside))))
        func lines(_ steps: [Step]) throws -> [String] {
            let file = TemporaryFile(demo(prototype, steps).bytes())
            return try withExtendedLifetime(file) {
                let trace = try TraceFile(path: file.path), thread = try #require(trace.threads.first)
                var lines: [String] = []
                try trace.replay(thread: thread.index, until: TraceEnd(trace), deepest: 0, limit: 0, FunctionNames(trace.metadata)) {
                    line in
                    lines.append(
                        "\(line.depth) \(line.function ?? 0) \(line.arguments?.bytes ?? []) \(line.result?.bytes ?? []) \(String(describing: line.end?.time))"
                    )
                    return true
                }
                return lines
            }
        }
        let found = try lines(beside)
        #expect(
            found == (try lines(apart)) && found.count == 3 && found[1].contains("[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0] [3, 0, 0, 0]")
                && found[2].contains("[4, 0, 0, 0]"))
    }

    @Test func aCallHasItsArgumentsInEachChunkOfItsThread() throws {
        let steps =
            passing(3, at: 0) + [.enter(2, 0), .split, .call(3, 10, 15), .split] + passing(4, at: 20)
            + [.enter(2, 20), .split, .exit(2, 30), .split, .exit(2, 50)]
        #expect(try rows(read(demo("a(n: int)", steps))) == ["a(3) 1 50 35", "a(4) 1 10 10", "b 1 5 5"])
    }

    @Test func calledBeforeWhatIsLostIsNotKnown() throws {
        let steps: [Step] = [.call(3, 0, 1)] + passing(3, at: 2) + [.enter(2, 2), .lose, .call(3, 10, 15), .exit(2, 50)]
        #expect(try rows(read(demo("a(n: int)", steps))).contains { $0.hasPrefix("a ") })
    }

    @Test func whatIsOverTheLimitOfAFunctionIsTogether() throws {
        var steps: [Step] = []
        for n in 0..<6 { steps += passing(UInt64(n), at: n * 10) + [.call(2, n * 10, n * 10 + 6 - n)] }
        let builder = demo("a(n: int)", steps)
        #expect(try rows(read(builder, mostTexts: 2)) == ["a(other arguments) 4 10 10", "a(0) 1 6 6", "a(1) 1 5 5"])
        #expect(try rows(read(builder, mostTexts: 6)).count == 6)
    }

    @Test func addressesDistinguishNothing() throws {
        let steps =
            passing(0x10, at: 0) + [.call(2, 0, 5)] + passing(0x20, at: 10) + [.call(2, 10, 15)] + passing(0, at: 20) + [.call(2, 20, 21)]
        #expect(try rows(read(demo("a(p: pointer)", steps))) == ["a(…) 2 10 10", "a(NULL) 1 1 1"])
        #expect(try rows(read(demo("a(p: hex4)", steps))) == ["a(0x10) 1 5 5", "a(0x20) 1 5 5", "a(NULL) 1 1 1"])
    }
}
