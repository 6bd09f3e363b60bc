// Options of a ring that keeps the last seconds, and of the snapshots that are taken of it.
import ArgumentParser
import ELF
import Glibc
import Recorder
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

    /// nil: none of the options was given.
    func plan(mode: String?) throws -> SnapshotPlan? {
        guard let keep else {
            let given = [when.isEmpty ? nil : "--when", after.map { _ in "--after" }, snapshots.map { _ in "--snapshots" }].compactMap {
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
        return SnapshotPlan(
            before: keep.nanoseconds.count, after: after?.nanoseconds.count ?? 0, most: snapshots ?? SnapshotPlan.usualMost,
            triggers: try when.map { try Self.trigger($0) })
    }

    /// "FUNCTION > TIME"
    private static func trigger(_ text: String) throws -> SnapshotPlan.Trigger {
        let parts = text.split(separator: ">", maxSplits: 1, omittingEmptySubsequences: false).map { $0.filter { $0 != " " } }
        guard parts.count == 2, !parts[0].isEmpty, !parts[0].contains(":"), !parts[0].contains("("),
            let time = TimeLength(argument: parts[1]),
            parts[1].last?.isLetter == true
        else {
            throw CommandFailure(
                "--when '\(text)': give a function and how long its calls may take, such as 'handle_request > 50ms'", status: 2)
        }
        return .init(pattern: parts[0], nanoseconds: time.nanoseconds.count)
    }

    /// The functions among those of `plan` that the program itself defines: they are recorded by their own first bytes (`--functions`).
    static func functions(_ plan: SnapshotPlan?, of program: String, arguments: [String]) -> [String] {
        guard let plan, !plan.triggers.isEmpty else { return [] }
        let inModules = plan.triggers.map(\.pattern).filter { $0.contains("!") }
        guard let target = try? ExecTarget(program: program, searchPath: getenv("PATH").map { String(cString: $0) }, identity: .current),
            let path = FunctionPlans.executable(ExecTarget.programOfLoader(target.path, arguments) ?? target.path),
            let file = ObjectFile(path: path)
        else { return inModules }
        let symbols = SymbolTable(file)
        return inModules
            + plan.triggers.map(\.pattern).filter { pattern in
                !pattern.contains("!") && !symbols.functions(in: 0..<UInt64.max) { fnmatch(pattern, $0, 0) == 0 }.isEmpty
            }
    }
}
