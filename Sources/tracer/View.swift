// tracer view: a trace as one HTML page.
import ArgumentParser
import Foundation
import LaunchLab
import TraceAnalysis

struct View: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Write a trace as one HTML page: flame graph, timeline, table of functions; search and zoom.",
        discussion: """
            The page needs no network and no other file. Without -o it stands beside the trace, and is opened in the \
            browser where there is one.

            EXAMPLES
              tracer view
              tracer view app.trace -o app.html
            """)

    @OptionGroup var trace: TraceArgument

    @Option(name: .shortAndLong, help: ArgumentHelp("The page to write; - is standard output.", valueName: "file"))
    var output: String?
    @Flag(help: "Write over a file that is there.")
    var force = false

    func run() throws {
        let file = try trace.open()
        let page = ViewPage(file)
        let path = output ?? (file.path.hasSuffix(".trace") ? String(file.path.dropLast(6)) : file.path) + ".html"
        // The one beside the trace is ours; one that was named is not overwritten unasked.
        try writePage(page.html, to: path, force: force || output == nil)
        if output == nil { openInBrowser(path) }
        try finish(file)
    }

    /// Where there is a desktop; nothing is said where there is none.
    private func openInBrowser(_ path: String) {
        let environment = ProcessInfo.processInfo.environment
        guard isatty(STDOUT_FILENO) == 1, environment["DISPLAY"] != nil || environment["WAYLAND_DISPLAY"] != nil else { return }
        let process = Process()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["xdg-open", path]
        process.standardError = FileHandle.nullDevice
        try? process.run()
    }
}

/// - Parameters:
///   - path: "-" is standard output
///   - force: writes over what is there
func writePage(_ html: String, to path: String, force: Bool) throws {
    if path == "-" {
        var standard = Output()
        try standard.write(html)
        return try standard.flush()
    }
    guard force || access(path, F_OK) != 0 else {
        throw CommandFailure(message: "\(path) is there already: --force writes over it, or give another name", status: 2)
    }
    do {
        try html.write(toFile: path, atomically: true, encoding: .utf8)
    } catch {
        throw CommandFailure(message: "\(path) cannot be written: \(error.systemReason)")
    }
    complain("\(path): open it in a browser")
}
