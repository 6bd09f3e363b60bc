import ArgumentParser
import Presentation
import TraceAnalysis

struct Callers: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows who calls a function, how often, and what it calls.",
        usage: "tracer callers [options] [FILE] FUNCTION",
        discussion: """
            The first tree is inverted: the function's callers are below it, and their callers below them, each with the \
            function's calls and time that came through that path. The second tree shows what the function calls, from \
            all callers together. Callers are recorded functions: those of the program itself only with tracer record \
            --functions '*'. (not recorded) is other code, where it is one caller of several. --sites shows calling lines, \
            also of code that is not recorded. --time running shows the time on a CPU only, --time waiting that spent waiting.

            EXAMPLES
              tracer callers app.trace SQL_exec
              # also times without the cost of recording
              tracer callers app.trace SQL_exec --correct
              tracer callers malloc   # in the newest trace of this directory
              tracer callers app.trace 'libc.so.6!mem*'
              # the lines it is called from (needs tracer record --call-sites)
              tracer callers app.trace lstat64 --sites
            """)

    @Argument(
        help: ArgumentHelp(
            "The trace, or the directory of a run (default: the newest *.trace or run in this directory), and a function, or a glob of functions: NAME or MODULE!NAME.",
            valueName: "[file] function"), completion: .file(extensions: ["trace"]))
    var words: [String]
    @OptionGroup var choice: ProcessChoice
    private var function: String { words[words.count - 1] }
    @OptionGroup var least: ShareOption
    @Option(help: "Levels of each tree to show; 0 for all.")
    var depth = 0
    @Flag(help: "Also a line for each of the different arguments that a function was called with, where they are recorded.")
    var showArguments = false
    @Flag(help: "Also show times without the agent's cost of recording, as measured in the same process.")
    var correct = false
    @Flag(help: "Show the lines that it is called from instead of trees; needs a trace of tracer record --call-sites.")
    var sites = false
    @Flag(help: "One JSON object: both trees, each in the form of tracer tree --json, or the sites.")
    var json = false
    @Flag(help: "With --sites: the rows as CSV: the columns are those members of a row of --json that are numbers or texts.")
    var csv = false
    @OptionGroup var time: TimeOption
    @OptionGroup var threads: ThreadOption
    @OptionGroup var window: WindowOptions
    @OptionGroup var names: NameOptions
    @OptionGroup var display: DisplayOptions

    func validate() throws {
        if json, csv { throw ValidationError("--json and --csv are two formats: choose one") }
        if csv, !sites { throw ValidationError("--csv applies to --sites: a tree has no rows") }
        if words.count == 1, words[0].hasSuffix(".trace") {
            throw ValidationError("give a function after the trace: tracer callers \(words[0]) FUNCTION")
        }
        if words.count > 2 { throw ValidationError("callers takes a trace and one function: quote a glob") }
        if sites, showArguments { throw ValidationError("--show-arguments applies to trees, not to --sites") }
        if sites, correct { throw ValidationError("--correct applies to functions, not to --sites") }
        try time.checkCorrect(correct)
        if depth < 0 { throw ValidationError("--depth takes 0 (all) or a number of levels") }
    }

    func run() throws {
        let files = try threads.narrow(window.narrow(choice.open(openRun(Array(words.dropLast()))), least: least.time))
        try time.check(files)
        if sites { return try printSites(files) }
        let tree = reading(files, states: time.reading(isAsked: json), byArguments: showArguments)
        let chosen = tree.functions(matching: FunctionPattern(function))
        guard !chosen.isEmpty else {
            throw noCall(in: files, nearest: tree.nearest(to: function))
        }
        if correct { try Tree.checkCost(of: tree, files) }
        let upward = tree.callers(of: chosen), downward = tree.below(chosen)
        try display.output().show(CallersOutput(callers: upward, calls: downward), json: json) { output in
            var options = CallTree.TextOptions(least: least.share, deepest: depth, width: names.style == .full ? nil : output.width)
            options.isCorrected = correct
            let style = output.style
            try writeLosses(files, output)
            if let note = tree.timeNote { try output.line(style.dim(note)) }
            for (index, (title, whole)) in [("who calls it", upward), ("what it calls", downward)].enumerated() {
                let view = whole.named(names.style)
                guard let root = view.roots.first else { continue }
                if index > 0 { try output.line("") }
                try output.line(style.bold(title))
                try output.line(style.dim(CallTree.columns(options)))
                try view.lines(root, options, style) { try output.line($0) }
                if index == 0, !view.hasCallers { try output.line(style.dim(CallTree.unrecordedCallers)) }
            }
            for note in Set(upward.suppressionNotes + downward.suppressionNotes).sorted() { try output.line(style.dim(note)) }
        }
        try finish(files)
    }

    private func writeLosses(_ files: [TraceFile], _ output: Output) throws {
        for file in files where !file.losses.isEmpty {
            try output.line(output.style.alarm("\(basename(file.path)): \(file.losses.joined(separator: ", "))"))
        }
    }

    private func noCall(in files: [TraceFile], nearest: String?) -> CommandFailure {
        CommandFailure(
            "no call of \(function)\(threads.text) in \(files.map { $0.path }.joined(separator: ", "))\(nearest.map { "; there is \($0)" } ?? ""): a glob such as '*\(function)*' matches parts of names"
        )
    }

    private func printSites(_ files: [TraceFile]) throws {
        let report = try reading(files, sitesOf: FunctionPattern(function), states: time.reading(isAsked: json || csv))
        guard !report.rows.isEmpty else {
            throw noCall(in: files, nearest: files.lazy.compactMap { FunctionNames($0.metadata).nearest(to: function) }.first)
        }
        try display.output().show(report, json: json, csv: csv ? "sites" : nil) { output in
            try writeLosses(files, output)
            if let note = report.timeNote { try output.line(output.style.dim(note)) }
            try output.lines(report.lines(width: names.fullNames ? nil : output.width, names: names.style, style: output.style))
        }
        try finish(files)
    }
}
