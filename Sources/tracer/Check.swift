// tracer check: the gate.
import ArgumentParser
import Foundation
import LaunchLab

struct Check: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Fail when a program starts worse than its baseline allows.",
        usage: "tracer check [options] BASELINE -- PROGRAM [ARGUMENT …]",
        discussion: """
            Exit status 0: within the budgets. 1: broken; what broke it, and the command that accepts it, are printed. \
            2: it could not be measured, or the baseline is of another program or machine type.

            What is counted (libraries, constructors, relocations, page faults) is held against the baseline as it \
            is. A stage fails when its median is beyond its budget and a rank test says that this is no noise, in two \
            series one after the other.

            EXAMPLES
              tracer check startup.json -- ./app --serve
              tracer check --format github startup.json -- ./app --serve
            """)

    @OptionGroup var options: LaunchOptions
    @Option(help: ArgumentHelp("\(GateVerdict.Format.allCases.map(\.rawValue).joined(separator: ", ")).", valueName: "format"))
    var format = GateVerdict.Format.text
    @Option(name: .shortAndLong, help: ArgumentHelp("Write the verdict there instead of standard output.", valueName: "file"))
    var output: String?
    @Argument(help: "The file that tracer baseline wrote.", completion: .file(extensions: ["json"]))
    var baseline: String

    func run() throws {
        let command = LaunchCommand(words: options.command)
        let known: Baseline
        do {
            known = try Baseline(contentsOf: baseline)
        } catch {
            throw CommandFailure(message: error.message, status: 2)
        }
        let place = LaunchPlace(command)
        guard known.program == place.program else {
            throw CommandFailure(message: "\(baseline) is of \(known.program), not of \(place.program): name the program that it was made of, or make another with tracer baseline", status: 2)
        }
        guard known.machine.architecture == place.machine.architecture else {
            throw CommandFailure(message: "\(baseline) was made on \(known.machine.architecture), this machine is \(place.machine.architecture): times of one say nothing about the other; make one here with tracer baseline", status: 2)
        }
        if known.machine.processor != place.machine.processor {
            complain("\(baseline) was made on another processor (\(known.machine.processor)); times are scaled by a calibration, which is rough")
        }
        var findings = try series(command, known)
        if findings.contains(where: { $0.rule == .stage || $0.rule == .pageFaults }) {
            // Once more: noise does not come twice.
            let again = try series(command, known)
            findings = findings.filter { finding in again.contains { $0.rule == finding.rule && $0.subject == finding.subject } }
        }
        let verdict = GateVerdict(
            baselinePath: baseline, program: known.program, runs: options.runs, findings: findings, causes: [],
            acceptCommand: "tracer baseline -n \(known.runs) -o \(baseline) -- \(command.text)")
        try write(verdict.text(format))
        if !findings.isEmpty { throw CommandFailure(message: "", status: 1) }
    }

    private func series(_ command: LaunchCommand, _ known: Baseline) throws -> [Finding] {
        var findings: [Finding] = []
        try options.measure([command]) { results, watch in
            findings = Gate(known, calibrationMs: watch.calibrationMs).findings(results[0].corrected)
            // Times of a machine that does something else say nothing of the program. What is counted does.
            let disturbed = results[0].disturbedKept
            if disturbed * 4 > options.runs {
                complain("the machine did not calm down (\(disturbed) of \(options.runs) launches were disturbed): times are not judged")
                findings.removeAll { $0.rule == .stage || $0.rule == .newConstructor }
            }
        }
        return findings
    }

    private func write(_ text: String) throws {
        guard let output else {
            var standard = Output()
            try standard.write(text)
            return try standard.flush()
        }
        do {
            try text.write(toFile: output, atomically: true, encoding: .utf8)
        } catch {
            throw CommandFailure(message: "\(output) cannot be written: \(error.localizedDescription)", status: 2)
        }
    }
}

extension GateVerdict.Format: ExpressibleByArgument {}
