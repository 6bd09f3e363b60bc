import CTraceLayout
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

/// Each line: indentation by depth, name, calls, total, self and what is out of the ordinary.
func lines(_ tree: CallTree) -> [String] {
    tree.nodes.map { node in
        var depth = 0, parent = node.parent
        while parent >= 0 {
            depth += 1
            parent = tree.nodes[parent].parent
        }
        guard node.function >= 0 else { return "= \(node.total)" }
        var text =
            String(repeating: " ", count: depth - 1) + tree.functions[node.function].name + " \(node.calls) \(node.total) \(node.selfTime)"
        for (count, word) in [(node.open, "open"), (node.unwound, "unwound"), (node.cut, "cut"), (node.migrated, "migrated")]
        where count > 0 {
            text += " \(word)\(count == 1 ? "" : " \(count)")"
        }
        return text
    }
}

func tree(_ builder: TraceBuilder, workers: Int = 1) throws -> CallTree {
    let file = TemporaryFile(builder.bytes())
    return try withExtendedLifetime(file) { CallTree(try TraceFile(path: file.path), workers: workers) }
}

func tree(_ steps: [Step]) throws -> CallTree { try tree(demo(steps)) }

@Suite struct CallTreeTests {
    /// a, which calls b (20 of its 50), three times; then b, which takes 5.
    private let aThriceAndB: [Step] = [
        .call(2, 100, 150, [.call(3, 110, 130)]), .call(2, 200, 250, [.call(3, 210, 230)]), .call(2, 300, 350, [.call(3, 310, 330)]),
        .call(3, 500, 505),
    ]

    @Test func callsOfOnePathAreOneNodeAndSelfTimeIsWhatRemains() throws {
        let tree = try tree([.call(1, 0, 1000, aThriceAndB + [.call(5, 510, 510)])])
        #expect(lines(tree) == ["= 1000", "main 1 1000 845", " a 3 150 90", "  b 3 60 60", " b 1 5 5", " setjmp 1 0 0"])
        #expect([tree.nodes[2].minimum, tree.nodes[2].maximum] == [50, 50])
        #expect(tree.nodes[5].minimum == nil, "an entry has no length")
        #expect(Array(tree.children(of: 1)) == [2, 4, 5])
        #expect(tree.path(to: 3).map { $0.name } == ["main", "a", "b"])
        #expect(tree.roots.map { $0.calls } == [9])
    }

    /// A signal came between b's clock and its word: a is what the handler called.
    @Test func aCallHasNoTimeOfWhatHasTheEarlierWord() throws {
        let late: [Step] = [.call(2, 20, 60), .at(12) { .enter(3, after: $0) }, .bareExit(3, 70), .bareExit(1, 75)]
        #expect(lines(try tree([.enter(1, 0)] + late)) == ["= 75", "main 1 75 25", " a 1 40 40", " b 1 10 10"])
        #expect(try Loaded([.enter(1, 0)] + late).rows.sorted() == ["a 1 40 40", "b 1 10 10", "main 1 75 25"])
    }

    /// The demo's ticks are nanoseconds.
    private func costly(leaf: UInt32, inside: UInt32) throws -> CallTree {
        var builder = demo([.call(1, 0, 1000, aThriceAndB)])
        builder.cost(leaf: leaf, inside: inside)
        return try tree(builder)
    }

