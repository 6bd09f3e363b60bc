import ArgumentParser
import LaunchLab
import TraceAnalysis

struct Launch: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Launches a program many times: percentiles for each stage; or compares two versions and shows the causes.",
        usage: """
            tracer launch [options] -- PROGRAM [ARGUMENT …]
            tracer launch [options] --vs 'PROGRAM [ARGUMENT …]' -- PROGRAM [ARGUMENT …]
            """,
        discussion: """
            Each launch is a fresh process, from exec until it is ready (as tracer startup defines it; the program is \
            then ended). Output through stdio leaves a program late: one that ends by itself is then measured to its end, in \
            the row ready → exit. Launches on a disturbed machine are repeated. After every fourth one, one is made without the agent and \
            timed from outside, and the time that the agent adds is subtracted from the figures.

            With --vs both programs are launched in turn, in random order: the table says for each stage whether the \
            second (after --) is slower, with a confidence interval, and which libraries, constructors and calls \
            explain it.

            EXAMPLES
              tracer launch -n 30 -- ./app --serve
              tracer launch -n 20 --cold -- ./app
              tracer launch -n 30 --vs './app.old --serve' -- ./app --serve
            """)

    @OptionGroup var options: LaunchOptions
    @Option(help: ArgumentHelp("The version to compare with: program and arguments as one quoted argument.", valueName: "command"))
    var vs: String?
    @Option(
        help: ArgumentHelp(
            "The database to save the launches in, for tracer history; \"\" saves nothing. Default: \(History.standardPath).",
            valueName: "file"))
    var history: String?
    @Flag(help: "One JSON object.")
    var json = false

    func run() throws {
        let second = LaunchCommand(words: options.command)
        var commands = [second]
        if let vs {
            guard let first = LaunchCommand(text: vs), !first.words.isEmpty else {
                throw CommandFailure("--vs '\(vs)': give a program and its arguments, quoted as for a shell", status: 2)
            }
            commands = [first, second]
        }
        try options.measure(commands) { results, watch in
            let result = results[results.count - 1]
            let comparison = results.count == 2 ? LaunchComparison(results[0], result) : nil
            try Output().show(LaunchOutput(result, second, watch, comparison: comparison), json: json) { output in
                let text = LaunchText(options.plan, watch, style: output.style)
                try output.write(
                    comparison.map { text.comparison(results[0], result, (commands[0], second), $0) } ?? text.table(result, second))
            }
            for (command, result) in zip(commands, results) { options.remember(result, command, path: history) }
        }
    }
}
