import Glibc

/// Returns the time of a clock (clock_gettime(2)) in nanoseconds.
package func clockTime(_ clock: clockid_t = CLOCK_MONOTONIC) -> UInt64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return UInt64(time.tv_sec) * 1_000_000_000 + UInt64(time.tv_nsec)
}
