// --top of commands that show all rows unless they are asked for some.
import ArgumentParser

struct RowOption: ParsableArguments {
    @Option(
        help: ArgumentHelp(
            "Number of rows; 0 for all. Default: 30 of tracer waits and stalls, all of tracer replay.", valueName: "number"))
    var top: Int?
    /// The name that --top had before 0.3; it goes with 0.4.
    @Option(help: .hidden)
    var limit: Int?

    /// Rows to show, 0 for all; nil when neither option is given.
    var count: Int? { top ?? limit }

    func validate() throws {
        if let count, count < 0 { throw ValidationError("--top takes 0 (all) or a number of rows") }
    }
}
