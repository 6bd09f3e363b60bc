// Origin of a series of launches: hostname, CPU, build-id of the program, commit of the project.
import ELF
import Foundation
import Presentation
import Recorder
import TraceAnalysis

package struct LaunchOrigin: Sendable {
    package let hostname: String
    /// File name of the executable.
    package let program: String
    package let build: String
    package let commit: String
    /// Its speed is the business of who measures: 0 here.
    package let machine: MeasuredMachine

    /// - Parameter program: as it was typed; nil without one
    package init(program name: String?) {
        var system = utsname()
        uname(&system)
        func text<T>(_ field: T) -> String {
            withUnsafeBytes(of: field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        }
        hostname = text(system.nodename)
        let path = name.map { LaunchOrigin.path(of: $0) ?? $0 } ?? ""
        program = URL(fileURLWithPath: path).lastPathComponent
        build = buildID(ofFile: path).map { hexadecimal($0) } ?? ""
        commit = LaunchOrigin.commit()
        machine = .init(
            architecture: text(system.machine), cpu: LaunchOrigin.cpu() ?? text(system.machine),
            kernel: text(system.release), calibrationMs: 0)
    }

    private static func path(of name: String) -> String? {
        resolvedPath((try? ProgramLookup.path(of: name, searchPath: ProgramEnvironment.inherited["PATH"])) ?? name)
    }

    /// proc(5), /proc/cpuinfo; Arm has no names there.
    private static func cpu() -> String? {
        guard let text = try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8) else { return nil }
        return text.split(separator: "\n").first { $0.hasPrefix("model name") }?
            .split(separator: ":", maxSplits: 1).last.map { $0.trimmingCharacters(in: .whitespaces) }
    }

    /// Returns the commit of the repository around the current directory, with "+" when tracked files are changed; "" without a
    /// repository, or without git.
    private static func commit() -> String {
        guard let head = Subprocess.output("git", "rev-parse", "--short=12", "HEAD"), !head.isEmpty else { return "" }
        return head + (Subprocess.output("git", "status", "--porcelain", "--untracked-files=no")?.isEmpty == false ? "+" : "")
    }
}
