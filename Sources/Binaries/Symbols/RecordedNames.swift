// Names of functions of which a trace has the addresses alone: first from the plan by which they were patched, which stays when the
// program is built again, then from the module's file, if it is here and is the one that was traced. The plan may be that of a stripped
// copy, which has the same build-id.
import CTraceLayout
import ELF
import Synchronization
import TraceFormat

package final class RecordedNames: Sendable {
    /// All traces of a command ask the same one: a run has a file for each process, of the same modules.
    package static let shared = RecordedNames()

    private enum Source {
        case plan(PlannedNames), file, none
    }
    private struct State {
        var symbolizer = Symbolizer()
        var sources: [ModuleIdentity: Source] = [:]
        var missing: [ModuleIdentity: Int] = [:]
    }
    private let state = Mutex(State())
    private let folder = PlanFolder()

    /// Mangled, of the functions that begin at these addresses (as linked); nil where the symbol tables have none.
    /// Nil altogether: neither a plan nor the file is here.
    package func names(of addresses: [UInt64], in module: ModuleIdentity) -> [String?]? {
        state.withLock { state in
            let source = state.sources[module] ?? find(module, state.symbolizer)
            state.sources[module] = source
            let symbolizer = state.symbolizer
            func nameInFile(at address: UInt64) -> String? {
                symbolizer.function(at: address, in: module).flatMap { $0.address == address ? $0.name : nil }
            }
            switch source {
            case .plan(let plan): return addresses.map { plan.name(at: $0) ?? nameInFile(at: $0) }
            case .file: return addresses.map { nameInFile(at: $0) }
            case .none:
                state.missing[module] = max(state.missing[module] ?? 0, addresses.count)
                return nil
            }
        }
    }

    /// Modules that are neither here nor have a plan, and how many of their functions, of one trace, have no names for that.
    package var missing: [(module: ModuleIdentity, functions: Int)] {
        state.withLock { $0.missing.map { ($0.key, $0.value) } }.sorted { $0.module.path < $1.module.path }
    }

    private func find(_ module: ModuleIdentity, _ symbolizer: Symbolizer) -> Source {
        if let plan = folder.flatMap({ PlannedNames(of: module, in: $0) }) { return .plan(plan) }
        return symbolizer.hasFile(of: module) ? .file : .none
    }
}

/// Names from the plan of one module.
private struct PlannedNames: Sendable {
    private let content: [UInt8]

    init?(of module: ModuleIdentity, in folder: PlanFolder) {
        guard let name = Self.fileName(of: module), let content = folder.read(name) else { return nil }
        let isRight = content.withUnsafeBytes { raw in
            guard let plan = PlanContent(raw.baseAddress!, byteCount: raw.count) else { return false }
            return Self.isOf(module, plan.header.pointee)
        }
        guard isRight else { return nil }
        self.content = content
    }

    /// As PlanCache calls it. Without a build-id the plan is named by the file's inode; one that was made of another build in the same
    /// inode has taken its place.
    private static func fileName(of module: ModuleIdentity) -> String? {
        if !module.buildID.isEmpty { return hexadecimal(module.buildID) + ".plan" }
        return module.file.map { file in "file-" + hexadecimal(withUnsafeBytes(of: file.inodeHash.littleEndian) { Array($0) }) + ".plan" }
    }

    private static func isOf(_ module: ModuleIdentity, _ plan: plan_file) -> Bool {
        let isSame = withUnsafeBytes(of: plan.identity) {
            Int($0[20]) == module.buildID.count && $0.prefix(module.buildID.count).elementsEqual(module.buildID)
        }
        guard isSame, module.buildID.isEmpty else { return isSame }
        let stamp = FileStamp(byteCount: plan.module_bytes, seconds: plan.changed_seconds, nanoseconds: plan.changed_nanoseconds)
        return module.file?.stamp == stamp && module.file?.inodeHash == plan.identity.0
    }

    /// The one to show first.
    func name(at address: UInt64) -> String? {
        content.withUnsafeBytes { raw in
            let plan = PlanContent(checked: raw.baseAddress!), offset = address &- plan.header.pointee.base
            let n = bisect(plan.functionCount) { UInt64(plan.function($0).pointee.address) < offset }
            guard n < plan.functionCount else { return nil }
            let function = plan.function(n).pointee
            guard let names = plan.names, UInt64(function.address) == offset, function.name_count > 0,
                function.names < plan.header.pointee.names_count
            else { return nil }
            return printable(String(cString: names + Int(function.names)))
        }
    }
}
