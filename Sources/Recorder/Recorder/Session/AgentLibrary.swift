// Finds libtracer.so and its kin, checks that the first is an agent for this tool, and puts them into
// LD_PRELOAD and LD_AUDIT.
import CTraceLayout
import ELF
import Glibc

package struct AgentLibrary: Equatable, Sendable {
    package static let agent = "libtracer.so", audit = "libtracer-audit.so", labels = "libtracer-labels.so"

    package let path: String

    /// Finds a library next to the tool's own executable, as a build leaves it, or in ../lib, as an installation does.
    package static func find(_ name: String = agent) throws(Refusal) -> AgentLibrary {
        guard let resolved = resolvedPath("/proc/self/exe") else {
            throw .cannotRun("/proc is not mounted, so \(name) cannot be found: mount it")
        }
        return try find(name, besides: resolved.split(separator: "/").dropLast().map { "/" + $0 }.joined())
    }

    package static func find(_ name: String = agent, besides directory: String) throws(Refusal) -> AgentLibrary {
        let parent = directory[..<(directory.lastIndex(of: "/") ?? directory.startIndex)]
        for path in ["\(directory)/\(name)", "\(parent)/lib/\(name)"] where access(path, R_OK) == 0 {
            return try AgentLibrary(path: path)
        }
        throw .cannotRun("\(name) is neither in \(directory) nor in \(parent)/lib: run scripts/build, or install it there")
    }

    /// A program under a library that is something else, or needs more than libc, would not be the same program.
    func checkAgent() throws(Refusal) {
        guard let library = SharedLibrary(path: path), let note = library.note(owner: TRACER_NOTE_OWNER, type: UInt32(TRACER_NOTE_VERSION))
        else {
            throw .cannotRun("\(path) is not tracer's agent: \(AgentLibrary.advice)")
        }
        let version = String(decoding: note.prefix { $0 != 0 }, as: UTF8.self)
        guard version == TRACER_VERSION else {
            throw .cannotRun("\(path) is the agent of tracer \(version), but this is tracer \(TRACER_VERSION): \(AgentLibrary.advice)")
        }
        guard library.elfMachine == ExecTarget.ownArchitecture else {
            throw .cannotRun("\(path) is not an agent for \(ExecTarget.ownArchitectureName): \(AgentLibrary.advice)")
        }
        let needed = library.needed.filter { !AgentLibrary.allowed.contains($0) }
        guard needed.isEmpty else {
            throw .cannotRun("\(path) was not built correctly: it needs \(needed.joined(separator: ", ")); \(AgentLibrary.advice)")
        }
    }
    private static let allowed: Set = ["libc.so.6", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"]
    private static let advice = "run scripts/build again, or install the tool and the agent together"

    /// LD_PRELOAD separates with blanks and colons, has no quotes, and expands $ORIGIN and its like (ld.so(8)).
    package init(path: String) throws(Refusal) {
        if let bad = path.first(where: { ": \t\n$".contains($0) }) {
            throw .cannotRun("\(path) cannot be preloaded, because LD_PRELOAD cannot hold a '\(bad)': move tracer to a path without it")
        }
        self.path = path
    }

    /// Ours first, so that it is initialised first; what was there stays, without a second copy of ours.
    package func preload(keeping existing: String?) -> String {
        AgentLibrary.preload([self], keeping: existing)
    }
    static func preload(_ libraries: [AgentLibrary], keeping existing: String?) -> String {
        let ours = libraries.map(\.path)
        let others = (existing ?? "").split(whereSeparator: { $0 == ":" || $0 == " " }).map(String.init).filter { !ours.contains($0) }
        return (ours + others).joined(separator: ":")
    }
}
