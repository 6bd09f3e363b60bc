// All that the kernel has reported of a run, when no more comes.
import CTraceLayout
import Glibc

package struct KernelAccount {
    /// Events that were asked for and granted, and why not more.
    package struct Grant: Equatable {
        /// TRACE_KERNEL_ bits.
        var asked: Int, granted: Int
        /// errno, 0 none.
        var error: Int32
        /// Nanoseconds of CPU time from one sample to the next, 0: none.
        var period: UInt64 = 0

        package init(asked: Int, granted: Int, error: Int32, period: UInt64 = 0) {
            self.asked = asked
            self.granted = granted
            self.error = error
            self.period = period
        }
    }

    let grant: Grant
    /// kernel.perf_event_paranoid; nil unknown.
    let paranoid: Int32?
    /// Records for which there was no space in the rings.
    let lost: UInt64
    /// Images by process id, the oldest first.
    let images: [pid_t: [ImageHistory]]
    /// Holds their blocks.
    let spool: KernelSpool

    package init(grant: Grant, paranoid: Int32?, lost: UInt64, images: [pid_t: [ImageHistory]], spool: KernelSpool) {
        self.grant = grant
        self.paranoid = paranoid
        self.lost = lost
        self.images = images
        self.spool = spool
    }

    /// Returns the image that the process had at this moment of CLOCK_MONOTONIC; nil: none.
    package func image(of pid: pid_t, at nanoseconds: UInt64) -> ImageHistory? { images[pid]?.last { $0.begun <= nanoseconds } }

    /// The grant as a record of a trace, not yet filled in for an image.
    var record: trace_kernel_record {
        var record = trace_kernel_record()
        record.record.type = UInt16(TRACE_RECORD_KERNEL)
        record.record.byte_count = UInt32(MemoryLayout<trace_kernel_record>.size)
        record.asked = UInt32(grant.asked)
        record.granted = UInt32(grant.granted)
        record.error = UInt32(bitPattern: grant.error)
        record.paranoid = paranoid ?? .min
        record.lost = lost
        record.period_ns = grant.granted & TRACE_KERNEL_SAMPLES != 0 ? grant.period : 0
        return record
    }
}
