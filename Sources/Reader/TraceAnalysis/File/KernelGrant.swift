// Kernel events that were requested for a process, and those that the kernel granted.
import CTraceLayout
import Glibc
import Presentation

package struct KernelGrant: Sendable {
    package struct Parts: OptionSet, Sendable {
        package var rawValue: UInt32
        package init(rawValue: UInt32) { self.rawValue = rawValue }
        package static let switches = Parts(rawValue: UInt32(TRACE_KERNEL_SWITCHES))
        package static let majorFaults = Parts(rawValue: UInt32(TRACE_KERNEL_MAJOR_FAULTS))
        package static let minorFaults = Parts(rawValue: UInt32(TRACE_KERNEL_MINOR_FAULTS))
        package static let samples = Parts(rawValue: UInt32(TRACE_KERNEL_SAMPLES))
        /// Also page faults that the kernel makes itself.
        package static let inside = Parts(rawValue: UInt32(TRACE_KERNEL_INSIDE))
        /// Also samples in the kernel, with its stack.
        package static let kernelStacks = Parts(rawValue: UInt32(TRACE_KERNEL_STACKS))

        private static let names: [(Parts, String)] = [
            (.switches, "switches"), (.majorFaults, "major faults"), (.minorFaults, "minor faults"), (.samples, "samples"),
            (.inside, "page faults in the kernel"), (.kernelStacks, "kernel stacks"),
        ]
        package var texts: [String] { Self.names.filter { contains($0.0) }.map { $0.1 } }
    }

    package let asked: Parts
    package let granted: Parts
    /// errno with which the kernel refused the rest; 0: it refused nothing.
    package let error: Int32
    /// kernel.perf_event_paranoid; nil unknown.
    package let paranoid: Int32?
    /// CLOCK_MONOTONIC times between which events were recorded.
    package let from: Nanoseconds
    package let until: Nanoseconds
    /// Records for which there was no space, of all processes of the run.
    package let lost: UInt64
    /// CPU time from one sample to the next; nil: no samples.
    package let period: Nanoseconds?

    package init(_ record: trace_kernel_record) {
        asked = Parts(rawValue: record.asked)
        granted = Parts(rawValue: record.granted & record.asked)
        error = Int32(truncatingIfNeeded: record.error)
        paranoid = record.paranoid == .min ? nil : record.paranoid
        from = Nanoseconds(record.from_ns)
        until = Nanoseconds(max(record.until_ns, record.from_ns))
        lost = record.lost
        period = record.period_ns == 0 ? nil : Nanoseconds(record.period_ns)
    }

    /// Why something was refused, and what allows it; nil when all was granted.
    package var refusal: String? {
        let missing = asked.subtracting(granted)
        guard !missing.isEmpty else { return nil }
        let reason = error == 0 ? "" : ": \(String(cString: strerror(error)))"
        if let paranoid, paranoid > 2 || missing.contains(.inside) && paranoid > 1 {
            let needed = missing.contains(.inside) ? 1 : 2
            return "not granted\(reason), kernel.perf_event_paranoid is \(paranoid): sysctl kernel.perf_event_paranoid=\(needed)"
        }
        // At this value the kernel itself allows it (perf_event_open(2)): a filter refused, as containers have it.
        let isFiltered = error == EPERM && missing.contains(.switches)
        return "not granted" + reason + (isFiltered ? ", perhaps by a container's seccomp filter: docker run --cap-add PERFMON" : "")
    }

    /// "samples not granted: …"; nil when all was granted.
    package var refusedParts: String? {
        refusal.map { "\(asked.subtracting(granted).texts.joined(separator: ", ")) \($0)" }
    }

    /// "switches, major faults; samples not granted: Permission denied, …"
    package var text: String {
        var parts = granted.isEmpty ? [] : [granted.texts.joined(separator: ", ")]
        if let refusedParts { parts.append(refusedParts) }
        if lost > 0 { parts.append("\(counted(lost, "record")) lost") }
        return parts.isEmpty ? "nothing requested" : parts.joined(separator: "; ")
    }
}

extension TraceFile {
    /// Why the trace does not have when its threads ran, in one line; nil when it does.
    package var noSwitches: String? {
        guard let kernel = metadata.kernel else {
            return header.session == 0
                ? "it was recorded with LD_PRELOAD only, without kernel events: use tracer record"
                : "it was recorded without kernel events"
        }
        if kernel.granted.contains(.switches) { return nil }
        return kernel.asked.contains(.switches)
            ? "switches \(kernel.refusal ?? "not granted")" : "it was recorded without context switches: use tracer record --states"
    }
}
