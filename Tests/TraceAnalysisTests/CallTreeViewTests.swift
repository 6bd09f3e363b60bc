import CTraceLayout
import Presentation
import Testing
import TraceAnalysis
import TraceTesting

/// main calls a (which calls b, 20 each) twice and b (5) once; a calls itself in the second call.
private func sample() throws -> CallTree {
    try tree([
        .enter(1, 0), .call(2, 100, 150, [.call(3, 110, 130)]), .call(2, 200, 250, [.call(2, 210, 240, [.call(3, 215, 235)])]),
        .call(3, 300, 305), .exit(1, 1000),
    ])
}

@Suite struct CallTreeViewTests {
    @Test func callersAreATreeUpsideDown() throws {
        let tree = try sample()
        let chosen = tree.functions(matching: FunctionPattern("b"))
        #expect(
            lines(tree.callers(of: chosen)) == [
                "= 45", "b 3 45 45", " a 2 40 40", "  a 1 20 20", "   main 1 20 20", "  main 1 20 20", " main 1 5 5",
            ])
    }

    @Test func callersThatWouldTakeTooLongAreOneLevel() throws {
        let tree = try sample()
        let chosen = tree.functions(matching: FunctionPattern("b"))
        #expect(lines(tree.callers(of: chosen, mostSteps: 3)) == ["= 45", "b 3 45 45", " (further paths) 3 45 45"])
        #expect(
            lines(tree.callers(of: chosen, mostSteps: 6)) == [
                "= 45", "b 3 45 45", " a 2 40 40", "  (further paths) 2 40 40", " main 1 5 5",
            ])
    }

    @Test func pathsThatAreTooLongToBeWrittenInFullAreShortened() throws {
        let tree = try sample() // six paths, of fifteen functions
        #expect(lines(tree.shortened(most: 15)) == lines(tree))
        #expect(
            lines(tree.shortened(most: 14)) == [
                "= 1000", "main 1 1000 895", " a 2 100 50", "  a 1 30 10", "   (further paths) 1 20 20", "  b 1 20 20", " b 1 5 5",
            ])
        #expect(lines(tree.shortened(most: 11)) == ["= 1000", "main 1 1000 895", " a 2 100 50", "  (further paths) 3 50 50", " b 1 5 5"])
        #expect(lines(tree.shortened(most: 0)) == ["= 1000", "main 1 1000 895", " (further paths) 6 105 105"])
    }

    @Test func aRecursiveCallsTimeIsItsOutermostCallsInTheCallersTree() throws {
        let tree = try sample()
        let chosen = tree.functions(matching: FunctionPattern("a"))
        #expect(lines(tree.callers(of: chosen)) == ["= 100", "a 3 100 60", " main 2 100 50", " a 1 30 10", "  main 1 30 10"])
        #expect(lines(tree.below(chosen)) == ["= 100", "a 2 100 50", " a 1 30 10", "  b 1 20 20", " b 1 20 20"])
    }

    @Test func callsFromCodeThatIsNotRecordedAreACaller() throws {
        let tree = try tree([.call(2, 0, 100, [.call(3, 10, 30)]), .call(3, 200, 205), .call(3, 300, 310)])
        let callers = tree.callers(of: tree.functions(matching: FunctionPattern("b")))
        #expect(lines(callers) == ["= 35", "b 3 35 35", " a 1 20 20", " (not recorded) 2 15 15"])
        #expect(callers.hasCallers)
        let alone = tree.callers(of: tree.functions(matching: FunctionPattern("a")))
        #expect(lines(alone) == ["= 100", "a 1 100 80"], "and nothing else is said where there is no other")
        #expect(!alone.hasCallers)
    }

    /// a calls b and then itself, on five levels: b's calls of each level came through those above it.
    @Test func foldedCallersHaveTheCallsOfTheirFirstLevel() throws {
        let levels = (0..<5).reversed().reduce([] as [Step]) { inner, level in
            [.call(2, level * 100, 2000 - level * 100, [.call(3, level * 100 + 10, level * 100 + 20)] + inner)]
        }
        let tree = try tree(levels), callers = tree.callers(of: tree.functions(matching: FunctionPattern("b")))
        let options = CallTree.TextOptions(least: 0)
        var text: [String] = []
        callers.lines(callers.roots[0], options, plain) { text.append($0.split(separator: " ").joined(separator: " ")) }
        #expect(
            text == [
                "100.0% 50 ns 50 ns 5 b [libdemo.so.1]", "100.0% 50 ns 50 ns 5 > a [libdemo.so.1] ×5 levels",
                "100.0% 50 ns 5 (not recorded)",
            ])
    }

    @Test func whatIsTooSmallForALineIsCounted() throws {
        let tree = try tree([.call(1, 0, 1_000_000, [.call(2, 10, 900_000, [.call(3, 20, 30), .call(4, 40, 45), .call(4, 50, 55)])])])
        var text: [String] = []
        tree.lines(tree.roots[0], .init(), plain) { text.append($0.split(separator: " ").dropFirst().joined(separator: " ")) }
        #expect(
            text == [
                "1.000 ms 100.010 us 1 main [libdemo.so.1]", "899.990 us 899.970 us 1 > a [libdemo.so.1]", "20 ns 3 … 2 more functions",
            ])
    }

    @Test func afterFocusingOnlyWhatLeadsThereIsLeft() throws {
        let tree = try sample()
        let focused = tree.focused(on: tree.functions(matching: FunctionPattern("libdemo.so.1!a")))
        #expect(lines(focused) == ["= 100", "main 1 100 0", " a 2 100 50", "  a 1 30 10", "   b 1 20 20", "  b 1 20 20"])
        #expect(tree.roots.map { $0.calls } == [7] && focused.roots.map { $0.calls } == [6]) // without main's call of b
    }

    @Test func aRowOfAGroupCountsTimeWithinTheGroupOnce() throws {
        let tree = try sample()
        func row(_ grouping: ReportGrouping, _ filter: String? = nil) -> [String] {
            tree.rows(by: grouping, filter.map { FunctionPattern($0) })
                .map {
                    "\($0.caller.map { $0 + ">" } ?? "")\($0.name) \($0.calls) \($0.total.count) \($0.selfTime) \($0.average?.count ?? 0)"
                }.sorted()
        }
        #expect(row(.function) == ["a 3 100 60 43", "b 3 45 45 15", "main 1 1000 895 1000"])
        #expect(row(.module) == ["libdemo.so.1 7 1000 1000 167"])
        #expect(
            row(.caller) == ["(thread)>main 1 1000 895 1000", "a>a 1 30 10 30", "a>b 2 40 40 20", "main>a 2 100 50 50", "main>b 1 5 5 5"])
        #expect(row(.caller, "b") == ["a>b 2 40 40 20", "main>b 1 5 5 5"])
        #expect(row(.thread) == ["4711 demo 7 1000 1000 0"])
    }

    @Test func functionRowsOfTheTreeAreThoseOfTheReport() throws {
        for seed in 1...10 as ClosedRange<UInt64> {
            let file = TemporaryFile(program(seed: seed, events: 1000, wordsPerChunk: 60).bytes())
            try withExtendedLifetime(file) {
                let trace = try TraceFile(path: file.path)
                let summary = Summary(trace), rows = CallTree(trace).rows(by: .function).sorted(by: ReportOrder.name.comesFirst)
                let report = (summary.functions + [try #require(summary.ownCode)]).sorted(by: ReportOrder.name.comesFirst)
                #expect(rows.map { "\($0.name) \($0.calls) \($0.selfTime)" } == report.map { "\($0.name) \($0.calls) \($0.selfTime)" })
            }
        }
    }

    @Test(arguments: [
        ("strlen", true), ("str*", true), ("libc.so.6", true), ("libc.so.6!str*", true), ("libm.so.6!*", false), ("len", false),
    ])
    func aPatternIsOfANameAModuleOrBoth(pattern: String, isMatch: Bool) {
        #expect(FunctionPattern(pattern).matches(name: "strlen", symbol: "strlen", module: "libc.so.6") == isMatch)
    }

    @Test func aPatternNeedNotSayTheArguments() {
        #expect(FunctionPattern("demo::add").matches(name: "demo::add(int, int) const", symbol: "_ZNK4demo3addEii", module: "m"))
        #expect(FunctionPattern("_ZNK4demo3addEii").matches(name: "demo::add(int, int) const", symbol: "_ZNK4demo3addEii", module: "m"))
        #expect(!FunctionPattern("demo").matches(name: "demo::add(int, int)", symbol: "_ZN4demo3addEii", module: "m"))
    }

    @Test func aLeafCalledVeryOftenIsNamedWithItsCaller() throws {
        let leaves = (1...20_000).map { Step.call(3, $0 * 10, $0 * 10 + 2) }
        let tree = try tree([.call(1, 0, 500_000, leaves + [.call(4, 300_000, 400_000)])])
        #expect(tree.hotLeaves().map { $0.text } == ["20,000 calls of b from main: 40.000 us"])
    }

    @Test func theTextShowsSharesFoldsRecursionAndSumsUpTheRest() throws {
        let levels = (0..<5).map { Step.enter(2, $0) } + (900_000..<900_005).map { Step.exit(2, $0) }
        let tree = try tree([.call(1, 0, 1_000_000, levels + [.call(3, 950_000, 965_000), .call(4, 970_000, 985_000)])])
        var text: [String] = []
        tree.lines(tree.roots[0], .init(least: 0.02), plain) { text.append($0) }
        #expect(
            text == [
                " 100.0%     1.000 ms    69.996 us            1  main [libdemo.so.1]",
                "   3.0%    30.000 us                         2    … 2 more functions",
                "  90.0%   900.004 us   900.004 us            5  > a [libdemo.so.1] ×5 levels",
            ])
    }
}

