import CTraceLayout
import Testing
import TraceFormat

@Suite struct EventTests {
    static let functions: [UInt32] = [1, 2, 255, 1 << 19, (1 << 20) - 1]

    @Test(arguments: functions + [(1 << 24) - 1])
    func whatIsWrittenKeepsItsParts(function: UInt32) throws { try keepsItsParts(CurrentEventLayout.self, function) }

    @Test(arguments: functions)
    func whatVersion1WroteKeepsItsParts(function: UInt32) throws { try keepsItsParts(FirstEventLayout.self, function) }

    private func keepsItsParts<Layout: EventLayout>(_ layout: Layout.Type, _ function: UInt32) throws {
        typealias Word = EventWord<Layout>
        #expect(function < Word.functionReach)
        for time in [0, 1, Word.startReach, Word.timeReach - 1] {
            for (event, kind) in [(Word.enter(function, after: time), EventKind.enter), (Word.exit(function, after: time), .exit)] {
                #expect(event.kind == kind)
                #expect(event.function == function)
                #expect(event.time == time)
            }
        }
        for start in [0, 1, Word.startReach - 1] {
            let event = try #require(Word.complete(function, after: start, duration: Word.durationReach - 1))
            #expect(event.kind == .complete)
            #expect(event.function == function)
            #expect(event.duration == Word.durationReach - 1)
            #expect(event.start == start)
        }
        let unwound = Word.unwound(300, after: Word.timeReach - 1)
        #expect(unwound.controlNumber == 300)
        #expect(unwound.controlTime == Word.timeReach - 1)
    }

    /// docs/reference/format.md.
    @Test func theBitsOfBothVersionsAreWhereTheyAreSaidToBe() {
        #expect(Event.enter(1, after: 1).word == 1 << 26 | 1 << 2 | 1)
        #expect(Event.complete(1, after: 1, duration: 1)?.word == 1 << 47 | 1 << 26 | 1 << 2 | 3)
        #expect(EventWord<FirstEventLayout>.enter(1, after: 1).word == 1 << 22 | 1 << 2 | 1)
        #expect(EventWord<FirstEventLayout>.complete(1, after: 1, duration: 1)?.word == 1 << 45 | 1 << 22 | 1 << 2 | 3)
    }

    @Test func aCallThatDoesNotFitOneWordIsNotComplete() {
        #expect(Event.complete(1, after: 0, duration: Event.durationReach) == nil)
        #expect(Event.complete(1, after: Event.startReach, duration: 0) == nil)
    }

    /// Does as the agent's leaf path does with the word of an enter within the reach of the base.
    @Test(arguments: functions)
    func anEnterBecomesACompleteCallByOneAddition(function: UInt32) {
        let enter = Event.enter(function, after: 12345)
        let added: UInt64 = 2 + (678 << UInt64(EVENT_DURATION_SHIFT))
        #expect(Event(word: enter.word + added) == Event.complete(function, after: 12345, duration: 678))
    }

    @Test func controlKeepsKindAndPayload() {
        let event = Event.control(.resume, 0xff_1234_5678_9abc)
        #expect(event.kind == .control)
        #expect(event.controlKind == .resume)
        #expect(event.payload == 0xff_1234_5678_9abc & ((1 << 56) - 1))
        let unwound = Event.unwound(300, after: 77)
        #expect(unwound.controlKind == .unwound)
        #expect(unwound.controlNumber == 300)
        #expect(unwound.controlTime == 77)
    }

    @Test func aCallSiteIsAnAddressOfAnySize() {
        for address in [1, 0x7fff_ffff_ffff, (1 << 56) - 1] as [UInt64] {
            let event = Event.control(.site, address)
            #expect(event.kind == .control)
            #expect(event.controlKind == .site)
            #expect(event.payload == address)
        }
    }

    @Test func aControlKindOfTheFutureIsUnknownAndNotAnError() {
        #expect(Event(word: 60 << UInt64(CONTROL_KIND_SHIFT)).controlKind == nil)
    }

    @Test func noEventIsZero() {
        #expect(!Event.enter(1, after: 0).isEmpty)
        #expect(!Event.control(.base, 0).isEmpty)
        #expect(Event(word: 0).isEmpty)
    }

    @Test(arguments: [0, 1, 1 << 55 - 1, -(1 << 55) + 1, -1] as [Int64])
    func completedFindsTheNearestMomentOnBothSides(distance: Int64) {
        let reference = Ticks(0x0123_4567_89ab_cdef)
        let moment = reference.raw &+ UInt64(bitPattern: distance)
        #expect(completed(moment & ((1 << 56) - 1), near: reference).raw == moment)
    }

    @Test func completedBeyondHalfTheRangeFindsAnotherMoment() {
        let moment: UInt64 = 1 << 60
        #expect(completed(moment & ((1 << 56) - 1), near: Ticks(moment - (1 << 55) - 1)).raw != moment)
    }
}
