// Directory that keeps the traces of one run together, with a file for each image of each process. When the run was one file after
// all, it takes the directory's place, or the directory's name with .trace appended.
import CRecorder
import CTraceLayout
import ELF
import Glibc
import TraceFormat

package struct RunDirectory: Equatable, Sendable {
    /// Absolute path of the directory; the program's process id is appended where `isNumbered`.
    package let path: String
    let isNumbered: Bool

    /// Name template of the files in it.
    package static let names = "%e.%p.trace"
    private static let longestName = 200

    private init(path: String, isNumbered: Bool) {
        self.path = path
        self.isNumbered = isNumbered
    }

    /// tracer.NAME.PID in a directory.
    package init(of program: String, in directory: String) {
        let name = program.split(separator: "/").last.map(String.init) ?? "program"
        var short = name
        while short.utf8.count > Self.longestName { short.removeLast() }
        self.init(path: (directory == "/" ? "" : directory) + "/tracer." + short + ".", isNumbered: true)
    }

    /// The very path that the user wants. What is there is replaced when it is empty, or when it is a run that has ended and `force` says
    /// so; throws a `Refusal` for anything else.
    package init(at path: String, force: Bool) throws(Refusal) {
        self.init(path: path, isNumbered: false)
        var info = stat()
        guard lstat(path, &info) == 0 else { return }
        let isRun: Bool
        switch info.st_mode & S_IFMT {
        case S_IFREG:
            if info.st_size == 0 { return }
            isRun = EndedTrace.isOne(path, mayBeEmpty: false)
        case S_IFDIR:
            let names = Self.names(in: path)
            if names?.isEmpty == true { return }
            isRun =
                names?.allSatisfy {
                    FinishedRun.isLoaderNotes($0, among: names ?? []) || EndedTrace.isOne(path + "/" + $0, mayBeEmpty: true)
                } ?? false
        default: isRun = false
        }
        guard isRun else { throw .usage("output \(path) exists and is not a finished run: name another file") }
        guard force else { throw .usage("output \(path) exists: overwrite it with --force, or name another file") }
    }

    /// Parts of the path and of the variable that the program is started with, around the number, which is not known before.
    /// nil unless `isNumbered`.
    var numbered: RunningProgram.NumberedDirectory? {
        guard isNumbered else { return nil }
        return .init(start: path, variable: "\(Variables.output.name)=" + OutputTemplate.escaped(path), ending: "/" + Self.names)
    }

    var parent: String {
        let slash = path.lastIndex(of: "/")!
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }

    /// Makes it, in the place of an earlier run. Not for one that is numbered.
    func make() throws(Refusal) {
        remove()
        let error = recorder_make_directory(path)
        guard error == 0 else { throw Self.refusal(path, error) }
    }
    private static func refusal(_ path: String, _ error: Int32) -> Refusal {
        .usage("cannot create the directory \(path): \(String(cString: strerror(error))); choose another with -o")
    }

    /// An earlier run, under another name until it is certain that there is a new one.
    package struct Earlier {
        fileprivate let aside: RunDirectory, path: String

        package func remove() { aside.remove() }
        /// The new one is removed, with nothing in it.
        package func putBack() {
            rmdir(path)
            rename(aside.path, path)
        }
    }
    /// The same as `make`, but an earlier run is kept.
    package func setAside() throws(Refusal) -> Earlier {
        let aside = RunDirectory(path: Self.aside(path), isNumbered: false)
        rename(path, aside.path)
        let error = recorder_make_directory(path)
        guard error == 0 else {
            rename(aside.path, path)
            throw Self.refusal(path, error)
        }
        return Earlier(aside: aside, path: path)
    }
    /// A name beside it that nobody has.
    private static func aside(_ path: String) -> String { path + ".\(String(UInt64.random(in: 1 << 60 ... .max), radix: 16)).part" }

    /// `init` has looked at what there is.
    private func remove() {
        let names = Self.names(in: path) ?? []
        for name in names
        where FinishedRun.isLoaderNotes(name, among: names) || EndedTrace.isOne(path + "/" + name, mayBeEmpty: true) {
            unlink(path + "/" + name)
        }
        if rmdir(path) != 0, errno == ENOTDIR { unlink(path) }
    }

    // MARK: - At the end

    /// Puts the only file of a run where the run is looked for. Nobody who reads meanwhile finds nothing: the file is under its new name
    /// before the old one goes. Returns where it is now; nil when it has to stay.
    package static func takeOut(_ file: String, of directory: String, isNumbered: Bool) -> String? {
        guard names(in: directory)?.count == 1 else { return nil } // somebody else's file is in it, too
        return isNumbered ? moveBeside(file, directory) : moveInto(file, directory)
    }

    private static func moveBeside(_ file: String, _ directory: String) -> String? {
        let target = directory + ".trace"
        if link(file, target) != 0 {
            // A file system without links, or an older trace of this name.
            guard errno != EEXIST || EndedTrace.isOne(target, mayBeEmpty: false), rename(file, target) == 0 else { return nil }
        } else {
            unlink(file)
        }
        rmdir(directory)
        return target
    }

    private static func moveInto(_ file: String, _ directory: String) -> String? {
        let aside = aside(directory)
        if link(file, aside) == 0 {
            if recorder_exchange(aside, directory) == 0 {
                unlink(aside + file.dropFirst(directory.count))
                rmdir(aside)
                return directory
            }
            unlink(aside)
        }
        guard rename(file, aside) == 0 else { return nil }
        guard rmdir(directory) == 0, rename(aside, directory) == 0 else { return rename(aside, file) == 0 ? nil : aside }
        return directory
    }

    /// Returns the names of a directory's entries. nil when it cannot be read.
    package static func names(in directory: String) -> [String]? { entryNames(in: directory) }
}

/// A trace that may be replaced: the user's own, of a process that is gone.
package enum EndedTrace {
    package static func isOne(_ path: String, mayBeEmpty: Bool) -> Bool {
        guard let (header, got, info) = try? FinishedRun.start(of: path) else { return false }
        if info.st_size == 0 { return mayBeEmpty }
        let isTrace = got == MemoryLayout<trace_file_header>.size && header.hasMagic
        return isTrace && hasEnded(header, written: info.st_mtim.tv_sec)
    }

    /// A trace whose process counts elsewhere is taken to have ended when this many seconds have passed since it was written: nobody here
    /// can say it.
    private static let silence = 3600

    static func hasEnded(_ header: trace_file_header, written: Int) -> Bool {
        // Its process, which tracer attach has let go, writes to it no more.
        if header.flags & UInt32(TRACE_FLAG_NO_START) != 0, header.state == UInt32(TRACE_FINISHED) { return true }
        if header.boot != 0, header.boot == ProcessStatus.bootID, header.pid_namespace == ProcessStatus.ownNamespace {
            return ProcessStatus.isGone(pid_t(bitPattern: header.pid))
        }
        return written < time(nil) - silence
    }
}
