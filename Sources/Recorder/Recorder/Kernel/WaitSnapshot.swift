// Finds what a thread waits in, from /proc (proc(5): syscall, wchan, fd).
import CRecorder
import Glibc

struct WaitSnapshot {
    var tid: pid_t
    /// CLOCK_MONOTONIC.
    var nanoseconds: UInt64
    /// Its number; -1: none, as during a page fault.
    var systemCall: Int32
    var arguments: (UInt64, UInt64)
    /// In the kernel; empty when it does not report it.
    var kernelFunction: String
    /// Object that the first argument is open on, if it is a descriptor; else empty.
    var object: String
    /// Descriptors, where it waits for several at once.
    var set: PolledSet?

    /// nil when the thread is not waiting any more, or may not be looked at.
    init?(pid: pid_t, tid: pid_t) {
        let folder = "/proc/\(pid)/task/\(tid)/"
        guard let text = Self.line(folder + "syscall") else { return nil }
        let fields = text.split(separator: " ")
        guard let number = fields.first.flatMap({ Int32($0) }) else { return nil } // "running"
        let words = fields.dropFirst().map { $0.hasPrefix("0x") ? UInt64($0.dropFirst(2), radix: 16) ?? 0 : 0 }
        self.tid = tid
        systemCall = number
        arguments = number >= 0 && words.count >= 2 ? (words[0], words[1]) : (0, 0)
        let kernel = Self.line(folder + "wchan") ?? ""
        kernelFunction = kernel == "0" ? "" : kernel
        object = ""
        if number >= 0, recorder_takes_descriptor(number) != 0 {
            object = OpenPeer.object(Int32(truncatingIfNeeded: arguments.0), of: pid) ?? ""
        }
        if number >= 0 { set = PolledSet(systemCall: number, arguments: Array(words), of: pid) }
        if !object.isEmpty || set != nil {
            // It may have gone on meanwhile, and another file have the number.
            if Self.line(folder + "syscall") != text { return nil }
        }
        nanoseconds = clockTime() // taken last: all of the above was true before it
    }

    /// Objects waited for that somebody else may write or read: pipes, with a name or without, and sockets.
    var objectsWithPeers: [String] {
        let own = Self.hasPeer(object) || object.hasPrefix("/") && kernelFunction.contains("pipe") ? [object] : []
        return own + (set?.members.lazy.map { $0.object }.filter(Self.hasPeer) ?? [])
    }
    private static func hasPeer(_ object: String) -> Bool { object.hasPrefix("pipe:[") || object.hasPrefix("socket:[") }

    static func line(_ path: String) -> String? {
        ProcessStatus.readAll(path).map { String(decoding: $0.prefix { $0 != 0x0a && $0 != 0 }, as: UTF8.self) }
    }
}
