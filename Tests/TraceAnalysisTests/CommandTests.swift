// The built `tracer`, run as a program: what it prints where, and how it ends.
import CTraceLayout
import Foundation
import Testing
import TraceTesting
@preconcurrency import Glibc

private struct Ended {
    var status: Int32
    var signal: Int32?
    var output: String
    var errors: String

    var errorLines: [Substring] { errors.split(separator: "\n") }
}

/// Beside the test bundle, which is what runs.
private let tool = URL(fileURLWithPath: CommandLine.arguments[0]).resolvingSymlinksInPath().deletingLastPathComponent()
    .appendingPathComponent("tracer").path

private func process(_ arguments: [String], _ environment: [String: String], in directory: String?) -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: tool)
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.filter { $0.key != "NO_COLOR" && $0.key != "TERM" }
        .merging(environment) { $1 }
    if let directory { process.currentDirectoryURL = URL(fileURLWithPath: directory) }
    return process
}

private func ended(_ process: Process, _ output: String, _ errors: String) -> Ended {
    process.waitUntilExit()
    let isSignal = process.terminationReason == .uncaughtSignal
    return Ended(status: isSignal ? 128 + process.terminationStatus : process.terminationStatus,
                 signal: isSignal ? process.terminationStatus : nil, output: output, errors: errors)
}

/// Errors go to a file: nobody has to read two pipes at once.
private func run(_ arguments: String..., environment: [String: String] = [:], in directory: String? = nil) throws -> Ended {
    try run(arguments, environment: environment, in: directory)
}

private func run(_ arguments: [String], environment: [String: String] = [:], in directory: String? = nil) throws -> Ended {
    let errors = TemporaryFile([])
    let process = process(arguments, environment, in: directory)
    let pipe = Pipe()
    process.standardOutput = pipe
    process.standardError = FileHandle(forWritingAtPath: errors.path)
    try process.run()
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    process.waitUntilExit()
    return ended(process, String(decoding: output, as: UTF8.self), try String(contentsOfFile: errors.path, encoding: .utf8))
}

@Suite(.enabled(if: access(tool, X_OK) == 0, "the tool is not built"))
struct CommandTests {
    static let readers = [["report"], ["report", "--json"], ["tree"], ["replay"], ["info"], ["info", "--json"], ["dump"], ["dump", "--json-lines"]]
    private let good = TemporaryFile(program(seed: 1, events: 500, wordsPerChunk: 40).bytes())

    private func read(_ command: [String], _ path: String) throws -> Ended {
        switch command.count {
        case 1: try run(command[0], path)
        default: try run(command[0], command[1], path)
        }
    }

    @Test(arguments: readers)
    func aGoodTraceIsReadWithoutAWord(command: [String]) throws {
        let ended = try read(command, good.path)
        #expect(ended.status == 0)
        #expect(ended.errors == "")
        #expect(ended.output.contains("demo"))
        #expect(!ended.output.contains("\u{1b}"))
    }

    @Test(arguments: readers)
    func whatCannotBeReadEndsInOneLineAndStatus1(command: [String]) throws {
        var newer = program(seed: 1, events: 5)
        newer.header.version = 9
        let cases: [(TemporaryFile?, String)] = [
            (TemporaryFile([]), "empty"), (TemporaryFile([UInt8](repeating: 0, count: 4096)), "empty"),
            (TemporaryFile(Array("#!/bin/sh\necho not a trace at all\n".utf8)), "not a trace"),
            (TemporaryFile(newer.bytes()), "9"), (nil, "No such file"),
        ]
        for (file, reason) in cases {
            let ended = try read(command, file?.path ?? "/nonexistent.trace")
            #expect(ended.status == 1)
            #expect(ended.output == "")
            #expect(ended.errorLines.count == 1)
            #expect(ended.errors.hasPrefix("tracer: "))
            #expect(ended.errors.contains(reason), "\(ended.errors)")
        }
    }

    @Test(arguments: readers)
    func ofACutFileTheGoodPartIsShownAndWhatIsMissingIsSaid(command: [String]) throws {
        let bytes = program(seed: 1, events: 500, wordsPerChunk: 40).bytes()
        let file = TemporaryFile(Array(bytes[..<(bytes.count - 4096 + 80)]))
        let ended = try withExtendedLifetime(file) { try read(command, file.path) }
        #expect(ended.status == 1)
        #expect(ended.output.contains("demo"))
        #expect(ended.errorLines.count == 1)
        #expect(ended.errors.contains("cut"))
    }

    @Test func aUsageErrorIsStatus2() throws {
        for arguments in [["nonsense"], ["report", "--nonsense"], ["tree", "--min=a lot"]] {
            let ended = try arguments.count == 1 ? run(arguments[0]) : run(arguments[0], arguments[1])
            #expect(ended.status == 2, "\(arguments)")
            #expect(ended.output == "")
            #expect(ended.errors != "")
        }
        #expect(try run("report", good.path, "--top=-1").status == 2)
        #expect(try run("report", good.path, "--sort=colour").status == 2)
    }

