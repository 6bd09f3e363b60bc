// Plans that were made before: BUILD-ID.plan. One is written under another name and renamed, so that readers find it whole; what does
// not work is left, and the plan is made again next time.
import CTraceLayout
import ELF
import Glibc
import Symbols
import TraceFormat

public struct PlanCache: Sendable {
    private let folder: PlanFolder

    /// The oldest go when there are more, or more bytes.
    private static let mostFiles = 512, mostBytes: Int64 = 1 << 30

    /// nil: the user wants none, or nobody says where.
    /// - Parameter isWanted: what the command line says, which goes before the environment (`Variables.cache`)
    public init?(isWanted: Bool? = nil) {
        let isOn = isWanted ?? getenv("\(Variables.cache.name)").flatMap { Variables.cache.read(String(cString: $0)) } ?? true
        guard isOn, let folder = PlanFolder() else { return nil }
        self.folder = folder
    }

    private func name(_ header: plan_file) -> String {
        let name = withUnsafeBytes(of: header.identity) { bytes in
            let count = Int(bytes[20])
            return (count == 0 ? "file-" : "") + hexadecimal(Array(bytes.prefix(count > 0 && count <= 20 ? count : 8)))
        }
        return name + (header.options & UInt32(PLAN_OPTION_TRAPS) != 0 ? "-traps" : "") + ".plan"
    }

    func read(_ wanted: plan_file) -> PlanFile? {
        guard let content = folder.read(name(wanted)), let file = PlanFile(content) else { return nil }
        let header = file.header
        guard header.identity == wanted.identity, header.module_bytes == wanted.module_bytes,
            header.changed_seconds == wanted.changed_seconds,
            header.changed_nanoseconds == wanted.changed_nanoseconds, header.elf_machine == wanted.elf_machine,
            header.debug_file == wanted.debug_file, header.options == wanted.options
        else { return nil }
        return file
    }

    func write(_ content: [UInt8], _ header: plan_file) {
        guard folder.make() else { return }
        let name = name(header), new = folder.path + "/." + name + ".\(getpid())"
        let descriptor = open(new, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return }
        guard let file = fdopen(descriptor, "w") else { return }
        let isWritten = fwrite(content, 1, content.count, file) == content.count
        if fclose(file) != 0 || !isWritten || rename(new, folder.path + "/" + name) != 0 { unlink(new) }
        removeOldest()
    }

    private func removeOldest() {
        var files: [(path: String, bytes: Int64, seconds: Int)] = []
        for name in entryNames(in: folder.path) ?? [] {
            var status = stat()
            let path = folder.path + "/" + name
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
}
