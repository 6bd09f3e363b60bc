// The time of calls, divided by what their thread did in it.
import Presentation

/// The part of the time of calls that a reading shows.
package enum CallTime: String, CaseIterable, Sendable {
    case wall, running, waiting

    /// A line for tables of it; nil for wall time, which needs none.
    var note: String? {
        switch self {
        case .wall: nil
        case .running: "time on a CPU only (--time running)"
        case .waiting: "time spent waiting only (--time waiting)"
        }
    }
}

/// What a reading finds out of the states of threads.
package enum StateReading: Equatable, Sendable {
    case nothing
    /// How long all threads together were in each.
    case ofThreads
    /// How long each function was in each, too; rows show this time.
    case ofFunctions(CallTime)

    /// nil: functions are not asked for.
    var time: CallTime? { if case .ofFunctions(let time) = self { time } else { nil } }
    /// The time that rows show.
    var shown: CallTime { time ?? .wall }
}

/// Several sums that wrap.
protocol WrappingSums {
    static func &+= (sum: inout Self, other: Self)
}

extension WrappingSums {
    func adding(_ other: Self) -> Self {
        var sum = self
        sum &+= other
        return sum
    }
}

/// A time by state, in ticks or nanoseconds; it may be negative where self time is. What the kernel has not reported is in `running`.
package struct StateTimes: WrappingSums, BitwiseCopyable, Equatable, Sendable {
    package var running: Int64 = 0
    package var waiting: Int64 = 0
    /// The thread could have run, and others had the CPUs.
    package var runnable: Int64 = 0

    package init() {}

    init(whole: Int64, waiting: Int64, runnable: Int64) {
        (self.waiting, self.runnable) = (waiting, runnable)
        running = whole &- waiting &- runnable
    }

    init(whole: UInt64, _ off: OffCPUTicks) {
        self.init(
            whole: Int64(truncatingIfNeeded: whole), waiting: Int64(truncatingIfNeeded: off.waiting),
            runnable: Int64(truncatingIfNeeded: off.runnable))
    }

    /// "running 1.234 ms, waiting 5.678 ms, runnable 12 us"
    var text: String {
        "running \(readable(signed: running)), waiting \(readable(signed: waiting)), runnable \(readable(signed: runnable))"
    }

    package var whole: Int64 { running &+ waiting &+ runnable }

    package subscript(time: CallTime) -> Int64 {
        switch time {
        case .wall: whole
        case .running: running
        case .waiting: waiting
        }
    }

    static func &+= (sum: inout StateTimes, other: StateTimes) {
        sum.running &+= other.running
        sum.waiting &+= other.waiting
        sum.runnable &+= other.runnable
    }

    /// Their sum is the rounded whole, or `whole`: what rounding leaves is in `running`.
    func inNanoseconds(_ scale: TimeScale, whole known: Int64? = nil) -> StateTimes {
        StateTimes(
            whole: known ?? scale.signedNanoseconds(whole), waiting: scale.signedNanoseconds(waiting),
            runnable: scale.signedNanoseconds(runnable))
    }
}

/// Self time and total of a function, or of a path, by state.
package struct SplitTimes: WrappingSums, BitwiseCopyable, Equatable, Sendable {
    package var selfTime = StateTimes()
    package var total = StateTimes()

    package init() {}
    init(selfTime: StateTimes, total: StateTimes) { (self.selfTime, self.total) = (selfTime, total) }

    static func &+= (sum: inout SplitTimes, other: SplitTimes) {
        sum.selfTime &+= other.selfTime
        sum.total &+= other.total
    }

    func inNanoseconds(_ scale: TimeScale) -> SplitTimes {
        SplitTimes(selfTime: selfTime.inNanoseconds(scale), total: total.inNanoseconds(scale))
    }

    /// Members of any record that has them, where the kernel's account is there and asked for.
    static func members<Row: Record>(_ times: @escaping @Sendable (Row) -> SplitTimes?) -> [Member<Row>] {
        Row.declare {
            Member.optional("self_running_ns", splitMeaning) { times($0)?.selfTime.running }
            Member.optional("self_waiting_ns", "what of it its thread waited") { times($0)?.selfTime.waiting }
            Member.optional("self_runnable_ns", "what of it others had the CPUs") { times($0)?.selfTime.runnable }
            Member.optional("total_running_ns", "the same of the time from entry to exit") { times($0)?.total.running }
            Member.optional("total_waiting_ns") { times($0)?.total.waiting }
            Member.optional("total_runnable_ns") { times($0)?.total.runnable }
        }
    }
}

private let splitMeaning =
    "what of the time of its own its thread was on a CPU, or the kernel has not reported; missing where it has reported no context switches"
/// What every output with a choice of times says of it.
let timeMeaning =
    "wall, running or waiting: what self_ns, total_ns and the lengths of calls are; the members that name a state are what they say"
