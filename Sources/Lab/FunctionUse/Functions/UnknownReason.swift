// Why nobody can say of a function whether it was called.
import EntryPlan

package enum UnknownReason: Hashable, Sendable {
    /// Its entry cannot be patched.
    case refused(Reason)
    /// The trampolines treat it in a way of its own, where it is called through a slot.
    case slotAlone
    /// Neither --functions nor --include named it, or --exclude did.
    case notAskedFor
    case small
    case noPlan
    /// The trace has only calls through slots for its module.
    case otherModule
    /// A plan made today does not match what was patched when the trace was recorded.
    case otherPlan
    /// Calls are missing in the trace.
    case lost
    /// The program began to record by itself.
    case laterStart
    /// The trace is of a program that ran already.
    case wasRunning
    /// For a while it may not have been recorded.
    case leftOut
    case resolver
    /// Only its direct calls are recorded, and there may be others.
    case otherCalls

    package var text: String {
        switch self {
        case .refused(let reason): reason.text
        case .slotAlone: "It is recorded only when it is called through a slot, not at its entry."
        case .notAskedFor: "It was not selected: --functions and --include did not match it, or --exclude did."
        case .small: "It is smaller than --min-size and calls nothing."
        case .noPlan: "There was no plan for its module when the trace was recorded (tracer plan FILE)."
        case .otherModule: "One of the traces has only calls through slots for its module: record all with --functions."
        case .otherPlan: "Its module was recorded with a plan that differs from the one this tool makes."
        case .lost: "Calls are missing from one of the traces: it may have been called there."
        case .laterStart: "One of the traces starts when the program called tracer_start: it may have been called before."
        case .wasRunning: "One of the traces is of a process that was attached to: it may have been called before."
        case .leftOut:
            "While one of the traces was recorded, recording was off, or functions were chosen anew (tracer control): it may have been called then."
        case .resolver: "It is an IFUNC resolver: in a module loaded at start-up, the loader calls it before recording begins."
        case .otherCalls: "Only direct calls of it are recorded, not by pointer: it may have been called by its address."
        }
    }
}
