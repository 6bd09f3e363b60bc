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
        let first = try measure(command, known, accept)
        var findings = first.findings, causes = first.causes
        if !first.isCalm || !first.isQuiet || findings.contains(where: \.isOfTime) {
            // Once more: noise does not come twice.
            let again = try measure(command, known, accept)
            findings = findings.filter { finding in again.findings.contains { $0.rule == finding.rule && $0.subject == finding.subject } }
            let calm = [first, again].filter(\.isCalm)
            if calm.count == 2, !findings.isEmpty { causes = Gate(known, calibrationMs: 0).causes(first.scaled + again.scaled) }
            if calm.count < 2, !findings.isEmpty { complain("machine too noisy (\(first.disturbance(or: again))): times are not checked") }
            if findings.isEmpty, let reason = doubt(first, again, known) {
                throw CommandFailure(
                    "machine too noisy to tell whether \(known.program) starts within its budgets (\(reason)): measure again when it is idle, or with more launches (-n)",
                    status: 2)
            }
        }
        return GateVerdict(
            baselinePath: baseline, program: known.program, runs: options.runs, findings: findings, notes: first.notes,
            causes: findings.isEmpty ? [] : causes, callsFromMs: known.callsFromMs, acceptCommand: accept)
    }

    /// Why two series in which nothing was found for certain do not show that there is nothing; nil: they do.
    private func doubt(_ first: Series, _ again: Series, _ known: Baseline) -> String? {
        let calm = [first, again].filter(\.isCalm)
        if calm.isEmpty { return first.disturbance(or: again) }
        if calm.allSatisfy(\.isQuiet), calm.count == 2 { return nil }
        // What only one of them has found may be so.
        return Gate(known, calibrationMs: 0).unclear(calm.flatMap(\.scaled)).first
            ?? (first.findings + again.findings).first { $0.isOfTime }?.message
    }

    private struct Series {
        var findings: [Finding] = []
        var causes: [Cause] = []
        var notes: [String] = []
        /// At the speed of the machine that the baseline was made on.
        var scaled: [LaunchProfile] = []
        /// Few enough launches were disturbed for times to be judged.
        var isCalm = true
        /// What is found in them, and what is not, is as on an idle machine.
        var isQuiet = true
        var disturbed = ""

        func disturbance(or other: Series) -> String { isCalm ? other.disturbed : disturbed }
    }

    private func measure(_ command: LaunchCommand, _ known: Baseline, _ accept: String) throws -> Series {
        var series = Series()
        var plan = options.plan
        plan.bearsDisturbance = true
        plan.untracedEvery = 0 // the cost of recording was measured for the baseline, and the same is subtracted
        try options.measure([command], plan) { results, watch in
            let gate = Gate(known, calibrationMs: watch.calibrationMs), result = results[0]
            let profiles = result.corrected(callCost: known.callCostNs * gate.slowdown)
            // Without the function that it was noticed by: printf may become puts.
            func moment(_ reason: String) -> Substring { reason.prefix { $0 != "," } }
            if let ready = profiles.first?.readyReason, moment(ready) != moment(known.ready) {
                throw CommandFailure(
                    "\(known.program) is ready at \(ready), but at \(known.ready) when \(baseline) was made: times to different moments cannot be compared; to accept it: \(accept)",
                    status: 2)
            }
            // Times of a machine that was slowed down or stolen say nothing of the program. What is counted does.
            series.isCalm = result.isCalm
            series.isQuiet = !result.isCrowded && !watch.isUneven
            series.disturbed = "\(result.disturbedKept) of \(result.launches) launches disturbed"
            series.findings = gate.findings(profiles, areTimesJudged: result.isCalm)
            series.notes = gate.notes(profiles)
            series.scaled = gate.scaled(profiles)
            if !series.findings.isEmpty { series.causes = gate.causes(profiles, areTimesJudged: result.isCalm) }
        }
        return series
    }
}
