// Options of a ring that keeps the last seconds, and of the snapshots that are taken of it.
import ArgumentParser
import ELF
import Glibc
import Recorder
import TraceAnalysis
import TraceFormat

struct KeepOptions: ParsableArguments {
    @Option(help: .setting(Variables.keep))
    var keep: TimeLength?
    @Option(help: .setting(Variables.triggers))
    var when: [String] = []
    @Option(help: ArgumentHelp("With --when: also so long after the call.", valueName: "time"))
    var after: TimeLength?
    @Option(help: ArgumentHelp("With --keep: how many copies, of the longest calls; 10 by default.", valueName: "number"))
    var snapshots: Int?

    @Option(
        help: ArgumentHelp(
            "What a signal to tracer itself means: USR2=snapshot, USR1=start, RTMIN+1=stop; the program gets none of these. Repeatable.",
            valueName: "signal=action"))
    var signal: [String] = []

    /// Signals to the tool that mean something.
    func signals() throws -> SignalWishes { try orFail { try SignalWishes(signal) } }

    /// nil: none of the options was given.
    /// - Parameter meant: symbols of the functions that conditions speak of, by their names there
    func plan(mode: String?, meant: [String: [String]] = [:]) throws -> SnapshotPlan? {
        guard let keep else {
            let given = [
                try !all().times.isEmpty ? "--when with a time" : nil, after.map { _ in "--after" }, snapshots.map { _ in "--snapshots" },
            ].compactMap {
                $0
            }
            if let option = given.first { throw CommandFailure("\(option) needs --keep: --keep 5s keeps the last five seconds", status: 2) }
            return nil
        }
        if let mode, mode != "ring" { throw CommandFailure("--keep keeps the end, as --mode ring: remove --mode \(mode)", status: 2) }
        let most: UInt64 = 86_400_000_000_000
        guard keep.nanoseconds.count >= 1_000_000, keep.nanoseconds.count <= most else {
            throw CommandFailure("--keep takes a time from 1ms to 86400s, such as 5s", status: 2)
        }
        if let after, after.nanoseconds.count > most { throw CommandFailure("--after takes a time up to 86400s, such as 200ms", status: 2) }
        if let snapshots, snapshots < 1 || snapshots > 1000 { throw CommandFailure("--snapshots takes a number from 1 to 1000", status: 2) }
        guard when.count <= 32 else { throw CommandFailure("--when: give at most 32", status: 2) }
        let all = try all()
        // All that is said of a function must hold.
        var triggers: [SnapshotPlan.Trigger] = []
        // The agent compares with names in the symbol table.
        let conditions = all.conditions.compactMap(\.function).flatMap { function -> [String] in
            let mangled = (meant[function] ?? []).filter { fnmatch(function, $0, 0) != 0 }
            return mangled.count == (meant[function]?.count ?? 0) && !mangled.isEmpty ? mangled : [function] + mangled
        }
        for trigger in all.times + conditions.map({ .init(pattern: $0, nanoseconds: 0) }) {
            if let n = triggers.firstIndex(where: { $0.pattern == trigger.pattern }) {
                triggers[n].nanoseconds = max(triggers[n].nanoseconds, trigger.nanoseconds)
            } else {
                triggers.append(trigger)
            }
        }
        return SnapshotPlan(
            before: keep.nanoseconds.count, after: after?.nanoseconds.count ?? 0, most: snapshots ?? SnapshotPlan.usualMost,
            triggers: triggers)
    }
    /// Conditions on arguments and results.
    func conditions() throws -> [CallCondition] { try all().conditions }

    /// The values of --when.
    private func all() throws -> (times: [SnapshotPlan.Trigger], conditions: [CallCondition]) {
        var times: [SnapshotPlan.Trigger] = [], conditions: [CallCondition] = []
        for text in when {
            if let trigger = Self.trigger(text) {
                times.append(trigger)
            } else if text.contains(where: { "(\"=~<".contains($0) }) || (try? CallCondition(text)) != nil {
                conditions.append(try Self.condition(text))
            } else {
                throw CommandFailure(
                    "--when '\(text)': give a function and how long its calls may take, such as 'handle_request > 50ms', or a condition such as 'malloc(size >= 1M)'",
                    status: 2)
            }
        }
        return (times, conditions)
    }
    private static func condition(_ text: String) throws -> CallCondition {
        let condition: CallCondition
        do throws(CallCondition.Problem) {
            condition = try CallCondition(text)
        } catch {
            throw CommandFailure("--when '\(text)': \(error.message)", status: 2)
        }
        guard let function = condition.function else {
            throw CommandFailure(
                "--when '\(text)': name the function, such as 'malloc(\(text))'; a time has a unit, such as 'handle_request > 50ms'",
                status: 2)
        }
        if function.replacing("::", with: "").contains(where: { "!:>".contains($0) }) {
            throw CommandFailure("--when '\(text)': the function's name alone, without a module", status: 2)
        }
        return condition
    }

    /// "FUNCTION > TIME"; nil: it is none.
    private static func trigger(_ text: String) -> SnapshotPlan.Trigger? {
        if text.filter({ $0 != " " }) == "crash" { return .init(pattern: SnapshotPlan.Trigger.crash, nanoseconds: 0) }
        let words = text.split(separator: " ").map(String.init)
        if words.count == 2, words[0] == "signal", let trigger = SnapshotPlan.Trigger.end(by: words[1]) { return trigger }
        if text.filter({ $0 != " " }) == "exception" { return .init(pattern: "\(Variables.Triggers.exception)", nanoseconds: 0) }
        let parts = text.split(separator: ">", maxSplits: 1, omittingEmptySubsequences: false).map { $0.filter { $0 != " " } }
        guard parts.count == 2, !parts[0].isEmpty, !parts[0].contains(where: { ":(".contains($0) }), parts[1].last?.isLetter == true,
            let time = TimeLength(argument: parts[1])
        else { return nil }
        return .init(pattern: parts[0] == "stall" ? "\(Variables.Triggers.stall)" : parts[0], nanoseconds: time.nanoseconds.count)
    }

    /// Patterns of functions whose calls within their modules are wanted, too: those of times, and `named`, which have conditions.
    func patterns(and named: [String]) throws -> [String] { try all().times.filter { !$0.isEvent }.map(\.pattern) + named }

    /// Chooses the patterns that name functions of the program itself: these are recorded by their own first bytes (`--functions`).
    static func functions(_ patterns: [String], of program: String, arguments: [String]) -> [String] {
        guard !patterns.isEmpty else { return [] }
        guard let target = try? ExecTarget(program: program, searchPath: getenv("PATH").map { String(cString: $0) }, identity: .current),
            let path = FunctionPlans.executable(ExecTarget.programOfLoader(target.path, arguments) ?? target.path)
        else { return patterns.filter { $0.contains("!") } }
        return functions(patterns, inProgram: path)
    }
    /// The same by the program's file, which may be one of /proc.
    static func functions(_ patterns: [String], inProgram path: String) -> [String] {
        let inModules = patterns.filter { $0.contains("!") }
        guard !patterns.isEmpty, let file = ObjectFile(path: path) else { return inModules }
        let symbols = SymbolTable(file)
        return inModules
            + patterns.filter { pattern in
                !pattern.contains("!") && !symbols.functions(in: 0..<UInt64.max) { fnmatch(pattern, $0, 0) == 0 }.isEmpty
            }
    }
}