@Suite struct RecursionTests {
    /// main calls these, each from the one before, 10 ticks apart.
    private func text(_ functions: [UInt32]) throws -> [String] {
        let steps = functions.enumerated().reversed().reduce([] as [Step]) { inner, function in
            [.call(function.element, function.offset * 10, 10_000 - function.offset * 10, inner)]
        }
        let tree = try tree([.call(1, 0, 10_000, steps)])
        var lines: [String] = []
        tree.lines(tree.roots[0], .init(least: 0), plain) { lines.append($0.split(separator: " ").dropFirst(5).joined(separator: " ")) }
        return Array(lines.dropFirst())
    }

    @Test func functionsThatCallEachOtherByTurnsAreOneLine() throws {
        #expect(try text([2, 3, 2, 3, 2]) == ["5 > a [libdemo.so.1] ⇄ b ×5 levels"])
        #expect(try text([2, 3, 4, 2, 3, 4, 2, 3]) == ["8 > a [libdemo.so.1] ⇄ b ⇄ c ×8 levels"])
        #expect(try text([2, 2, 2]) == ["3 > a [libdemo.so.1] ×3 levels"])
    }

    @Test func oneTurnIsNoRecursion() throws {
        #expect(try text([2, 3]) == ["1 > a [libdemo.so.1]", "1 > b [libdemo.so.1]"])
        #expect(try text([2, 3, 2]) == ["1 > a [libdemo.so.1]", "1 > b [libdemo.so.1]", "1 > a [libdemo.so.1]"])
    }
}

