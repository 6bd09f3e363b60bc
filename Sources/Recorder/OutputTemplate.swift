// Where trace files go: a path whose last part may hold %p (pid) and %e (program). The agent expands it, once for
// each process; here it is checked, made absolute (the program may change its directory), and recognised.
import Glibc

public struct OutputTemplate: Equatable, Sendable {
    public static let standard = "tracer.%e.%p.trace"

    /// Absolute.
    public let text: String
    public let directory: String
    /// What every file name of this template begins with: the agent may add to the end when a name is taken.
    let fixedStart: String

    /// `text` as the user gave it, relative to `currentDirectory`.
    public init(_ text: String, currentDirectory: String) throws(Refusal) {
        guard !text.isEmpty, !text.hasSuffix("/") else {
            throw .usage("output \"\(text)\" names no file: give a file name, such as \(OutputTemplate.standard)")
        }
        let absolute = text.hasPrefix("/") ? text : currentDirectory + (currentDirectory.hasSuffix("/") ? "" : "/") + text
        let slash = absolute.lastIndex(of: "/")!
        let directory = slash == absolute.startIndex ? "/" : String(absolute[..<slash])
        let name = absolute[absolute.index(after: slash)...]
        for place in ["%p", "%e"] where directory.contains(place) {
            throw .usage("output directory \(directory) contains \(place), which is expanded in the file name only: choose another with -o")
        }
        var rest = name[...]
        while let percent = rest.firstIndex(of: "%") {
            rest = rest[rest.index(after: percent)...]
            guard let letter = rest.first, letter == "p" || letter == "e" else {
                throw .usage("output \"\(text)\": %\(rest.first.map(String.init) ?? "") is not known; %p is the pid, %e the program")
            }
        }
        guard name.utf8.count <= 255, absolute.utf8.count < 4096 else {
            throw .usage("output \"\(text)\" is too long for a file name")
        }
        self.text = absolute
        self.directory = directory
        fixedStart = String(name.prefix { $0 != "%" })
    }

    /// The directory must exist and be writable: the agent cannot make one inside somebody else's process.
    public func checkDirectory() throws(Refusal) {
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

    /// Whether a file of this name may be one of ours; its header decides.
    func mayName(_ fileName: String) -> Bool { fileName.hasPrefix(fixedStart) }
}
