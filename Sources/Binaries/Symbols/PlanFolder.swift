// The folder of the modules' plans: $XDG_CACHE_HOME/tracer/plans, or in $HOME/.cache. A folder or plan that is not the user's own, or that
// others may write to, is not used.
import CTraceLayout
import ELF
import Glibc

public struct PlanFolder: Sendable {
    private let home: String
    public var path: String { home + "/tracer/plans" }

    /// nil: nobody says where.
    public init?() {
        func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) }.flatMap { $0.hasPrefix("/") ? $0 : nil } }
        guard let home = variable("XDG_CACHE_HOME") ?? variable("HOME").map({ $0 + "/.cache" }) else { return nil }
        self.home = home
    }

    /// False: it cannot be made, or is not the user's own.
    public func make() -> Bool {
        [home, home + "/tracer", path].allSatisfy {
            mkdir($0, 0o700)
            return Self.isPrivate($0)
        }
    }

    /// A plan of this name, nil when there is none, or none that is to be trusted.
    public func read(_ name: String) -> [UInt8]? {
        guard Self.isPrivate(path) else { return nil }
        let descriptor = open(path + "/" + name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, Self.isPrivate(status, S_IFREG), status.st_size > 0, status.st_size <= Int(PLAN_MOST_BYTES)
        else { return nil }
        return readBytes(of: descriptor)(0, Int(status.st_size))
    }

    private static func isPrivate(_ path: String) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && isPrivate(status, S_IFDIR)
    }
    private static func isPrivate(_ status: stat, _ type: mode_t) -> Bool {
        status.st_mode & S_IFMT == type && status.st_uid == geteuid() && status.st_mode & 0o022 == 0
    }
}
