import Testing
import TraceFormat

/// The error where nothing but a loop was timed: two fifths.
private let errorOfPrograms = RecordingCost.errorParts * 2 / 5

/// Loops as CPUs time them, of 32 calls.
@Suite struct RecordingCostTests {
    private let calls: UInt64 = 32

    private func timed(bare: UInt64, traced: UInt64, lengths: UInt64) -> TimedCalls {
        TimedCalls(bare: bare * calls, traced: traced * calls, lengths: lengths * calls)
    }

    @Test func theCostIsThatOfTheEmptyFunction() throws {
        let cost = try #require(RecordingCost(timed(bare: 6, traced: 49, lengths: 22)))
        #expect(cost.whole == 43 * calls)
        #expect(cost.inside == 22 * calls)
        #expect(cost.wholeError == errorOfPrograms && cost.insideError == 0, "nothing else was looked at")
    }

    @Test func aFastClockIsHiddenBehindWhatIsWaitedFor() throws {
        var cost = try #require(RecordingCost(timed(bare: 6, traced: 49, lengths: 22)))
        cost.compare(timed(bare: 17, traced: 51, lengths: 32)) // 34 of 43; 21 of 22 within
        #expect(cost.wholeError == errorOfPrograms, "9 of 43")
        #expect(cost.insideError == 1 * 256 / 22)
        cost.compare(timed(bare: 33, traced: 53, lengths: 46)) // 20 of 43; 19 of 22
        cost.compare(stepOfClock: 1, calls: calls) // none
        #expect(cost.wholeError == 23 * 256 / 43)
        #expect(cost.insideError == 3 * 256 / 22)
    }

    @Test func aSlowClockCostsTheSameEverywhere() throws {
        var cost = try #require(RecordingCost(timed(bare: 6, traced: 506, lengths: 250)))
        cost.compare(timed(bare: 17, traced: 512, lengths: 259))
        cost.compare(timed(bare: 25, traced: 530, lengths: 268))
        #expect(cost.wholeError == errorOfPrograms)
        #expect(cost.insideError == 2)
    }

    @Test func aClockThatGoesInStepsMayMeasureHalfOfOneTooMuch() throws {
        var cost = try #require(RecordingCost(timed(bare: 6, traced: 52, lengths: 26)))
        cost.compare(stepOfClock: 26, calls: calls)
        #expect(cost.insideError == 128)
        #expect(cost.wholeError == errorOfPrograms, "many calls together are as long as they are")
    }

    @Test func whatCannotBeIsUnknown() throws {
        #expect(RecordingCost(timed(bare: 50, traced: 50, lengths: 20)) == nil)
        #expect(RecordingCost(timed(bare: 6, traced: 50, lengths: 0)) == nil, "a clock that stands still")
        var cost = try #require(RecordingCost(timed(bare: 6, traced: 50, lengths: 60)))
        #expect(cost.inside == cost.whole)
        cost.compare(timed(bare: 6, traced: 5000, lengths: 4900))
        #expect(cost.wholeError == 512 && cost.insideError == 512, "never more than twice")
        cost.compare(timed(bare: 500, traced: 400, lengths: 100))
        #expect(cost.wholeError == 512)
    }
}
