// The plan of a module's file, from the cache or made now.
import CTraceLayout
import ELF
import Glibc

public struct ModulePlan: Sendable {
    public let path: String
    public let file: PlanFile

    /// - Parameter cache: nil: nothing is read from it, nor written
    public init(path: String, options: PlanOptions = PlanOptions(), cache: PlanCache? = PlanCache()) throws(PlanProblem) {
        self.path = path
        let module = try LinkedModule(path: path)
        let header = Self.header(module.file, options)
        if let kept = cache?.read(header) {
            file = kept
            return
        }
        try module.openDecoder()
        var planner = Planner(module.file, module.code, options)
        guard let content = planner.plan().file(header), let made = PlanFile(content) else {
            throw PlanProblem(message: "\(path) has too many functions for a plan")
        }
        file = made
        cache?.write(content, header)
    }

    /// Returns the header fields that identify the module and the options of a plan.
    private static func header(_ module: CodeFile, _ options: PlanOptions) -> plan_file {
        var header = plan_file()
        header.identity = identity(module)
        header.module_bytes = UInt64(module.bytes.count)
        header.changed_seconds = Int64(module.status.st_mtim.tv_sec)
        header.changed_nanoseconds = UInt32(module.status.st_mtim.tv_nsec)
        header.elf_machine = UInt32(module.elfMachine)
        if let status = module.debugStatus {
            header.debug_file =
                plan_mix(
                    plan_mix(UInt64(bitPattern: Int64(status.st_size)), UInt64(bitPattern: Int64(status.st_mtim.tv_sec))),
                    UInt64(status.st_mtim.tv_nsec)) | 1
        }
        header.options = options.usesTraps ? UInt32(PLAN_OPTION_TRAPS) : 0
        return header
    }

    private static func identity(_ module: CodeFile) -> (UInt64, UInt64, UInt64) {
        let id = module.buildID.prefix(20)
        guard !id.isEmpty else { return (plan_mix(UInt64(module.status.st_dev), UInt64(module.status.st_ino)), 0, 0) }
        func word(_ index: Int) -> UInt64 {
            (0..<8).reduce(0) { $0 | (index * 8 + $1 < id.count ? UInt64(id[index * 8 + $1]) << UInt64($1 * 8) : 0) }
        }
        return (word(0), word(1), word(2) | UInt64(id.count) << 32)
    }
}
