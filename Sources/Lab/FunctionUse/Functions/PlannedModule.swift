// The functions of a module's file, as its plan lists them.
import CTraceLayout
import EntryPlan
import Symbols
import TraceFormat

struct PlannedFunction: Sendable {
    /// As linked.
    var address: UInt64
    var byteCount: UInt64
    /// Mangled, the one to show first; empty: it has no name.
    var symbols: [String]
    /// nil: its entry can be patched.
    var refusal: Reason?
    var isLeaf: Bool
    var isResolver: Bool
    /// Only its direct calls are recorded, and there may be others.
    var hasOtherCalls: Bool
}

struct PlannedModule: Sendable {
    /// Sorted by address.
    let functions: [PlannedFunction]

    init(path: String) throws(PlanProblem) {
        let plan = try ModulePlan(path: path)
        functions = plan.file.withFunctions { all in
            all.map { function in
                PlannedFunction(
                    address: plan.file.address(of: function), byteCount: UInt64(function.byte_count),
                    symbols: function.name_count == 0 ? [] : plan.file.names(of: function),
                    refusal: function.tactic == 0 ? Reason(rawValue: function.reason) : nil,
                    isLeaf: UInt32(function.flags) & UInt32(PLAN_FUNCTION_LEAF) != 0,
                    isResolver: UInt32(function.flags) & UInt32(PLAN_FUNCTION_RESOLVER) != 0,
                    hasOtherCalls: UInt32(function.flags) & UInt32(PLAN_FUNCTION_HELD) != 0)
            }
        }
    }
}
