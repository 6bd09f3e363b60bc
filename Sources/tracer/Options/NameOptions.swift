// How commands that print names of functions spell them.
import ArgumentParser
import TraceAnalysis

struct NameOptions: ParsableArguments {
    @Flag(help: "Names as they are: templates with all of their arguments, and nothing cut for a terminal.")
    var fullNames = false
    @Flag(help: "Templates without their arguments: std::vector<…>. Names that would then be alike keep theirs.")
    var shortNames = false

    func validate() throws {
        if fullNames, shortNames { throw ValidationError("--full-names cannot be combined with --short-names") }
    }

    var style: NameStyle { fullNames ? .full : shortNames ? .short : .usual }
}
