// Who handles SIGBUS. While the program has none or its own handler for it, ours stands in the kernel, with the program's
// flags and mask (mapping_faults.c). The program must not see that: before a call that asks for or changes SIGBUS's
// disposition goes through, the program's own is put back, and libc does with it what it does; ours returns at the first
// slow path after that call has ended. What is changed by other ways (a system call of the program's own, a pointer to
// sigaction) is left as it is found, and the trace is then not protected. Nor is it where the program ignores SIGBUS:
// exec hands that on to the next program.
import CSupport

enum MappingFaults {
    private enum Standing: UInt8 { case absent, installed, suspended }
    nonisolated(unsafe) private static var standing = Standing.absent
    nonisolated(unsafe) private static var lock = SpinLock()
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
                action = kernel_action(handler: handler, flags: plainFlags, restorer: plainRestorer, mask: 0)
            }
            action.handler = handler
            action.flags = action.flags & ~UInt64(ACTION_RESET) | 4 // SA_SIGINFO
            withUnsafePointer(to: &action) { exchange($0, nil) }
        }
        tracer_blocked().pointee = ~(1 &<< UInt64(BUS_SIGNAL &- 1))
        standing = .installed
    }
    #if arch(x86_64)
    private static let plainFlags: UInt64 = 0x0800_0000 | 0x1000_0000 | 0x0400_0000 // SA_ONSTACK, SA_RESTART, SA_RESTORER
    private static var plainRestorer: UInt64 { tracer_address_signal_return() }
    #else
    private static let plainFlags: UInt64 = 0x0800_0000 | 0x1000_0000 // the kernel brings its own return
    private static let plainRestorer: UInt64 = 0
    #endif

    /// Puts the program's own disposition back. False when somebody has replaced ours behind our back.
    private static func restore() -> Bool {
        tracer_blocked().pointee = .max
        if current().handler != handler { return false }
        exchange(tracer_action(), nil)
        return true
    }

    /// The program is about to call a function of sigaction's kind for SIGBUS.
    static func suspend(_ recorder: ThreadRecorder, until call: Frame?) {
        if standing == .absent { return }
        if SystemCall.call(SystemCall.getpid) != Int(agent.pid) {
            // A child of vfork: its dispositions are its own, everything else is its parent's.
            if current().handler == handler { exchange(tracer_action(), nil) }
            return
        }
        lock.lock()
        defer { lock.unlock() }
        if standing == .installed { standing = restore() ? .suspended : .absent }
        if standing == .absent { return }
        let unit = recorder.unit
        unit.pointee.change = call
        unit.pointee.change_ticks = call?.pointee.enter_ticks ?? 0
        unit.pointee.is_changing = 1
        unit.pointee.state.pointee.low = .max // the next call of this thread looks
    }

    /// On each slow entry: when all these calls have ended, ours returns.
    static func resume(_ recorder: ThreadRecorder) {
        let unit = recorder.unit
        if unit.pointee.is_changing == 0 && standing != .suspended { return }
        lock.lock()
        defer { lock.unlock() }
        if unit.pointee.is_changing != 0 && (unit.pointee.change == nil || !isOpen(unit)) {
            unit.pointee.is_changing = 0
            recorder.restoreLow()
        }
        if standing != .suspended { return }
        var isAny = false
        ThreadRecorder.withUnits { if isOpen($0) { isAny = true } }
        if !isAny { install() }
    }
    /// Whether the thread is still in it: its record is in use since the same time.
    private static func isOpen(_ unit: UnsafeMutablePointer<thread_unit>) -> Bool {
        if unit.pointee.is_changing == 0 { return false }
        guard let frame = unit.pointee.change else { return true }
        return !frame.isFilling && frame.pointee.enter_ticks == unit.pointee.change_ticks
    }

    /// In a forked child, where the other threads are gone.
    static func becomeChild(_ recorder: ThreadRecorder) {
        lock = SpinLock()
        recorder.unit.pointee.is_changing = 0
        if standing == .suspended { install() }
    }

    /// Before the program confines itself: from then on nothing could be put back.
    static func end() {
        lock.lock()
        if standing == .installed { _ = restore() }
        standing = .absent
        lock.unlock()
    }

    /// Ends the recording when a page could not be had.
    @inline(__always) static func look() {
        if tracer_loss().pointee == 0 { return }
        tracer_loss().pointee = 0
        TraceFile.stop(TRACE_STOP_FILE, Failure.cut)
    }
}
