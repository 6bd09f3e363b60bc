// A file that is there whole or not at all: written under another name, which is given the right one at the end. What
// was there before stays until then. A pipe or a device is written as it is.
@preconcurrency import Glibc

/// File to remove if a signal ends the tool. Set before the file exists, since a signal may arrive in between.
nonisolated(unsafe) private var unfinished: UnsafeMutablePointer<CChar>?

/// A signal handler. The signal is blocked meanwhile, and ends the tool when this returns.
private func removeUnfinished(_ number: Int32) {
    if let unfinished { unlink(unfinished) }
    signal(number, SIG_DFL)
    raise(number)
}

/// Only one exists at a time in a process.
package final class AtomicFile: @unchecked Sendable {
    package enum Failure: Error, Equatable {
        case exists(String)
        case isDirectory(String)
        /// `errno`.
        case cannotCreate(String, Int32), cannotWrite(String, Int32)

        package var message: String {
            switch self {
            case .exists(let path): "\(path) exists"
            case .isDirectory(let path): "\(path) is a directory"
            case .cannotCreate(let path, let error): "cannot create \(path): \(systemReason(error))"
            case .cannotWrite(let path, let error): "cannot write \(path): \(systemReason(error))"
            }
        }
    }

    private let path: String
    private let descriptor: Int32
    /// nil: written in place.
    private let temporary: String?
    private let replaces: Bool
    package private(set) var byteCount: UInt64 = 0

    /// - Parameter replaces: a file that is there
    package init(_ path: String, replaces: Bool) throws(Failure) {
        self.replaces = replaces
        var status = stat()
        let exists = stat(path, &status) == 0
        let kind = status.st_mode & S_IFMT
        if exists, kind == S_IFDIR { throw .isDirectory(path) }
        if exists, kind != S_IFREG {
            descriptor = open(path, O_WRONLY | O_CLOEXEC)
            (self.path, temporary) = (path, nil)
            guard descriptor >= 0 else { throw .cannotWrite(path, errno) }
            return
        }
        if exists, !replaces { throw .exists(path) }
        // A link stays a link.
        self.path = exists ? resolvedPath(path) ?? path : path
        let temporary = "\(self.path).\(getpid()).part"
        self.temporary = temporary
        unfinished = strdup(temporary)
        onEndingSignals([SIGINT, SIGTERM, SIGHUP], removeUnfinished)
        descriptor = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o666)
        guard descriptor >= 0 else {
            let error = errno
            unfinished = nil // another's
            throw .cannotCreate(path, error)
        }
        if exists { fchmod(descriptor, status.st_mode & 0o7777) } // as the one that it replaces
        signal(SIGXFSZ, SIG_IGN) // a file size limit is then an error of write
    }

    package static func write(_ text: String, to path: String, replaces: Bool = true) throws(Failure) {
        let file = try AtomicFile(path, replaces: replaces)
        do {
            try file.write(Array(text.utf8))
            try file.finish()
        } catch {
            file.discard()
            throw error
        }
    }

    /// Passes the file to `body`. If that throws, nothing of the file remains.
    package func writing(_ body: (@escaping ([UInt8]) throws -> Void) throws -> Void) throws {
        do {
            try body { try self.write($0) }
            try finish()
        } catch {
            discard()
            throw error
        }
    }

    private func discard() {
        if let temporary { unlink(temporary) }
        unfinished = nil
    }

    private func write(_ bytes: [UInt8]) throws(Failure) {
        let error = writeAll(bytes, to: descriptor)
        guard error == 0 else { throw .cannotWrite(path, error) }
        byteCount += UInt64(bytes.count)
    }

    private func finish() throws(Failure) {
        // A full disk may show only here (NFS).
        guard close(descriptor) == 0 else { throw .cannotWrite(path, errno) }
        guard let temporary else { return }
        // link(2) does not replace, as rename(2) does. If the file system has no links, rename is used.
        if !replaces, link(temporary, path) == 0 {
            unlink(temporary)
        } else if !replaces, errno == EEXIST {
            throw .exists(path)
        } else if rename(temporary, path) != 0 {
            throw .cannotCreate(path, errno)
        }
        unfinished = nil
    }
}

/// Installs `handler`, which may run at any moment from now on (signal-safety(7)): no signal is lost between the old disposition and the
/// new one. A signal that is ignored stays ignored: nohup wants that, and so does a shell for what it runs in the background.
package func onEndingSignals(_ signals: [Int32], _ handler: @escaping @convention(c) (Int32) -> Void) {
    for number in signals {
        var before = sigaction()
        sigaction(number, nil, &before)
        let isIgnored = unsafeBitCast(before.__sigaction_handler.sa_handler, to: Int.self) == 1 // SIG_IGN
        if !isIgnored { signal(number, handler) }
    }
}
