import ArgumentParser
import Glibc
import Presentation
import Recorder

/// "90m", "12h", "7d", "2w".
struct Age: ExpressibleByArgument {
    let seconds: Int

    init?(argument: String) {
        let units: [(Character, Int)] = [("s", 1), ("m", 60), ("h", 3600), ("d", 86400), ("w", 7 * 86400)]
        guard let unit = units.first(where: { $0.0 == argument.last }), let count = Int(argument.dropLast()), count >= 0,
            case let (product, overflow) = count.multipliedReportingOverflow(by: unit.1), !overflow
        else { return nil }
        seconds = product
    }
}

struct Clean: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Removes old runs that tracer record left in a directory.",
        discussion: """
            Looks for tracer.NAME.PID and tracer.NAME.PID.trace, the names that tracer record gives by default. It keeps a \
            directory that has anything but the traces of one run, a trace that tracer record did not make, and a run that is \
            still being recorded. Runs with names of your own are removed only when you name them here. Asks first, unless \
            --yes or --older-than is given.

            EXAMPLES
              tracer clean
              tracer clean --older-than 7d
              tracer clean --dry-run ~/traces
              tracer clean tracer.make.4711 --yes
            """)

    @Argument(help: ArgumentHelp("Directories to look in, or runs. Default: this directory.", valueName: "path"), completion: .file())
    var paths: [String] = []
    @Option(help: ArgumentHelp("Only runs last written at least this long ago: 90m, 12h, 7d, 2w. Does not ask.", valueName: "age"))
    var olderThan: Age?
    @Flag(name: .customLong("dry-run"), help: "Only shows what would be removed.")
    var isDry = false
    @Flag(name: [.customLong("yes"), .customShort("y")], help: "Does not ask.")
    var isSure = false

    func run() throws {
        let now = time(nil), living = LivingSessions.all
        var found: [FinishedRun] = []
        for path in paths.isEmpty ? ["."] : paths { found += try candidates(path, living) }
        if let olderThan { found = found.filter { now - $0.lastWritten >= olderThan.seconds } }
        found.sort { ($0.lastWritten, $0.path) < ($1.lastWritten, $1.path) }
        let output = Output()
        guard !found.isEmpty else {
            try output.line("no run to remove")
            return try output.flush()
        }
        var table = TextTable(["size", "age", "run"], leftAligned: [2])
        for run in found { table.add([readable(byteCount: run.byteCount), Self.age(now - run.lastWritten), run.path]) }
        try output.lines(table.lines(output.style, width: output.width))
        try output.flush()
        let what = "\(counted(found.count, "run")), \(readable(byteCount: found.reduce(0) { $0 &+ $1.byteCount }))"
        if isDry {
            try output.line("would remove \(what)")
            return try output.flush()
        }
        if !isSure, olderThan == nil {
            guard isatty(STDIN_FILENO) == 1 else {
                throw CommandFailure(
                    "clean asks before it removes, and there is no terminal: give --yes, --older-than or --dry-run", status: 2)
            }
            writeError("remove \(what)? [y/N] ")
            guard let answer = readLine()?.lowercased(), answer == "y" || answer == "yes" else {
                throw CommandFailure("nothing was removed")
            }
        }
        var hasFailed = false
        for run in found {
            do {
                try run.remove()
            } catch {
                hasFailed = true
                complain(Self.text(error, run.path))
            }
        }
        if hasFailed { throw ExitCode(1) }
        try output.line("removed \(what)")
        try output.flush()
    }

    /// A run that is named, or those of a directory. A directory that one is in, or above, is none: it could not be removed.
    private func candidates(_ path: String, _ living: Set<UInt64>) throws -> [FinishedRun] {
        let path = path.count > 1 && path.hasSuffix("/") ? String(path.dropLast()) : path
        if !["", ".", ".."].contains(path.split(separator: "/", omittingEmptySubsequences: false).last ?? "") {
            do {
                return [try FinishedRun(path, living: living)]
            } catch {
                guard isDirectory(path), error != .isBeingRecorded else { throw CommandFailure(Self.text(error, path)) }
            }
        }
        var found: [FinishedRun] = []
        for name in try directoryNames(path) {
            let entryPath = path == "." ? name : path + "/" + name
            guard FinishedRun.isDefaultName(name, isDirectory: isDirectory(entryPath)) else { continue }
            do {
                found.append(try FinishedRun(entryPath, living: living))
            } catch {
                complain(Self.text(error, entryPath) + "; not removed")
            }
        }
        return found
    }

    private static func text(_ failure: FinishedRun.Failure, _ path: String) -> String {
        switch failure {
        case .isNoRun(let reason): "\(path) is not a run of tracer record: \(reason)"
        case .isBeingRecorded: "\(path) is being recorded"
        case .cannotRemove(let file, let error): "cannot remove \(file): \(systemReason(error))"
        }
    }

    private static func age(_ seconds: Int) -> String {
        switch seconds {
        case ..<120: "\(max(seconds, 0)) s"
        case ..<7200: "\(seconds / 60) min"
        case ..<172_800: "\(seconds / 3600) h"
        default: "\(seconds / 86400) days"
        }
    }
}
