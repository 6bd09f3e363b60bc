// A run that `tracer record` has left, to be removed: recognised by what is in it, not by its name alone.
import CTraceLayout
import Glibc

package struct FinishedRun: Sendable {
    package enum Failure: Error, Equatable {
        /// It is not what `tracer record` makes.
        case isNoRun(String)
        case isBeingRecorded
        /// Something, and the errno.
        case cannotRemove(String, Int32)
    }

    package let path: String
    package let isDirectory: Bool
    /// All that a directory holds, or the file itself.
    private let files: [String]
    /// On the disk.
    package let byteCount: UInt64
    /// Seconds of the epoch: when it was written to for the last time.
    package let lastWritten: Int

    /// - Parameter living: runs of which processes are alive (`LivingSessions`): one that was forked may have no file yet
    package init(_ path: String, living: Set<UInt64>) throws(Failure) {
        var info = stat()
        guard lstat(path, &info) == 0 else { throw .isNoRun(String(cString: strerror(errno))) }
        isDirectory = info.st_mode & S_IFMT == S_IFDIR
        self.path = path
        if isDirectory {
            guard let names = RunDirectory.names(in: path) else { throw .isNoRun("it cannot be read") }
            files = names.sorted().map { path + "/" + $0 }
            guard !files.isEmpty else { throw .isNoRun("it is empty") }
        } else {
            files = [path]
        }
        var bytes: UInt64 = 0, last = 0, sessions: Set<UInt64> = []
        for file in files {
            let (header, status) = try Self.header(file)
            bytes &+= UInt64(max(status.st_blocks, 0)) &* 512
            if isDirectory, Self.isLoaderNotes(file, among: files) { continue }
            if let header { sessions.insert(header.session) }
            if isDirectory, !Self.isName(file, of: header) {
                throw .isNoRun("its file \(file.split(separator: "/").last ?? "") does not have the name that tracer record would give it")
            }
            if let header, !EndedTrace.hasEnded(header, written: status.st_mtim.tv_sec) { throw .isBeingRecorded }
            last = max(last, status.st_mtim.tv_sec)
        }
        guard sessions.count == 1, !sessions.contains(0) else {
            throw .isNoRun(sessions.count > 1 ? "it has traces of several runs" : "tracer record did not make it")
        }
        guard sessions.isDisjoint(with: living) else { throw .isBeingRecorded }
        byteCount = bytes
        lastWritten = last
    }

    /// The first bytes of a file of this user's, as a header of which it has `got` bytes.
    static func start(of path: String) throws(Failure) -> (header: trace_file_header, got: Int, status: stat) {
        let file = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        guard file >= 0 else { throw .isNoRun("\(path): \(String(cString: strerror(errno)))") }
        defer { close(file) }
        var info = stat(), header = trace_file_header()
        guard fstat(file, &info) == 0, info.st_mode & S_IFMT == S_IFREG else { throw .isNoRun("\(path) is not a trace") }
        guard info.st_uid == geteuid() else { throw .isNoRun("\(path) belongs to another user") }
        let got = pread(file, &header, MemoryLayout<trace_file_header>.size, 0)
        return (header, got, info)
    }

    /// nil for the empty file of a process that was killed before it could write anything.
    private static func header(_ path: String) throws(Failure) -> (trace_file_header?, stat) {
        let (header, got, info) = try start(of: path), isWhole = got == MemoryLayout<trace_file_header>.size
        if path.hasSuffix(".trace" + LOADER_NOTES_SUFFIX) { return (nil, info) }
        if path.hasSuffix(".trace"), got == 0 || isWhole && header.version == 0 && header.magic.0 == 0 { return (nil, info) }
        guard isWhole, header.hasMagic else { throw .isNoRun("\(path) is not a trace") }
        return (header, info)
    }

    /// Returns true for what the loader audit left beside a trace.
    static func isLoaderNotes(_ name: String, among names: [String]) -> Bool {
        name.hasSuffix(".trace" + LOADER_NOTES_SUFFIX) && names.contains(String(name.dropLast(LOADER_NOTES_SUFFIX.count)))
    }

    /// PROGRAM.PID.trace, as `RunDirectory.names` has it; the agent may have added a number where a name was taken.
    private static func isName(_ path: String, of header: trace_file_header?) -> Bool {
        let parts = path.split(separator: "/").last!.split(separator: ".")
        guard parts.count >= 3, parts.last == "trace" else { return false }
        guard let header else { return true }
        return parts.dropLast().suffix(2).contains { $0 == String(header.pid) }
    }

    package func remove() throws(Failure) {
        for file in files where unlink(file) != 0 { throw .cannotRemove(file, errno) }
        if isDirectory, rmdir(path) != 0 { throw .cannotRemove(path, errno) }
    }

    /// Returns true if `tracer record` gives such names by default: tracer.NAME.PID, and .trace for a file.
    package static func isDefaultName(_ name: String, isDirectory: Bool) -> Bool {
        guard name.hasPrefix("tracer."), isDirectory || name.hasSuffix(".trace") else { return false }
        let parts = (isDirectory ? name : String(name.dropLast(6))).split(separator: ".", omittingEmptySubsequences: false).dropFirst()
        return parts.count >= 2 && parts.last!.allSatisfy { $0.isASCII && $0.isNumber } && !parts.last!.isEmpty
    }
}
