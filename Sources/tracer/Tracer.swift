// The command line. One file per command; this one holds the root and how every command ends.
import ArgumentParser
import CTraceLayout
@preconcurrency import Glibc

@main
struct Tracer: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tracer",
        abstract: "Records the calls of a program with exact times, and reads the traces.",
        version: "tracer \(TRACER_VERSION) (\(sourceCommit))",
        subcommands: [
            Record.self, Startup.self, Report.self, Tree.self, Callers.self, Diff.self, Replay.self, Libs.self, ExportCommand.self,
            Open.self, View.self, Launch.self, BaselineCommand.self, Check.self, HistoryCommand.self, BisectStep.self, Info.self, Dump.self,
        ])

    /// ArgumentParser's own `main` would end a usage error with status 64; ours is 2, and a `CommandFailure` is one
    /// line without a usage text.
    static func main() {
        signal(SIGPIPE, SIG_DFL) // `| head` ends us quietly even when our parent ignores the signal
        do {
            var command = try parseAsRoot()
            try command.run()
        } catch let failure as CommandFailure {
            if !failure.message.isEmpty { complain(failure.message) }
            Glibc.exit(failure.status)
        } catch {
            let code = exitCode(for: error)
            let text = fullMessage(for: error)
            if code.isSuccess {
                if !text.isEmpty { print(text) }
            } else if !text.isEmpty {
                writeError(text + "\n")
            }
            Glibc.exit(code == .validationFailure ? 2 : code.rawValue)
        }
        Glibc.exit(0)
    }
}

/// Ends a command: one line on stderr (none when empty) and an exit status.
struct CommandFailure: Error {
    var message: String
    var status: Int32 = 1
}

/// One line on stderr, marked as ours.
func complain(_ message: String) {
    writeError("tracer: \(message)\n")
}

private func writeError(_ text: String) {
    var text = text
    text.withUTF8 { bytes in _ = write(STDERR_FILENO, bytes.baseAddress!, bytes.count) }
}
