// A file that is there whole or not at all: written under another name, which is given the right one at the end. What
// was there before stays until then. A pipe or a device is written as it is.
@preconcurrency import Glibc
import TraceAnalysis

/// What a signal that ends the tool has to remove. Set before the file is there: a signal may come in between.
nonisolated(unsafe) private var unfinished: UnsafeMutablePointer<CChar>?

/// A signal handler. The signal is blocked meanwhile, and ends the tool when this returns.
private func removeUnfinished(_ number: Int32) {
    if let unfinished { unlink(unfinished) }
    signal(number, SIG_DFL)
    raise(number)
}

final class ExportOutput: @unchecked Sendable {
    private let path: String
    private let descriptor: Int32
    /// nil: written in place.
    private let temporary: String?
    private let mayReplace: Bool
    private(set) var byteCount: UInt64 = 0

    /// - Parameters:
    ///   - path: "-" is standard output
    ///   - force: replaces what is there
    init(_ path: String, force: Bool, isBinary: Bool) throws {
        mayReplace = force
        if path == "-" {
            guard !isBinary || isatty(STDOUT_FILENO) == 0 else {
                throw CommandFailure(message: "not writing binary data to a terminal: use -o FILE, or redirect it", status: 2)
            }
            (self.path, temporary, descriptor) = (path, nil, STDOUT_FILENO)
            return
        }
        var status = stat()
        let exists = stat(path, &status) == 0
        let kind = status.st_mode & S_IFMT
        if exists, kind == S_IFDIR { throw CommandFailure(message: "\(path) is a directory: name a file to write", status: 2) }
        if exists, kind != S_IFREG {
            descriptor = open(path, O_WRONLY | O_CLOEXEC)
            (self.path, temporary) = (path, nil)
            guard descriptor >= 0 else { throw Self.failure("write", path) }
            return
        }
        if exists, !force { throw CommandFailure(message: "\(path) exists: name another file with -o, or overwrite it with --force", status: 2) }
        // A link stays a link.
        self.path = exists ? Self.resolved(path) : path
        let temporary = "\(self.path).\(getpid()).part"
        self.temporary = temporary
        unfinished = strdup(temporary)
        handle([SIGINT, SIGTERM, SIGHUP], by: removeUnfinished)
        descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else {
            unfinished = nil // another's
            throw Self.failure("create", path)
        }
        signal(SIGXFSZ, SIG_IGN) // a file size limit is then an error of write
    }

    private static func resolved(_ path: String) -> String {
        guard let name = realpath(path, nil) else { return path }
        defer { free(name) }
        return String(cString: name)
    }

    private static func failure(_ verb: String, _ path: String) -> CommandFailure {
        CommandFailure(message: "cannot \(verb) \(path): \(String(cString: strerror(errno)))")
    }

    /// `body` gets what writes. When it throws, nothing of the file remains.
    func writing(_ body: (@escaping ([UInt8]) throws -> Void) throws -> Void) throws {
        do {
            try body { try self.write($0) }
            try finish()
        } catch {
            if let temporary { unlink(temporary) }
            throw error
        }
    }

    private func write(_ bytes: [UInt8]) throws {
        var done = 0
        while done < bytes.count {
            let written = bytes[done...].withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress!, $0.count) }
            if written < 0, errno == EINTR { continue }
            if written < 0, errno == EPIPE { throw CommandFailure(message: "", status: 128 + SIGPIPE) }
            guard written > 0 else { throw Self.failure("write", path == "-" ? "the output" : path) }
            done += written
        }
        byteCount += UInt64(bytes.count)
    }

    private func finish() throws {
        guard let temporary else { return }
        // A full disk may show only here (NFS).
        guard close(descriptor) == 0 else { throw Self.failure("write", path) }
        // link(2) does not replace; rename(2) does. Where there are no links, rename will do.
        if !mayReplace, link(temporary, path) == 0 {
            unlink(temporary)
        } else if !mayReplace, errno == EEXIST {
            throw CommandFailure(message: "\(path) exists: name another file with -o, or overwrite it with --force", status: 2)
        } else if rename(temporary, path) != 0 {
            throw Self.failure("create", path)
        }
    }
}
