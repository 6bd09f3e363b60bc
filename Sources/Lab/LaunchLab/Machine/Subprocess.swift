// Ordinary programs that are started beside the launches: hooks, builds, git, a browser. What is launched or traced begins elsewhere
// (CLaunch, CRecorder), with signals, descriptors and moments that Foundation's Process does not let one set.
import Foundation

package enum Subprocess {
    /// Runs a command with /bin/sh, its output on our standard error. Returns its status; throws when the shell cannot be started.
    package static func shell(_ command: String) throws -> Int32 {
        let process = make("/bin/sh", ["-c", command])
        process.standardOutput = FileHandle.standardError
        try process.run()
        process.waitUntilExit()
        return process.terminationStatus
    }

    /// Returns the standard output of a program from PATH, without surrounding whitespace; nil when it cannot be started or fails.
    package static func output(_ command: String...) -> String? {
        let process = make("/usr/bin/env", command), pipe = Pipe()
        process.standardOutput = pipe
        process.standardError = FileHandle.nullDevice
        guard (try? process.run()) != nil else { return nil }
        let data = pipe.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        return process.terminationStatus == 0 ? String(decoding: data, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines) : nil
    }

    /// A program of PATH that goes on by itself; whether there is one does not matter.
    package static func start(_ command: String...) {
        let process = make("/usr/bin/env", command)
        process.standardError = FileHandle.nullDevice
        try? process.run()
    }

    private static func make(_ path: String, _ arguments: [String]) -> Process {
        let process = Process()
        process.executableURL = URL(fileURLWithPath: path)
        process.arguments = arguments
        return process
    }
}
