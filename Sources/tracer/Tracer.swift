// The command line. This file holds the root and how every command ends.
import ArgumentParser
import CTraceLayout
import Presentation
@preconcurrency import Glibc

@main
struct Tracer: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "tracer",
        abstract: "Records the calls of a program with exact times, and reads the traces.",
        discussion: """
            Without options tracer record records calls between a program and its libraries, and between libraries; with \
            --functions '*' also every function of the program. A command that reads a trace takes the newest one in this \
            directory when none is named.

            EXAMPLES
              tracer record -- ./app                # leaves a trace in this directory
              tracer report                         # which functions, how often, how long
              tracer callers malloc                 # who calls it
              tracer waits                          # who waits for whom
              tracer view                           # flame graph and timeline, as a page
              tracer startup -- ./app               # why the start is slow
              tracer launch --vs ./old -- ./app     # what got slower between two builds
              tracer diff before.trace after.trace  # the same between two traces
            """,
        version: "tracer \(TRACER_VERSION) (\(sourceCommit))",
        subcommands: [Schema.self], // not shown
        groupedSubcommands: [
            CommandGroup(name: "Record", subcommands: [Record.self, Attach.self, Control.self, Plan.self, Info.self, Clean.self]),
            CommandGroup(
                name: "Look",
                subcommands: [
                    Report.self, Tree.self, Callers.self, Replay.self, Waits.self, Threads.self, Top.self, Stalls.self, Files.self,
                    Samples.self,
                    View.self,
                    Libs.self,
                    CoverageCommand.self, Dump.self,
                ]),
            CommandGroup(name: "Compare", subcommands: [Diff.self]),
            CommandGroup(name: "Export", subcommands: [ExportCommand.self, Open.self]),
            CommandGroup(
                name: "Start-up lab",
                subcommands: [
                    Startup.self, Launch.self, BaselineCommand.self, Check.self, HistoryCommand.self, BisectStep.self, Order.self,
                ]),
        ])

    private static var commandNames: [String] {
        (configuration.subcommands + configuration.groupedSubcommands.flatMap { $0.subcommands }).map { $0._commandName } + ["help"]
    }

    /// The command that was meant by a word that is none; nil when it is one, or like none.
    private static func misspelt(_ word: String) -> String? {
        if word.hasPrefix("-") || commandNames.contains(word) { return nil }
        return commandNames.nearest(to: word)
    }

    /// The words of the command line when they are traces, or runs, alone, as in `tracer a.trace b.trace`; nil otherwise.
    private static var commandLineWithoutCommand: [String]? {
        let words = Array(CommandLine.arguments.dropFirst())
        guard let first = words.first, !commandNames.contains(first),
            words.allSatisfy({
                !$0.hasPrefix("-") && ($0.hasSuffix(".trace") || $0.contains("/")) && access($0, F_OK) == 0 && !isProgram($0)
            })
        else { return nil }
        return words
    }

    /// The file can be executed and is not called a trace: where files have no modes, all can be.
    static func isProgram(_ path: String) -> Bool {
        var info = stat()
        return !path.hasSuffix(".trace") && stat(path, &info) == 0 && info.st_mode & S_IFMT == S_IFREG && access(path, X_OK) == 0
    }

    /// What is said of a first word that is neither a command nor an option; nil when it is one.
    private static var complaintOfNoCommand: String? {
        guard let word = CommandLine.arguments.dropFirst().first, !word.hasPrefix("-"), !commandNames.contains(word) else { return nil }
        return "no command \"\(word)\"; tracer --help lists them, and tracer record -- PROGRAM records a program"
    }

    /// ArgumentParser's account of a usage error, which is the error, help for the option, a usage text and where there is more.
    private static func oneLine(_ text: String) -> String {
        let lines = text.split(separator: "\n").map(String.init)
        let own = lines.prefix { !$0.hasPrefix("Help: ") && !$0.hasPrefix("Usage: ") }
        let choices = own.filter { $0.hasPrefix("  - ") }.map { $0.dropFirst(4) }.joined(separator: ", ")
        var error = own.filter { !$0.hasPrefix("  - ") }.joined(separator: " ")
        if error.hasPrefix("Error: ") { error.removeFirst(7) }
        if let first = error.first, error.dropFirst().first?.isLowercase == true { error = first.lowercased() + error.dropFirst() }
        let more = lines.last { $0.contains("--help' for more") }.flatMap { $0.split(separator: "'").dropFirst().first }
        return error + (choices.isEmpty ? "" : " " + choices) + (more.map { "; see \($0)" } ?? "")
    }

    /// ArgumentParser's own `main` would end a usage error with status 64; ours is 2, and a `CommandFailure` is one
    /// line without a usage text.
    static func main() {
        signal(SIGPIPE, SIG_DFL) // `| head` ends us quietly even when our parent ignores the signal
        if let word = CommandLine.arguments.dropFirst().first, let known = misspelt(word) {
            complain("no command \"\(word)\"; did you mean \(known)? tracer --help lists them")
            Glibc.exit(2)
        }
        if let words = commandLineWithoutCommand {
            complain(
                "\(words[0]) is a trace, not a command: tracer \(words.count == 2 ? "diff" : "report") \(words.map(shellWord).joined(separator: " "))"
            )
            Glibc.exit(2)
        }
        if let complaint = complaintOfNoCommand {
            complain(complaint)
            Glibc.exit(2)
        }
        do {
            var command = try parseAsRoot()
            try command.run()
        } catch let failure as CommandFailure {
            complain(failure.message)
            Glibc.exit(failure.status)
        } catch let code as ExitCode { // a program's own may be any
            Glibc.exit(code.rawValue)
        } catch {
            let code = exitCode(for: error)
            let text = fullMessage(for: error)
            if code.isSuccess {
                if !text.isEmpty { print(text) }
            } else if !text.isEmpty {
                complain(oneLine(text))
            }
            Glibc.exit(code == .validationFailure ? 2 : code.rawValue)
        }
        Glibc.exit(0)
    }
}
