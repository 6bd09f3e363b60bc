// Signals while the program runs.
//
// The program stays in the tool's process group, as it would be without the tool, so what a terminal or `kill -PGID`
// sends reaches it directly, and must not be sent again; what somebody sends to the tool alone must be. The kernel
// does not say which of the two happened. A witness does: a process in our group that blocks everything and is sent
// nothing else. What is pending there went to the whole group. (Members of a group are signalled newest first, so
// the witness, younger than the tool, has the signal by the time the tool sees it.)
//
// SIGCONT and the stop signals erase each other where they wait (signal(7)), at the witness too: a stop key pressed
// between the arrival of a SIGCONT and our look at the witness leaves the stop there and no SIGCONT. The earlier of the
// two is then not passed on, whoever sent it: it would undo the later one.
//
// A stop: the tool does not stop by itself, since the program may catch or ignore Ctrl-Z. It stops when the program
// has stopped, so that the shell takes the terminal back and `fg` continues both.
import CRecorder
import Glibc

package struct SignalRelay {
    /// Signals that the run loop waits for instead of being interrupted by them.
    static let waited: [Int32] =
        [
            SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGCHLD, SIGCONT, SIGTSTP,
            SIGTTIN, SIGTTOU, SIGWINCH, SIGVTALRM, SIGPROF, SIGPWR, SIGURG, SIGIO,
        ]
        + (firstRealTime...lastRealTime)
    static let firstRealTime: Int32 = 34, lastRealTime: Int32 = 64 // SIGRTMIN and SIGRTMAX of glibc
    static let terminalStops: Set<Int32> = [SIGTSTP, SIGTTIN, SIGTTOU]

    package private(set) var witness: pid_t
    /// Stop signals that were sent to us, and perhaps to the program, since it last ran.
    private var stopsSeen: Set<Int32> = []

    /// Sent to the group before the present witness was there.
    private var sentBefore: Set<Int32> = []

    static var waitedSet: sigset_t {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in waited { sigaddset(&set, signal) }
        return set
    }

    /// Readable when one of `waited` is pending.
    private let arrivals: Int32

    package init() {
        var set = SignalRelay.waitedSet
        arrivals = recorder_signal_descriptor(&set)
        witness = recorder_start_witness()
    }

    /// The relay is over: the program has ended.
    package mutating func end() {
        if arrivals >= 0 { close(arrivals) }
        guard witness > 0 else { return }
        kill(witness, SIGKILL)
        while waitpid(witness, nil, 0) < 0 && errno == EINTR {}
        witness = -1
    }

    /// The next of `waited`. nil when none came for so long, or the descriptor became readable; -1 is no descriptor.
    func wait(_ nanoseconds: UInt64, or descriptor: Int32) -> (signal: Int32, info: siginfo_t)? {
        var waited = SignalRelay.waitedSet, info = siginfo_t()
        var timeout = timespec(tv_sec: Int(nanoseconds / 1_000_000_000), tv_nsec: Int(nanoseconds % 1_000_000_000))
        if arrivals >= 0 {
            recorder_await(arrivals, descriptor, &timeout)
            timeout = timespec()
        }
        let signal = sigtimedwait(&waited, &info, &timeout)
        return signal > 0 ? (signal, info) : nil
    }

    /// A signal other than SIGCHLD has reached the tool.
    package mutating func relay(_ signal: Int32, _ info: siginfo_t, to program: pid_t) {
        if SignalRelay.terminalStops.contains(signal) {
            stopsSeen.insert(signal)
            sentBefore.remove(SIGCONT)
        } else if signal == SIGCONT {
            stopsSeen = []
            sentBefore.subtract(SignalRelay.terminalStops)
        }
        guard !wasSentToGroup(signal, info) else { return }
        if signal >= SignalRelay.firstRealTime, info.si_code == SI_QUEUE {
            sigqueue(program, signal, info._sifields._rt.si_sigval)
        } else {
            kill(program, signal)
        }
    }

    private mutating func wasSentToGroup(_ signal: Int32, _ info: siginfo_t) -> Bool {
        guard witness > 0, let pending = ProcessStatus.pendingSignals(of: witness) else {
            return info.si_code > 0 && signal != SIGALRM // no witness: from the kernel means from the terminal
        }
        let isPending = pending & (SignalRelay.bit(signal) | SignalRelay.bitsErasing(signal)) != 0
        let wasSentBefore = sentBefore.remove(signal) != nil
        if isPending { renewWitness() } // may find that the next one, too, was sent before
        return isPending || wasSentBefore
    }

    private static func bit(_ signal: Int32) -> UInt64 { 1 << UInt64(signal - 1) }

    /// Signals whose arrival takes a waiting `signal` away.
    private static func bitsErasing(_ signal: Int32) -> UInt64 {
        if signal == SIGCONT { return terminalStops.reduce(0) { $0 | bit($1) } }
        return terminalStops.contains(signal) ? bit(SIGCONT) : 0
    }

    /// Pending bits stay: after a signal to the group comes a new witness. What reached the group before it existed, and
    /// waits for us still, only the old one knows.
    private mutating func renewWitness() {
        let old = witness
        witness = recorder_start_witness()
        let known = ProcessStatus.pendingSignals(of: old) ?? 0
        var waiting = sigset_t()
        sigpending(&waiting)
        for signal in SignalRelay.waited where known & SignalRelay.bit(signal) != 0 && sigismember(&waiting, signal) == 1 {
            sentBefore.insert(signal)
        }
        kill(old, SIGKILL)
        while waitpid(old, nil, 0) < 0 && errno == EINTR {}
    }

    /// The program has stopped. Stops the tool as well if this is job control, and returns when both go on.
    mutating func programStopped(by signal: Int32, _ program: RunningProgram) {
        var pending = sigset_t()
        sigpending(&pending)
        // SIGCHLD is delivered before SIGTSTP when both wait.
        let isJobControl =
            SignalRelay.terminalStops.contains(signal)
            && (stopsSeen.contains(signal) || sigismember(&pending, signal) == 1)
        guard isJobControl || isInForeground(program.pid) else { return } // stopped by somebody who will continue it
        if program.hasChanged { return } // and has gone on already
        kill(getpid(), SIGSTOP)
        // Here again: somebody continued us. The group's SIGCONT has continued the program too, and the kernel reports
        // it to us, also when the program has been stopped once more since; ours alone has not.
        stopsSeen = []
        if !program.hasChanged { kill(program.pid, SIGCONT) }
    }

    /// Returns true if the program's group owns our terminal: a stop then leaves the user facing nothing.
    private func isInForeground(_ program: pid_t) -> Bool {
        let terminal = open("/dev/tty", O_RDONLY | O_CLOEXEC | O_NOCTTY)
        guard terminal >= 0 else { return false }
        defer { close(terminal) }
        let group = getpgid(program)
        return group > 0 && tcgetpgrp(terminal) == group
    }
}
