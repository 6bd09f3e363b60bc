// The loader's work as libtracer-audit.so noted it in the file beside the trace. A line is a letter, CLOCK_MONOTONIC in nanoseconds and a
// number or a name:
//   V pid   the loader has loaded the audit library       O path  an object is mapped
//   S name  it begins to look for an object               A 0     all objects are relocated (1: it adds, 2: it removes some)
// With that it ends. A process that calls exec begins again with a V.
import CTraceLayout
import ELF
import Presentation
import TraceFormat

package struct LoaderAudit: Sendable, Equatable {
    package struct Object: Sendable, Equatable {
        package var path: String
        /// From the search for it, or the mapping of the one before, until it was mapped.
        package var duration: Nanoseconds

        package init(path: String, duration: Nanoseconds) {
            self.path = path
            self.duration = duration
        }
    }
    /// Objects of the start, in the order in which they were mapped.
    package private(set) var objects: [Object] = []
    /// CLOCK_MONOTONIC: the last of them is mapped, relocation begins …
    package private(set) var mapped: UInt64 = 0
    /// … and is done.
    package private(set) var relocated: UInt64 = 0

    package static let suffix = LOADER_NOTES_SUFFIX
    static let largestFile = 16 << 20

    /// Reads the audit of the trace's process from the file beside it. nil when there is none or it is of another process.
    package init?(of trace: TraceFile) {
        guard let file = try? InputFile(path: trace.path + Self.suffix), file.byteCount <= UInt64(Self.largestFile) else { return nil }
        var buffer = ByteBuffer(capacity: 64 << 10)
        file.read(Int(file.byteCount), at: 0, into: &buffer)
        self.init(lines: buffer.bytes(at: 0, byteCount: buffer.count), pid: trace.header.pid, agentStarted: trace.header.first.monotonic_ns)
    }

    /// - Parameter agentStarted: CLOCK_MONOTONIC; of several images of one process, the last that began before it is meant
    package init?(lines: [UInt8], pid: UInt32, agentStarted: UInt64) {
        var isOurs = false, isFound = false
        var previous: UInt64 = 0
        for bytes in lines.split(separator: UInt8(ascii: "\n")) {
            let fields = bytes.split(separator: UInt8(ascii: " "), maxSplits: 2, omittingEmptySubsequences: false)
            guard fields.count == 3, fields[0].count == 1, let time = UInt64(String(decoding: fields[1], as: UTF8.self)) else { return nil }
            let rest = printable(fields[2])
            switch fields[0].first {
            case UInt8(ascii: "V"):
                isOurs = rest == String(pid) && time <= agentStarted
                if isOurs {
                    isFound = true
                    (objects, mapped, relocated) = ([], time, 0)
                }
            case UInt8(ascii: "O") where isOurs && relocated == 0:
                // The executable, the loader and the vDSO were there before: the kernel mapped them.
                if !rest.isEmpty, previous > 0 {
                    objects.append(Object(path: rest, duration: Nanoseconds(time > previous ? time - previous : 0)))
                }
                mapped = max(mapped, time)
                previous = 0
            case UInt8(ascii: "S"): previous = time
            case UInt8(ascii: "A") where isOurs && relocated == 0 && rest == "0": relocated = max(time, mapped)
            default: break
            }
        }
        guard isFound, relocated > 0 else { return nil }
    }
}
