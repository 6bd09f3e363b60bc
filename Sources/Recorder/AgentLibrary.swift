// Where libtracer.so is, and how it gets into LD_PRELOAD.
import Glibc

public struct AgentLibrary: Equatable, Sendable {
    public let path: String

    /// Beside the tool's own executable, as a build leaves it, or in ../lib, as an installation does.
    public static func find() throws(Refusal) -> AgentLibrary {
        guard let resolved = realpath("/proc/self/exe", nil) else {
            throw .cannotRun("/proc is not mounted, so libtracer.so cannot be found: mount it")
        }
        let directory = String(cString: resolved).split(separator: "/").dropLast().map { "/" + $0 }.joined()
        free(resolved)
        return try find(besides: directory)
    }

    static func find(besides directory: String) throws(Refusal) -> AgentLibrary {
        let parent = directory[..<(directory.lastIndex(of: "/") ?? directory.startIndex)]
        for path in ["\(directory)/libtracer.so", "\(parent)/lib/libtracer.so"] where access(path, R_OK) == 0 {
            return try AgentLibrary(path: path)
        }
        throw .cannotRun("libtracer.so is neither in \(directory) nor in \(parent)/lib: run scripts/build, or install it there")
    }

    /// LD_PRELOAD separates with blanks and colons, has no quotes, and expands $ORIGIN and its like (ld.so(8)).
    init(path: String) throws(Refusal) {
        if let bad = path.first(where: { ": \t\n$".contains($0) }) {
            throw .cannotRun("\(path) cannot be preloaded, because LD_PRELOAD cannot hold a '\(bad)': move tracer to a path without it")
        }
        self.path = path
    }

    /// Ours first, so that it is initialised first; what was there stays, without a second copy of ours.
    func preload(keeping existing: String?) -> String {
        let others = (existing ?? "").split(whereSeparator: { $0 == ":" || $0 == " " }).filter { $0 != path }
        return ([path[...]] + others.map { $0[...] }).joined(separator: ":")
    }
}
