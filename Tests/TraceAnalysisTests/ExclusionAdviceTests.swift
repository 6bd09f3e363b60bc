import Testing
import TraceAnalysis
import TraceTesting

/// The advice names functions that another recording need not have.
@Suite struct ExclusionAdviceTests {
    /// `a` is called a thousand times for so many nanoseconds, in 100 us; `b` and `c` once, for 10 and 5 us. Recording a call takes 25 ns, 14 of
    /// which are in its length.
    private func advice(lasting length: Int, leastCalls: UInt64 = 500) throws -> ExclusionAdvice? {
        var steps: [Step] = (0..<1000).map { Step.call(2, 60 * $0, 60 * $0 + length) }
        steps += [.call(3, 70_000, 80_000), .call(4, 85_000, 90_000)]
        var builder = demo([.call(1, 0, 100_000, steps)])
        builder.cost(leaf: 25, inside: 14)
        return ExclusionAdvice(try Loaded(builder.bytes()).summary, isRing: false, keeping: { _ in false }, leastCalls: leastCalls)
    }

    @Test func namesWhatTakesLessThanItsRecording() throws {
        let advice = try #require(try advice(lasting: 20)) // the third most time of its own
        #expect(advice.pattern == "a" && advice.calls == 1000)
        #expect(advice.timeShare > 0.07 && advice.timeShare < 0.09) // 6 of 75 us
    }

    @Test func namesNothingThatTakesMoreThanAQuarterOfTheTime() throws {
        #expect(try advice(lasting: 36) == nil)
    }

    @Test func saysNothingOfFewCalls() throws {
        #expect(try advice(lasting: 20, leastCalls: 1001) == nil)
    }
}
