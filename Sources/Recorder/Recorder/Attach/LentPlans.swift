// Plans for a process that does not see ours, or of another user, which believes no files but that user's own (CacheHome.swift): copies in a
// folder of its own, for as long as it is recorded.
import ELF
import Glibc
import Unwinding

struct LentPlans {
    /// What the process takes for XDG_CACHE_HOME.
    let home: String
    /// Path of the copy of the argument plan; nil: there is none.
    let arguments: String?
    private let names: [String]

    /// The tool's own.
    struct Origin {
        /// Folder of the plans of functions; nil: none are wanted.
        let functions: String?
        /// The argument plan.
        let arguments: String?
    }

    /// Name of `home` here.
    private let here: String
    private var outer: String { here + "/tracer" }
    private var folder: String { outer + "/plans" }

    /// Copies the plans of the modules that the process has now, and the argument plan. nil: it cannot be done.
    init?(for target: AttachTarget, from origin: Origin, in workplace: Workplace?) {
        if let workplace {
            (home, here) = (workplace.inner + "/plans", workplace.path + "/plans")
            guard mkdir(here, 0o700) == 0 else { return nil }
        } else {
            var template = Array("/tmp/tracer-plans.XXXXXX".utf8CString)
            guard mkdtemp(&template) != nil else { return nil }
            home = String(cString: template)
            here = home
        }
        var paths: Set<String> = [], copied: [String] = []
        for map in ProcessMaps(pid: target.pid) where map.isExecutable && map.path.hasPrefix("/") { paths.insert(map.path) }
        let inner = here + "/tracer", plans = inner + "/plans"
        // Nobody else can write there until all is written.
        guard mkdir(inner, 0o700) == 0, mkdir(plans, 0o700) == 0 else {
            rmdir(inner)
            rmdir(here)
            return nil
        }
        for path in paths {
            guard let cache = origin.functions, let id = buildID(ofFile: path), !id.isEmpty, case let name = hexadecimal(id) + ".plan",
                Self.copy(cache + "/" + name, to: plans + "/" + name, target)
            else { continue }
            copied.append(name)
        }
        let name = "arguments"
        if let path = origin.arguments, Self.copy(path, to: plans + "/" + name, target) {
            arguments = home + "/tracer/plans/" + name
            copied.append(name)
        } else {
            arguments = nil
        }
        names = copied
        guard chown(plans, target.user, target.group) == 0, chmod(inner, 0o711) == 0, chmod(here, 0o711) == 0 else {
            remove()
            return nil
        }
    }

    private static func copy(_ path: String, to copy: String, _ target: AttachTarget) -> Bool {
        guard let content = ProcessStatus.readAll(path), !content.isEmpty else { return false }
        let file = open(copy, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        guard file >= 0 else { return false }
        defer { close(file) }
        return writeWhole(content, to: file) == 0 && fchown(file, target.user, target.group) == 0
    }

    func remove() {
        for name in names { unlink(folder + "/" + name) }
        for path in [folder, outer, here] { rmdir(path) }
    }
}
