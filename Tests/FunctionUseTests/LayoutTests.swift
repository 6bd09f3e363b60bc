import FunctionUse
import Testing

@Suite struct FirstCallVoteTests {
    @Test func oneTraceIsItsOwnOrder() {
        var vote = FirstCallVote()
        vote.add([30, 10, 20])
        #expect(vote.order == [30, 10, 20])
    }

    @Test func theMiddleRankDecides() {
        var vote = FirstCallVote()
        vote.add([1, 2, 3])
        vote.add([2, 1, 3])
        vote.add([2, 3, 1])
        // 1: 0, 1, 2; 2: 0, 0, 1; 3: 1, 2, 2
        #expect(vote.order == [2, 1, 3])
    }

    @Test func whatFewTracesCallStandsBehind() {
        var vote = FirstCallVote()
        vote.add([9, 1, 2])
        vote.add([1, 2])
        vote.add([1, 2])
        #expect(vote.order == [1, 2, 9])
    }

    @Test func equalVotesStandByAddress() {
        var vote = FirstCallVote()
        vote.add([7, 5])
        vote.add([5, 7])
        #expect(vote.order == [5, 7])
        #expect(FirstCallVote().order.isEmpty)
    }
}

@Suite struct CallAffinityTests {
    private func order(_ functions: [(UInt64, UInt64)], _ pairs: [(Int, Int, UInt64)]) -> [Int] {
        CallAffinity.order(
            functions.map { .init(byteCount: $0.0, calls: $0.1) },
            Dictionary(uniqueKeysWithValues: pairs.map { (CallAffinity.Pair(caller: $0.0, callee: $0.1), $0.2) }))
    }

    @Test func calleesStandBehindWhoCallsThemMost() {
        // 0 calls 2 a hundred times, 1 calls it once.
        #expect(order([(10, 100), (10, 1), (10, 101)], [(0, 2, 100), (1, 2, 1)]) == [0, 2, 1])
    }

    @Test func hotGroupsComeFirst() {
        #expect(order([(10, 1), (10, 2), (10, 500), (10, 500)], [(0, 1, 2), (2, 3, 500)]) == [2, 3, 0, 1])
    }

    @Test func groupsStaySmall() {
        let large = CallAffinity.mostBytes
        #expect(order([(large, 1), (large, 100), (10, 99)], [(0, 1, 100), (1, 2, 99)]) == [2, 1, 0])
    }

    @Test func recursionIsNoReasonToMove() {
        #expect(order([(10, 5), (10, 5)], [(0, 0, 5), (1, 1, 5)]) == [0, 1])
        #expect(order([], []).isEmpty)
    }

    @Test func rings() {
        #expect(Set(order([(10, 5), (10, 5), (10, 5)], [(0, 1, 5), (1, 2, 5), (2, 0, 5)])) == [0, 1, 2])
    }
}

@Suite struct OrderFileTests {
    @Test func formats() {
        let functions = [["_ZN1AC1Ev", "_ZN1AC2Ev"], [], ["_start"], ["main"], ["main"]]
        #expect(OrderFile.text(functions, .lld) == "_ZN1AC1Ev\n_ZN1AC2Ev\nmain\n")
        let sections = OrderFile.text(functions, .section).split(separator: "\n")
        #expect(sections.count == 12)
        #expect(sections.contains(".text.startup.main"))
        #expect(OrderFile.text(functions, .gold) == OrderFile.text(functions, .section))
        let script = OrderFile.text([["$s3app4mainyyF"], ["odd-name"]], .bfdScript)
        #expect(script.contains("*(.text.$s3app4mainyyF)\n"))
        #expect(script.contains("*(\".text.odd-name\")\n"))
        #expect(script.hasSuffix("INSERT BEFORE .text;\n"))
        #expect(OrderFile.text([["main"]], .mold).contains(".text.main 0 : { *(.text.main) }"))
    }

