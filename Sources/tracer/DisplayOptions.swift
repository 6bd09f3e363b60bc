// What commands that print have in common.
import ArgumentParser
import Glibc
import TraceAnalysis

struct DisplayOptions: ParsableArguments {
    enum Colour: String, CaseIterable, ExpressibleByArgument { case auto, always, never }

    @Option(help: ArgumentHelp("Colours: auto is for terminals, unless NO_COLOR is set.", valueName: "auto|always|never"))
    var color = Colour.auto

    @Flag(name: .customLong("no-pager"), help: "Never through $PAGER (less -FRX), which is for terminals.")
    var noPager = false

    func output() -> Output { Output(colour: color, mayPage: !noPager) }
}
