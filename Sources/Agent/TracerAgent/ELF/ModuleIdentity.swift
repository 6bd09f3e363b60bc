// Identity of the module that a plan belongs to (plan_layout.h).
import CSupport
import CTraceLayout

/// A build-id; where the linker made none, a file as it lies in the file system.
struct ModuleIdentity {
    let identity: FileIdentity
    private let status: FileStatus? // only for a file without build-id

    init?(_ image: Image, path: CText) {
        if let known = FileIdentity(buildIDOf: image) {
            (identity, status) = (known, nil)
            return
        }
        guard let found = FileStatus(following: path) else { return nil }
        (identity, status) = (FileIdentity(words: (plan_mix(found.device, found.inode), 0, 0)), found)
    }

    func isOf(_ plan: plan_file) -> Bool {
        let planned = plan.identity
        if plan.elf_machine != Architecture.elfNumber || !(planned == identity) { return false }
        guard let status else { return true }
        return plan.module_bytes == UInt64(status.byteCount) && plan.changed_seconds == Int64(status.writtenSeconds)
            && plan.changed_nanoseconds == status.writtenNanoseconds
    }

    /// As PlanCache names the plan.
    func appendName(to path: inout TextBuffer) {
        var words = identity.words
        if status != nil { path.append("file-") }
        withUnsafeBytes(of: &words) { for n in 0..<(status != nil ? 8 : min(Int($0[20]), 20)) { path.append(hexadecimal: $0[n]) } }
        path.append(".plan")
    }
}

extension FileStatus {
    /// A hash of the file and of when it was last written to. Never 0.
    var contentHash: UInt64 {
        let written = plan_mix(UInt64(truncatingIfNeeded: writtenSeconds), UInt64(writtenNanoseconds))
        return plan_mix(plan_mix(device, inode), plan_mix(UInt64(truncatingIfNeeded: byteCount), written)) | 1
    }
}
