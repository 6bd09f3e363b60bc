// A plan as it lies in its file, for the tool.
import CTraceLayout
import ELF
import TraceFormat

public struct PlanFile: Sendable {
    private let content: [UInt8]
    public let header: plan_file

    /// nil: damaged, or of other rules than this tool's.
    public init?(_ content: [UInt8]) {
        let isRight = content.withUnsafeBytes { raw in
            guard let start = raw.baseAddress, let plan = PlanContent(start, byteCount: raw.count) else { return false }
            return (0..<plan.functionCount).allSatisfy { Reason(rawValue: plan.function($0).pointee.reason) != nil }
        }
        guard isRight else { return nil }
        self.content = content
        header = content.withUnsafeBytes { $0.loadUnaligned(as: plan_file.self) }
    }

    private func withPlan<R>(_ body: (PlanContent) throws -> R) rethrows -> R {
        try content.withUnsafeBytes { try body(PlanContent(checked: $0.baseAddress!)) }
    }

    public func withFunctions<R>(_ body: (UnsafeBufferPointer<plan_function>) throws -> R) rethrows -> R {
        try withPlan { try body(UnsafeBufferPointer(start: $0.function(0), count: $0.functionCount)) }
    }

    public func fixups(of function: plan_function) -> [plan_fixup] {
        withPlan { plan in (0..<Int(function.fixup_count)).map { plan.fixup(of: function, $0) } }
    }

    public func relocated(of function: plan_function) -> ArraySlice<UInt8> {
        let start = Int(header.bytes) + Int(function.relocated)
        return content[start..<start + Int(function.relocated_count)]
    }

    /// Returns where the relocated instructions come from.
    public func instructions(of function: plan_function) -> [plan_instruction] {
        withPlan { plan in (0..<Int(function.instruction_count)).map { plan.instruction(of: function, $0) } }
    }

    /// As linked.
    public func address(of function: plan_function) -> UInt64 { header.base &+ UInt64(function.address) }

    /// As in the symbol table, the one to show first; where there is none its address.
    public func names(of function: plan_function) -> [String] {
        if function.name_count == 0 { return ["0x" + String(address(of: function), radix: 16)] }
        var at = Int(header.names) + Int(function.names)
        let end = Int(header.names) + Int(header.names_count)
        return (0..<function.name_count).compactMap { _ in
            guard at < end else { return nil }
            let rest = content[at..<end]
            let length = (rest.firstIndex(of: 0) ?? end) - at
            defer { at += length + 1 }
            return printable(rest.prefix(length))
        }
    }
}
