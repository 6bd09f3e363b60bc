// Argument plans: which arguments `tracer record --arguments` records, in a file of the cache, from which the agent reads it.
import Glibc
import Presentation
import TraceAnalysis
import TraceFormat

struct ArgumentPlans {
    /// Values of --arguments, --prototypes, and --hide.
    let lists: [String], files: [String], hidden: [String]
    /// Value of --cache; nil: as the environment says.
    let mayKeep: Bool?

    /// Older plans go when there are more.
    private static let most = 64

    /// Makes the plan, or finds the same one, and returns its absolute path.
    func path() throws -> String {
        let choice: ArgumentChoice
        let globs = hidden.flatMap { $0.split(separator: ",").map(String.init) }
        do throws(ArgumentChoice.Problem) {
            choice = try ArgumentChoice(lists: lists, files: try texts(), hidden: globs)
        } catch {
            switch error {
            case .malformed(let text): throw CommandFailure(text, status: 2)
            case .prototype(let text): throw CommandFailure("--arguments \(text)", status: 2)
            case .unknown(let item):
                let example = item.contains("*") ? "f" : item
                throw CommandFailure(
                    "--arguments '\(item)': no prototype is known by this name: give one, such as '\(example)(path: string, count: int) -> int'",
                    status: 2)
            }
        }
        guard let content = choice.plan else { throw CommandFailure("--arguments: name at least one function", status: 2) }
        guard let folder = Self.folder(mayKeep) else {
            throw CommandFailure(
                "--arguments needs the cache, where the agent reads what to record: set HOME, and leave out --no-cache", status: 2)
        }
        let hash = content.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 } // FNV-1a
        let path = folder + "/" + String(hash, radix: 16)
        if !write(content, to: path) {
            throw CommandFailure("--arguments: \(path) cannot be written: \(String(cString: strerror(errno)))", status: 126)
        }
        Self.removeOldest(folder, besides: path)
        return path
    }

    /// The user's own prototypes, and those of --prototypes.
    private func texts() throws(ArgumentChoice.Problem) -> [(path: String, text: String)] {
        var texts: [(path: String, text: String)] = []
        if let own = Self.ownPrototypes, let text = Self.content(own) { texts.append((own, text)) }
        for path in files {
            guard let text = Self.content(path) else { throw .malformed("--prototypes \(path): \(String(cString: strerror(errno)))") }
            texts.append((path, text))
        }
        return texts
    }
    /// $XDG_CONFIG_HOME/tracer/prototypes (XDG Base Directory Specification).
    private static var ownPrototypes: String? {
        if let folder = getenv("XDG_CONFIG_HOME"), folder.pointee == 0x2f { return String(cString: folder) + "/tracer/prototypes" }
        return getenv("HOME").map { String(cString: $0) + "/.config/tracer/prototypes" }
    }
    private static func content(_ path: String) -> String? {
        guard let file = fopen(path, "re") else { return nil }
        defer { fclose(file) }
        var bytes: [UInt8] = [], buffer = [UInt8](repeating: 0, count: 65536)
        while true {
            let count = fread(&buffer, 1, buffer.count, file)
            if count == 0 { break }
            bytes += buffer[..<count]
        }
        return ferror(file) == 0 ? String(decoding: bytes, as: UTF8.self) : nil
    }

    /// As the agent finds the cache (CacheHome.swift).
    private static func folder(_ mayKeep: Bool?) -> String? {
        let isOn = mayKeep ?? getenv("\(Variables.cache.name)").flatMap { Variables.cache.read(String(cString: $0)) } ?? true
        guard isOn else { return nil }
        let base: String
        if let folder = getenv("XDG_CACHE_HOME"), folder.pointee == 0x2f {
            base = String(cString: folder)
        } else if let home = getenv("HOME"), home.pointee == 0x2f {
            base = String(cString: home) + "/.cache"
        } else {
            return nil
        }
        var path = base
        mkdir(path, 0o700)
        for part in ["tracer", "arguments"] {
            path += "/" + part
            mkdir(path, 0o700)
        }
        return path
    }

    /// A plan of this name has this content, unless somebody has damaged it.
    private func write(_ content: [UInt8], to path: String) -> Bool {
        let new = path + ".\(getpid())"
        let descriptor = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return false }
        let isWritten = content.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress, $0.count) == $0.count }
        if close(descriptor) == 0, isWritten, rename(new, path) == 0 { return true }
        unlink(new)
        return false
    }

    private static func removeOldest(_ folder: String, besides kept: String) {
        guard let entries = opendir(folder) else { return }
        defer { closedir(entries) }
        var plans: [(path: String, seconds: Int)] = []
        while let entry = readdir(entries) {
            let path =
                folder + "/"
                + withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
            var status = stat()
            guard path != kept, lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
            plans.append((path, status.st_mtim.tv_sec))
        }
        for plan in plans.sorted(by: { $0.seconds > $1.seconds }).dropFirst(most - 1) { unlink(plan.path) }
    }
}
