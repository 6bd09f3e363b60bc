import ArgumentParser
import Presentation
import TraceAnalysis

struct Tree: ParsableCommand {
    enum Roots: String, CaseIterable, ExpressibleByArgument {
        case thread, process, run

        func merged(_ tree: CallTree) -> CallTree {
            switch self {
            case .thread: tree
            case .process: tree.merged(.threads)
            case .run: tree.merged(.processes)
            }
        }
    }

    static let configuration = CommandConfiguration(
        abstract: "Shows the merged call tree: each call path once, with its time and number of calls.",
        discussion: """
            total: from entry to exit, all calls of the path together. self: without the recorded calls made from it. \
            share: of the thread's time. (own code): what the thread ran while no recorded call was open. A line that begins \
            with > is the only callee of the line above that gets a line. Callees that are too small for a line of their own \
            are added up in one line below their caller. --time running shows the time on a CPU only, --time waiting that \
            spent waiting.

            EXAMPLES
              tracer tree app.trace --min-share 5%
              tracer tree app.trace --depth 3 --by process
              tracer tree app.trace --focus 'libz.so.1!*'   # only what leads to zlib
              tracer tree app.trace --show-arguments        # open("/etc/passwd") apart
              tracer tree tracer.make.4711 --by run         # all processes as one tree
              tracer tree tracer.make.4711 --process 'cc1*'
              tracer tree app.trace --from 40% --to 60%     # only what happened then
              # in the ten slowest requests
              tracer tree app.trace --around handle_request --slowest 10
            """)

    @OptionGroup var traces: TraceArguments

    @OptionGroup var least: ShareOption

    @Option(help: "Levels of the tree to show; 0 for all.")
    var depth = 0

    @Option(help: ArgumentHelp("One tree for each thread, process, or for the whole run.", valueName: "thread|process|run"))
    var by = Roots.thread

    @OptionGroup var time: TimeOption
    @OptionGroup var threads: ThreadOption

    @Option(help: ArgumentHelp("Only paths through matching functions: NAME or MODULE!NAME.", valueName: "glob"))
    var focus: String?

    @Flag(help: "Also a line for each of the different arguments that a function was called with, where they are recorded.")
    var showArguments = false

    @Flag(help: "Also show times without the agent's cost of recording, as measured in the same process.")
    var correct = false

    @Flag(help: "One JSON object: functions, and nodes in preorder.")
    var json = false

    @OptionGroup var window: WindowOptions
    @OptionGroup var names: NameOptions
    @OptionGroup var display: DisplayOptions

    func validate() throws {
        if depth < 0 { throw ValidationError("--depth takes 0 (all) or a number of levels") }
        try time.checkCorrect(correct)
    }

    func run() throws {
        let files = try threads.narrow(window.narrow(traces.open(), least: least.time))
        try time.check(files)
        var tree = reading(files, states: time.reading(isAsked: json), byArguments: showArguments)
        if !window.isWhole { tree = tree.filtered { tree.nodes[$0.node].total > 0 || $0.calls > 0 } } // threads of other times
        if let focus {
            let chosen = tree.functions(matching: FunctionPattern(focus))
            if chosen.isEmpty {
                let known = tree.nearest(to: focus).map { "; there is \($0)" } ?? ""
                throw CommandFailure("no call of \(focus)\(threads.text) in \(files[0].path)\(known)")
            }
            tree = tree.focused(on: chosen)
        }
        if correct { try Self.checkCost(of: tree, files) }
        tree = by.merged(tree)
        try display.output().show(tree, json: json) { try show(tree.named(names.style), $0) }
        if !json { sayInterpreter(files) }
        try finish(files)
    }

    /// Throws when the cost is not known. Some of several processes may not know it: their times stay as they are, and that is said.
    static func checkCost(of tree: CallTree, _ files: [TraceFile]) throws {
        guard tree.isCostKnown else { throw CommandFailure(unknownCost(files)) }
        for process in tree.processesOfUnknownCost {
            complain("\(process.path) does not say what recording a call cost: its times are not corrected")
        }
    }

    static func unknownCost(_ files: [TraceFile]) -> String {
        let isFiltered = files.contains { $0.header.minimum_ticks > 0 }
        return "\(files[0].path) does not say what recording a call cost, so --correct has nothing to subtract"
            + (isFiltered ? ": under a time filter it is not known how many calls of each caller were filtered out" : ": record it again")
    }

    private func show(_ tree: CallTree, _ output: Output) throws {
        let style = output.style
        var options = CallTree.TextOptions(
            least: least.share, deepest: depth, width: names.style == .full ? nil : output.width)
        options.isCorrected = correct
        var process: Int?
        var isFirst = true
        for root in tree.roots {
            if root.process != process || isFirst {
                if !isFirst { try output.line("") }
                let title =
                    root.process.map { tree.title(tree.processes[$0]) } ?? counted(UInt64(tree.processes.count), "process", "processes")
                try output.line(style.bold(title))
                if isFirst, let note = tree.timeNote { try output.line(style.dim(note)) }
                process = root.process
                isFirst = false
            }
            try output.line("")
            try output.line(style.bold(tree.title(root)))
            guard tree.nodes[root.node].end > root.node + 1 else { continue }
            try output.line(style.dim(CallTree.columns(options)))
            try tree.lines(root, options, style) { try output.line($0) }
        }
        if tree.calls == 0 { try output.line("no calls were recorded") }
        for note in tree.suppressionNotes { try output.line(style.dim(note)) }
        let hot = tree.hotLeaves()
        guard !hot.isEmpty else { return }
        try output.line("")
        try output.line(style.bold("called very often"))
        for leaf in hot { try output.line("  " + leaf.text) }
    }
}
