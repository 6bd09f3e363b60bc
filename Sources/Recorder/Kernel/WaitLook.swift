// What a thread waits in, by what /proc tells of it (proc(5): syscall, wchan, fd).
import CRecorder
import Glibc

struct WaitLook {
    var tid: pid_t
    /// CLOCK_MONOTONIC.
    var nanoseconds: UInt64
    /// Its number; -1: none, as during a page fault.
    var systemCall: Int32
    var arguments: (UInt64, UInt64)
    /// In the kernel; empty when it does not tell.
    var place: String
    /// What the first argument is open on, where it is a descriptor.
    var object: String

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
        place = kernel == "0" ? "" : kernel
        object = ""
        if number >= 0, recorder_takes_descriptor(number) != 0 {
            var link = [CChar](repeating: 0, count: Int(PATH_MAX))
            let count = readlink("/proc/\(pid)/fd/\(UInt32(truncatingIfNeeded: arguments.0))", &link, link.count)
            if count > 0 { object = String(decoding: link[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self) }
        }
        nanoseconds = KernelWatch.now // what was found was so some time before
    }

    private static func line(_ path: String) -> String? {
        ProcessStatus.readAll(path).map { String(decoding: $0.prefix { $0 != 0x0a && $0 != 0 }, as: UTF8.self) }
    }
}
