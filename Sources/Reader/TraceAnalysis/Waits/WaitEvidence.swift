// Finds the kind of a wait that was looked at, from the system call, the kernel function, and what the descriptor is open on.

struct WaitEvidence: Equatable {
    var kind: WaitKind
    /// nil: none that is known.
    var systemCall: String?
    var object: String?
    /// The word of a futex(2).
    var word: UInt64?
    /// It waited for a page that it touched.
    var isOfPage = false

    init(_ found: KernelRecords.FoundWait, architecture: UInt32) {
        object = found.object.isEmpty ? nil : found.object
        guard let number = found.systemCall else {
            isOfPage = Self.isOfPages(found.kernelFunction)
            kind = isOfPage ? .disk : .other
            return
        }
        systemCall = SystemCall.name(number, architecture: architecture)
        kind = systemCall.map { Self.kind($0, found) } ?? .other
        if systemCall == "futex" || systemCall == "futex_wait" { word = found.arguments[0] }
    }

    private static func kind(_ name: String, _ found: KernelRecords.FoundWait) -> WaitKind {
        if name.hasPrefix("futex") { return .lock }
        let function = WaitingFunction(name), kind = function?.kind ?? .other
        if function?.isOfAnyDescriptor == true, !found.object.isEmpty { return WaitKind(of: found.object, isPipe: found.isOfPipe) }
        return kind == .other && isOfPages(found.kernelFunction) ? .disk : kind
    }

    private static func isOfPages(_ kernelFunction: String) -> Bool {
        ["folio", "page", "io_schedule", "filemap", "writeback", "jbd2"].contains { kernelFunction.contains($0) }
    }
}
