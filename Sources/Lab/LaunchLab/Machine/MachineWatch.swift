// How fast the machine was during a launch. Before each one the CPU time of a fixed piece of arithmetic is taken: it is longer when the CPU
// is slowed down, shares its core with another one that is at work, or is stolen by a hypervisor. That other programs ran in between is taken
// out of the launch itself; where it cannot be, they are a disturbance, too.
import CLaunch
import Foundation
import Presentation
import Recorder
import Statistics

/// Watches the machine over a series of launches.
package struct MachineWatch: Sendable {
    /// A launch counts as disturbed when the arithmetic took this much longer than usual …
    static let slowdown = 1.25
    /// … or when the machine was taken away for this share of the time more than usual …
    static let stolenShare = 0.05
    /// … or when the program waited for a CPU for this share of the launch, which could not be taken out of it.
    static let hiddenShare = 0.05

    private var calibrations: [Double] = []
    /// Share of time that the hypervisor took, for each launch: from before it until it was judged, all CPUs together.
    private var stolenShares: [Double] = []
    private var before: (time: UInt64, calibration: UInt64, stolen: UInt64?, tasks: Int?) = (0, 0, nil, nil)
    package private(set) var frequencies: ClosedRange<Double>?
    /// Nanoseconds that the hypervisor took during all launches; nil where the kernel does not say.
    package private(set) var allStolen: UInt64?

    package init() {}

    package mutating func launchBegins() {
        before = (clockTime(), launch_calibration_ns(), MachineWatch.stolen(), MachineWatch.tasks())
    }

    /// Why the launch is disturbed; nil when it is not.
    /// - Parameters:
    ///   - hiddenWait: how long the program waited for a CPU where that is not known, and so is in its times, nanoseconds; nil: nobody knows
    ///   - length: of the launch
    package mutating func launchEnded(hiddenWait: UInt64?, length: UInt64) -> String? {
        let crowd = hiddenWait == nil ? MachineWatch.crowd(max(before.tasks ?? 0, MachineWatch.tasks() ?? 0)) : nil
        // Every launch is measured against the others.
        let slowed = self.slowed()
        return slowed ?? MachineWatch.reason(hiddenWait: hiddenWait ?? 0, length: length) ?? crowd
    }

    /// nil: no disturbance.
    package static func reason(hiddenWait: UInt64, length: UInt64) -> String? {
        // A thread that is woken waits some microseconds in any case.
        guard Double(hiddenWait) > Double(length) * hiddenShare + 100_000 else { return nil }
        return "it waited \(readable(Nanoseconds(hiddenWait))) for a CPU, and the kernel does not report when"
    }

    private static func crowd(_ tasks: Int) -> String? {
        let cpus = max(sysconf(Int32(_SC_NPROCESSORS_ONLN)), 1)
        guard tasks > cpus else { return nil }
        return "\(tasks) tasks ran on \(counted(UInt64(cpus), "CPU")), and the kernel does not report who waited"
    }

    private mutating func slowed() -> String? {
        let calibration = max(before.calibration, launch_calibration_ns())
        var stolen: UInt64?
        if let now = MachineWatch.stolen(), let then = before.stolen, now >= then {
            stolen = now - then
            allStolen = (allStolen ?? 0) + (now - then)
        }
        if let frequency = MachineWatch.frequency() {
            frequencies = min(frequencies?.lowerBound ?? frequency, frequency)...max(frequencies?.upperBound ?? frequency, frequency)
        }
        return reason(calibration: calibration, stolen: stolen, elapsed: clockTime() - before.time)
    }

    /// Measured against all launches so far and this one. The fastest quarter is the machine when it is left alone: what is
    /// usual here is not a disturbance.
    /// - Parameter calibration: of the arithmetic, before and after the launch: the longer. All in nanoseconds.
    /// - Parameter stolen: all CPUs together; nil where the kernel does not say.
    package mutating func reason(calibration: UInt64, stolen: UInt64?, elapsed: UInt64) -> String? {
        calibrations.append(Double(calibration))
        let usual = Sample(calibrations).quantile(0.25)
        if calibrations.count > 1, Double(calibration) > usual * MachineWatch.slowdown {
            return "the CPU was \(percent(Double(calibration) / usual - 1)) slower than usual"
        }
        guard let stolen, elapsed > 0 else { return nil }
        stolenShares.append(Double(stolen) / Double(elapsed))
        let share = Sample(stolenShares).quantile(0.25) + MachineWatch.stolenShare
        // The counter goes in steps of 10 ms (proc(5), /proc/stat, USER_HZ): one step says nothing.
        guard Double(stolen) > Double(elapsed) * share + 10_000_000 else { return nil }
        return "the hypervisor took \(readable(Nanoseconds(stolen)))"
    }

    /// Median of the calibrations around all launches, milliseconds: how fast the machine was.
    package var calibrationMs: Double { milliseconds(Sample(calibrations).median) }

    /// How far the calibration's middle half spreads, of its median: the noise of the machine itself.
    package var noise: Double {
        let sample = Sample(calibrations)
        return sample.median > 0 ? sample.spread / sample.median : 0
    }

    /// Factor by which the machine's speed changed (90th to 10th percentile of the calibrations): 1 not at all.
    package var swing: Double {
        let sample = Sample(calibrations), fast = sample.quantile(0.1)
        return fast > 0 ? max(sample.quantile(0.9) / fast, 1) : 1
    }

    /// Its speed changed by more than what disturbs a launch.
    package var isUneven: Bool { swing > MachineWatch.slowdown }

    /// proc(5), /proc/stat: "cpu user nice system idle iowait irq softirq steal …", in USER_HZ.
    private static func stolen() -> UInt64? {
        guard let text = try? String(contentsOfFile: "/proc/stat", encoding: .utf8), let line = text.split(separator: "\n").first
        else { return nil }
        let fields = line.split(separator: " ")
        guard fields.count > 8, let steps = UInt64(fields[8]) else { return nil }
        return steps * 1_000_000_000 / UInt64(sysconf(Int32(_SC_CLK_TCK)))
    }

    /// How many tasks ran or could have run, this one included (proc(5), /proc/loadavg); nil: not known.
    private static func tasks() -> Int? {
        guard let text = try? String(contentsOfFile: "/proc/loadavg", encoding: .utf8) else { return nil }
        let fields = text.split(separator: " ")
        return fields.count > 3 ? fields[3].split(separator: "/").first.flatMap { Int($0) } : nil
    }

    /// GHz, of the first CPU; nil where there is no such file (most virtual machines).
    private static func frequency() -> Double? {
        guard let text = try? String(contentsOfFile: "/sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", encoding: .utf8),
            let kilohertz = Double(text.trimmingCharacters(in: .whitespacesAndNewlines))
        else { return nil }
        return kilohertz / 1_000_000
    }
}
