// Names of snapshots: by program, when, and why.
import Glibc

package enum SnapshotName {
    package static let ending = ".snapshot.trace"
    private static let longest = 200

    /// tracer.NAME.PID.trace and NAME.PID.trace, as the agent and `tracer record` name traces; else the file's name.
    package static func program(of path: String, pid: UInt32) -> String {
        var name = path.split(separator: "/").last.map(String.init) ?? "program"
        if name.hasSuffix(".trace") { name.removeLast(6) }
        let parts = name.split(separator: ".", omittingEmptySubsequences: false).map(String.init)
        if let end = parts.lastIndex(of: String(pid)), end > 0 { name = parts[..<end].joined(separator: ".") }
        if name.hasPrefix("tracer."), name.count > 7 { name.removeFirst(7) }
        return name
    }

    /// Nanoseconds of CLOCK_REALTIME as 2026-11-26T10.04.11.312, local time.
    package static func time(_ nanoseconds: UInt64) -> String {
        var seconds = time_t(nanoseconds / 1_000_000_000), fields = tm()
        localtime_r(&seconds, &fields)
        var text = [CChar](repeating: 0, count: 64)
        strftime(&text, text.count, "%Y-%m-%dT%H.%M.%S", &fields)
        let milliseconds = String(1000 + nanoseconds / 1_000_000 % 1000).dropFirst()
        return String(decoding: text.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self) + "." + milliseconds
    }

    /// A path that nothing has.
    package static func free(in directory: String, program: String, _ time: String, _ reason: String) -> String {
        let shown = String(reason.map { $0.isASCII && ($0.isLetter || $0.isNumber || "_-+.".contains($0)) ? $0 : "_" })
        let start = (directory == "/" ? "" : directory) + "/" + String("\(program).\(time).\(shown)".prefix(longest))
        for number in 2... {
            let path = start + (number == 2 ? "" : ".\(number - 1)") + ending
            if access(path, F_OK) != 0 { return path }
        }
        return start + ending
    }
}
