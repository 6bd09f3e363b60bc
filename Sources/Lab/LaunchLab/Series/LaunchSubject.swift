// One side of a series: a program, found and checked once, with the two environments that it is launched in.
import Foundation
import Glibc
import Recorder
import TraceFormat

package struct LaunchSubject {
    package let command: LaunchCommand
    /// The file that exec is called with.
    let path: String
    let arguments: [String]
    let bare: [[CChar]]
    let traced: [[CChar]]
    /// Folder of its launches' traces, which are removed before and after each launch; "" when it is never traced.
    let folder: String

    /// Throws when it cannot be started or not be traced, with the statuses of `tracer record`.
    /// - Parameter argumentPlan: path of the plan for calls that use files; nil: their arguments are not recorded
    package init(
        _ command: LaunchCommand, readySymbol: String?, controls: LaunchControls, folder: String, argumentPlan: String? = nil
    ) throws(Refusal) {
        self.command = command
        self.folder = folder
        guard !command.words.isEmpty else { throw .usage("the command is empty: give a program and its arguments") }
        let inherited = LaunchSubject.environment(controls)
        var options = RecordOptions()
        options.output = folder + "/run.%p.trace"
        options.set(Variables.ready, readySymbol)
        options.set(Variables.arguments, argumentPlan)
        options.set(Variables.children, false) // their launch is another one
        options.set(Variables.quiet, true)
        let run = try RecordingRun(command: command.words.map { Array($0.utf8CString) }, options: options, environment: inherited)
        path = run.target.path
        arguments = run.target.leadingArguments + command.words.dropFirst()
        bare = inherited.entries
        traced = run.environment.entries
    }

    /// As it is: never with the agent, and of a file that has text of its own. Throws when it cannot be started.
    package init(bare command: LaunchCommand, controls: LaunchControls) throws(Refusal) {
        self.command = command
        let inherited = LaunchSubject.environment(controls)
        let target = try ExecTarget(withText: command.words.first ?? "", searchPath: inherited["PATH"])
        (path, arguments) = (target.path, target.leadingArguments + command.words.dropFirst())
        (bare, traced, folder) = (inherited.entries, [], "")
    }

    private static func environment(_ controls: LaunchControls) -> ProgramEnvironment {
        guard controls.hasFixedEnvironment else { return .inherited }
        return ProgramEnvironment(
            entries: ProgramEnvironment.inherited.entries.filter { entry in
                LaunchControls.fixedVariables.contains { entry.starts(with: ($0 + "=").utf8.map { CChar(bitPattern: $0) }) }
            })
    }

    /// True if both are the same file (device and inode), whatever their names.
    package func isSameFile(as other: LaunchSubject) -> Bool {
        var one = stat(), two = stat()
        return stat(path, &one) == 0 && stat(other.path, &two) == 0 && one.st_dev == two.st_dev && one.st_ino == two.st_ino
    }

    /// Returns the path of the process's trace, after several execs that of its last image; nil: there is none.
    func trace(of pid: pid_t) -> String? {
        let names = (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? []
        let files = names.filter { $0.hasPrefix("run.\(pid).") && $0.hasSuffix(".trace") }
        // run.4711.trace, run.4711.2.trace, …: one for each exec.
        func number(_ name: String) -> Int { Int(name.split(separator: ".").dropFirst(2).first ?? "") ?? 1 }
        return files.max { number($0) < number($1) }.map { folder + "/" + $0 }
    }

    func removeTraces() {
        for name in (try? FileManager.default.contentsOfDirectory(atPath: folder)) ?? [] where name.hasPrefix("run.") {
            unlink(folder + "/" + name)
        }
    }
}
