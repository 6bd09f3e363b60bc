// Options that say which arguments and results are recorded, of a program that is started as of one that runs.
import ArgumentParser
import TraceFormat

struct ArgumentOptions: ParsableArguments {
    @Option(help: .setting(Variables.arguments))
    var arguments: [String] = []
    @Option(help: ArgumentHelp("With --arguments: more prototypes, as in docs/reference/prototypes.md; repeatable.", valueName: "file"))
    var prototypes: [String] = []
    @Option(
        help: ArgumentHelp("Do not record parameters of these names, such as 'path,key*'; repeatable.", valueName: "glob")
    )
    var hide: [String] = []

    /// Throws where an option says nothing without --arguments, of which there are none.
    func check(mayHide: Bool) throws {
        guard arguments.isEmpty else { return }
        if !prototypes.isEmpty { throw CommandFailure("--prototypes needs --arguments", status: 2) }
        if !hide.isEmpty, !mayHide { throw CommandFailure("--hide needs --arguments", status: 2) }
    }
}
