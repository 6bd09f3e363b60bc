// Notices that the process is a child: a page that the kernel zeroes in it (madvise(2), MADV_WIPEONFORK), which the
// trampolines look at anyway. So fork, raw clone and everything that libc does by itself are seen alike, at the first
// recorded call or return in the child, and nothing has to be hooked.
import CSupport

enum ForkWatch {
    static func begin() -> Bool {
        let page = UInt64(UInt(bitPattern: tracer_process_page()))
        if SystemCall.call(SystemCall.madvise, Int(page), Memory.pageBytes, Advice.wipeOnFork) != 0 {
            Message.warn { $0.append("this kernel has no MADV_WIPEONFORK (Linux 4.14): the program runs unrecorded") }
            return false
        }
        tracer_process_page().pointee.alive = 1
        return true
    }
}
