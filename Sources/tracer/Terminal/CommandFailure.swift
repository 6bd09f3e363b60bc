// How a command that fails ends, and what the tool says on stderr.
import Glibc
import Presentation

/// Ends a command: one line on stderr and an exit status. A status that needs no line is an `ExitCode`.
struct CommandFailure: Error {
    var message: String
    var status: Int32 = 1
}

extension CommandFailure {
    /// - Parameter status: when it is not the user's choice of the file that is wrong
    init(_ failure: AtomicFile.Failure, status: Int32 = 1) {
        switch failure {
        case .exists: self.init(message: "\(failure.message): overwrite it with --force, or name another file", status: 2)
        case .isDirectory: self.init(message: "\(failure.message): name a file to write", status: 2)
        case .cannotCreate, .cannotWrite: self.init(message: failure.message, status: status)
        }
    }
}

/// One line on stderr, marked as ours.
func complain(_ message: String) {
    writeError("tracer: \(message)\n")
}

func writeError(_ text: String) { writeAll(Array(text.utf8), to: STDERR_FILENO) }
