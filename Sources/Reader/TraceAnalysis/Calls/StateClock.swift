// When the threads of a trace were off-CPU, as the reading of calls asks for it: how much of the time between two moments that lie close
// to the last ones.
import Presentation
import TraceFormat

/// Parts of a time, in ticks; the rest the thread was running.
struct OffCPUTicks: BitwiseCopyable {
    var waiting: UInt64 = 0
    var runnable: UInt64 = 0

    static func &+= (sum: inout OffCPUTicks, other: OffCPUTicks) {
        sum.waiting &+= other.waiting
        sum.runnable &+= other.runnable
    }
    static func &-= (sum: inout OffCPUTicks, other: OffCPUTicks) {
        sum.waiting &-= other.waiting
        sum.runnable &-= other.runnable
    }
}

/// One thread's, with a cursor.
struct StateClock: Sendable {
    private struct Stretch: BitwiseCopyable {
        var begin: UInt64
        var end: UInt64
        var isWaiting: Bool
        /// Off-CPU time before it.
        var before: OffCPUTicks

        /// Off-CPU time up to a moment that is not before it.
        func passed(at moment: UInt64) -> OffCPUTicks {
            var passed = before
            let part = min(moment, end) &- begin
            if isWaiting { passed.waiting &+= part } else { passed.runnable &+= part }
            return passed
        }
    }

    /// Stretches off-CPU, in order.
    private let stretches: [Stretch]
    /// The cursor: between these moments the thread was in one state.
    private var low: UInt64 = 1
    private var high: UInt64 = 0
    /// Index of the first stretch that begins later.
    private var next = 0
    /// All bits set where it was waiting, or runnable.
    private var waitingMask: UInt64 = 0
    private var runnableMask: UInt64 = 0

    /// A thread of which the kernel has reported nothing.
    init() { stretches = [] }

    init(_ states: ThreadStates) {
        var stretches: [Stretch] = [], before = OffCPUTicks()
        for one in states.stretches where one.state == .waiting || one.state == .runnable {
            let stretch = Stretch(begin: one.begin, end: one.end, isWaiting: one.state == .waiting, before: before)
            before = stretch.passed(at: one.end)
            stretches.append(stretch)
        }
        self.stretches = stretches
    }

    /// Off-CPU time between two moments.
    @inline(__always) mutating func offCPU(from begin: UInt64, to end: UInt64) -> OffCPUTicks {
        if _fastPath(begin >= low && end <= high) {
            let length = end > begin ? end &- begin : 0
            return OffCPUTicks(waiting: length & waitingMask, runnable: length & runnableMask)
        }
        return moved(from: begin, to: end)
    }

    @inline(never) private mutating func moved(from begin: UInt64, to end: UInt64) -> OffCPUTicks {
        guard end > begin else { return OffCPUTicks() }
        seek(end)
        var off = passed(at: end)
        off &-= passed(at: begin)
        return off
    }

    /// Index of the first stretch that begins later than `moment`: mostly it is near the cursor.
    private func following(_ moment: UInt64) -> Int {
        var index = next
        for _ in 0..<8 {
            if index < stretches.count, stretches[index].begin <= moment {
                index += 1
            } else if index > 0, stretches[index - 1].begin > moment {
                index -= 1
            } else {
                return index
            }
        }
        return bisect(stretches.count) { stretches[$0].begin <= moment }
    }

    private func passed(at moment: UInt64) -> OffCPUTicks {
        let next = following(moment)
        return next == 0 ? OffCPUTicks() : stretches[next - 1].passed(at: moment)
    }

    private mutating func seek(_ moment: UInt64) {
        next = following(moment)
        let last = next > 0 ? stretches[next - 1] : nil
        if let last, moment < last.end {
            (low, high) = (last.begin, last.end)
            (waitingMask, runnableMask) = last.isWaiting ? (.max, 0) : (0, .max)
        } else {
            (low, high) = (last?.end ?? 0, next < stretches.count ? stretches[next].begin : .max)
            (waitingMask, runnableMask) = (0, 0)
        }
    }

    /// Off-CPU time between two moments, as far as it lies in the window.
    func offCPU(from begin: UInt64, to end: UInt64, in window: TimeWindow) -> OffCPUTicks {
        var sum = OffCPUTicks()
        guard begin < end else { return sum }
        for part in window.intersection(begin..<end).moments where !part.isEmpty {
            sum &+= passed(at: part.upperBound)
            sum &-= passed(at: part.lowerBound)
        }
        return sum
    }
}

struct StateClocks: Sendable {
    private var states: [UInt32: ThreadStates] = [:]
    /// Empty where functions are not asked for.
    private var clocks: [UInt32: StateClock] = [:]

    /// nil where the kernel has reported no context switches and rows show wall time. Where they show another, all time is running.
    init?(_ trace: TraceFile, _ reading: StateReading) {
        guard reading != .nothing, trace.noSwitches == nil || reading.shown != .wall else { return nil }
        for known in ThreadStates.all(trace.ofAllThreads, KernelRecords(trace)) {
            guard let thread = known.thread else { continue }
            states[thread] = known
            if reading.time != nil { clocks[thread] = StateClock(known) }
        }
    }

    subscript(thread: UInt32) -> StateClock { clocks[thread] ?? StateClock() }

    /// Time that all threads ran the program's code, by state, and what of it the kernel has not reported.
    func whole(_ trace: TraceFile, _ spans: ThreadSpans) -> (times: StateTimes, unknown: UInt64) {
        var times = StateTimes(), unknown: UInt64 = 0
        let window = trace.window
        for thread in trace.chunksOfThread.compactMap({ $0.first?.thread }) {
            guard let span = spans[thread] else { continue }
            var off = OffCPUTicks(), known: UInt64 = 0
            for one in states[thread]?.stretches ?? [] where one.state != .unknown {
                let length = window.length(from: max(one.begin, span.begin), to: min(one.end, span.end))
                known &+= length
                if one.state == .waiting { off.waiting &+= length }
                if one.state == .runnable { off.runnable &+= length }
            }
            times &+= StateTimes(whole: span.length, off)
            unknown &+= span.length - min(known, span.length)
        }
        return (times, unknown)
    }
}
