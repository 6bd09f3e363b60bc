// Page faults at code: of which file, and whether the page had to come from disk.
import CTraceLayout

package struct TextFault: Sendable {
    /// CLOCK_MONOTONIC.
    package let nanoseconds: UInt64
    /// As the kernel names the file whose code was faulted on.
    package let path: String
    /// Waited for the disk.
    package let isMajor: Bool

    package init(nanoseconds: UInt64, path: String, isMajor: Bool) {
        self.nanoseconds = nanoseconds
        self.path = path
        self.isMajor = isMajor
    }
}

/// Page faults at code of one process.
package struct TextFaults: Sendable {
    package let faults: [TextFault]
    /// Says if the kernel has reported them, and if any were lost.
    package let grant: trace_kernel_record
}