@Suite struct TreeDiffTests {
    /// main calls `function` of `length` `calls` times. A recorded call costs `leaf`, `inside` of it within its length.
    private func run(
        _ name: String, calls: Int, length: Int, address: UInt64 = 0x5000_1000, bias: UInt64 = 0x5000_0000,
        leaf: UInt32 = 0, inside: UInt32 = 0
    ) throws -> CallTree {
        var builder = TraceBuilder()
        builder.module(0, "/usr/lib/libdemo.so.1", bias: bias)
        builder.function(1, "main")
        builder.function(2, name, address: address)
        builder.function(3, "common")
        let works = stride(from: 0, to: calls * 1000, by: 1000).map { at -> Step in
            .call(2, at + 10, at + 15 + length, [.call(3, at + 20, at + 25)])
        }
        builder.steps(builder.thread(), [.call(1, 0, 1_000_000, works)])
        builder.cost(leaf: leaf, inside: inside)
        return try tree(builder)
    }

    private func rows(_ diff: TreeDiff) -> [String] {
        diff.functions.map {
            "\($0.function.name)\($0.formerName.map { " was " + $0 } ?? "") \(Int($0.row.callDifference)) \(Int($0.row.difference))"
        }
    }

    @Test func functionsAreSortedByWhatTheyExplain() throws {
        let diff = try TreeDiff(before: [run("work", calls: 10, length: 100)], after: [run("work", calls: 30, length: 100)])
        // 20 calls more, each 105 long with common's 5: main's own time is less by that.
        #expect(rows(diff) == ["main 0 -2100", "work 20 2000", "common 20 100"])
        #expect(diff.functions.reduce(0) { $0 + $1.row.difference } == diff.whole.difference, "nothing is counted twice")
        #expect(diff.paths.reduce(0) { $0 + $1.row.difference } == diff.whole.difference)
        #expect(diff.functions.allSatisfy { $0.row.isNoise == nil }, "one run each shows nothing of noise")
    }

    @Test func aCopyThatTheCompilerMadeIsTheSameFunction() throws {
        let diff = try TreeDiff(
            before: [run("work.constprop.0", calls: 5, length: 100)], after: [run("work.isra.1", calls: 5, length: 100)])
        #expect(Set(rows(diff)) == ["main 0 0", "work 0 0", "common 0 0"])
    }

    @Test func aFunctionWithoutANameIsKnownByItsCompany() throws {
        let diff = try TreeDiff(
            before: [run("", calls: 5, length: 100, address: 0x5000_1230)],
            after: [run("", calls: 6, length: 100, address: 0x7000_4560, bias: 0x7000_0000)])
        #expect(rows(diff).contains("libdemo.so.1+0x4560 was libdemo.so.1+0x1230 1 100"), "\(rows(diff))")
    }

