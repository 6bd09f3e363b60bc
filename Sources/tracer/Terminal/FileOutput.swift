// Files that a command is asked to write.
import Presentation

/// Writes a file, whole or not at all.
/// - Parameters:
///   - replaces: overwrites a file that is there
///   - status: exit status of the command when it cannot be written
func writeFile(_ text: String, to path: String, replaces: Bool = true, status: Int32 = 1) throws {
    do { try AtomicFile.write(text, to: path, replaces: replaces) } catch { throw CommandFailure(error, status: status) }
}

/// A page for a browser.
/// - Parameters:
///   - path: "-" is standard output
///   - force: replaces what is there
func writePage(_ html: String, to path: String, force: Bool) throws {
    if path == "-" { return try Output.write(html) }
    try writeFile(html, to: path, replaces: force)
    complain("\(path): open it in a browser")
}
