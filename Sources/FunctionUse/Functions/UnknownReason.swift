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
    case resolver

    package var text: String {
        switch self {
        case .refused(let reason): reason.text
        case .slotAlone: "It is recorded where it is called through a slot, and not by its own first bytes."
        case .notAskedFor: "It was left out: --functions and --include did not name it, or --exclude did."
        case .small: "It is smaller than --min-size, and runs no code but its own."
        case .noPlan: "There was no plan of its module when the trace was recorded (tracer plan FILE)."
        case .otherModule: "In one of the traces only calls through slots are recorded of its module: record all with --functions."
        case .otherPlan: "The plan by which its module was recorded is not the one that this tool makes."
        case .lost: "Calls are missing in one of the traces: it may have been called there."
        case .laterStart: "One of the traces begins where the program called tracer_start: it may have been called before."
        case .resolver: "It is an IFUNC resolver: of a module that is there at the start the loader calls it before recording begins."
        }
    }
}
