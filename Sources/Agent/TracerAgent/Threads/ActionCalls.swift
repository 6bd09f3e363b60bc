// The calls with which a thread asks for, or changes, what SIGBUS does: while one of them is open the program's own disposition
// stands (MappingFaults.swift).
import CSupport

extension ThreadRecorder {
    func suspendFaultHandler(until call: Frame?) {
        MappingFaults.suspend {
            context.pointee.change = call
            context.pointee.change_ticks = call?.pointee.enter_ticks ?? 0
            setChanging(true)
            restoreLow()
        }
    }

    /// On each slow entry.
    func resumeFaultHandler() {
        if !ThreadRecorder.isChanging(context) && !MappingFaults.isSuspended { return }
        MappingFaults.resume {
            if ThreadRecorder.isChanging(context) && (context.pointee.change == nil || !ThreadRecorder.isOpen(context)) {
                setChanging(false)
                restoreLow()
            }
            if !MappingFaults.isSuspended { return false }
            var isAny = false
            ThreadRecorder.withContexts { if ThreadRecorder.isOpen($0) { isAny = true } }
            return !isAny
        }
    }
    private static func isChanging(_ context: ThreadContext) -> Bool {
        context.pointee.is_changing & UInt32(CHANGING_ACTION) != 0
    }
    /// Returns true if the thread is still in the call: its record is in use since the same time.
    private static func isOpen(_ context: ThreadContext) -> Bool {
        if !isChanging(context) { return false }
        guard let frame = context.pointee.change else { return true }
        return !frame.isFilling && frame.pointee.enter_ticks == context.pointee.change_ticks
    }
}
