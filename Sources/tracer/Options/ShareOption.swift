// --min-share of commands that print trees.
import ArgumentParser

struct ShareOption: ParsableArguments {
    @Option(
        name: .customLong("min-share"),
        help: ArgumentHelp("Smallest share of the time that gets a line; 0 for all. Default: 1%.", valueName: "percent"))
    private var given: Percentage?
    @Option(
        name: .customLong("min"),
        help: ArgumentHelp("With --around: only calls of at least this length: 5ms, 0.005 (seconds).", valueName: "time"))
    private var least: [Least] = []

    /// 0 … 1. Before 0.3 it was given as --min 5%, which goes with 0.4.
    var share: Double { given?.share ?? least.lazy.compactMap { $0.share }.last ?? 0.01 }
    /// Length of the shortest call for --around.
    var time: TimeLength? { least.lazy.compactMap { $0.time }.last }
}
