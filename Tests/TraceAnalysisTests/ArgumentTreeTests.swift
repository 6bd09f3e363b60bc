import CTraceLayout
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

@Suite struct ArgumentTreeTests {
    /// The words of an integer argument, of the next call. Each has seven bytes.
    private func passing(_ value: UInt64, at time: Int) -> [Step] {
        [
            .base(time), .word(.control(.data, value), time), .word(.control(.data, 0), time),
            .word(.arguments(7, words: 2, isResult: false), time),
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
