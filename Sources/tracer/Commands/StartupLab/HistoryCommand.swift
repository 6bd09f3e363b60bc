import ArgumentParser
import Foundation
import LaunchLab
import LaunchPage
import TraceAnalysis

struct HistoryCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "history",
        abstract: "Shows the launches kept so far: the trend of each stage, as a table or as a chart.",
        discussion: """
            tracer launch keeps each series in \(History.standardPath), an SQLite database. tracer history show --help has the \
            options of the table and the chart.

            EXAMPLES
              tracer history
              tracer history --html trend.html
              tracer history --json
              tracer history export --format ndjson
            """,
        subcommands: [Show.self, Export.self], defaultSubcommand: Show.self)

    struct Selection: ParsableArguments {
        @Option(help: ArgumentHelp("The database.", valueName: "file"))
        var history = History.standardPath
        @Option(help: "Only launches of this program.")
        var program: String?
        @Option(help: "Only this many of the latest series.")
        var last: Int?

        func series() throws -> [History.Series] {
            let all = try orFail { try History(path: history, creates: false).series(program: program, last: last) }
            if all.isEmpty {
                throw CommandFailure(program.map { "\(history) has no launches of \($0)" } ?? "\(history) has no launches yet")
            }
            return all
        }
    }

    struct Show: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "The trend as a table, or as a chart.",
            discussion: """
                EXAMPLES
                  tracer history --program app --last 20
                  tracer history --html trend.html
                """)
        @OptionGroup var selection: Selection
        @Option(help: ArgumentHelp("Write the chart, one HTML file.", valueName: "file"))
        var html: String?
        @Flag(help: "One JSON object: commands, their series, and the stages of each with their changes.")
        var json = false

        func validate() throws {
            if json, html != nil { throw ValidationError("give either --json or --html") }
        }

        func run() throws {
            let all = try selection.series()
            if let html {
                try writeFile(HistoryPage(all).html, to: html)
                return complain("\(html) shows \(all.count) series")
            }
            try Output().show(HistoryOutput(all), json: json) { try $0.write(HistoryText.table(all, style: $0.style)) }
        }
    }

    struct Export: ParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "One row per stage and series, for other databases (columns: docs/guide/fleet.md).",
            discussion: """
                EXAMPLES
                  tracer history export > startup.csv
                  tracer history export --format ndjson --program app
                """)
        @OptionGroup var selection: Selection
        @Option(help: ArgumentHelp("\(HistoryExport.Format.allCases.map(\.rawValue).joined(separator: " or ")).", valueName: "format"))
        var format = HistoryExport.Format.csv

        func run() throws {
            try Output.write(HistoryExport.text(selection.series(), format))
        }
    }
}

extension HistoryExport.Format: ExpressibleByArgument {}
