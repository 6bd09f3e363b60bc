// Destination of an export: a file that is there whole or not at all, or standard output.
import ArgumentParser
import Glibc
import Presentation

final class ExportOutput {
    /// nil: standard output.
    private let file: AtomicFile?
    var byteCount: UInt64 { file?.byteCount ?? 0 }

    /// - Parameters:
    ///   - path: "-" is standard output
    ///   - force: replaces what is there
    init(_ path: String, force: Bool, isBinary: Bool) throws {
        if path == "-" {
            guard !isBinary || isatty(STDOUT_FILENO) == 0 else {
                throw CommandFailure("not writing binary data to a terminal: use -o FILE, or redirect it", status: 2)
            }
            file = nil
        } else {
            do { file = try AtomicFile(path, replaces: force) } catch { throw CommandFailure(error) }
        }
    }

    /// Passes the file to `body`. If that throws, nothing of the file remains.
    func writing(_ body: (@escaping ([UInt8]) throws -> Void) throws -> Void) throws {
        do {
            guard let file else {
                return try body { bytes in
                    let error = writeAll(bytes, to: STDOUT_FILENO)
                    if error != 0 { throw AtomicFile.Failure.cannotWrite("the output", error) }
                }
            }
            try file.writing(body)
        } catch AtomicFile.Failure.cannotWrite(_, EPIPE) {
            throw ExitCode(128 + SIGPIPE)
        } catch let failure as AtomicFile.Failure {
            throw CommandFailure(failure)
        }
    }
}
