// How a command that fails ends, and what the tool says on stderr.
import ELF
import EntryPlan
import FunctionUse
import Glibc
import LaunchLab
import Presentation
import Recorder
import TraceAnalysis

/// Ends a command: one line on stderr and an exit status. A status that needs no line is an `ExitCode`.
struct CommandFailure: Error {
    var message: String
    var status: Int32

    init(_ message: String, status: Int32 = 1) { (self.message, self.status) = (message, status) }
}

/// Runs `body`. What it cannot go on with ends the command with one line.
/// - Parameter status: where the error does not say which
func orFail<R>(status: Int32 = 1, _ body: () throws -> R) throws -> R {
    do {
        return try body()
    } catch let refusal as Refusal {
        throw CommandFailure(refusal.message, status: refusal.status)
    } catch let problem as LaunchProblem {
        throw CommandFailure(problem.message, status: status)
    } catch let problem as PlanProblem {
        throw CommandFailure(problem.message, status: status)
    } catch let problem as LayoutOrder.Problem {
        throw CommandFailure(problem.message, status: status)
    } catch let error as TraceError {
        throw CommandFailure(error.description, status: status)
    } catch let error as StartupError {
        throw CommandFailure(error.description, status: status)
    }
}

extension CommandFailure {
    /// - Parameter status: when it is not the user's choice of the file that is wrong
    init(_ failure: AtomicFile.Failure, status: Int32 = 1) {
        switch failure {
        case .exists: self.init("\(failure.message): overwrite it with --force, or name another file", status: 2)
        case .isDirectory: self.init("\(failure.message): name a file to write", status: 2)
        case .cannotCreate, .cannotWrite: self.init(failure.message, status: status)
        }
    }
}

/// One line on stderr, marked as ours.
func complain(_ message: String) {
    writeError("tracer: \(printable(message))\n")
}

func writeError(_ text: String) { writeAll(Array(text.utf8), to: STDERR_FILENO) }
