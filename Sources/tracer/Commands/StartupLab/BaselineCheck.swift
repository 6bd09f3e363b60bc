// New launches held against a baseline: what check and bisect-step do.
import LaunchLab
import Presentation

struct BaselineCheck {
    private let options: LaunchOptions
    /// The file.
    private let baseline: String

    init(_ options: LaunchOptions, _ baseline: String) {
        self.options = options
        self.baseline = baseline
    }

    /// Ends the command when the two cannot be compared, or nothing can be measured.
    func verdict() throws -> GateVerdict {
        let command = LaunchCommand(words: options.command)
        let known = try orFail(status: 2) { try Baseline(contentsOf: baseline) }
        let origin = LaunchOrigin(program: command.words.first)
        guard known.program == origin.program else {
            throw CommandFailure(
                "\(baseline) is for \(known.program), not for \(origin.program): give that program, or make another baseline with tracer baseline",
                status: 2)
        }
        guard known.machine.architecture == origin.machine.architecture else {
            throw CommandFailure(
                "\(baseline) was made on \(known.machine.architecture), but this machine is \(origin.machine.architecture): their times cannot be compared; make one here with tracer baseline",
                status: 2)
        }
        if known.machine.cpu != origin.machine.cpu {
            complain(
                "\(baseline) was made on another CPU (\(known.machine.cpu)); times are scaled by a rough calibration")
        }
        guard known.settings == options.settingsText else {
            func name(_ settings: String) -> String { settings.isEmpty ? "without options" : "with \(settings)" }
            throw CommandFailure(
                "\(baseline) was made \(name(known.settings)), but this check is \(name(options.settingsText)): only launches with the same options can be compared",
                status: 2)
        }
        let accept =
            "tracer baseline -n \(known.runs) " + (known.settings.isEmpty ? "" : known.settings + " ")
            + "-o \(shellWord(baseline)) -- \(command.text)"
        var series = try measure(command, known, accept)
        if series.findings.contains(where: { [.stage, .slowerItem, .pageFaults].contains($0.rule) }) {
            // Once more: noise does not come twice.
            let again = try measure(command, known, accept)
            series.findings = series.findings.filter { finding in
                again.findings.contains { $0.rule == finding.rule && $0.subject == finding.subject }
            }
        }
        return GateVerdict(
            baselinePath: baseline, program: known.program, runs: options.runs, findings: series.findings, notes: series.notes,
            causes: series.findings.isEmpty ? [] : series.causes, callsFromMs: known.callsFromMs, acceptCommand: accept)
    }

    private func measure(_ command: LaunchCommand, _ known: Baseline, _ accept: String) throws -> (
        findings: [Finding], causes: [Cause], notes: [String]
    ) {
        var findings: [Finding] = [], notes: [String] = [], causes: [Cause] = []
        var plan = options.plan
        plan.bearsDisturbance = true
        plan.untracedEvery = 0 // the cost of recording was measured for the baseline, and the same is subtracted
        try options.measure([command], plan) { results, watch in
            let gate = Gate(known, calibrationMs: watch.calibrationMs)
            let profiles = results[0].corrected(callCost: known.callCostNs * gate.slowdown)
            // Without the function that it was noticed by: printf may become puts.
            func moment(_ reason: String) -> Substring { reason.prefix { $0 != "," } }
            if let ready = profiles.first?.readyReason, moment(ready) != moment(known.ready) {
                throw CommandFailure(
                    "\(known.program) is ready at \(ready), but at \(known.ready) when \(baseline) was made: times to different moments cannot be compared; to accept it: \(accept)",
                    status: 2)
            }
            // Times of a machine that does something else say nothing of the program. What is counted does.
            let isCalm = results[0].isCalm
            if !isCalm {
                complain(
                    "machine too noisy (\(results[0].disturbedKept) of \(results[0].launches) launches disturbed): times are not checked")
            }
            findings = gate.findings(profiles, areTimesJudged: isCalm)
            notes = gate.notes(profiles)
            if !findings.isEmpty { causes = gate.causes(profiles, areTimesJudged: isCalm) }
        }
        return (findings, causes, notes)
    }
}
