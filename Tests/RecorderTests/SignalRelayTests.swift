import Glibc
import Recorder
import Testing

/// A program that waits for ever, as a child of this process.
private final class Waiting {
    let program: RunningProgram

    init() throws {
        program = try RunningProgram(
            "/bin/sleep", ["sleep", "1000"].map { $0.utf8.map { CChar(bitPattern: $0) } + [0] }, environment: .inherited)
    }

    deinit {
        kill(program.pid, SIGKILL)
        while waitpid(program.pid, nil, 0) < 0 && errno == EINTR {}
    }

    /// Sends the signal and returns once the kernel says that the program has done what it means.
    func send(_ signal: Int32, until options: Int32) {
        kill(program.pid, signal)
        var info = siginfo_t()
        while waitid(P_PID, id_t(program.pid), &info, options | WNOWAIT) < 0 && errno == EINTR {}
    }
}

@Suite struct SignalRelayTests {
    @Test func aProgramThatWasStoppedAndContinuedAndStoppedHasChanged() throws {
        let waiting = try Waiting() // in an orphaned group, as below nohup, SIGTSTP would not stop it (signal(7))
        #expect(!waiting.program.hasChanged)
        waiting.send(SIGSTOP, until: WSTOPPED)
        #expect(waiting.program.hasChanged)
        #expect(waiting.program.nextChange() == .stopped(signal: SIGSTOP))
        #expect(!waiting.program.hasChanged)
        kill(waiting.program.pid, SIGCONT)
        #expect(waiting.program.hasChanged)
        waiting.send(SIGSTOP, until: WSTOPPED)
        #expect(waiting.program.hasChanged)
        #expect(waiting.program.nextChange() == .stopped(signal: SIGSTOP))
        #expect(waiting.program.nextChange() == nil)
    }

    /// Sends the witness the signals that the group was sent; after that the tool takes `signal` from its own queue and relays it.
    private func relay(_ signal: Int32, afterGroupWasSent group: [Int32], to program: RunningProgram) {
        var relay = SignalRelay()
        for sent in group { kill(relay.witness, sent) }
        var info = siginfo_t()
        info.si_signo = signal
        relay.relay(signal, info, to: program.pid)
        relay.end()
    }

    @Test func aContinuationThatAStopOfTheGroupHasOvertakenIsNotPassedOn() throws {
        let waiting = try Waiting()
        waiting.send(SIGSTOP, until: WSTOPPED)
        _ = waiting.program.nextChange()
        relay(SIGCONT, afterGroupWasSent: [SIGCONT, SIGTSTP], to: waiting.program)
        #expect(!waiting.program.hasChanged)
        relay(SIGCONT, afterGroupWasSent: [], to: waiting.program) // to the tool alone
        #expect(waiting.program.nextChange() == .continued)
    }

    @Test func aStopThatAContinuationOfTheGroupHasOvertakenIsNotPassedOn() throws {
        let waiting = try Waiting()
        relay(SIGTSTP, afterGroupWasSent: [SIGTSTP, SIGCONT], to: waiting.program)
        relay(SIGUSR1, afterGroupWasSent: [], to: waiting.program) // ends it, at once if it is not stopped
        var status: Int32 = 0
        while waitpid(waiting.program.pid, &status, WUNTRACED) < 0 && errno == EINTR {}
        #expect(RunningProgram.Change(waitStatus: status) == .ended(.killed(signal: SIGUSR1)))
    }
}
