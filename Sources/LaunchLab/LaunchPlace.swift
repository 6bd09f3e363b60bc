// Where and of what launches were made: host, processor, build-id of the program, commit of the project.
import Foundation
import Recorder
import Symbols
import TraceAnalysis

public struct LaunchPlace: Sendable {
    public let host: String
    /// File name of the executable.
    public let program: String
    public let build: String
    public let commit: String
    /// Its speed is the business of who measures: 0 here.
    public let machine: Baseline.Machine

    public init(_ command: LaunchCommand) {
        var system = utsname()
        uname(&system)
        func text<T>(_ field: T) -> String {
            withUnsafeBytes(of: field) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
        }
        host = text(system.nodename)
        let path = command.words.first.flatMap { LaunchPlace.path(of: $0) } ?? ""
        program = URL(fileURLWithPath: path).lastPathComponent
        build = buildID(ofFile: path).map { hexadecimal($0) } ?? ""
        commit = LaunchPlace.commit()
        machine = .init(architecture: text(system.machine), processor: LaunchPlace.processor() ?? text(system.machine),
                        kernel: text(system.release), calibrationMs: 0)
    }

    private static func path(of name: String) -> String? {
        let path = (try? ProgramLookup.path(of: name, searchPath: ProgramEnvironment.inherited["PATH"])) ?? name
        return realpath(path, nil).map { resolved in
            defer { free(resolved) }
            return String(cString: resolved)
        }
    }

    /// proc(5), /proc/cpuinfo; Arm has no names there.
    private static func processor() -> String? {
        guard let text = try? String(contentsOfFile: "/proc/cpuinfo", encoding: .utf8) else { return nil }
        return text.split(separator: "\n").first { $0.hasPrefix("model name") }?
            .split(separator: ":", maxSplits: 1).last.map { $0.trimmingCharacters(in: .whitespaces) }
    }

    /// Of the repository around the current directory; "" without one, or without git.
    private static func commit() -> String {
        guard let head = git(["rev-parse", "--short=12", "HEAD"]), !head.isEmpty else { return "" }
        return head + (git(["status", "--porcelain", "--untracked-files=no"])?.isEmpty == false ? "+" : "")
    }

    private static func git(_ arguments: [String]) -> String? {
        let process = Process(), pipe = Pipe()
        process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
        process.arguments = ["git"] + arguments
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return nil }
        let data = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return process.terminationStatus == 0 ? String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines) : nil
    }
}
