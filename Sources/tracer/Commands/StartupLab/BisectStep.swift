import ArgumentParser
import Foundation
import LaunchLab

struct BisectStep: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "bisect-step",
        abstract: "Builds, checks, and reports to git bisect: 0 good, 1 bad, 125 cannot be tested.",
        usage: "git bisect run tracer bisect-step --build COMMAND BASELINE -- PROGRAM [ARGUMENT …]",
        discussion: """
            Keep the baseline outside the repository: inside, it would change with the commits. A commit that does not \
            build, whose program does not become ready, or that cannot be judged on a machine as noisy as this is skipped (125).

            EXAMPLES
              cp startup.json /tmp/good.json
              git bisect start HEAD v1.0
              git bisect run tracer bisect-step --build make /tmp/good.json -- ./app
            """)

    // In front of the options: the program's arguments are all that follow, and no argument may stand after them.
    @Argument(help: "The file that tracer baseline wrote for a good commit.")
    var baseline: String
    @OptionGroup var options: LaunchOptions
    @Option(help: ArgumentHelp("Shell command that builds the program.", valueName: "command"))
    var build: String?

    func run() throws {
        // A fault that all commits share must end the bisection (git bisect run stops at 128 and above), not skip them all.
        guard (try? Baseline(contentsOf: baseline)) != nil else {
            throw CommandFailure("\(baseline) is not a readable baseline: make one for a good commit with tracer baseline", status: 128)
        }
        if let build {
            let status: Int32
            do {
                status = try Subprocess.shell(build)
            } catch {
                throw CommandFailure("/bin/sh cannot be started: \(error.systemReason)", status: 128)
            }
            if status != 0 { throw CommandFailure("the build failed with status \(status): this commit is skipped", status: 125) }
        }
        let verdict: GateVerdict
        do {
            verdict = try BaselineCheck(options, baseline).verdict()
        } catch let failure as CommandFailure {
            throw CommandFailure(failure.message + "; this commit is skipped", status: 125)
        }
        try Output.write(verdict.text(.text))
        if !verdict.findings.isEmpty { throw ExitCode(1) }
    }
}
