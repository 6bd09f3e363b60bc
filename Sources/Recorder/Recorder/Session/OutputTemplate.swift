// Path template of the trace files: its last part may hold %p (pid) and %e (program); %% is a percent sign. The agent expands it, once
// for each process; here it is checked, made absolute (the program may change its directory), and recognised.
import Glibc
import TraceFormat

package struct OutputTemplate: Equatable, Sendable {
    package static let standard = String(cString: Variables.output.standard)

    /// Absolute.
    package let text: String
    package let directory: String
    /// Beginning of every file name of this template: the agent may add to the end, before `.trace`, when a name
    /// is taken.
    let fixedStart: String
    /// The file's name holds %p or %e: each process has a file of its own.
    let hasPlaceholders: Bool
    private let fixedName: String
    /// The path itself; nil when it depends on the process.
    var path: String? { hasPlaceholders ? nil : (directory == "/" ? "" : directory) + "/" + fixedName }

    /// Files of these names in a directory, whose path is taken as it is.
    init(directory: String, names: String) throws(Refusal) {
        try self.init(Self.escaped(directory == "/" ? "" : directory) + "/" + names, currentDirectory: "/")
    }

    /// A path in which a percent sign means itself.
    static func escaped(_ path: String) -> String { path.split(separator: "%", omittingEmptySubsequences: false).joined(separator: "%%") }

    /// `text` as the user gave it, relative to `currentDirectory`, which is taken as it is.
    package init(_ text: String, currentDirectory: String) throws(Refusal) {
        guard !text.isEmpty, !text.hasSuffix("/") else {
            throw .usage("output \"\(text)\" names no file: give a file name, such as \(OutputTemplate.standard)")
        }
        let prefix = Self.escaped(currentDirectory)
        let absolute = text.hasPrefix("/") ? text : prefix + (prefix.hasSuffix("/") ? "" : "/") + text
        let slash = absolute.lastIndex(of: "/")!
        let name = absolute[absolute.index(after: slash)...]
        let (directory, hasPlaceholders) = try OutputTemplate.fixedPart(absolute[..<slash], of: text)
        guard !hasPlaceholders else {
            throw .usage("output \"\(text)\": %p and %e belong in the file name, not in the directory")
        }
        self.directory = directory.isEmpty ? "/" : directory
        guard name.utf8.count <= 255, absolute.utf8.count < 4096 else {
            throw .usage("output \"\(text)\" is too long for a file name")
        }
        let (start, hasPlaceholder) = try OutputTemplate.fixedPart(name, of: text)
        // x.trace becomes x.4711.trace when that name is taken (TracerAgent, TraceFile.addNumber).
        (fixedName, self.hasPlaceholders) = (start, hasPlaceholder)
        fixedStart = hasPlaceholder || !start.hasSuffix(".trace") ? start : String(start.dropLast(6))
        self.text = absolute
    }

    /// Returns what precedes the first placeholder, with %% undone, and whether there is one at all.
    private static func fixedPart(_ part: Substring, of text: String) throws(Refusal) -> (text: String, hasPlaceholders: Bool) {
        var fixed = "", hasPlaceholders = false
        var rest = part
        while let letter = rest.popFirst() {
            guard letter == "%" else {
                if !hasPlaceholders { fixed.append(letter) }
                continue
            }
            switch rest.popFirst() {
            case "%": if !hasPlaceholders { fixed.append("%") }
            case "p", "e": hasPlaceholders = true
            case let other:
                throw .usage(
                    "output \"\(text)\": %\(other.map(String.init) ?? "") is not known; %p is the pid, %e the program, %% a percent sign")
            }
        }
        return (fixed, hasPlaceholders)
    }

    /// The directory must exist and be writable: the agent cannot make one inside somebody else's process.
    package func checkDirectory() throws(Refusal) {
        var info = stat()
        guard stat(directory, &info) == 0 else {
            throw .usage("output directory \(directory): \(String(cString: strerror(errno))): create it, or choose another with -o")
        }
        guard info.st_mode & S_IFMT == S_IFDIR else {
            throw .usage("output directory \(directory) is not a directory: choose another with -o")
        }
        guard faccessat(AT_FDCWD, directory, W_OK | X_OK, AT_EACCESS) == 0 else {
            throw .usage("output directory \(directory) is not writable: choose another with -o")
        }
    }

    /// Returns true if a file of this name may be one of ours; its header decides.
    package func mayName(_ fileName: String) -> Bool { fileName.hasPrefix(fixedStart) }
}
