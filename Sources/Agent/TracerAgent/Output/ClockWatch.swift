// Does the recording clock tick evenly? Not when a virtual machine is migrated to a CPU with another rate, when the counter goes
// on while CLOCK_MONOTONIC stands still, or follows the CPU's frequency. A reader has a sample of both clocks from each chunk,
// and a thread with little to do has the same one for minutes. So both are looked at now and then, where a thread is on the slow path
// anyway, and when the rate is another one, the moments before and after it are written down.
import CSupport
import CTraceLayout

enum ClockWatch {
    /// The rate is that from the one to the other.
    nonisolated(unsafe) private static var begun = trace_clock_sample(ticks: 0, monotonic_ns: 0)
    nonisolated(unsafe) private static var latest = trace_clock_sample(ticks: 0, monotonic_ns: 0)
    nonisolated(unsafe) private static var lock = Lock()

    /// Before an event of this moment is written by a thread whose base is `base`. A thread that is busy sets
    /// another base or fills its chunk soon; one that was silent may have slept, and its machine too.
    @inline(__always) static func poll(_ ticks: UInt64, since base: UInt64) {
        if Int64(bitPattern: ticks &- latest.ticks) >= Architecture.clockPause
            || Int64(bitPattern: ticks &- base) >= silence
        {
            compare(ticks)
        }
    }

    private static let silence: Int64 = 1 &<< 24 // ticks

    /// The sample with which the file begins, and its width.
    static func begin(_ sample: trace_clock_sample, _ width: UInt64) {
        if width <= mostWidth { begun = sample }
    }
    private static let mostWidth: UInt64 = 1 &<< 15

    /// In a forked child: another thread of the parent may have been looking.
    static func becomeChild() {
        lock = Lock()
        (begun, latest) = (trace_clock_sample(), trace_clock_sample())
    }

    @inline(never) private static func compare(_ ticks: UInt64) {
        if Clock.source == UInt32(TRACE_CLOCK_MONOTONIC) || !TraceOutput.isWritable || !lock.tryLock() { return }
        defer { lock.unlock() }
        guard let now = undisturbed() else { return }
        if begun.ticks == 0 { begun = now }
        if latest.ticks == 0 {
            latest = now
            return
        }
        // A reading that was disturbed looks the same, and is not so twice.
        guard isElsewhere(now) else {
            latest = now
            return
        }
        guard var again = undisturbed() else { return }
        if isElsewhere(again) {
            // The event itself comes after the change.
            let (ticksBefore, timeBefore) = shortened(latest.ticks &- begun.ticks, latest.monotonic_ns &- begun.monotonic_ns)
            let since = again.ticks &- ticks
            if since < 1 &<< 32 && ticks > latest.ticks {
                again = trace_clock_sample(ticks: ticks, monotonic_ns: again.monotonic_ns &- since &* timeBefore / ticksBefore)
            }
            note(latest)
            note(again)
            begun = again
        }
        latest = again
    }

    /// A thread that loses its CPU while it reads both clocks, or is stepped through, reads them at two moments. A sample counts
    /// that is good to an eighth of what is looked for.
    private static func undisturbed() -> trace_clock_sample? {
        let (sample, width) = Clock.measuredSample()
        return begun.ticks != 0 && width > (sample.ticks &- latest.ticks) &>> 13 || width > mostWidth ? nil : sample
    }
    private static func note(_ sample: trace_clock_sample) {
        MetadataWriter.append(Int(TRACE_RECORD_CLOCK), 0, trace_clock_record(record: trace_record(), sample: sample), isPassing: true)
    }

    /// Off the line by more than a thousandth, which no correction by NTP is.
    private static func isElsewhere(_ sample: trace_clock_sample) -> Bool {
        let (ticks, time) = shortened(sample.ticks &- latest.ticks, sample.monotonic_ns &- latest.monotonic_ns)
        let (ticksBefore, timeBefore) = shortened(latest.ticks &- begun.ticks, latest.monotonic_ns &- begun.monotonic_ns)
        if ticksBefore == 0 || timeBefore == 0 { return false } // nothing to compare with yet
        let expected = ticks &* timeBefore, found = time &* ticksBefore
        return (found > expected ? found &- expected : expected &- found) > expected &>> 10
    }
    /// Both by the same number of bits, so that products fit.
    private static func shortened(_ a: UInt64, _ b: UInt64) -> (UInt64, UInt64) {
        let bits = UInt64(max(32 &- (a | b).leadingZeroBitCount, 0))
        return (a &>> bits, b &>> bits)
    }
}
