// Descriptors that a thread waits for at once, that is in poll(2), select(2) or epoll_wait(2).
import CRecorder
import CTraceLayout
import Glibc

package struct PolledSet: Equatable {
    package struct Member: Equatable {
        package var descriptor: Int32
        /// TRACE_ACCESS_ bits: what it waits to do.
        var access: Int
        var object: String

        package init(descriptor: Int32, access: Int, object: String) {
            self.descriptor = descriptor
            self.access = access
            self.object = object
        }
    }
    package private(set) var members: [Member] = []

    /// Who waits for more of them serves many, and each of those is waited for less.
    private static let most = 32, mostBits = 4096, mostInfo = 8192

    /// Takes what was found in /proc/PID/task/TID/syscall. nil: it waits for no set, for one too large, or for one we may not read.
    package init?(systemCall: Int32, arguments: [UInt64], of pid: pid_t) {
        let all: [(descriptor: Int32, access: Int)]?
        switch Int(recorder_waits_for_set(systemCall)) {
        case RECORDER_POLL where arguments.count >= 2: all = Self.polled(arguments[0], arguments[1], pid)
        case RECORDER_SELECT where arguments.count >= 3: all = Self.selected(arguments[0], arguments[1], arguments[2], pid)
        case RECORDER_EPOLL where arguments.count >= 1: all = Self.registered(Int32(truncatingIfNeeded: arguments[0]), pid)
        default: all = nil
        }
        guard let all, !all.isEmpty, all.count <= Self.most else { return nil }
        for (descriptor, access) in all {
            guard let object = OpenPeer.object(descriptor, of: pid) else { continue }
            members.append(Member(descriptor: descriptor, access: access, object: object))
        }
    }

    private static func polled(_ address: UInt64, _ count: UInt64, _ pid: pid_t) -> [(Int32, Int)]? {
        guard count >= 1, count <= UInt64(most) else { return nil }
        var entries = [pollfd](repeating: pollfd(), count: Int(count))
        guard recorder_read_memory(pid, address, &entries, entries.count * MemoryLayout<pollfd>.stride) != 0 else { return nil }
        return entries.filter { $0.fd >= 0 }.map { ($0.fd, access(UInt32(UInt16(bitPattern: $0.events)))) }
    }

    /// FD_SET(3): bit n of an array of longs. A set may be missing.
    private static func selected(_ count: UInt64, _ readers: UInt64, _ writers: UInt64, _ pid: pid_t) -> [(Int32, Int)]? {
        guard count >= 1, count <= UInt64(mostBits) else { return nil }
        func bits(_ address: UInt64) -> [UInt64]? {
            var words = [UInt64](repeating: 0, count: (Int(count) + 63) / 64)
            if address == 0 { return words }
            return recorder_read_memory(pid, address, &words, words.count * 8) != 0 ? words : nil
        }
        guard let readers = bits(readers), let writers = bits(writers) else { return nil }
        return (0..<Int32(count)).compactMap { descriptor in
            let word = Int(descriptor / 64), bit = UInt64(1) << UInt64(descriptor % 64)
            let access = (readers[word] & bit != 0 ? TRACE_ACCESS_READ : 0) | (writers[word] & bit != 0 ? TRACE_ACCESS_WRITE : 0)
            return access == 0 ? nil : (descriptor, access)
        }
    }

    /// proc(5), fdinfo: "tfd:        5 events:       19 data: …" for each, in decimal and hexadecimal.
    private static func registered(_ descriptor: Int32, _ pid: pid_t) -> [(Int32, Int)]? {
        ProcessStatus.text("/proc/\(pid)/fdinfo/\(descriptor)", atMost: mostInfo).map { members(ofInfo: $0) }
    }
    package static func members(ofInfo text: String) -> [(Int32, Int)] {
        text.split(separator: "\n").compactMap { line in
            let fields = line.split { $0 == " " || $0 == "\t" }
            guard fields.count >= 4, fields[0] == "tfd:", fields[2] == "events:", let descriptor = Int32(fields[1]),
                let events = UInt32(fields[3], radix: 16)
            else { return nil }
            return (descriptor, access(events))
        }
    }

    /// poll(2). Who asks for nothing waits for the peer to close, as who reads does.
    private static func access(_ events: UInt32) -> Int {
        let isWriting = events & UInt32(POLLOUT) != 0, isReading = events & UInt32(POLLIN | POLLPRI) != 0
        return (isReading || !isWriting ? TRACE_ACCESS_READ : 0) | (isWriting ? TRACE_ACCESS_WRITE : 0)
    }
}
