import CUnwindingTests
import Glibc
import Unwinding

/// What another unwinder makes of the same samples, beside the tool's own.
package final class Comparison {
    private let reference: reference
    private var processes: [pid_t: UnsafeMutableRawPointer] = [:]
    /// Samples for which it finds a stack, and CPU time that it takes.
    package private(set) var compared = 0, nanoseconds = 0
    /// Its stack is the same, ends earlier, or goes on where the tool's ends.
    package private(set) var equal = 0, shorter = 0, longer = 0
    /// The tool's stack and its own, where they are none of these.
    package private(set) var different: [(found: [UInt64], expected: [UInt64])] = []

    init(_ reference: reference) { self.reference = reference }

    package var name: String { String(cString: reference.name) }

    func forget(_ pid: pid_t) { processes.removeValue(forKey: pid).map { reference.close($0) } }

    func compare(_ pid: pid_t, _ found: [UInt64], with sample: inout stack_sample) {
        if processes[pid] == nil { processes[pid] = reference.open(pid) }
        guard let process = processes[pid] else { return }
        var frames = [UInt64](repeating: 0, count: Unwinder.mostFrames)
        let start = processorTime()
        let count = reference.unwind(process, &sample, &frames, Int32(frames.count))
        let time = processorTime() - start
        guard count > 0 else { return }
        let expected = Array(frames[..<Int(count)])
        compared += 1
        nanoseconds += time
        if found == expected {
            equal += 1
        } else if found.starts(with: expected) {
            shorter += 1
        } else if expected.starts(with: found) {
            longer += 1
        } else {
            different.append((found, expected))
        }
    }
}

/// CPU time of this thread, in nanoseconds.
package func processorTime() -> Int {
    var time = timespec()
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
    return time.tv_sec * 1_000_000_000 + time.tv_nsec
}
