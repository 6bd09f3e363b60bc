// The traces of one run: a file of a run that was one process, a directory of one that was many. Of each the header is read; the rest
// when it is asked for, of a few at a time, since a run may have thousands.
import CTraceLayout
import Glibc

package struct TraceRun: Sendable {
    package struct File: Sendable {
        package let path: String
        package let header: trace_file_header
        /// On the disk, which counts no holes.
        package let byteCount: UInt64
    }

    /// As it is called: a directory, or the only file.
    package let path: String
    /// In the order in which they were begun.
    package private(set) var files: [File]
    /// One line for each file that is no trace, or none yet.
    package private(set) var unreadable: [String] = []

    package init(path: String, files paths: [String]) {
        self.path = path
        files = []
        for path in paths {
            do {
                files.append(try File(path: path))
            } catch {
                unreadable.append("\(error)")
            }
        }
        files.sort { ($0.header.first_realtime_ns, $0.path) < ($1.header.first_realtime_ns, $1.path) }
    }

    package func only(_ isWanted: (File) -> Bool) -> TraceRun {
        var run = self
        run.files = files.filter(isWanted)
        run.unreadable = []
        return run
    }

    /// When its first process began, in nanoseconds of the epoch.
    package var startedAt: UInt64 { files.first?.header.first_realtime_ns ?? 0 }

    /// Opens all of them, where a process may have that many files open.
    package func open() throws -> [TraceFile] {
        var limit = rlimit()
        if files.count > 200, getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur < limit.rlim_max {
            limit.rlim_cur = limit.rlim_max
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
        }
        let rates = ClockRates(files)
        return try files.map { try TraceFile(path: $0.path, rates: rates) }
    }
}

extension TraceRun.File {
    fileprivate init(path: String) throws {
        let file = try InputFile(path: path)
        self.init(path: path, header: try TraceFile.readHeader(file), byteCount: file.allocatedByteCount)
    }
}
