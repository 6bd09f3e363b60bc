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
        guard known.settings == options.settingsText else {
            func name(_ settings: String) -> String { settings.isEmpty ? "without options" : "with \(settings)" }
            throw CommandFailure(message: "\(baseline) was made \(name(known.settings)), this check is \(name(options.settingsText)): launches are compared that are made alike", status: 2)
        }
        let accept = "tracer baseline -n \(known.runs) " + (known.settings.isEmpty ? "" : known.settings + " ")
            + "-o \(LaunchCommand(words: [baseline]).text) -- \(command.text)"
        var series = try measure(command, known, accept)
        if series.findings.contains(where: { $0.rule == .stage || $0.rule == .pageFaults }) {
            // Once more: noise does not come twice.
            let again = try measure(command, known, accept)
            series.findings = series.findings.filter { finding in again.findings.contains { $0.rule == finding.rule && $0.subject == finding.subject } }
        }
        let verdict = GateVerdict(
            baselinePath: baseline, program: known.program, runs: options.runs, findings: series.findings,
            causes: series.findings.isEmpty ? [] : series.causes, callsFromMs: known.callsFromMs, acceptCommand: accept)
        try write(verdict.text(format))
        if !series.findings.isEmpty { throw CommandFailure(message: "", status: 1) }
    }

    private func measure(_ command: LaunchCommand, _ known: Baseline, _ accept: String) throws -> (findings: [Finding], causes: [Cause]) {
        var findings: [Finding] = [], causes: [Cause] = []
        var plan = options.plan
        plan.bearsDisturbance = true
        plan.untracedEvery = 0 // what recording costs was measured for the baseline, and the same is taken out
        try options.measure([command], plan) { results, watch in
            let gate = Gate(known, calibrationMs: watch.calibrationMs)
            let profiles = results[0].corrected(callCost: known.callCostNs * gate.slowdown)
            // Without the function that it was noticed by: printf may become puts.
            func moment(_ reason: String) -> Substring { reason.prefix { $0 != "," } }
            if let ready = profiles.first?.readyReason, moment(ready) != moment(known.ready) {
                throw CommandFailure(message: "\(known.program) is ready at \(ready), when \(baseline) was made it was at \(known.ready): times to different moments cannot be compared; to accept it: \(accept)", status: 2)
            }
            // Times of a machine that does something else say nothing of the program. What is counted does.
            let isCalm = results[0].isCalm
            if !isCalm {
                complain("the machine did not calm down (\(results[0].disturbedKept) of \(results[0].launches) launches were disturbed): times are not judged")
            }
            findings = gate.findings(profiles, areTimesJudged: isCalm)
            if !findings.isEmpty { causes = gate.causes(profiles, areTimesJudged: isCalm) }
        }
        return (findings, causes)
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
            throw CommandFailure(message: "\(output) cannot be written: \(error.systemReason)", status: 2)
        }
    }
}

extension GateVerdict.Format: ExpressibleByArgument {}
