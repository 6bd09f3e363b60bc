// tracer callers: who calls a function, and what it calls itself.
import ArgumentParser
import TraceAnalysis

struct Callers: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows who calls a function, how often, and what it calls itself.",
        discussion: """
            The first tree is upside down: below the function its callers, below each of them theirs, with the function's \
            calls and time as far as they came that way. The second is what the function calls, from wherever.

            tracer callers app.trace SQL_exec
            tracer callers app.trace SQL_exec --correct   beside the times what they are without the cost of recording
            tracer callers app.trace 'libc.so.6!mem*'
            """)

    @Argument(help: ArgumentHelp("The trace, or a directory: all of the newest run in it.", valueName: "file"), completion: .file(extensions: ["trace"]))
    var file: String
    @Argument(help: ArgumentHelp("A function, or a glob of functions: NAME or MODULE!NAME.", valueName: "function"))
    var function: String
    @Option(name: .customLong("min"), help: ArgumentHelp("Smallest share of the function's time that gets a line; 0 for all.", valueName: "percent"))
    var least = Percentage(0.01)
    @Option(help: "Levels of each tree to show; 0 for all.")
    var depth = 0
    @Flag(help: "Beside the times what they are without the agent's cost of recording, as it was measured in the same process.")
    var correct = false
    @Flag(help: "One JSON object: both trees, each as tracer tree --json gives one.")
    var json = false
    @OptionGroup var display: DisplayOptions

    func validate() throws {
        if depth < 0 { throw ValidationError("--depth takes 0 (all) or a number of levels") }
    }

    func run() throws {
        let files = try openTraces([file])
        let tree = reading(files) { CallTree($0, progress: $1) }
        let chosen = tree.functions(matching: FunctionPattern(function))
        guard !chosen.isEmpty else {
            throw CommandFailure(message: "no call of \(function) in \(file)\(tree.nearest(to: function).map { "; there is \($0)" } ?? ""): a glob such as '*\(function)*' finds parts of names")
        }
        if correct { try Tree.checkCost(of: tree, files) }
        let upward = tree.callers(of: chosen), downward = tree.below(chosen)
        var output = display.output()
        if json {
            try output.line(JSON.object([("schema", .unsigned(1)), ("callers", upward.json()), ("calls", downward.json())]).text())
            try output.finish()
            return try finish(files)
        }
        var options = CallTree.TextOptions(least: least.share, deepest: depth, width: output.width)
        options.isCorrected = correct
        let style = output.style
        for (title, view) in [("called from", upward), ("calls", downward)] {
            guard let root = view.roots.first else { continue }
            if title == "calls" { try output.line("") }
            try output.line(style.bold(title == "calls" ? "what it calls" : "who calls it"))
            try output.line(style.dim(CallTree.columns(options)))
            try view.lines(root, options, style) { try output.line($0) }
        }
        try output.finish()
        try finish(files)
    }
}