    @Test func twinsAndClones() {
        #expect(LayoutDoubts.isTwin("_ZN1AC2Ev", "_ZN1AC1Ev"))
        #expect(LayoutDoubts.isTwin("_ZN1AD2Ev", "_ZN1AD1Ev"))
        #expect(!LayoutDoubts.isTwin("_ZN1A1aEv", "_ZN1A1bEv"))
        #expect(!LayoutDoubts.isTwin("f1", "f2"))
        #expect(LayoutDoubts.isClone("work.constprop.0"))
        #expect(!LayoutDoubts.isClone("work"))
    }
}

@Suite struct NameScopeTests {
    @Test(arguments: [
        ("demo::Shape::area() const", "_ZNK4demo5Shape4areaEv", "demo::Shape"),
        ("void ns::apply<int>(int)", "_ZN2ns5applyIiEEvT_", "ns"),
        ("(anonymous namespace)::count(int)", "_ZN12_GLOBAL__N_15countEi", "(anonymous namespace)"),
        ("std::vector<a::b, c::d>::push_back(a::b const&)", "_Zx", "std::vector<a::b, c::d>"),
        ("a::operator<<(a::S&, int)", "_Zx", "a"),
        ("a::S::operator()(int) const", "_Zx", "a::S"),
        ("a::operators::f()", "_Zx", "a::operators"),
        ("<alloc::vec::Vec<T> as core::ops::Drop>::drop", "_Rx", "<alloc::vec::Vec<T> as core::ops::Drop>"),
        ("main", "main", ""), ("f(int)", "_Z1fi", ""),
        ("static App.Thing.run(with: Swift.Int) -> ()", "$s3App", "App.Thing"),
        ("closure #1 () -> () in App.Thing.run() -> ()", "$s3App", "App.Thing"),
        ("App.Thing.value.getter : Swift.Int", "$s3App", "App.Thing"),
        ("(extension in App):Swift.String.trimmed() -> Swift.Int", "$s3App", "Swift.String"),
        ("static (extension in App):App.Thing< where A == Swift.Int>.special() -> Swift.Int", "$s3App", "App.Thing"),
        ("App.(Hidden in _888C53).go() -> Swift.Int", "$s3App", "App.Hidden"),
        ("App.(alone in _888C53)(Swift.Int) -> Swift.Int", "$s3App", "App"),
        ("App.(Hidden in _888C53).init() -> App.(Hidden in _888C53)", "$s3App", "App.Hidden"),
        ("implicit closure #1 (Swift.Int, Swift.Int) -> Swift.Int in App.(Hidden in _888C53).go() -> Swift.Int", "$s3App", "App.Hidden"),
        ("App.Thing.Inner.deep() -> Swift.Int", "$s3App", "App.Thing.Inner"),
        ("App.C.subscript.getter : (Swift.Int) -> Swift.Int", "$s3App", "App.C"),
        ("App.C.__deallocating_deinit", "$s3App", "App.C"),
        ("protocol witness for App.P.run() -> Swift.Int in conformance App.Thing<A> : App.P in App", "$s3App", "App.Thing"),
        (
            "protocol witness for static Swift.Equatable.== infix(A, A) -> Swift.Bool in conformance App.E : Swift.Equatable in App",
            "$s3App", "App.E"
        ),
        ("static App.E.== infix(App.E, App.E) -> Swift.Bool", "$s3App", "App.E"),
        ("lazy protocol witness table accessor for type App.E and conformance App.E : Swift.Hashable in App", "$s3App", "App.E"),
        ("type metadata accessor for App.C", "$s3App", "App.C"), ("destroy value witness for App.Thing", "$s3App", "App.Thing"),
        ("one-time initialization function for shared", "$s3App", ""),
        (
            "partial apply forwarder for closure #1 (Swift.Int) -> Swift.Int in App.(Hidden in _888C53).go() -> Swift.Int", "$s3App",
            "App.Hidden"
        ),
        ("generic specialization <Swift.Int> of App.Thing.run() -> Swift.Int", "$s3App", "App.Thing"),
        ("-[Shape area]", "_i_Shape__area", "Shape"),
    ])
    func scopes(_ name: String, _ symbol: String, _ scope: String) {
        #expect(NameScope.of(name, symbol: symbol) == scope)
    }
}