    @Test func whatLiesWithinTheSpreadOfTheRunsIsNoise() throws {
        let before = try [90, 100, 110].map { try run("work", calls: 5, length: $0) }
        let noise = try TreeDiff(before: before, after: [95, 105, 115].map { try run("work", calls: 5, length: $0) })
        #expect(noise.functions.first { $0.function.name == "work" }?.row.isNoise == true)
        let slower = try TreeDiff(before: before, after: [120, 130, 140].map { try run("work", calls: 5, length: $0) })
        let row = slower.functions.first { $0.function.name == "work" }
        #expect(row?.row.isNoise == false)
        #expect(row?.row.difference == 150, "medians: 5 calls of 130 instead of 100")
        #expect(slower.text(top: 0, width: nil, plain).contains("work"))
    }

    /// 8 of a call are within its length and 12 in its caller's. work and common are the cost of 20 calls more.
    @Test func correctedTheFunctionsAreSortedByWhatTheyExplainWithoutTheCost() throws {
        let before = try run("work", calls: 10, length: 100, leaf: 20, inside: 8),
            after = try run("work", calls: 30, length: 35, leaf: 20, inside: 8)
        let raw = TreeDiff(before: [before], after: [after])
        #expect(rows(raw) == ["main 0 -150", "common 20 100", "work 20 50"])
        let diff = TreeDiff(before: [before], after: [after], isCorrected: true)
        #expect(rows(diff) == ["main 0 -150", "work 20 50", "common 20 100"], "what was measured stays beside it")
        #expect(diff.functions.map { $0.row.correctedDifference } == [-390, -350, 0])
        #expect(diff.functions.map { $0.row.after.correctedSelf } == [[998_432], [450], [0]])
        #expect(diff.whole.correctedDifference == -740)
        #expect(diff.paths.reduce(0) { $0 + $1.row.correctedDifference } == -740)
    }

    @Test func correctedRunsAreHeldAgainstEachOtherWithoutTheCost() throws {
        let before = try [99, 100, 101].map { try run("work", calls: 10, length: $0, leaf: 20, inside: 8) }
        let after = try [33, 33, 34].map { try run("work", calls: 30, length: $0, leaf: 20, inside: 8) }
        let row = try #require(
            TreeDiff(before: before, after: after, isCorrected: true).functions.first { $0.function.name == "work" }?.row)
        #expect(row.isNoise == true, "990 1000 1010, 990 990 1020")
        #expect(row.isCorrectedNoise == false, "790 800 810, 390 390 420")
        #expect(TreeDiff(before: before, after: after).text(top: 0, width: nil, plain).contains("within the noise"))
    }

    @Test func aDifferenceHasItsCorrectionBesideItWhereThatIsAskedFor() throws {
        let before = try run("work", calls: 10, length: 100, leaf: 20, inside: 8),
            after = try run("work", calls: 30, length: 35, leaf: 20, inside: 8)
        let diff = TreeDiff(before: [before], after: [after], isCorrected: true)
        let text = diff.text(top: 0, width: nil, plain).split(separator: "\n").map {
            $0.split(separator: " ").joined(separator: " ")
        }
        #expect(text.contains { $0.hasPrefix("run 1.000 ms before, 1.000 ms after: +0 ns (+0.0%); one run on each side") }, "\(text)")
        #expect(text.contains("in calls 1.000 ms before, 1.000 ms after: +0 ns (+0.0%)"), "\(text)")
        #expect(text.contains("~corrected 999.622 us before, 998.882 us after: -740 ns (-0.1%)"), "\(text)")
        #expect(text.contains("before ~corrected after ~corrected difference ~corrected calls before after function module"), "\(text)")
        #expect(text.contains("1.000 us 800 ns 1.050 us 450 ns +50 ns -350 ns 10 30 work libdemo.so.1"), "\(text)")
        #expect(text.contains("1.000 us 800 ns 1.050 us 450 ns +50 ns -350 ns 10 30 main > work"), "\(text)")
        let json = diff.json.text(), uncorrected = TreeDiff(before: [before], after: [after]).json.text()
        for member in ["\"corrected_self_ns\"", "\"corrected_difference_ns\"", "\"corrected_within_noise\""] {
            #expect(json.contains(member) && !uncorrected.contains(member), "\(member)")
        }
    }

    @Test func aProcessOfUnknownCostCountsWhereItHasCalls() throws {
        let known = try run("work", calls: 1, length: 100, leaf: 20, inside: 8), unknown = try run("work", calls: 1, length: 100)
        #expect(CallTree([known, try tree(demo { _, _ in })]).processesOfUnknownCost.isEmpty)
        #expect(CallTree([known, unknown]).processesOfUnknownCost.count == 1)
    }
}