    @Test func theCostOfRecordingIsTheCallsWithinItsLengthAndElseItsCallers() throws {
        let tree = try costly(leaf: 20, inside: 8)
        #expect(tree.isCostKnown)
        #expect(
            lines(tree) == ["= 1000", "main 1 1000 845", " a 3 150 90", "  b 3 60 60", " b 1 5 5"], "what was measured stays beside it")
        // main: 8 within its length, 12 for each of the four calls that it makes. a: 3 times 8, and 3 calls.
        let costs: [UInt64] = [56, 60, 24, 5], corrected: [Int64] = [789, 30, 36, 0], totals: [UInt64] = [855, 66, 36, 0]
        #expect(tree.nodes.dropFirst().map { $0.selfCost } == costs, "of a call of 5 no more than 5")
        #expect(tree.nodes.dropFirst().map { $0.correctedSelf } == corrected)
        #expect(tree.nodes.dropFirst().map { $0.correctedTotal } == totals)
    }

    @Test func rowsAddUpTheCostsOfTheirPaths() throws {
        let rows = try costly(leaf: 20, inside: 8).rows(by: .function, nil)
        #expect(
            Dictionary(rows.map { ($0.name, $0.correctedSelf?.nanoseconds) }, uniquingKeysWith: { a, _ in a }) == [
                "main": 789, "a": 30, "b": 36,
            ])
    }

    @Test func aTraceThatDoesNotSayWhatRecordingCostHasNothingToSubtract() throws {
        let tree = try costly(leaf: 0, inside: 0)
        #expect(!tree.isCostKnown)
        #expect(tree.nodes.allSatisfy { $0.selfCost == 0 && $0.totalCost == 0 })
    }

    @Test func aCostBeyondAllReasonLeavesNothing() throws {
        let tree = try costly(leaf: UInt32.max / UInt32(TRACE_COST_PARTS), inside: UInt32.max / UInt32(TRACE_COST_PARTS))
        #expect(tree.nodes.dropFirst().allSatisfy { $0.correctedSelf >= 0 && $0.correctedTotal <= $0.total })
    }

    @Test func aRecursiveFunctionHasANodeForEachLevel() throws {
        let tree = try tree([.call(2, 0, 100, [.call(2, 10, 40, [.call(2, 20, 25)])])])
        #expect(lines(tree) == ["= 100", "a 1 100 70", " a 1 30 25", "  a 1 5 5"])
    }

    @Test func whatDidNotReturnIsSaidOnItsNode() throws {
        let tree = try tree([.enter(1, 0), .enter(2, 10), .enter(3, 20), .unwind(2, 50), .enter(4, 60), .call(3, 70, 90)])
        #expect(
            lines(tree) == ["= 90", "main 1 90 20 open", " a 1 40 10 unwound", "  b 1 30 30 unwound", " c 1 30 10 open", "  b 1 20 20"])
    }

    @Test func aFrameThatEndedInAMissingStretchIsCut() throws {
        let tree = try tree([.call(1, 0, 100, [.call(2, 10, 50, [.split]), .lose, .call(3, 70, 80)])])
        #expect(lines(tree) == ["= 100", "main 1 100 30", " b 1 10 10", " a 1 0 0 cut"]) // from 10 to 70 nothing is known
        #expect(tree.roots[0].missingChunks == 1)
    }

    @Test func threadsStandSideBySideUntilTheyAreMerged() throws {
        var builder = demo([.call(2, 0, 10)])
        builder.steps(builder.thread("worker"), [.call(2, 0, 30), .call(3, 40, 50)])
        let two = try tree(builder)
        #expect(lines(two) == ["= 50", "(own code) 0 40 40", "a 1 10 10", "= 50", "a 1 30 30", "b 1 10 10", "(own code) 0 10 10"])
        #expect(two.roots.map { $0.tid } == [4711, 4712])
        #expect(two.roots.map { $0.name } == ["demo", "worker"])
        let merged = two.merged(.threads)
        #expect(lines(merged) == ["= 100", "(own code) 0 50 50", "a 2 40 40", "b 1 10 10"])
        #expect(merged.roots.map { $0.threadCount } == [2])
        #expect(merged.roots.map { $0.process } == [0])
        #expect([merged.nodes[2].minimum, merged.nodes[2].maximum] == [10, 30])
    }

    @Test func filesOfOneRunBecomeOneTreeWhateverTheyNumberTheirFunctions() throws {
        var other = TraceBuilder(pid: 4800)
        other.module(3, "/opt/libdemo.so.1", bias: 0x7000_0000)
        other.function(9, "a", module: 3, address: 0x7000_1000)
        other.function(4, "other", module: 3)
        other.steps(other.thread(), [.call(9, 0, 7), .call(4, 10, 12)])
        let both = CallTree([try tree([.call(2, 0, 5)]), try tree(other)])
        #expect(both.processes.map { $0.pid } == [4711, 4800])
        #expect(lines(both) == ["= 5", "a 1 5 5", "= 12", "a 1 7 7", "(own code) 0 3 3", "other 1 2 2"])
        #expect(lines(both.merged(.processes)) == ["= 17", "a 2 12 12", "(own code) 0 3 3", "other 1 2 2"])
    }

    /// Coroutines: a frame closes below one that stays open. What the two have in common is the upper one's, and a path's total is its own
    /// time and what lies below it.
    @Test func framesThatDoNotNestShareNoTime() throws {
        let tree = try tree([.enter(1, 0), .enter(2, 10), .enter(3, 20), .exit(2, 50), .call(4, 60, 65), .exit(3, 80), .exit(1, 100)])
        #expect(lines(tree) == ["= 100", "main 1 100 30", " a 1 70 10", "  b 1 60 55", "   c 1 5 5"])
    }

    /// One nanosecond is 3 ticks: no time divides evenly, and still nothing is gained or lost by rounding.
    @Test(arguments: [1, 3])
    func selfTimesAddUpToTheReportsAndTreesAreTheSameForAnyNumberOfReaders(workers: Int) throws {
        for seed in 1...20 as ClosedRange<UInt64> {
            var builder = program(seed: seed, events: 2000, wordsPerChunk: 50, framesPerChunk: seed % 3 == 0 ? 3 : .max)
            builder.header.ticks_per_second = 3_000_000_000
            let file = TemporaryFile(builder.bytes())
            try withExtendedLifetime(file) {
                let trace = try TraceFile(path: file.path)
                let tree = CallTree(trace, workers: workers)
                let isTheSame = lines(tree) == lines(CallTree(trace, workers: 2)) // expected as two arrays, a failure fills the screen
                #expect(isTheSame)
                let summary = Summary(trace)
                #expect(tree.calls == summary.calls)
                for function in summary.functions {
                    let nodes = tree.nodes.filter { $0.function >= 0 && tree.functions[$0.function].name == function.name }
                    #expect(nodes.reduce(0) { $0 + $1.calls } == function.calls)
                    #expect(nodes.reduce(0) { $0 + $1.selfTime } == function.selfTime)
                    #expect(nodes.compactMap { $0.minimum }.min() == function.minimum?.count)
                    #expect(nodes.compactMap { $0.maximum }.max() == function.maximum?.count)
                }
            }
        }
    }

    /// These functions one after the other, each of which calls main.
    private func aroundMain(_ functions: ClosedRange<Int>) -> [Step] {
        functions.map { function -> Step in
            let at = function * 100
            return .call(UInt32(function), at, at + 50, [.call(1, at + 10, at + 30)])
        }
    }

    @Test func beyondTheLimitPathsAreOneNodeWhoseTimeCountsOnce() throws {
        let builder = demo([.call(1, 0, 1000, aroundMain(2...4))])
        // main, three functions, and main below each of them: seven paths.
        try read(builder, mostPaths: 7, workers: 1) { // five of them are kept
            #expect(
                lines($0) == [
                    "= 1000", "main 1 1000 850", " a 1 50 30", "  (further paths) 1 20 20", " b 1 50 30", "  (further paths) 1 20 20",
                    " c 1 50 30", "  (further paths) 1 20 20",
                ])
        }
        try read(builder, mostPaths: 5, workers: 1) { #expect(lines($0) == ["= 1000", "main 1 1000 850", " (further paths) 6 150 150"]) }
    }

    @Test func whatAThreadHasCalledItselfIsToldApartInAnyCase() throws {
        let builder = demo(aroundMain(1...4))
        try read(builder, mostPaths: 2, workers: 1) {
            let functions = lines($0).filter { !$0.hasPrefix(" ") && !$0.hasPrefix("=") && !$0.hasPrefix("(") }
            #expect(functions.count == 4)
            #expect($0.calls == 8)
        }
    }

    @Test(arguments: 1...12, [6, 30, 100]) func whichPathsAreKeptIsNotOfWhoHasReadThem(seed: UInt64, mostPaths: Int) throws {
        let builder = program(seed: seed, events: 2000, wordsPerChunk: 50, framesPerChunk: .max)
        var alone: [String] = [], selfTime: Int64 = 0, calls: UInt64 = 0, isNested = false
        try read(builder, mostPaths: .max / 4, workers: 1) {
            selfTime = $0.nodes.reduce(0) { $0 + $1.selfTime }
            calls = $0.calls
            isNested = $0.nodes.allSatisfy { $0.selfTime >= 0 }
        }
        try read(builder, mostPaths: mostPaths, workers: 1) {
            alone = lines($0)
            #expect($0.calls == calls)
            #expect($0.nodes.reduce(0) { $0 + $1.selfTime } == selfTime)
            #expect(!isNested || $0.nodes.allSatisfy { $0.selfTime >= 0 })
        }
        // All that is too long is found in the end, some of it while reading, and by several readers each at another moment.
        try read(builder, mostPaths: .max / 4, keptPaths: mostPaths * 3 / 4, workers: 1) { #expect(lines($0) == alone) }
        for workers in 2...4 { try read(builder, mostPaths: mostPaths, workers: workers) { #expect(lines($0) == alone) } }
    }

    private func read(_ builder: TraceBuilder, mostPaths: Int, keptPaths: Int? = nil, workers: Int, _ body: (CallTree) -> Void) throws {
        let file = TemporaryFile(builder.bytes())
        try withExtendedLifetime(file) {
            body(CallTree(try TraceFile(path: file.path), workers: workers, mostPaths: mostPaths, keptPaths: keptPaths))
        }
    }
}
