// Plans that were made before: $XDG_CACHE_HOME/tracer/plans/BUILD-ID.plan, or in $HOME/.cache. All of it is the user's own and
// closed to others, or it is not used. A plan is written under another name and renamed, so that readers find it whole; what does
// not work is left, and the plan is made again next time.
import CTraceLayout
import Glibc
import Presentation
import TraceFormat

public struct PlanCache: Sendable {
    private let home: String

    /// The oldest go when there are more, or more bytes.
    private static let mostFiles = 512, mostBytes: Int64 = 1 << 30

    /// nil: the user wants none, or nobody says where.
    /// - Parameter isWanted: what the command line says, which goes before the environment (`Variables.cache`)
    public init?(isWanted: Bool? = nil) {
        func variable(_ name: String) -> String? { getenv(name).map { String(cString: $0) }.flatMap { $0.hasPrefix("/") ? $0 : nil } }
        let isOn = isWanted ?? getenv("\(Variables.cache.name)").flatMap { Variables.cache.read(String(cString: $0)) } ?? true
        if !isOn { return nil }
        guard let home = variable("XDG_CACHE_HOME") ?? variable("HOME").map({ $0 + "/.cache" }) else { return nil }
        self.home = home
    }

    private var folder: String { home + "/tracer/plans" }

    private func name(_ header: plan_file) -> String {
        let name = withUnsafeBytes(of: header.identity) { bytes in
            let count = Int(bytes[20])
            return (count == 0 ? "file-" : "") + hexadecimal(Array(bytes.prefix(count > 0 && count <= 20 ? count : 8)))
        }
        return name + (header.options & UInt32(PLAN_OPTION_TRAPS) != 0 ? "-traps" : "") + ".plan"
    }

    func read(_ wanted: plan_file) -> PlanFile? {
        guard Self.isPrivate(folder, isFolder: true) else { return nil }
        let descriptor = open(folder + "/" + name(wanted), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, Self.isPrivate(status, isFolder: false), status.st_size > 0,
            status.st_size <= Int(PLAN_MOST_BYTES)
        else { return nil }
        let size = Int(status.st_size)
        let content = [UInt8](unsafeUninitializedCapacity: size) { room, count in
            while count < size {
                let got = Glibc.read(descriptor, room.baseAddress! + count, size - count)
                if got < 0 && errno == EINTR { continue }
                if got <= 0 { break }
                count += got
            }
        }
        guard let file = PlanFile(content) else { return nil }
        let header = file.header
        guard header.identity == wanted.identity, header.module_bytes == wanted.module_bytes,
            header.changed_seconds == wanted.changed_seconds,
            header.changed_nanoseconds == wanted.changed_nanoseconds, header.machine == wanted.machine,
            header.debug_file == wanted.debug_file, header.options == wanted.options
        else { return nil }
        return file
    }

    func write(_ content: [UInt8], _ header: plan_file) {
        for path in [home, home + "/tracer", folder] {
            mkdir(path, 0o700)
            guard Self.isPrivate(path, isFolder: true) else { return }
        }
        let name = name(header), new = folder + "/." + name + ".\(getpid())"
        let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return }
        let error = writeAll(content, to: descriptor)
        if close(descriptor) != 0 || error != 0 || rename(new, folder + "/" + name) != 0 { unlink(new) }
        removeOldest()
    }

    private func removeOldest() {
        guard let directory = opendir(folder) else { return }
        defer { closedir(directory) }
        var files: [(path: String, bytes: Int64, seconds: Int)] = []
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            var status = stat()
            let path = folder + "/" + name
            guard lstat(path, &status) == 0, status.st_mode & S_IFMT == S_IFREG else { continue }
            files.append((path, Int64(status.st_size), status.st_mtim.tv_sec))
        }
        var bytes = files.reduce(0) { $0 + $1.bytes }, count = files.count
        for file in files.sorted(by: { $0.seconds < $1.seconds }) where count > Self.mostFiles || bytes > Self.mostBytes {
            unlink(file.path)
            bytes -= file.bytes
            count -= 1
        }
    }

    private static func isPrivate(_ path: String, isFolder: Bool) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && isPrivate(status, isFolder: isFolder)
    }

    private static func isPrivate(_ status: stat, isFolder: Bool) -> Bool {
        status.st_mode & S_IFMT == (isFolder ? S_IFDIR : S_IFREG) && status.st_uid == geteuid() && status.st_mode & 0o022 == 0
    }
}
