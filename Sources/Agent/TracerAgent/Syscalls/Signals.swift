// Signals of the calling thread, blocked and let in again.
import CSupport

/// All signals (but SIGBUS, see MappingFaults) stay blocked while `body` runs: a handler must not find the agent half-way.
func withSignalsBlocked(_ body: () -> Void) {
    var all = tracer_blocked().pointee, old: UInt64 = 0
    withUnsafeMutablePointer(to: &old) { old in
        withUnsafeMutablePointer(to: &all) {
            _ = SystemCall.call(SystemCall.rt_sigprocmask, Action.block, bits($0), bits(old), 8)
        }
        body()
        _ = SystemCall.call(SystemCall.rt_sigprocmask, Action.setMask, bits(old), 0, 8)
    }
}