    @Test func aDiffEndsWithStatus0AndSaysWhatMakesItDoubtful() throws {
        var other = program(seed: 2, events: 500)
        other.header.machine = 183
        other.text(TRACE_TEXT_PROGRAM, "/usr/bin/other")
        let file = TemporaryFile(other.bytes())
        let same = try run("diff", good.path, good.path)
        #expect(same.status == 0)
        #expect(same.errors == "")
        #expect(same.output.contains("none differs"))
        let ended = try withExtendedLifetime(file) { try run("diff", good.path, file.path) }
        #expect(ended.status == 0)
        #expect(ended.errorLines.count == 1)
        #expect(ended.errors.contains("different processors: x86_64 before, aarch64 after"))
        #expect(try run("diff", good.path).status == 2)
        #expect(try run("diff", good.path, "/nonexistent.trace").status == 1)
    }

    @Test func callersShowsBothDirectionsAndKnowsWhatIsMeant() throws {
        let ended = try run("callers", good.path, "a")
        #expect(ended.status == 0)
        #expect(ended.output.contains("who calls it") && ended.output.contains("what it calls"))
        let missing = try run("callers", good.path, "mai")
        #expect(missing.status == 1)
        #expect(missing.errors.contains("there is main"), "\(missing.errors)")
    }

