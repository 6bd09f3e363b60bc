// All that the kernel has told of a run, when no more comes.
import CTraceLayout
import Glibc

struct KernelAccount {
    /// What the kernel has granted, and why not more.
    struct Grant: Equatable {
        /// TRACE_KERNEL_ bits.
        var asked: Int, granted: Int
        /// errno, 0 none.
        var error: Int32
        /// Nanoseconds of a processor from one sample to the next, 0: none.
        var period: UInt64 = 0
    }

    let grant: Grant
    /// kernel.perf_event_paranoid; nil unknown.
    let paranoid: Int32?
    /// Records that found no room in the rings.
    let lost: UInt64
    /// By process id, the oldest first.
    let images: [pid_t: [ImageHistory]]
    /// Where their blocks are.
    let spool: KernelSpool

    /// That of the process which was there at the moment, of CLOCK_MONOTONIC.
    func image(of pid: pid_t, at nanoseconds: UInt64) -> ImageHistory? { images[pid]?.last { $0.begun <= nanoseconds } }

    /// What was granted, as a trace has it; of no image yet.
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
