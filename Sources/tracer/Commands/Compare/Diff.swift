import ArgumentParser
import ELF
import Presentation
import TraceAnalysis
import TracePage

struct Diff: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Shows what got slower or faster between two traces, or two sets of traces, and where.",
        usage: """
            tracer diff [options] BEFORE AFTER
            tracer diff [options] --before FILE … --after FILE …
            """,
        discussion: """
            Compares self time and calls, function by function and path by path, sorted by their share of the \
            difference. Functions are matched by module and name. A side may be a directory, or several files with --before \
            and --after: then medians are compared, and differences within the spread of the runs count as noise. Traces \
            of one tracer record are one run. Where all traces have the kernel's context switches, time in which a thread \
            could run and others had the CPUs is no part of self time, unless --time says so. Exit status 0, whatever the \
            difference.

            EXAMPLES
              tracer diff before.trace after.trace
              tracer diff before/ after/   # each run of the same program several times
              tracer diff tracer.make.4711 tracer.make.5123 --process 'cc1*'
              tracer diff --before b1.trace --before b2.trace --after a.trace
              # a flame graph of both, red slower, blue faster
              tracer diff before.trace after.trace --html diff.html
              # also differences without the cost of recording
              tracer diff before.trace after.trace --correct
            """)

    @Argument(
        help: ArgumentHelp("Before and after: a trace each, a run, or a directory of them.", valueName: "before after"),
        completion: .file(extensions: ["trace"]))
    var sides: [String] = []
    @Option(
        name: .customLong("before"), help: ArgumentHelp("A trace of the first side; repeatable.", valueName: "file"),
        completion: .file(extensions: ["trace"]))
    var before: [String] = []
    @Option(
        name: .customLong("after"), help: ArgumentHelp("A trace of the second side; repeatable.", valueName: "file"),
        completion: .file(extensions: ["trace"]))
    var after: [String] = []
    @Option(help: "Rows of each table; 0 for all.")
    var top = 20
    @Flag(
        help:
            "Also show times without the agent's cost of recording, as measured in the same processes; order and noise are judged by that.")
    var correct = false
    @Option(
        help: ArgumentHelp(
            "Compare by this time instead: all of it, that on a CPU, or that spent waiting.",
            valueName: CallTime.allCases.map(\.rawValue).joined(separator: "|")))
    var time: CallTime?
    @Flag(help: "One JSON object, with all functions and paths.")
    var json = false
    @Option(
        help: ArgumentHelp(
            "Write a page instead of text: flame graph of both sides, and table of functions; - is standard output.", valueName: "file"),
        completion: .file(extensions: ["html"]))
    var html: String?
    @OptionGroup var choice: ProcessChoice
    @OptionGroup var threads: ThreadOption
    @OptionGroup var window: WindowOptions
    @OptionGroup var shortest: ShortestCall
    @Flag(help: "Overwrite an existing page.")
    var force = false
    @OptionGroup var names: NameOptions
    @OptionGroup var display: DisplayOptions

    func validate() throws {
        if json, html != nil { throw ValidationError("--json cannot be combined with --html") }
        if correct, html != nil {
            throw ValidationError("--correct cannot be combined with --html: a flame graph has one width per call")
        }
        try TimeOption.checkCorrect(correct, time ?? .wall)
        if top < 0 { throw ValidationError("--top takes 0 (all) or a number of rows") }
        let named = sides.count == 2 && before.isEmpty && after.isEmpty
        let listed = sides.isEmpty && !before.isEmpty && !after.isEmpty
        if !named && !listed { throw ValidationError("diff takes two traces or directories, or --before and --after") }
    }

    func run() throws {
        let first = try openSet(sides.isEmpty ? before : [sides[0]])
        let second = try openSet(sides.isEmpty ? after : [sides[1]])
        let doubts = doubts(first.flatMap { $0 }, second.flatMap { $0 })
        for doubt in doubts { complain(doubt) }
        let all = (first + second).flatMap { $0 }, hasStates = all.allSatisfy { $0.noSwitches == nil }
        if let time, time != .wall, let missing = all.first(where: { $0.noSwitches != nil }) {
            throw TimeOption.unknown(time, missing)
        }
        let states: StateReading = hasStates && time != .wall ? .ofFunctions(.wall) : .nothing
        let trees = (before: first.map { reading($0, states: states) }, after: second.map { reading($0, states: states) })
        // One side corrected and the other not would show the cost of recording as a difference.
        if correct, let unknown = (trees.before + trees.after).flatMap({ $0.processesOfUnknownCost }).first {
            throw CommandFailure(Tree.unknownCost((first + second).flatMap { $0 }.filter { $0.path == unknown.path }))
        }
        let diff = TreeDiff(before: trees.before, after: trees.after, by: time.map { TreeDiff.Time($0) }, isCorrected: correct)
        if let html {
            let programs = Set((first + second).flatMap { $0 }.map { basename($0.program) }).sorted().joined(separator: ", ")
            let page = DiffPage(
                diff, title: "\(programs) compared",
                facts: "before \(describe(first)), after \(describe(second)); compared by \(diff.timeText)", notes: doubts)
            try writePage(page.html, to: html, force: force)
        } else {
            try display.output().show(diff, json: json) { output in
                let style = output.style
                try output.line(style.bold("before  ") + printable(describe(first)))
                try output.line(style.bold("after   ") + printable(describe(second)))
                try output.write(diff.text(top: top, width: output.width, names: names.style, style))
            }
        }
        sayNameless()
        for trace in (first + second).flatMap({ $0 }) { for warning in trace.warnings { complain("\(trace.path): \(warning)") } }
    }

    /// The chosen processes of each run of a side. Files of one `tracer record` are one run.
    private func openSet(_ paths: [String]) throws -> [[TraceFile]] {
        var traces: [TraceFile] = []
        for path in paths {
            guard isDirectory(path) else {
                traces += try choice.choose(from: [openTrace(path)], in: path)
                continue
            }
            let found = try runs(in: path)
            if found.isEmpty {
                throw CommandFailure("no readable trace in \(path): name a file, or a directory of traces")
            }
            for run in found { traces += try choice.open(run) }
        }
        var sets: [[TraceFile]] = [], indices: [UInt64: Int] = [:]
        for trace in traces {
            let session = trace.header.session
            if session != 0, let index = indices[session] {
                sets[index].append(trace)
            } else {
                if session != 0 { indices[session] = sets.count }
                sets.append([trace])
            }
        }
        return try sets.map { try threads.narrow(window.narrow($0, least: shortest.least)) }
    }

    /// Returns what makes a comparison doubtful.
    private func doubts(_ before: [TraceFile], _ after: [TraceFile]) -> [String] {
        var doubts: [String] = []
        for trace in before + after where !trace.losses.isEmpty {
            doubts.append("\(trace.path): \(trace.losses.joined(separator: ", "))")
        }
        func all(_ traces: [TraceFile], _ property: (TraceFile) -> String) -> Set<String> { Set(traces.map(property)) }
        let programs = (all(before) { basename($0.program) }, all(after) { basename($0.program) })
        if programs.0.isDisjoint(with: programs.1) {
            doubts.append(
                "different programs: \(programs.0.sorted().joined(separator: ", ")) before, \(programs.1.sorted().joined(separator: ", ")) after; still compared by module and name"
            )
        }
        let architectures = (all(before) { $0.architectureText }, all(after) { $0.architectureText })
        if architectures.0 != architectures.1 {
            doubts.append(
                "different CPU architectures: \(architectures.0.sorted().joined(separator: ", ")) before, \(architectures.1.sorted().joined(separator: ", ")) after; only the numbers of calls are comparable"
            )
        }
        let filters = (
            all(before) { "\($0.header.minimum_ticks > 0), \($0.header.maximum_depth), \(String(describing: $0.keptConditions.text))" },
            all(after) { "\($0.header.minimum_ticks > 0), \($0.header.maximum_depth), \(String(describing: $0.keptConditions.text))" }
        )
        if filters.0 != filters.1 {
            doubts.append(
                "recorded with different filters (time, depth, --when): the time of calls filtered on one side counts as self time of their callers"
            )
        }
        return doubts
    }

    private func describe(_ runs: [[TraceFile]]) -> String {
        let files = runs.flatMap { $0 }
        guard let first = files.first else { return "nothing" }
        let pids = Set(files.map { $0.header.pid })
        if runs.count == 1, pids.count > 1 {
            let directory = first.path.lastIndex(of: "/").map { String(first.path[..<$0]) } ?? "."
            return "\(directory) (\(basename(first.program)), \(counted(pids.count, "process", "processes")))"
        }
        let name = files.count == 1 ? first.path : "\(first.path) and \(counted(UInt64(files.count - 1), "more file"))"
        return name + " (\(basename(first.program)), \(counted(UInt64(runs.count), "run")))"
    }
}
