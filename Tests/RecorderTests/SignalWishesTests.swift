import CTraceLayout
import Glibc
import Testing

import Recorder

@Suite struct SignalWishesTests {
    @Test(arguments: [
        ("USR2=snapshot", SIGUSR2, SignalWishes.Action.snapshot), ("SIGUSR1=start", SIGUSR1, .start), ("rtmin=stop", 34, .stop),
        ("RTMIN+30=stop", 64, .stop),
    ])
    func aSignalHasItsMeaning(text: String, number: Int32, action: SignalWishes.Action) throws {
        let wishes = try SignalWishes([text])
        #expect(wishes.numbers == [number] && wishes.action(of: number) == action && wishes.action(of: SIGTERM) == nil)
    }

    @Test(arguments: [
        "TERM=snapshot", "KILL=stop", "CHLD=stop", "WINCH=stop", "34=stop", "RTMIN+31=stop", "RTMIN-1=stop", "USR1", "USR1=", "=stop",
        "USR1=kill", "",
    ])
    func othersAreRefused(text: String) {
        #expect(throws: Refusal.self) { try SignalWishes([text]) }
    }

    @Test func aSignalHasOneMeaning() {
        #expect(throws: Refusal.self) { try SignalWishes(["USR1=stop", "SIGUSR1=start"]) }
    }
}

@Suite struct EndTriggerTests {
    @Test func theAgentIsNotToldOfEnds() throws {
        let crash = SnapshotPlan.Trigger(pattern: SnapshotPlan.Trigger.crash, nanoseconds: 0)
        let term = try #require(SnapshotPlan.Trigger.end(by: "sigterm"))
        #expect(SnapshotPlan(before: 1, triggers: [crash, term]).text == nil)
        #expect(SnapshotPlan(before: 1, triggers: [crash, .init(pattern: "f", nanoseconds: 5), term]).text == "f>5")
        #expect([SIGSEGV, SIGABRT, SIGQUIT].allSatisfy { crash.ends(by: $0) && !term.ends(by: $0) })
        #expect(!crash.ends(by: SIGKILL) && !crash.ends(by: SIGTERM) && term.ends(by: SIGTERM))
        #expect(SnapshotPlan.Trigger.end(by: "NONE") == nil && SnapshotPlan.Trigger.end(by: "CHLD") == nil)
        let stall = SnapshotPlan.Trigger(pattern: "(stall)", nanoseconds: 5)
        #expect(!stall.isOfEnd && !stall.ends(by: SIGSEGV) && SnapshotPlan(before: 1, triggers: [stall]).text == "(stall)>5")
    }

    @Test func everySignalThatEndsAProcessHasOneName() {
        for signal in [
            SIGHUP, SIGINT, SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGKILL, SIGUSR1, SIGSEGV, SIGPIPE, SIGTERM, SIGSYS,
        ] {
            #expect(SignalName.number(SignalName.text(signal)) == signal)
        }
        #expect(SignalName.text(40) == "SIG40")
    }
}
