// Options that all commands which print have in common.
import ArgumentParser
import Glibc
import TraceAnalysis

extension Output.Colour: ExpressibleByArgument {}

struct DisplayOptions: ParsableArguments {
    @Option(help: ArgumentHelp("Use colours; auto uses them on a terminal, unless NO_COLOR is set.", valueName: "auto|always|never"))
    var color = Output.Colour.auto

    @Flag(name: .customLong("no-pager"), help: "Do not page through $PAGER (less -FRX) on a terminal.")
    var noPager = false

    func output() -> Output { Output(colour: color, mayPage: !noPager) }
}
