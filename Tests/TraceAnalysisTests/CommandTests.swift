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

    /// True if it printed nothing but one line, an error with this in it.
    func isRefusal(_ status: Int32, _ part: String) -> Bool {
        self.status == status && output == "" && errorLines.count == 1 && errors.hasPrefix("tracer: ") && errors.contains(part)
    }
}

/// Path of the tool, next to the running test bundle.
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

private func jsonObject(of arguments: String...) throws -> [String: Any] { try jsonObject(run(arguments).output) }

private func ended(_ process: Process, _ output: String, _ errors: String) -> Ended {
    process.waitUntilExit()
    let isSignal = process.terminationReason == .uncaughtSignal
    return Ended(
        status: isSignal ? 128 + process.terminationStatus : process.terminationStatus,
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
    static let readers = [
        ["report"], ["report", "--json"], ["tree"], ["replay"], ["info"], ["info", "--json"], ["dump"], ["dump", "--json"],
    ]
    private let good = TemporaryFile(program(seed: 1, events: 500, wordsPerChunk: 40).bytes())

    private func read(_ command: [String], _ path: String) throws -> Ended { try run(command + [path]) }

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
            #expect(ended.isRefusal(1, reason), "\(ended)")
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
        #expect(ended.errors.contains("truncated"))
    }

    @Test func aUsageErrorIsStatus2() throws {
        for arguments in [["nonsense"], ["report", "--nonsense"], ["tree", "--min=a lot"]] {
            let ended = try run(arguments)
            #expect(ended.status == 2, "\(arguments)")
            #expect(ended.output == "")
            #expect(ended.errors != "")
        }
        #expect(try run("report", good.path, "--top=-1").status == 2)
        #expect(try run("report", good.path, "--sort=colour").status == 2)
    }

    @Test(
        arguments: [
            (["report", "--fliter", "x"], "unknown option '--fliter'. Did you mean '--filter'?; see tracer report --help"),
            (["report", "--top=-1"], "--top takes 0 (all) or a number of rows; see tracer report --help"),
            (["report", "--sort=x"], "the value 'x' is invalid for '--sort <sort>'. Please provide one of the following: self, total, "),
            (["export"], "missing expected argument '--format <format>'; see tracer export --help"),
        ] as [([String], String)])
    func aUsageErrorIsOneLine(arguments: [String], error: String) throws {
        let ended = try run(arguments)
        #expect(ended.isRefusal(2, error), "\(ended)")
        #expect(ended.errors.hasPrefix("tracer: " + error), "\(ended)")
    }

    /// A chunk that was never closed, of words that hold nothing yet.
    @Test func anExportOfMoreThanAGigabyteIsSaidBeforeAndNotBegunWhereThereIsNoSpace() throws {
        var bytes = demo { $0.complete($1, 2, from: start, to: start + 10) }.bytes(closeChunks: false)
        let chunk = bytes.count - 4096, words = 12_000_000, byteCount = UInt32((words * 8 + 4095) / 4096 * 4096)
        let offset = MemoryLayout<trace_chunk_header>.offset(of: \.byte_count)!
        withUnsafeBytes(of: byteCount) { bytes.replaceSubrange(chunk + offset..<chunk + offset + 4, with: $0) }
        let file = TemporaryFile(bytes)
        #expect(truncate(file.path, chunk + Int(byteCount)) == 0)
        let output = try run("export", file.path, "--format=chrome", "-o", "-")
        #expect(output.status == 0 && output.output.contains("\"a\""))
        #expect(output.errors == "tracer: the output will take ~1.1 GB: --from and --to export a part\n", "\(output.errors)")
        // procfs has no space for anything.
        let full = try run("export", file.path, "--format=chrome", "-o", "/proc/out.json")
        #expect(full.status == 1)
        #expect(full.errors.contains("/proc/out.json would take ~1.1 GB, but only 0 bytes are free"), "\(full.errors)")
        #expect(try run("export", file.path, "--format=folded", "-o", "-").errors == "")
    }

    @Test func samplesAreATreeAndSayWhereToGetThemWhenThereAreNone() throws {
        let without = TemporaryFile(demo { $0.complete($1, 1, from: 1_000_000, to: 1_000_010) }.bytes())
        let none = try run("samples", without.path)
        #expect(none.status == 1 && none.output == "")
        #expect(none.errors == "tracer: no samples in \(without.path): record them with `tracer record --sample -- PROGRAM`\n")
        var builder = demo([.enter(1, 0), .enter(2, 1000)])
        builder.kernel(asked: TRACE_KERNEL_SAMPLES, until: 9_000_000, period: 1_000_000)
        builder.codeName(0x1000, 0x100, "hot")
        builder.samples([(1_005_000, 4711, 0, [0x1010]), (1_006_000, 4711, 0, [0x1020]), (1_000_500, 4711, 0, [0x1020])])
        let file = TemporaryFile(builder.bytes())
        let tree = try run("samples", file.path)
        #expect(tree.status == 0 && tree.errors == "")
        #expect(tree.output.contains("3 samples, one for each 1.000 ms of CPU time"))
        #expect(tree.output.contains("   66.7%                    2   a (libdemo.so.1)\n   66.7%                    2   > …\n"))
        let folded = try run("samples", "--folded", file.path)
        #expect(folded.output.contains("libdemo.so.1`a;?`…;[made at run time]`hot 2\n"))
        let json = try run("samples", "--json", file.path)
        #expect(json.output.contains("\"self\": 3, \"total\": 3, \"self_share\": 1.0, \"total_share\": 1.0"))
        let pprof = try run("samples", "--pprof", "-", file.path)
        #expect(pprof.status == 0 && !pprof.output.isEmpty)
        #expect(try run("samples", "--json", "--folded", file.path).status == 2)
    }

    @Test func aReportOfOneFunctionIsOfTheNewestTraceWhenNoneIsNamed() throws {
        let file = growing(), directory = try TemporaryDirectory(["app.trace": file.bytes])
        let named = try run("report", file.path, "a")
        #expect(named.status == 0 && named.errors == "")
        for part in ["10 calls, total 2.750 us", "how long the calls took", "slowest calls", "who calls it", "what it calls", "4711 demo"] {
            #expect(named.output.contains(part), "\(part): \(named.output)")
        }
        #expect(try run("report", "a", in: directory.path).output == named.output)
        let part = try run("report", file.path, "a", "--from=5us").output
        #expect(part.contains("5 calls, total 2.000 us") && part.contains("window 5.000 us to 10.000 us"), "\(part)")
        for (arguments, status, error) in [
            (["nobody"], 1, "no call of nobody"), (["A"], 1, "there is a"),
            (["a", "--by=module"], 2, "--by, --filter and --correct apply to all functions"),
        ] as [([String], Int32, String)] {
            let ended = try run(["report", file.path] + arguments)
            #expect(ended.status == status && ended.errors.contains(error) && ended.output == "", "\(ended.errors)")
        }
        #expect(try run("report", "nobody.trace").errors.contains("No such file"))
        let object = try jsonObject(of: "report", file.path, "a", "--json")
        #expect(object["calls"] as? Int == 10 && (object["slowest"] as? [[String: Any]])?.first?["duration_ns"] as? Int == 500)
    }

    /// Dropped, filtered, overwritten, not finished: whatever shows calls says what it does not have.
    @Test(arguments: [
        ["report"], ["tree"], ["replay"], ["callers"], ["export", "--format=csv", "-o", "-"], ["view", "-o", "-"], ["info"],
        ["waits"], ["waits", "--json"], ["threads"], ["threads", "--json"],
    ])
    func whatATraceDoesNotHaveIsSaid(command: [String]) throws {
        var builder = demo(
            isRing: true, [.call(2, 0, 10), .lose, .counters(byTime: 7, byDepth: 5, dropped: 40_000), .call(2, 20, 30)])
        builder.header.dropped = 1234
        builder.header.state = UInt32(TRACE_STOPPED)
        builder.header.stop_reason = UInt32(TRACE_STOP_SPACE)
        let file = TemporaryFile(builder.bytes())
        let ended = try run([command[0], file.path] + (command[0] == "callers" ? ["a"] : []) + command.dropFirst())
        #expect(ended.status == 0)
        let said = ended.output + ended.errors
        #expect(said.contains("41,234") || said.contains("1,234 calls dropped") && said.contains("40,000 dropped"), "\(said)")
        #expect(said.contains(command[0] == "info" ? "1 missing" : "1 chunk overwritten"), "\(said)")
        #expect(said.contains("no space left on the device"), "\(said)")
        #expect(
            said.contains("12 filtered") || said.contains("7 calls filtered by time") || said.contains("7 by time, 5 by depth"), "\(said)")
    }

    @Test func aPageSaysWhatItsTimelineDoesNotDraw() throws {
        let short = (0..<30).map { Step.call(3, 10_000_000 + $0 * 9, 10_000_001 + $0 * 9) }
        let file = TemporaryFile(demo([.call(2, 0, 10_000_000)] + short).bytes())
        #expect(try run("view", file.path, "-o", "-").output.contains("timeline: 30 short calls drawn as bands, not one by one"))
    }

    @Test func aReplayIsAJSONObjectALineToo() throws {
        let file = growing()
        let lines = try run("replay", file.path, "--json", "--around", "a", "--slowest", "1").output.split(separator: "\n")
        let objects = try lines.map { try jsonObject($0) }
        try #require(objects.map { $0["name"] as? String } == ["main", "a"])
        #expect(objects.map { $0["depth"] as? Int } == [0, 1] && objects.map { $0["time_ns"] as? Int } == [0, 9000])
        #expect(objects[1]["duration_ns"] as? Int == 500 && objects[1]["ended"] as? String == "returned")
        #expect(
            Set(objects[0].keys) == ["tid", "thread", "kind", "depth", "time_ns", "duration_ns", "name", "module", "ended"])
    }

    @Test func replayPartsTheMomentsOfAWindow() throws {
        let file = growing()
        let output = try run("replay", file.path, "--around", "a", "--slowest", "3").output
        #expect(output.split(separator: "\n").map { $0 == "--" } == [false, false, true, false, true, false], "\(output)")
    }

    @Test func aMisspeltCommandIsSuggested() throws {
        for (word, meant) in [("repotr", "report"), ("exprot", "export"), ("serach", nil), ("view2", "view")] as [(String, String?)] {
            let ended = try run(word)
            #expect(ended.status == 2)
            #expect(ended.errors.contains("did you mean") == (meant != nil), "\(ended.errors)")
            if let meant { #expect(ended.errors == "tracer: no command \"\(word)\"; did you mean \(meant)? tracer --help lists them\n") }
        }
    }

    @Test func aWordThatIsNoCommandIsNotTakenForATrace() throws {
        for words in [["git", "status"], ["/bin/true"], [""]] {
            let ended = try run(words)
            #expect(
                ended.isRefusal(2, "no command \"\(words[0])\"; tracer --help lists them, and tracer record -- PROGRAM records a program"),
                "\(ended)")
        }
        #expect(try run("startup", "/bin/true").isRefusal(2, "/bin/true is a program, not a trace: tracer startup -- /bin/true"))
    }

    @Test func aTraceWithoutACommandNamesTheCommandThatReadsIt() throws {
        #expect(try run(good.path).errors == "tracer: \(good.path) is a trace, not a command: tracer report \(good.path)\n")
        let two = try run(good.path, good.path)
        #expect(two.status == 2)
        #expect(two.errors == "tracer: \(good.path) is a trace, not a command: tracer diff \(good.path) \(good.path)\n")
    }

    @Test func optionsForTheSameThingHaveTheSameNameAndTheOldNamesWork() throws {
        let file = growing()
        func same(_ one: [String], _ other: [String]) throws {
            let (first, second) = (try run(one), try run(other))
            #expect(first.status == 0, "\(one): \(first.errors)")
            #expect(first.output != "" && first.output == second.output, "\(one), \(other)")
        }
        try same(["tree", file.path, "--min-share", "30%"], ["tree", file.path, "--min", "30%"])
        try same(["callers", file.path, "a", "--min-share", "30"], ["callers", file.path, "a", "--min", "30%"])
        try same(["dump", file.path, "--json"], ["dump", file.path, "--json-lines"])
        try same(["waits", file.path, "--top", "1"], ["waits", file.path, "--limit", "1"])
        for command in [
            ["callers", file.path, "a"], ["tree", file.path], ["replay", file.path], ["waits", file.path], ["threads", file.path],
            ["report", file.path], ["report", file.path, "a"], ["view", file.path, "-o", "-"], ["diff", file.path, file.path],
            ["export", file.path, "--format=csv", "-o", "-"], ["export", file.path, "--format=folded", "-o", "-"],
        ] {
            let main = try run(command + ["--thread", "main"])
            #expect(main.status == 0 && main.output != "", "\(command): \(main.errors)")
            #expect(try run(command + ["--thread", "nobody"]).errors.contains("no thread \"nobody\" in \(file.path); it has "))
        }
    }

    @Test func theHelpHasCommandsInGroupsAndExamplesThatFitIntoALine() throws {
        let help = try run("--help").output
        let groups = help.split(separator: "\n").filter { $0.hasSuffix("SUBCOMMANDS:") }
        #expect(groups.count == 5, "\(groups)")
        // A line that begins a command has two spaces before its name; an example begins with the tool's.
        let commands = help.split(separator: "\n").filter { $0.hasPrefix("  ") && !$0.hasPrefix("   ") && !$0.hasPrefix("  -") }
            .compactMap { $0.split(separator: " ").first.map(String.init) }.filter { $0 != "See" && $0 != "tracer" }
        #expect(commands.count > 20, "\(commands)")
        for command in commands {
            let lines = try run("help", command).output.split(separator: "\n", omittingEmptySubsequences: false)
            let examples = lines.drop { $0 != "EXAMPLES" }.dropFirst().prefix { !$0.isEmpty }
            #expect(!examples.isEmpty, "\(command) has examples")
            for line in examples { #expect(line.hasPrefix("  ") && line.count <= 80, "\(command): \(line)") }
        }
    }

    @Test func aReplayShowsWhatRanInAWindowWithTheCallsAroundIt() throws {
        let calls = (0..<10).map { Step.call(2, $0 * 1000 + 100, $0 * 1000 + 200) }
        let file = TemporaryFile(demo([.call(1, 0, 10_000, calls)]).bytes())
        func lines(_ arguments: String...) throws -> Int {
            try run(["replay", file.path] + arguments).output.split(separator: "\n").count
        }
        #expect(try lines() == 11)
        #expect(try lines("--from", "3us", "--to", "5.15us") == 4) // main, and three of a: the last had begun
        #expect(try lines("--from=50%") == 6)
        #expect(try lines("--to", "0.000001", "--top", "5") == 2)
        #expect(try lines("--from", "3us", "--top", "2") == 3) // and that there is more
        #expect(try lines("--from", "3us", "--limit", "2") == 3) // the option's old name
        let nothing = try run("replay", file.path, "--from=10.5us", "--to=11us")
        #expect(nothing.status == 1) // it is after the end
        let gap = TemporaryFile(demo([.call(1, 0, 10), .call(1, 1000, 1010)]).bytes())
        #expect(try run("replay", gap.path, "--from=100ns", "--to=200ns").output == "no recorded call was running then\n")
        for (arguments, status) in [(["--from=2us", "--to=1us"], 2), (["--from=soon"], 2), (["--from=-1ms"], 2), (["--from=1s"], 1)]
            as [([String], Int32)]
        {
            let ended = try run(["replay", file.path] + arguments)
            #expect(ended.status == status, "\(arguments): \(ended.errors)")
            #expect(ended.output == "")
        }
    }

    /// main from 0 to 10 us, a ten times, of 100, 200 ... ns.
    private func growing() -> TemporaryFile {
        let calls = (0..<10).map { Step.call(2, $0 * 1000, $0 * 1000 + ($0 + 1) * 50) }
        return TemporaryFile(demo([.call(1, 0, 10_000, calls)]).bytes())
    }

    @Test func callersAndDiffTakeAWindowOfTime() throws {
        let file = growing()
        let part = try run("callers", file.path, "a", "--from", "3us", "--to", "50%")
        #expect(part.status == 0)
        #expect(part.output != (try run("callers", file.path, "a").output))
        let difference = try run("diff", file.path, file.path, "--around", "a", "--slowest", "2", "--json")
        #expect(difference.status == 0, "\(difference.errors)")
    }

    @Test(arguments: [["report"], ["tree"], ["export", "--format=csv", "-o", "-"], ["replay"]])
    func readersTellOfAWindowOfTimeAlone(command: [String]) throws {
        let file = growing()
        func calls(_ arguments: String...) throws -> Int {
            let output = try run([command[0], file.path] + command.dropFirst() + arguments).output
            if command[0] == "replay" { return output.split(separator: "\n").filter { $0.contains(" a() ") }.count }
            if command[0] == "export" { return output.split(separator: "\n").filter { $0.contains(",a,") }.count }
            return try #require(output.split(separator: "\n").filter { $0.contains("libdemo.so.1") && $0.contains(" a ") }.first)
                .split(separator: " ").dropFirst(command[0] == "report" ? 0 : 5).lazy.compactMap { Int($0) }.first ?? 0
        }
        #expect(try calls() == 10)
        #expect(try calls("--from", "3us", "--to", "50%") == 2)
        #expect(try calls("--around", "a", "--min=400ns") == 3)
        #expect(try calls("--around", "a", "--slowest=4") == 4)
        #expect(try calls("--around", "a", "--slowest=4", "--from=2us", "--to=5us") == 3)
    }

    @Test func theMainThreadIsCalledMainWhateverTheNamesOfOthers() throws {
        var builder = TraceBuilder(program: "/usr/bin/main", pid: 4711)
        builder.module(0, "/usr/lib/libdemo.so.1")
        builder.function(1, "a")
        for (tid, calls) in [(4711, 1), (4712, 5)] as [(UInt32, UInt64)] {
            let thread = builder.thread(tid: tid, "main")
            for call in 0..<calls { builder.complete(thread, 1, from: start + call * 10, to: start + call * 10 + 5) }
        }
        let file = TemporaryFile(builder.bytes())
        let text = try run("tree", file.path, "--thread", "main").output
        #expect(text.contains("thread 4711 main, 1 call") && !text.contains("thread 4712"), "\(text)")
        #expect(try run("tree", file.path, "--thread", "4712").output.contains("thread 4712 main, 5 calls"))
        func object(_ arguments: String...) throws -> [String: Any] {
            let output = try run(arguments + ["--json"]).output
            return try #require(JSONSerialization.jsonObject(with: Data(output.utf8)) as? [String: Any])
        }
        for (thread, calls) in [("main", 1), ("4712", 5)] {
            #expect(try object("report", file.path, "--thread", thread)["calls"] as? Int == calls)
            #expect(try object("report", file.path, "a", "--thread", thread)["calls"] as? Int == calls)
            let callers = try object("callers", file.path, "a", "--thread", thread)["callers"] as? [String: Any]
            #expect((callers?["nodes"] as? [[String: Any]])?.last?["calls"] as? Int == calls)
            #expect((try object("tree", file.path, "--thread", thread)["roots"] as? [Any])?.count == 1)
            let rows = try run("export", file.path, "--format=csv", "-o", "-", "--thread", thread).output.split(separator: "\n")
            #expect(rows.filter { $0.contains(",a,") }.count == calls)
        }
        let nothing = try run("report", file.path, "b", "--thread", "main")
        #expect(nothing.status == 1 && nothing.errors.contains("no call of b by thread \"main\" in \(file.path)"), "\(nothing.errors)")
    }

    @Test func aProcessThatIsNotThereIsNamedOrSuggested() throws {
        let file = growing()
        for command in [
            ["report", file.path], ["info", file.path], ["replay", file.path], ["tree", file.path], ["diff", file.path, file.path],
        ] {
            #expect(try run(command + ["--process", "demo"]).status == 0, "\(command)")
            for (name, known) in [("dmeo", "; there is demo"), ("em", "; there is demo"), ("nobody", ""), ("12", "")] {
                let ended = try run(command + ["--process", name])
                #expect(ended.status == 1 && ended.output == "", "\(command)")
                #expect(ended.errors == "tracer: no process \"\(name)\" in \(file.path)\(known): tracer info \(file.path) lists them\n")
            }
        }
        let running = try run("startup", "--process", "demo", "--", "/bin/true")
        #expect(running.status == 2 && running.errors.contains("--process needs a trace or the directory of a run"), "\(running.errors)")
    }

    @Test func theWindowIsSaid() throws {
        let file = growing()
        let report = try run("report", file.path, "--from", "3us", "--to", "0.000005").output
        #expect(report.contains(", window 3.000 us to 5.000 us of 10.000 us, "), "\(report)")
        let tree = try run("tree", file.path, "--around", "a", "--slowest", "2").output
        #expect(tree.contains(", window of 2 moments, 950 ns of 10.000 us"), "\(tree)")
        #expect(tree.contains("main [libdemo.so.1]  (2 only in part)"), "\(tree)")
        let object = try jsonObject(of: "report", file.path, "--from=3us", "--json")
        #expect(object["window"] as? [String: Int] == ["from_ns": 3000, "to_ns": 10_000, "length_ns": 7000, "moments": 1])
        let page = try run("view", file.path, "--from=3us", "--to=4us", "-o", "-").output
        #expect(page.contains("\"shown\":{\"from\":3000,\"to\":4000}") && page.contains("window 3.000 us to 4.000 us of 10.000 us"))
    }

    @Test(arguments: ["report", "tree", "replay", "view", "export"])
    func aWindowThatCannotBeMeantIsRefusedInOneLine(command: String) throws {
        let file = growing()
        let cases: [([String], Int32, String)] = [
            (["--from=2us", "--to=1us"], 2, "--from is after --to"), (["--from=1s"], 1, "spans 10.000 us"),
            (["--from=-1"], 2, "1250ms"), (["--to=101%"], 2, "40%"), (["--around=nobody"], 1, "no call of nobody"),
            (["--around=a", "--min=1ms"], 1, "the longest takes 500 ns"), (["--slowest=3"], 2, "--around FUNCTION"),
            (["--min=3ms"], 2, "--around FUNCTION"), (["--around=a", "--slowest=0"], 2, "1 to 100000"),
        ]
        let more = command == "export" ? ["--format=csv", "-o", "-"] : command == "view" ? ["-o", "-"] : []
        for (arguments, status, reason) in cases {
            let ended = try run([command, file.path] + more + arguments)
            #expect(ended.status == status, "\(arguments): \(ended.errors)")
            #expect(ended.output == "")
            #expect(ended.errorLines.first?.contains(reason) == true, "\(arguments): \(ended.errors)")
        }
        let beyond = try run([command, file.path] + more + ["--to=1s"])
        #expect(beyond.status == 0 && beyond.errors == "tracer: --to is past the end: \(file.path) spans 10.000 us\n", "\(beyond.errors)")
    }

    @Test func theMomentsOfOneProcessAreAWindowOfAllOfItsRun() throws {
        var first = demo([.call(2, 1000, 2000), .call(3, 5000, 6000)])
        first.header.pid = 10
        var second = TraceBuilder(pid: 11, start: start + 500)
        second.module(0, "/usr/lib/libdemo.so.1")
        second.function(4, "c")
        second.steps(second.thread(), (0..<10).map { .call(4, $0 * 1000 + 100, $0 * 1000 + 200) })
        let files = [TemporaryFile(first.bytes()), TemporaryFile(second.bytes())]
        let object = try jsonObject(of: "tree", files[0].path, files[1].path, "--around", "a", "--json")
        let functions = try #require(object["functions"] as? [[String: Any]]).map { $0["name"] as? String }
        let nodes = try #require(object["nodes"] as? [[String: Any]])
        func calls(_ name: String) -> Int {
            nodes.filter { ($0["function"] as? Int).map { $0 >= 0 && functions[$0] == name } == true }.compactMap { $0["calls"] as? Int }
                .reduce(0, +)
        }
        #expect(calls("a") == 1 && calls("b") == 0 && calls("c") == 1)
        let windows = try #require(object["processes"] as? [[String: Any]]).compactMap { $0["window"] as? [String: Int] }
        #expect(Set(windows.map { $0["from_ns"] }) == [1000, 500])
    }

    @Test func callersAndExportTakeTheNewestTraceOfTheDirectory() throws {
        let directory = try TemporaryDirectory(["app.trace": good.bytes])
        let callers = try run("callers", "a", in: directory.path)
        #expect(callers.status == 0 && callers.errors == "tracer: reading app.trace\n", "\(callers.errors)")
        #expect(callers.output == (try run("callers", good.path, "a").output))
        let export = try run("export", "--format=folded", in: directory.path)
        #expect(export.status == 0)
        #expect(FileManager.default.fileExists(atPath: directory.path + "/app.folded"), "\(export.errors)")
        #expect(try run("callers", "one", "two", "three", in: directory.path).status == 2)
    }

    @Test func aDiffEndsWithStatus0AndSaysWhatMakesItDoubtful() throws {
        var other = program(seed: 2, events: 500)
        other.header.elf_machine = 183
        other.text(TRACE_TEXT_PROGRAM, "/usr/bin/other")
        let file = TemporaryFile(other.bytes())
        let same = try run("diff", good.path, good.path)
        #expect(same.status == 0)
        #expect(same.errors == "")
        #expect(same.output.contains("no function differs"))
        let ended = try withExtendedLifetime(file) { try run("diff", good.path, file.path) }
        #expect(ended.status == 0)
        #expect(ended.errorLines.count == 1)
        #expect(ended.errors.contains("different CPU architectures: x86_64 before, aarch64 after"))
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
        let directory = try TemporaryDirectory()
        for (pid, session, age) in [(10, 7, 1), (11, 7, 2), (12, 6, 0)] as [(UInt32, UInt64, Int)] {
            var builder = demo { $0.complete($1, 2, from: start, to: start + 10) }
            builder.header.pid = pid
            builder.header.session = session
            builder.header.first_realtime_ns += UInt64(age)
            directory.write("\(pid).trace", builder.bytes())
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
        #expect(filtered.output.split(separator: "\n").filter { $0.hasSuffix("libdemo.so.1") }.count == 1, "\(filtered.output)")
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
        builder.cost(leaf: 20, inside: 8)
        let costly = TemporaryFile(builder.bytes())
        let ended = try run(words(costly.path) + ["--correct"])
        #expect(ended.status == 0)
        #expect(ended.output.contains("corrected"))
        let json = try run(words(costly.path) + ["--correct", "--json"]).output
        #expect(json.contains(command == "report" || command == "diff" ? "\"corrected_self_ns\": " : "\"self_cost_ns\": "))
        #expect(try !run(words(costly.path)).output.contains("corrected"))
        let unknown = try run(words(good.path) + ["--correct"])
        #expect(unknown.isRefusal(1, "\(good.path) does not say what recording a call cost"), "\(unknown)")
    }

    @Test func ofSeveralProcessesThoseThatAreNotCorrectedAreSaid() throws {
        let directory = try TemporaryDirectory()
        for (pid, cost) in [(10, 20), (11, 0)] as [(UInt32, UInt32)] {
            var builder = demo { $0.complete($1, 2, from: start, to: start + 100) }
            builder.header.pid = pid
            builder.header.session = 7
            builder.cost(leaf: cost)
            directory.write("\(pid).trace", builder.bytes())
        }
        for words in [["tree", directory.path], ["tree", directory.path, "--by", "run"], ["callers", directory.path, "a"]] {
            let ended = try run(words + ["--correct"])
            #expect(ended.status == 0)
            #expect(
                ended.errors.contains("11.trace does not say what recording a call cost: its times are not corrected"), "\(ended.errors)")
            #expect(!ended.errors.contains("10.trace"))
            #expect(try !run(words).errors.contains("not corrected"))
        }
    }

    @Test func aDifferenceIsCorrectedOnBothSidesOrNotAtAll() throws {
        var builder = program(seed: 1, events: 500)
        builder.cost(leaf: 20)
        let costly = TemporaryFile(builder.bytes())
        for sides in [[good.path, costly.path], [costly.path, good.path]] {
            let ended = try run(["diff", "--correct"] + sides)
            #expect(ended.status == 1 && ended.output == "")
            #expect(ended.errors.contains("\(good.path) does not say what recording a call cost"))
        }
        let page = try run(["diff", "--correct", costly.path, costly.path, "--html", costly.path + ".html"])
        #expect(page.status == 2)
        #expect(page.errors.contains("--correct cannot be combined with --html"))
        #expect(access(costly.path + ".html", F_OK) != 0)
    }

    @Test func callersOfBothDirectionsAreTreesInJSON() throws {
        let object = try jsonObject(of: "callers", good.path, "a", "--json")
        for direction in ["callers", "calls"] {
            let tree = object[direction] as? [String: Any]
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
        let directory = try TemporaryDirectory()
        #expect(try run("report", in: directory.path).status == 1)
        directory.write("a.trace", good.bytes)
        let ended = try run("report", in: directory.path)
        #expect(ended.status == 0)
        #expect(ended.errors == "tracer: reading a.trace\n")
        #expect(ended.output.contains("libdemo.so.1"))
    }

    /// On a terminal there is colour, unless NO_COLOR says otherwise by being set and not empty.
    @Test(
        arguments: [([:], true), (["NO_COLOR": "1"], false), (["NO_COLOR": ""], true), (["TERM": "dumb"], false)]
            as [([String: String], Bool)])
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
