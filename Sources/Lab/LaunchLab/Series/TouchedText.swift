// Bytes of the program's text that a process has used, by what the CPU has noted in its page table (CLaunch, touched.c).
import Foundation
import Glibc

package enum TouchedText {
    package struct Problem: Error, Equatable, Sendable {
        var reason: String
    }

    /// Returns the bytes of the program's text that a process has used, in whole pages, while it waits at its end point.
    static func byteCount(of process: LaunchedProcess) -> Result<UInt64, Problem> {
        guard process.touchError == 0 else {
            return .failure(Problem(reason: "no permission to inspect the process: \(String(cString: strerror(process.touchError)))"))
        }
        let folder = "/proc/\(process.pid)"
        guard let program = try? FileManager.default.destinationOfSymbolicLink(atPath: folder + "/exe"),
            let text = try? String(contentsOfFile: folder + "/smaps", encoding: .utf8)
        else { return .failure(Problem(reason: "\(folder)/smaps cannot be read")) }
        return byteCount(smaps: text, program: program)
    }

    /// proc(5), /proc/PID/smaps: a line for each mapping, as in /proc/PID/maps, and below it "Rss:   12 kB" and the like.
    package static func byteCount(smaps: String, program: String) -> Result<UInt64, Problem> {
        var mapped: UInt64 = 0, resident: UInt64 = 0, referenced: UInt64 = 0, isText = false
        for line in smaps.split(separator: "\n") {
            let fields = line.split(separator: " ", maxSplits: 5)
            guard let first = fields.first else { continue }
            if !first.hasSuffix(":") {
                isText =
                    fields.count > 5 && fields[1].contains("x") && fields[5].drop { $0 == " " } == program
                continue
            }
            guard isText, fields.count > 1, let kilobytes = UInt64(fields[1]) else { continue }
            switch first {
            case "Size:": mapped += kilobytes * 1024
            case "Rss:": resident += kilobytes * 1024
            case "Referenced:": referenced += kilobytes * 1024
            default: break
            }
        }
        // All of it was mapped before the first instruction. Where it is not now this is another image, after another exec.
        guard mapped > 0, resident >= mapped - mapped / 10 else {
            return .failure(Problem(reason: "the process has executed another program, or its text was removed from memory"))
        }
        return .success(referenced)
    }
}