    @Test func aTreeOfADirectoryIsOfItsNewestRun() throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("tracer-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        for (pid, session, age) in [(10, 7, 1), (11, 7, 2), (12, 6, 0)] as [(UInt32, UInt64, Int)] {
            var builder = demo { $0.complete($1, 2, from: start, to: start + 10) }
            builder.header.pid = pid
            builder.header.session = session
            builder.header.first_realtime_ns += UInt64(age)
            FileManager.default.createFile(atPath: directory.appendingPathComponent("\(pid).trace").path, contents: Data(builder.bytes()))
        }
        let ended = try run("tree", directory.path)
        #expect(ended.status == 0)
        #expect(ended.output.contains("pid 10") && ended.output.contains("pid 11") && !ended.output.contains("pid 12"))
        #expect(ended.errors.contains("1 trace of other runs"))
        #expect(try run("tree", directory.path, "--by=run").output.contains("2 processes"))
    }

    @Test func reportGroupsAndFilters() throws {
        #expect(try run("report", good.path, "--by=module").output.contains("libdemo.so.1"))
        #expect(try run("report", good.path, "--by=caller").output.contains("caller"))
        #expect(try run("report", good.path, "--by=thread").output.contains("4711 demo"))
        let filtered = try run("report", good.path, "--filter=libdemo.so.1!b")
        #expect(filtered.output.split(separator: "\n").count == 3, "\(filtered.output)")
        #expect(try run("tree", good.path, "--focus=nothing").status == 1)
    }

    @Test(arguments: ["report", "tree", "callers", "diff"])
    func correctShowsTimesWithoutTheCostBesideThem(command: String) throws {
        func words(_ path: String) -> [String] {
            switch command {
            case "callers": [command, path, "a"]
            case "diff": [command, path, path]
            default: [command, path]
            }
        }
        var builder = program(seed: 1, events: 500)
        builder.header.leaf_cost = 20 * UInt32(TRACE_COST_PARTS)
        builder.header.inside_cost = 8 * UInt32(TRACE_COST_PARTS)
        let costly = TemporaryFile(builder.bytes())
        let ended = try run(words(costly.path) + ["--correct"])
        #expect(ended.status == 0)
        #expect(ended.output.contains("corrected"))
        let json = try run(words(costly.path) + ["--correct", "--json"]).output
        #expect(json.contains(command == "report" || command == "diff" ? "\"corrected_self_ns\": " : "\"self_cost_ns\": "))
        #expect(try !run(words(costly.path)).output.contains("corrected"))
        let unknown = try run(words(good.path) + ["--correct"])
        #expect(unknown.status == 1)
        #expect(unknown.output == "")
        #expect(unknown.errors.contains("\(good.path) does not say what recording a call cost"))
        #expect(unknown.errorLines.count == 1)
    }

    @Test func ofSeveralProcessesThoseThatAreNotCorrectedAreSaid() throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("tracer-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        for (pid, cost) in [(10, 20), (11, 0)] as [(UInt32, UInt32)] {
            var builder = demo { $0.complete($1, 2, from: start, to: start + 100) }
            builder.header.pid = pid
            builder.header.session = 7
            builder.header.leaf_cost = cost * UInt32(TRACE_COST_PARTS)
            try Data(builder.bytes()).write(to: directory.appendingPathComponent("\(pid).trace"))
        }
        for words in [["tree", directory.path], ["tree", directory.path, "--by", "run"], ["callers", directory.path, "a"]] {
            let ended = try run(words + ["--correct"])
            #expect(ended.status == 0)
            #expect(ended.errors.contains("11.trace does not say what recording a call cost: its times are not corrected"), "\(ended.errors)")
            #expect(!ended.errors.contains("10.trace"))
            #expect(try !run(words).errors.contains("not corrected"))
        }
    }

    @Test func aDifferenceIsCorrectedOnBothSidesOrNotAtAll() throws {
        var builder = program(seed: 1, events: 500)
        builder.header.leaf_cost = 20 * UInt32(TRACE_COST_PARTS)
        let costly = TemporaryFile(builder.bytes())
        for sides in [[good.path, costly.path], [costly.path, good.path]] {
            let ended = try run(["diff", "--correct"] + sides)
            #expect(ended.status == 1)
            #expect(ended.output == "")
            #expect(ended.errors.contains("\(good.path) does not say what recording a call cost"))
        }
        let page = try run(["diff", "--correct", costly.path, costly.path, "--html", costly.path + ".html"])
        #expect(page.status == 2)
        #expect(page.errors.contains("--correct and --html exclude each other"))
        #expect(access(costly.path + ".html", F_OK) != 0)
    }

    @Test func callersOfBothDirectionsAreTreesInJSON() throws {
        let object = try JSONSerialization.jsonObject(with: Data(run("callers", good.path, "a", "--json").output.utf8)) as? [String: Any]
        for direction in ["callers", "calls"] {
            let tree = object?[direction] as? [String: Any]
            #expect((tree?["nodes"] as? [Any])?.isEmpty == false, "\(direction)")
            #expect((tree?["functions"] as? [Any])?.isEmpty == false, "\(direction)")
        }
    }

    @Test func helpAndVersionGoToStandardOutput() throws {
        for option in ["--help", "--version"] {
            let ended = try run(option)
            #expect(ended.status == 0)
            #expect(ended.output != "")
            #expect(ended.errors == "")
        }
    }

    @Test(arguments: [["dump"], ["replay"]])
    func aReaderThatHasGoneEndsItQuietly(command: [String]) throws {
        let long = TemporaryFile(program(seed: 1, events: 20_000).bytes())
        let errors = TemporaryFile([])
        let process = process(command + [long.path], [:], in: nil)
        let pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = FileHandle(forWritingAtPath: errors.path)
        try process.run()
        try pipe.fileHandleForReading.close()
        let ended = ended(process, "", try String(contentsOfFile: errors.path, encoding: .utf8))
        #expect(ended.status == 128 + SIGPIPE)
        #expect(try String(contentsOfFile: errors.path, encoding: .utf8) == "")
    }

    @Test func aFullDiskIsSaid() throws {
        let process = process(["report", good.path], [:], in: nil)
        let errors = Pipe()
        process.standardOutput = try #require(FileHandle(forWritingAtPath: "/dev/full"))
        process.standardError = errors
        try process.run()
        let text = String(decoding: errors.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
        #expect(ended(process, "", text).status == 1)
        #expect(text == "tracer: cannot write the output: No space left on device\n")
    }

    @Test func withoutAFileTheNewestTraceOfTheDirectoryIsReported() throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent("tracer-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        #expect(try run("report", in: directory.path).status == 1)
        let file = directory.appendingPathComponent("a.trace").path
        FileManager.default.createFile(atPath: file, contents: try Data(contentsOf: URL(fileURLWithPath: good.path)))
        let ended = try run("report", in: directory.path)
        #expect(ended.status == 0)
        #expect(ended.errors == "tracer: reading a.trace\n")
        #expect(ended.output.contains("libdemo.so.1"))
    }

    /// On a terminal there is colour, unless NO_COLOR says otherwise by being set and not empty.
    @Test(arguments: [([:], true), (["NO_COLOR": "1"], false), (["NO_COLOR": ""], true), (["TERM": "dumb"], false)] as [([String: String], Bool)])
    func colourIsForTerminals(environment: [String: String], isColoured: Bool) throws {
        let terminal = open("/dev/ptmx", O_RDWR | O_NOCTTY)
        defer { close(terminal) }
        var isLocked: Int32 = 0, number: Int32 = 0
        // TIOCSPTLCK and TIOCGPTN: unlockpt and ptsname are hidden from Swift by _GNU_SOURCE.
        guard ioctl(terminal, 0x4004_5431, &isLocked) == 0, ioctl(terminal, 0x8004_5430, &number) == 0 else {
            return // no pseudo-terminals here
        }
        let other = open("/dev/pts/\(number)", O_RDWR | O_NOCTTY)
        try #require(other >= 0)
        let process = process(["report", good.path, "--top=2", "--no-pager"], ["TERM": "xterm"].merging(environment) { $1 }, in: nil)
        process.standardOutput = FileHandle(fileDescriptor: other, closeOnDealloc: false)
        try process.run()
        process.waitUntilExit() // two rows fit the terminal's buffer
        var bytes = [UInt8](repeating: 0, count: 8192)
        let got = Glibc.read(terminal, &bytes, bytes.count)
        close(other)
        #expect(process.terminationStatus == 0)
        #expect(got > 0)
        #expect(bytes.prefix(max(got, 0)).contains(0x1b) == isColoured)
    }
}
