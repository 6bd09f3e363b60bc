// The stack in which a thread waits. Nobody is stopped for it and no system call interrupted: /proc says where a thread that waits has its
// stack pointer and program counter, its stack stays as it is until it runs, and whether it has run can be seen afterwards.
import Glibc
import Unwinding

package struct WaitStack {
    package var tid: pid_t
    /// CLOCK_MONOTONIC, at which the thread waited.
    package var nanoseconds: UInt64
    /// As TRACE_RECORD_WAIT_STACKS has them, innermost first.
    package var frames: [UInt64]
    /// The last is the thread's outermost.
    package var isWhole: Bool

    /// nil: the thread is not waiting, or has run meanwhile, or may not be looked at.
    package init?(pid: pid_t, tid: pid_t, _ unwinder: SampleUnwinder) {
        let folder = "/proc/\(pid)/task/\(tid)/"
        guard let switches = Self.switches(folder), let call = WaitSnapshot.line(folder + "syscall"), let place = Place(call) else {
            return nil
        }
        self.tid = tid
        (frames, isWhole) = unwinder.wait(
            pid, tid, at: place.programCounter, isInSystemCall: place.isInSystemCall, stackPointer: place.stackPointer)
        nanoseconds = clockTime()
        guard WaitSnapshot.line(folder + "syscall") == call, Self.switches(folder) == switches else { return nil }
    }

    /// A line of /proc/PID/task/TID/syscall (fs/proc/base.c, proc_pid_syscall): the number of the system call, its six arguments, the stack
    /// pointer and the program counter; "-1" and these two where a thread waits outside of one; "running".
    package struct Place: Equatable {
        package var stackPointer: UInt64
        package var programCounter: UInt64
        package var isInSystemCall: Bool

        package init?(_ line: String) {
            let fields = line.split(separator: " ")
            guard let number = fields.first.flatMap({ Int32($0) }), fields.count == (number < 0 ? 3 : 9) else { return nil }
            let words = fields.suffix(2).compactMap { $0.hasPrefix("0x") ? UInt64($0.dropFirst(2), radix: 16) : nil }
            guard words.count == 2, words[0] != 0, words[1] != 0 else { return nil }
            (stackPointer, programCounter, isInSystemCall) = (words[0], words[1], number >= 0)
        }
    }

    /// How often the thread was switched out: lines of proc(5)'s status. It counts each time that it ran, whatever it did.
    private static func switches(_ folder: String) -> [Substring]? {
        let lines = ProcessStatus.text(folder + "status")?.split(separator: "\n").filter { $0.contains("ctxt_switches:") } ?? []
        return lines.count == 2 ? lines : nil
    }
}
