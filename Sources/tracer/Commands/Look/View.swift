import ArgumentParser
import Dispatch
import Foundation
import Presentation
import LaunchLab
import TraceAnalysis
import TracePage

struct View: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Writes a trace as one HTML page: flame graph, timeline, table of functions; search and zoom.",
        usage: "tracer view [options] [FILE]",
        discussion: """
            The page needs no network and no other file. Without -o it is written beside the trace, in place of an earlier \
            one, and opened in the browser if there is one.

            With --serve no file is written: a small server in this command serves the page, and the page fetches single \
            calls and exact sums for the part it shows. Use it for traces with more calls than a page can hold. Only \
            programs on this machine that know the printed address have access. Ctrl-C ends it.

            EXAMPLES
              tracer view
              tracer view app.trace -o app.html
              tracer view tracer.make.4711
              tracer view app.trace --from 40% --to 60% --thread 'worker*'
              tracer view app.trace --serve
            """)

    @OptionGroup var trace: RunArgument

    @Option(name: .shortAndLong, help: ArgumentHelp("The page to write; - is standard output.", valueName: "file"))
    var output: String?
    @Flag(help: "Overwrite an existing file that -o names.")
    var force = false

    @Flag(help: "Serve the page from this machine, with all calls: the page loads only what it shows.")
    var serve = false

    @OptionGroup var threads: ThreadOption
    @OptionGroup var window: WindowOptions
    @OptionGroup var shortest: ShortestCall

    func validate() throws {
        if serve, output != nil || force { throw ValidationError("--serve writes no file: remove --output and --force") }
    }

    func run() throws {
        let server = serve ? try LocalServer(port: 0) : nil
        let run = try trace.open(), all = try trace.choice.open(run)
        let (narrowed, window) = try window.narrowRun(all, least: shortest.least)
        let files = try threads.narrow(narrowed), title = all.count > 1 ? all[0].commandLine : nil
        if let server {
            try serve(files, from: server) { ViewPage(files, title: title, window: window, progress: $0) }
        }
        let page = withProgress(basename(run.path)) { ViewPage(files, title: title, window: window, progress: $0) }
        // Several processes go by the run's name.
        let name =
            all.count == 1 || run.path == "."
            ? all[0].path : run.path.count > 1 && run.path.hasSuffix("/") ? String(run.path.dropLast()) : run.path
        let path = output ?? (name.hasSuffix(".trace") ? String(name.dropLast(6)) : name) + ".html"
        // The one beside the trace is ours; one that was named is not overwritten unasked.
        try writePage(page.html, to: path, force: force || output == nil)
        if output == nil { openInBrowser(path) }
        try finish(files)
    }

    /// Serves the page while it is being made, too: it then says how far that has come. Never returns but by an error: ends by a signal.
    private func serve(_ files: [TraceFile], from server: LocalServer, making make: (ReadingProgress) -> ViewPage) throws -> Never {
        let path = LocalServer.secretPath(), address = "http://127.0.0.1:\(server.port)\(path)"
        let progress = ReadingProgress(), served = PageServer(at: path, progress)
        for file in files { for warning in file.warnings { complain("\(file.path): \(warning)") } }
        onEndingSignals([SIGINT, SIGTERM]) { _ in _exit(0) }
        DispatchQueue(label: "server").async { server.serve { served.answer($0) } }
        try Output.write(address + "\n")
        complain("serving until Ctrl-C")
        openInBrowser(address)
        var page = make(progress)
        page.isServed = true
        served.finish(page)
        while true { pause() }
    }

    /// Opens the page where there is a desktop; says nothing where there is none.
    private func openInBrowser(_ path: String) {
        let environment = ProcessInfo.processInfo.environment
        guard isatty(STDOUT_FILENO) == 1, environment["DISPLAY"] != nil || environment["WAYLAND_DISPLAY"] != nil else { return }
        Subprocess.start("xdg-open", path)
    }
}
