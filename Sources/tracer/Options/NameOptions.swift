// How commands that print names of functions spell them.
import ArgumentParser
import TraceAnalysis

struct NameOptions: ParsableArguments {
    @Flag(help: "Show full names: templates with all of their arguments, and nothing cut to the terminal's width.")
    var fullNames = false
    @Flag(help: "Show templates without their arguments: std::vector<…>. Names that would become equal keep them.")
    var shortNames = false

    func validate() throws {
        if fullNames, shortNames { throw ValidationError("--full-names cannot be combined with --short-names") }
    }

    var style: NameStyle { fullNames ? .full : shortNames ? .short : .usual }
}
