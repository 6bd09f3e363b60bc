import CTraceLayout
import Testing
@testable import TraceFormat

@Suite struct EventTests {
    static let functions: [UInt32] = [1, 2, 255, 1 << 19, (1 << 20) - 1]
    static let times: [UInt64] = [0, 1, (1 << 42) - 1, 1 << 42, 0x1234_5678_9abc_def0]

    @Test(arguments: functions, times)
    func enterAndExitKeepFunctionAndLowTime(function: UInt32, time: UInt64) {
        for (event, kind) in [(Event.enter(function, at: Ticks(time)), EventKind.enter),
                              (Event.exit(function, at: Ticks(time)), .exit)] {
            #expect(event.kind == kind)
            #expect(event.function == function)
            #expect(event.timeBits == time & ((1 << 42) - 1))
            #expect(unwrap(event.timeBits, near: Ticks(time)) == Ticks(time))
        }
    }

    @Test(arguments: functions, times)
    func completeKeepsFunctionStartAndDuration(function: UInt32, time: UInt64) throws {
        let event = try #require(Event.complete(function, from: Ticks(time), duration: 0x7ffff))
        #expect(event.kind == .complete)
        #expect(event.function == function)
        #expect(event.duration == 0x7ffff)
        #expect(Ticks(time).epoch << 23 | event.startInEpoch == time)
    }

    @Test func aCallTooLongForOneWordIsNotComplete() {
        #expect(Event.complete(1, from: Ticks(0), duration: 1 << 19) == nil)
    }

    @Test func controlKeepsKindAndPayload() {
        let event = Event.control(.resume, 0xff_1234_5678_9abc)
        #expect(event.kind == .control)
        #expect(event.controlKind == .resume)
        #expect(event.payload == 0xff_1234_5678_9abc & ((1 << 56) - 1))
        let unwound = Event.unwound(300, at: Ticks(77))
        #expect(unwound.controlKind == .unwound)
        #expect(unwound.unwoundCount == 300)
        #expect(unwound.timeBits == 77)
    }

    @Test func aControlKindOfTheFutureIsUnknownAndNotAnError() {
        #expect(Event(word: 60 << 56).controlKind == nil)
    }

    @Test func noEventIsZero() {
        #expect(!Event.enter(1, at: Ticks(0)).isEmpty)
        #expect(!Event.control(.epoch, 0).isEmpty)
        #expect(Event(word: 0).isEmpty)
    }

    @Test(arguments: [0, 1, 1 << 41 - 1, -(1 << 41) + 1, -1] as [Int64])
    func unwrapFindsTheNearestMomentOnBothSides(distance: Int64) {
        let reference = Ticks(0x0123_4567_89ab_cdef)
        let moment = reference.raw &+ UInt64(bitPattern: distance)
        #expect(unwrap(moment & ((1 << 42) - 1), near: reference).raw == moment)
    }

    @Test func unwrapBeyondHalfTheRangeFindsAnotherMoment() {
        let moment: UInt64 = 1 << 50
        #expect(unwrap(moment & ((1 << 42) - 1), near: Ticks(moment - (1 << 41) - 1)).raw != moment)
    }
}
