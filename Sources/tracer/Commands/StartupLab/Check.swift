import ArgumentParser
import Foundation
import LaunchLab

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Fails when a program starts worse than its baseline allows.",
        usage: "tracer check [options] BASELINE -- PROGRAM [ARGUMENT …]",
        discussion: """
            Exit status 0: within the budgets. 1: over budget; the causes, and the command that accepts the change, are \
            printed. 2: it could not be measured, the machine is too noisy to tell, or the baseline is for another program \
            or CPU architecture.

            Counts (libraries, constructors, relocations, page faults) are compared with the baseline directly. A stage \
            fails when its median exceeds its budget and a rank test shows that this is not noise, in two series in a row.

            EXAMPLES
              tracer check startup.json -- ./app --serve
              tracer check --format github startup.json -- ./app --serve
            """)

    // In front of the options: the program's arguments are all that follow, and no argument may stand after them.
    @Argument(help: "The file that tracer baseline wrote.", completion: .file(extensions: ["json"]))
    var baseline: String
    @OptionGroup var options: LaunchOptions
    @Option(help: ArgumentHelp("\(GateVerdict.Format.allCases.map(\.rawValue).joined(separator: ", ")).", valueName: "format"))
    var format = GateVerdict.Format.text
    @Option(name: .shortAndLong, help: ArgumentHelp("Write the verdict there instead of standard output.", valueName: "file"))
    var output: String?

    func run() throws {
        let verdict = try BaselineCheck(options, baseline).verdict(), text = verdict.text(format)
        if let output { try writeFile(text, to: output, status: 2) } else { try Output.write(text) }
        if !verdict.findings.isEmpty { throw ExitCode(1) }
    }
}

extension GateVerdict.Format: ExpressibleByArgument {}
