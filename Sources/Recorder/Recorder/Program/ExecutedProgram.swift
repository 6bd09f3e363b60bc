// A program that a process has executed, as far as somebody outside sees it: by the files that were mapped into its new memory. They show
// whether the agent is there, and where it is not, why.
import CRecorder
import CTraceLayout
import ELF
import Glibc

package struct ExecutedProgram: Sendable {
    /// The kernel's name of it: that of the file which was executed, up to 15 characters.
    package let name: String
    /// The executable; of a script its interpreter. Empty: nothing was seen to be mapped.
    package private(set) var path: String
    private var inode: UInt64 = 0
    /// The file that was mapped after the executable: its loader, if it has one.
    private var second = ""
    private var hasLibraries = false
    package private(set) var hasAgent = false
    /// Base names of files that are written through shared memory: one of them is the agent's trace.
    package private(set) var outputs: [String] = []
    /// Its user or group is another than that of the process which executed it.
    package var isPrivileged = false

    /// The agent begins before the program's own code.
    private static let mostOutputs = 8

    package init(name: String) {
        self.name = name
        path = ""
    }
    /// A program that was found running.
    /// - Parameter files: those that it has mapped, in any order
    init(name: String, path: String, files: Set<String>) {
        self.name = name
        self.path = path
        hasAgent = files.contains(where: Self.isAgent)
        hasLibraries = files.contains { $0 != path && !ExecTarget.isLoader($0) }
    }

    /// A file was mapped, in the order in which that happened.
    package mutating func map(_ file: String, inode: UInt64, isOutput: Bool) {
        if path.isEmpty {
            (path, self.inode) = (file, inode)
        } else if isOutput {
            if outputs.count < Self.mostOutputs { outputs.append(file.split(separator: "/").last.map(String.init) ?? file) }
        } else if file != path, second.isEmpty || file == second {
            second = file
        } else if file != path {
            hasLibraries = true
            hasAgent = hasAgent || Self.isAgent(file)
        }
    }
    private static func isAgent(_ file: String) -> Bool { file.hasSuffix("/libtracer.so") }
}

// MARK: - Why it is not recorded

extension ExecutedProgram {
    /// Returns why a program without a trace is not recorded, TRACE_UNRECORDED_; nil: it may still be, since it has only just begun.
    /// - Parameters:
    ///   - hasEnded: it is gone, or has executed another program
    ///   - isAllSeen: no report of a mapping can be missing
    ///   - openPath: where the executable is read
    package func reasonUnrecorded(hasEnded: Bool, isAllSeen: Bool = true, openPath: String? = nil) -> Int? {
        if hasAgent {
            // A recorder below ours has its own traces.
            if outputs.contains(where: { $0.hasSuffix(".trace") }) { return TRACE_UNRECORDED_ELSEWHERE }
            return hasEnded ? TRACE_UNRECORDED_NO_FILE : nil
        }
        if isPrivileged { return TRACE_UNRECORDED_PRIVILEGED }
        if path.isEmpty { return isAllSeen ? reasonHidden : TRACE_UNRECORDED_UNKNOWN }
        let ofFile = reasonOfFile(openPath)
        if let ofFile, ofFile != TRACE_UNRECORDED_PRELOAD { return ofFile }
        // The loader maps what LD_PRELOAD names before what the program needs (glibc elf/rtld.c, dl_main).
        if hasLibraries { return ofFile != nil && isAllSeen ? TRACE_UNRECORDED_PRELOAD : TRACE_UNRECORDED_UNKNOWN }
        return hasEnded ? TRACE_UNRECORDED_UNKNOWN : nil
    }

    /// The kernel reports nothing more of a program that runs with rights of its own, or may not be read (fs/exec.c, begin_new_exec).
    private var reasonHidden: Int {
        guard let found = try? ProgramLookup.path(of: name, searchPath: getenv("PATH").map { String(cString: $0) }),
            let file = try? ProgramFile(path: found), file.privileges.secureReason(for: .current) != nil
        else { return TRACE_UNRECORDED_HIDDEN }
        return TRACE_UNRECORDED_PRIVILEGED
    }

    /// Returns what the executable's file says; TRACE_UNRECORDED_PRELOAD: it could have been recorded. nil: it cannot be read, or another
    /// file has its name, perhaps since the process has another root directory.
    private func reasonOfFile(_ openPath: String?) -> Int? {
        let file = open(openPath ?? path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var info = stat()
        guard fstat(file, &info) == 0, info.st_mode & S_IFMT == S_IFREG else { return nil }
        if inode != 0, inode != UInt64(info.st_ino), recorder_is_overlay(file) == 0 { return nil }
        switch ExecutableFormat(reading: readBytes(of: file)) {
        case .elf32, .elfOtherByteOrder: return TRACE_UNRECORDED_MACHINE
        case .elf(let machine, _) where machine != ExecTarget.ownArchitecture: return TRACE_UNRECORDED_MACHINE
        case .elf(_, nil):
            if ExecTarget.isLoader(path) { return TRACE_UNRECORDED_PRELOAD }
            return ObjectFile(path: openPath ?? path)?.hasSection(".go.buildinfo") == true ? TRACE_UNRECORDED_GO : TRACE_UNRECORDED_STATIC
        case .elf(_, let loader?):
            if loader.contains("musl") { return TRACE_UNRECORDED_MUSL }
            return ExecTarget.isLoader(loader) ? TRACE_UNRECORDED_PRELOAD : TRACE_UNRECORDED_LOADER
        case .script, .text, .unknown, .damaged: return nil
        }
    }
}
