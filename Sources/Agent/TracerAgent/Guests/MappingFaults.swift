// The agent's handler of SIGBUS. It is installed unless the program ignores SIGBUS, with the flags and the mask of the program's handler
// if there is one (mapping_faults.c). The program must not see it: before a call that asks for or changes SIGBUS's disposition, the
// program's own is put back for libc to work with; the agent's returns at the first slow path after that call has ended. A disposition
// that is changed otherwise (by the program's own system call, by a pointer to sigaction) is left as it is, and the trace is then not
// protected. It is not protected either where the program ignores SIGBUS, since exec passes that on to the next program.
import CSupport

enum MappingFaults {
    private enum Standing: UInt8 { case absent, installed, suspended }
    nonisolated(unsafe) private static var standing = Standing.absent
    nonisolated(unsafe) private static var lock = Lock()
    private static var handler: UInt64 { tracer_address_mapping_fault() }

    static func begin() { install() }

    private static func exchange(_ new: UnsafePointer<kernel_action>?, _ old: UnsafeMutablePointer<kernel_action>?) {
        _ = SystemCall.call(SystemCall.rt_sigaction, Int(BUS_SIGNAL), bits(new), bits(old), 8)
    }
    private static func current() -> kernel_action {
        var found = kernel_action()
        withUnsafeMutablePointer(to: &found) { exchange(nil, $0) }
        return found
    }

    /// Takes over what the kernel has now.
    private static func install() {
        var action = current()
        standing = .absent
        if action.handler == UInt64(ACTION_IGNORE) { return }
        if action.handler != handler {
            tracer_action().pointee = action
            if action.handler == UInt64(ACTION_DEFAULT) {
                action = kernel_action(handler: handler, flags: Action.plain, restorer: tracer_address_signal_return(), mask: 0)
            }
            action.handler = handler
            action.flags = action.flags & ~UInt64(ACTION_RESET) | Action.withInfo
            withUnsafePointer(to: &action) { exchange($0, nil) }
        }
        tracer_blocked().pointee = ~(1 &<< UInt64(BUS_SIGNAL &- 1))
        standing = .installed
    }

    /// Puts the program's own disposition back. False if the agent's has been replaced unnoticed.
    private static func restore() -> Bool {
        tracer_blocked().pointee = .max
        if current().handler != handler { return false }
        exchange(tracer_action(), nil)
        return true
    }

    /// The program is about to call a function of sigaction's kind for SIGBUS. `note` keeps whose call it is.
    static func suspend(_ note: () -> Void) {
        if standing == .absent { return }
        lock.lock()
        defer { lock.unlock() }
        if standing == .installed { standing = restore() ? .suspended : .absent }
        if standing != .absent { note() }
    }
    static var isSuspended: Bool { standing == .suspended }

    /// A child in its parent's memory: its dispositions are its own, everything else is its parent's.
    static func restoreInChild() {
        if standing == .installed && current().handler == handler { exchange(tracer_action(), nil) }
    }

    /// When all these calls have ended, ours returns.
    static func resume(when areOver: () -> Bool) {
        lock.lock()
        defer { lock.unlock() }
        if areOver() { install() }
    }

    /// In a forked child, where the other threads are gone.
    static func becomeChild() {
        lock = Lock()
        if standing == .suspended { install() }
    }

    /// Before the program confines itself: from then on nothing could be put back.
    static func end() {
        lock.lock()
        if standing == .installed { _ = restore() }
        standing = .absent
        lock.unlock()
    }

    /// A page could not be had since this was asked last: the recording ends.
    @inline(__always) static func takeLoss() -> Bool {
        if tracer_loss().pointee == 0 { return false }
        tracer_loss().pointee = 0
        return true
    }
}
