import ArgumentParser
import Foundation
import LaunchLab
import Presentation

struct BaselineCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "baseline",
        abstract: "Measures how a program starts now, as the baseline for tracer check.",
        usage: "tracer baseline [options] -o FILE -- PROGRAM [ARGUMENT …]",
        discussion: """
            The file is a small JSON file that is easy to review: stages with their percentiles, libraries, constructors, \
            budgets. Commit it. Rewriting the file keeps the budgets that it has.

            EXAMPLES
              tracer baseline -n 30 -o startup.json -- ./app --serve
            """)

    @OptionGroup var options: LaunchOptions
    @Option(name: .shortAndLong, help: ArgumentHelp("The file to write.", valueName: "file"))
    var output: String

    func run() throws {
        let command = LaunchCommand(words: options.command)
        var budgets = Baseline.Budgets(), stageBudgets: [String: Double] = [:]
        if FileManager.default.fileExists(atPath: output) {
            do {
                let known = try Baseline(contentsOf: output)
                budgets = known.budgets
                for stage in known.stages { stageBudgets[stage.name] = stage.budgetMs }
            } catch {
                throw CommandFailure("\(error.message); nothing was overwritten", status: 2)
            }
        }
        try options.measure([command]) { results, watch in
            let origin = LaunchOrigin(program: command.words.first)
            var machine = origin.machine
            machine.calibrationMs = watch.calibrationMs
            if !results[0].isCalm {
                complain(
                    "machine too noisy (\(results[0].disturbedKept) of \(results[0].launches) launches disturbed): make the baseline again when it is idle"
                )
            }
            var baseline = Baseline(
                program: origin.program, command: command, profiles: results[0].corrected, machine: machine,
                settings: options.settingsText, callCost: results[0].callCost ?? 0, budgets: budgets)
            for index in baseline.stages.indices { baseline.stages[index].budgetMs = stageBudgets[baseline.stages[index].name] }
            try writeFile(baseline.text, to: output, status: 2)
            complain(
                "\(output): \(origin.program) starts in \(readable(nanoseconds: baseline.stages[0].p50Ms * 1e6)) (median of \(baseline.runs)); check it with tracer check \(output) -- \(command.text)"
            )
        }
    }
}
