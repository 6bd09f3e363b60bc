// tracer bisect-step: which commit made the start worse, for `git bisect run`.
import ArgumentParser
import Foundation
import LaunchLab

struct BisectStep: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bisect-step",
        abstract: "Build, check, and tell git bisect: 0 good, 1 bad, 125 cannot be tested.",
        usage: "git bisect run tracer bisect-step --build COMMAND BASELINE -- PROGRAM [ARGUMENT …]",
        discussion: """
            The baseline lies outside the repository, or it would change with the commits. A commit that does not \
            build, or whose program does not become ready, is skipped (125).

            EXAMPLE
              cp startup.json /tmp/good.json
              git bisect start HEAD v1.0
              git bisect run tracer bisect-step --build 'make -j8' /tmp/good.json -- ./app --serve
            """)

    @OptionGroup var options: LaunchOptions
    @Option(help: ArgumentHelp("Builds the program, by the shell.", valueName: "command"))
    var build: String?
    @Argument(help: "The file that tracer baseline wrote of a good commit.")
    var baseline: String

    func run() throws {
        let command = LaunchCommand(words: options.command)
        // What is wrong for every commit must end the bisection (git bisect run stops at 128 and above), not skip them all.
        guard (try? Baseline(contentsOf: baseline)) != nil else {
            throw CommandFailure(message: "\(baseline) is not a baseline that can be read: make it of a good commit with tracer baseline", status: 128)
        }
        if let build {
            let process = Process()
            process.executableURL = URL(fileURLWithPath: "/bin/sh")
            process.arguments = ["-c", build]
            process.standardOutput = FileHandle.standardError
            do { try process.run() } catch { throw CommandFailure(message: "/bin/sh cannot be started: \(error.systemReason)", status: 128) }
            process.waitUntilExit()
            if process.terminationStatus != 0 {
                throw CommandFailure(message: "the build failed with status \(process.terminationStatus): this commit is skipped", status: 125)
            }
        }
        do {
            var check = Check()
            check.options = options
            check.format = .text
            check.output = nil
            check.baseline = baseline
            try check.run()
        } catch let failure as CommandFailure where failure.status != 1 {
            throw CommandFailure(message: failure.message + ": this commit is skipped", status: 125)
        }
        _ = command
    }
}
