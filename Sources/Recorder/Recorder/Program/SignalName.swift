// Names of signals, as signal(7) has them.
import Glibc

package enum SignalName {
    private static let names: [(number: Int32, text: String)] = [
        (SIGHUP, "HUP"), (SIGINT, "INT"), (SIGQUIT, "QUIT"), (SIGILL, "ILL"), (SIGTRAP, "TRAP"), (SIGABRT, "ABRT"), (SIGBUS, "BUS"),
        (SIGFPE, "FPE"), (SIGKILL, "KILL"), (SIGUSR1, "USR1"), (SIGSEGV, "SEGV"), (SIGUSR2, "USR2"), (SIGPIPE, "PIPE"), (SIGALRM, "ALRM"),
        (SIGTERM, "TERM"), (SIGSTKFLT, "STKFLT"), (SIGXCPU, "XCPU"), (SIGXFSZ, "XFSZ"), (SIGVTALRM, "VTALRM"), (SIGPROF, "PROF"),
        (SIGIO, "IO"), (SIGPWR, "PWR"), (SIGSYS, "SYS"),
    ]

    /// "SIGSEGV"; one without a name by its number.
    package static func text(_ signal: Int32) -> String { "SIG" + (names.first { $0.number == signal }?.text ?? String(signal)) }
    /// The number of one that ends a process unless it is handled: "SEGV" or "SIGSEGV". nil: there is none of the name.
    package static func number(_ text: String) -> Int32? {
        let name = text.uppercased(), short = name.hasPrefix("SIG") ? String(name.dropFirst(3)) : name
        return names.first { $0.text == short }?.number
    }
    /// Its default action is to end the process with a core dump.
    package static func dumpsCore(_ signal: Int32) -> Bool {
        [SIGQUIT, SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV, SIGXCPU, SIGXFSZ, SIGSYS].contains(signal)
    }
}
