// How a process ended, as far as its trace says.
import CTraceLayout
import Presentation

package enum ProcessEnd: Equatable, Sendable {
    case exited(status: Int32)
    case killed(signal: Int32)
    /// It became another program, of this name, which this trace does not have.
    case executed(String)
    /// It has not ended.
    case running

    /// nil: not known.
    init?(_ header: trace_file_header, _ metadata: Metadata, isRunning: Bool) {
        let status = Int32(truncatingIfNeeded: header.exit_status)
        // The status of its process is then that of the other program.
        if let execution = metadata.executions.last(where: { $0.at > header.first.monotonic_ns }) {
            self = .executed(execution.program)
        } else if let found = metadata.unrecorded.last(where: { $0.pid == header.pid && $0.at > header.first.monotonic_ns }) {
            self = .executed(basename(found.program))
        } else if header.exit_status & UInt64(TRACE_EXIT_KNOWN) != 0 {
            self = header.exit_status & UInt64(TRACE_EXIT_SIGNAL) != 0 ? .killed(signal: status &- 128) : .exited(status: status)
        } else if isRunning {
            self = .running
        } else {
            return nil
        }
    }

    package var text: String {
        switch self {
        case .exited(let status): "exit status \(status)"
        case .killed(let signal): "killed by signal \(signal)" + (Self.name(of: signal).map { " (\($0))" } ?? "")
        case .executed(let program): "executed \(program.isEmpty ? "another program" : program)"
        case .running: "still running"
        }
    }

    /// Names as in signal(7), in the order of their numbers on x86_64 and aarch64, from 1 on.
    private static let names = [
        "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM", "TERM", "STKFLT", "CHLD",
        "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF", "WINCH", "IO", "PWR", "SYS",
    ]

    /// nil: real-time signals have numbers alone.
    private static func name(of signal: Int32) -> String? {
        names.indices.contains(Int(signal) - 1) ? "SIG" + names[Int(signal) - 1] : nil
    }
}
