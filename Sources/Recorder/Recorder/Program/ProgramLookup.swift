// PATH, as execvp(3) walks it.
import Glibc

package enum ProgramLookup {
    /// The path that exec is to be called with. A name with a slash is one already; any other is sought in the
    /// directories of `searchPath` (nil: the C library's default), where an empty one is the current directory. A
    /// file that may not be executed is passed over, and remembered for the message.
    package static func path(of name: String, searchPath: String?) throws(Refusal) -> String {
        guard !name.isEmpty else { throw .notFound("the program's name is empty") }
        if name.utf8.contains(UInt8(ascii: "/")) { return name }
        var notExecutable: String?
        for directory in (searchPath ?? "/bin:/usr/bin").split(separator: ":", omittingEmptySubsequences: false) {
            let candidate = directory.isEmpty ? "./\(name)" : "\(directory)/\(name)"
            var info = stat()
            guard stat(candidate, &info) == 0, info.st_mode & S_IFMT == S_IFREG else { continue }
            if faccessat(AT_FDCWD, candidate, X_OK, AT_EACCESS) == 0 { return candidate }
            notExecutable = notExecutable ?? candidate
        }
        if let notExecutable {
            throw .cannotRun("\(notExecutable) is not executable: chmod +x it, or name its interpreter")
        }
        var info = stat()
        let hint = stat(name, &info) == 0 ? "; the file here would be ./\(name)" : ": give its path, or check PATH"
        throw .notFound("\(name) was not found in PATH\(hint)")
    }
}
