// Options that launch, baseline, check and bisect-step have in common: the program and how it is launched.
import ArgumentParser
import Foundation
import LaunchLab
import TraceAnalysis

struct LaunchOptions: ParsableArguments {
    @Option(name: [.customShort("n"), .long], help: "Number of launches to measure.")
    var runs = 20
    @Option(help: "Number of warm-up launches before them, not measured.")
    var warmUp = 2
    @Flag(help: "Before each launch, drop the program's own files from the file cache. Needs no privilege.")
    var cold = false
    @Flag(help: "Before each launch, drop all file caches of the system. Needs root.")
    var dropCaches = false
    @Option(help: ArgumentHelp("The program is ready at the first call of this function.", valueName: "symbol"))
    var ready: String?
    @Flag(help: "Measure until the program ends by itself.")
    var toExit = false
    @Option(help: ArgumentHelp("Give up when a launch takes longer.", valueName: "seconds"))
    var timeout = 30.0
    @Option(help: ArgumentHelp("Pin the launches to this CPU.", valueName: "number"))
    var cpu: Int?
    @Flag(name: .customLong("no-aslr"), help: "Load everything at the same addresses each time.")
    var noASLR = false
    @Flag(help: "Pass only PATH, HOME, LANG and the like to the program, so that the shell's environment makes no difference.")
    var cleanEnvironment = false
    @Flag(help: "Show the program's output instead of discarding it.")
    var keepOutput = false
    @Option(help: ArgumentHelp("Shell command to run before each launch.", valueName: "command"))
    var setup: String?
    @Option(help: ArgumentHelp("Shell command to run after each launch.", valueName: "command"))
    var teardown: String?
    @Option(help: "Make one launch without the agent after this many with it; 0: none.")
    var untracedEvery = 4
    @Argument(parsing: .postTerminator, help: ArgumentHelp("After --: the program and its arguments.", valueName: "program"))
    var command: [String] = []

    func validate() throws {
        if runs < 1 || runs > 10_000 { throw ValidationError("-n takes 1 to 10000 launches") }
        if warmUp < 0 || untracedEvery < 0 { throw ValidationError("--warm-up and --untraced-every take 0 or a number of launches") }
        if !(timeout > 0 && timeout <= 3600) { throw ValidationError("--timeout takes seconds, at most 3600") }
        if let ready, ready.isEmpty { throw ValidationError("--ready takes the name of a function") }
        if let cpu, !(0..<1024).contains(cpu) { throw ValidationError("--cpu takes the number of a CPU, from 0") }
        if toExit, ready != nil { throw ValidationError("--to-exit measures to the end, --ready to a call: give only one of them") }
        if command.isEmpty { throw ValidationError("give the program and its arguments after --: -- PROGRAM [ARGUMENT …]") }
    }

    var plan: LaunchPlan {
        var plan = LaunchPlan()
        plan.runs = runs
        plan.warmUps = warmUp
        plan.untracedEvery = untracedEvery
        plan.cold = dropCaches ? .everything : cold ? .files : .no
        plan.readySymbol = ready
        plan.setup = setup
        plan.teardown = teardown
        plan.controls.cpu = cpu
        plan.controls.hasFixedAddresses = noASLR
        plan.controls.hasFixedEnvironment = cleanEnvironment
        plan.controls.keepsOutput = keepOutput
        plan.controls.timeout = timeout
        plan.controls.runsToExit = toExit
        plan.seed = UInt64.random(in: 0 ... .max)
        return plan
    }

    /// The options that change how programs are launched, as the history stores them.
    var settingsText: String {
        var words: [String] = []
        if dropCaches { words.append("--drop-caches") } else if cold { words.append("--cold") }
        if let ready { words += ["--ready", ready] }
        if toExit { words.append("--to-exit") }
        if let cpu { words += ["--cpu", String(cpu)] }
        if noASLR { words.append("--no-aslr") }
        if cleanEnvironment { words.append("--clean-environment") }
        return words.joined(separator: " ")
    }

    /// Launches the commands in turn and calls `body` with the results. If a command cannot be measured the tool ends with status 2, or
    /// 126 and 127 as `tracer record`.
    func measure(_ commands: [LaunchCommand], _ changed: LaunchPlan? = nil, _ body: ([LaunchResult], MachineWatch) throws -> Void) throws {
        let plan = changed ?? plan
        try orFail(status: 2) {
            let scratch = try LaunchScratch()
            defer { scratch.remove() }
            let subjects = try commands.enumerated().map { index, command in
                let folder = scratch.path + "/\(index)"
                try FileManager.default.createDirectory(
                    atPath: folder, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
                return try LaunchSubject(
                    command, readySymbol: plan.readySymbol, controls: plan.controls, folder: folder, argumentPlan: ArgumentPlans.ofFiles)
            }
            var series = LaunchSeries(plan, subjects)
            series.progress = showLaunches()
            let results = try series.run()
            try body(results, series.watch)
        }
    }

    /// Stores a series in the history. If that cannot be written, a line says so, and the command goes on.
    func remember(_ result: LaunchResult, _ command: LaunchCommand, path: String?) {
        guard path != "" else { return }
        let summary = LaunchSummary(result.corrected)
        let origin = LaunchOrigin(program: command.words.first)
        let entry = HistoryEntry(
            time: Date().timeIntervalSince1970, hostname: origin.hostname, cpu: origin.machine.cpu, program: origin.program,
            command: command.text,
            build: origin.build, commit: origin.commit, settings: settingsText, ready: result.readyReason, runs: result.profiles.count,
            disturbed: result.disturbed.count, libraries: summary.libraries.count, relocations: summary.relocations,
            minorFaults: summary.minorFaults, majorFaults: summary.majorFaults, overhead: result.overhead)
        do {
            try History(path: path ?? History.standardPath, creates: true).add(entry, stages: summary.stages.map { ($0.name, $0.sample) })
        } catch {
            complain("could not save to history: \(error.message)")
        }
    }
}

/// On a terminal, a line that shows the progress of a series, updated before each launch and at its end.
func showLaunches() -> (_ done: Int, _ all: Int) -> Void {
    guard isatty(STDERR_FILENO) == 1 else { return { _, _ in } }
    return { done, all in
        FileHandle.standardError.write(Data("\r\u{1b}[K\(done < all ? "launch \(done + 1) of \(all)" : "")".utf8))
    }
}
