// What `tracer launch --json` prints, and the rows of its tables.
import Presentation
import Statistics

package struct LaunchOutput {
    private let result: LaunchResult
    private let command: LaunchCommand
    private let watch: MachineWatch
    private let comparison: LaunchComparison?
    private let summary: LaunchSummary

    package init(_ result: LaunchResult, _ command: LaunchCommand, _ watch: MachineWatch, comparison: LaunchComparison? = nil) {
        self.result = result
        self.command = command
        self.watch = watch
        self.comparison = comparison
        summary = LaunchSummary(result.corrected)
    }
}

extension LaunchOutput: Record {
    package static let members = declare {
        Member("schema", "tracer.launch/1") { _ in "tracer.launch/1" }
        Member("command", \.command.text)
        Member("ready", \.result.readyReason)
        Member("runs", \.result.profiles.count)
        Member("disturbed", "launches that were repeated because the machine was disturbed", \.result.disturbed.count)
        Member("disturbed_kept", \.result.disturbedKept)
        Member("machine_noise", \.watch.noise)
        Member("stolen_ns", "by the hypervisor", \.watch.allStolen)
        Member("involuntary_switches") { Sample($0.result.involuntarySwitches.map(Double.init)).median }
        Member("cpu_ns", "CPU time of a launch, all threads; of those without the agent, if there are some; null: not known") {
            $0.result.cpuTime.map(nanoseconds)
        }
        Member("cpu_wait_ns", "how long a launch waited for a CPU, which is in no other time here; null: not known") {
            $0.result.cpuWait.map(nanoseconds)
        }
        Member("contradictions", "figures here that cannot both be true", \.result.contradictions)
        Member("stages", "the first is the whole launch", \.summary.stages)
        Member("untraced") { Untraced(result: $0.result) }
        Member("libraries", \.summary.libraries)
        Member("constructors", \.summary.constructors)
        Member("items", "start-up items, in the order in which they begin", \.summary.items)
        Member("page_faults") { PageFaults(summary: $0.summary) }
        Member.optional("files", "paths of the files that most launches use until they are ready, if that is known") { $0.summary.files }
        Member.optional("read_from_disk", "with --cold") { $0.result.pageIns.isEmpty ? nil : $0.result.pageIns }
        Member.optional("page_in_map") { $0.result.pageInMap?.pages }
        Member.optional("comparison", "with --vs") { $0.comparison }
    }
}

/// Launches without the agent.
private struct Untraced: Record {
    var result: LaunchResult

    static let members = declare {
        Member("runs", \.result.untraced.count)
        Member("p50_ns") { $0.result.untraced.isEmpty ? nil : nanoseconds($0.result.untraced.median) }
        Member("overhead_ns") { $0.result.overhead.map(nanoseconds) }
    }
}

private struct PageFaults: Record {
    var summary: LaunchSummary

    static let members = declare {
        Member("minor") { Int64($0.summary.minorFaults) }
        Member("major") { Int64($0.summary.majorFaults) }
    }
}

private func nanoseconds(_ value: Double) -> Int64 { Int64(value.rounded()) }

// MARK: - One program

extension LaunchSummary.Stage: Record {
    package static let members = declare {
        Member("name", \.name).column("", .text) { stageText($0.name) }
        Member("p50_ns") { nanoseconds($0.sample.median) }.column("p50") { timeText($0.sample.median) }
        Member("p90_ns") { nanoseconds($0.sample.quantile(0.9)) }.column("p90") { timeText($0.sample.quantile(0.9)) }
        Member("p95_ns") { nanoseconds($0.sample.quantile(0.95)) }.column("p95") { timeText($0.sample.quantile(0.95)) }
        Member("mean_ns") { nanoseconds($0.sample.mean) }.column("mean") { timeText($0.sample.mean) }
        Member("spread_ns") { nanoseconds($0.sample.spread) }.column("spread") { timeText($0.sample.spread) }
    }
}

extension LaunchProfile.Library: Record {
    package static let members = declare {
        Member("name", \.name)
        Member("relocations", \.relocations)
    }
}

extension LaunchSummary.Constructor: Record {
    package static let members = declare {
        Member("module", \.key.module).column("library", .text) { $0.key.module }
        Member("name", \.key.name).column("constructor", .text) { $0.key.name }
        Member("p50_ns") { nanoseconds($0.median) }.column("p50") { timeText($0.median) }
    }
}

extension LaunchSummary.Item: Record {
    package static let members = declare {
        Member("stage", "such as \"stage 1\"", \.key.module).column("stage", .text) { $0.key.module }
        Member("name", \.key.name).column("item", .text) { $0.key.name }
        Member("p50_ns") { nanoseconds($0.sample.median) }.column("p50") { timeText($0.sample.median) }
        Member("low_ns", "lower end of the median's 95% interval") { nanoseconds($0.interval.lowerBound) }
        Member("high_ns") { nanoseconds($0.interval.upperBound) }
        Member.shown("interval", "95% interval", .text) { item in
            let interval = item.interval
            return "\(timeText(interval.lowerBound)) … \(timeText(interval.upperBound))"
        }
        Member("p90_ns") { nanoseconds($0.sample.quantile(0.9)) }.column("p90") { timeText($0.sample.quantile(0.9)) }
        Member("spread_ns") { nanoseconds($0.sample.spread) }
    }
}

extension ColdFiles.PageIn: Record {
    package static let members = declare {
        Member("path", \.path)
        Member("bytes", \.bytes)
        Member("ranges", "offset and bytes") { $0.ranges.map { [$0.offset, $0.bytes] } }
    }
}

extension PageInMap.Page: Record {
    package static let members = declare {
        Member("stage", \.fault.stage)
        Member("path", \.fault.path)
        Member("offset", \.fault.offset)
        Member("launches", \.launches)
    }
}

// MARK: - Two programs

extension LaunchComparison: Record {
    package static let members = declare {
        Member("stages", \.stages)
        Member("items", \.items)
        Member("causes", \.attribution.causes)
        Member("difference_ns") { nanoseconds($0.attribution.difference) }
        Member("unexplained_ns") { nanoseconds($0.attribution.unexplained) }
        Member.optional("files", "used until ready, if it is known which") { $0.files }
    }
}

extension FileChange: Record {
    package static let members = declare {
        Member("before", "how many", \.before)
        Member("after", \.after)
        Member("new", "paths", \.new)
        Member("gone", \.gone)
    }
}

extension LaunchComparison.Stage: Record {
    package static let members = declare {
        Member("name", \.name).column("", .text) { stageText($0.name) }
        Member.shown("first", "A p50") { timeText($0.first.median) }
        Member.shown("second", "B p50") { timeText($0.second.median) }
        Member("difference_ns") { nanoseconds($0.difference.medians) }.column("B - A") { differenceText($0.difference.medians) }
        Member("low_ns", "lower end of the 95% interval") { nanoseconds($0.difference.low) }
        Member("high_ns") { nanoseconds($0.difference.high) }
        Member.shown("interval", "95% interval", .text) { intervalText($0.difference) }
        Member("significant", \.difference.isSignificant).column("", .text) {
            $0.difference.isSignificant ? $0.difference.medians > 0 ? "slower" : "faster" : ""
        }
        Member("probability", \.difference.probability)
    }
}

extension LaunchComparison.Item: Record {
    package static let members = declare {
        Member("stage", \.key.module).column("stage", .text) { $0.key.module }
        Member("name", \.key.name).column("item", .text) { $0.key.name }
        Member.shown("first", "A p50") { timeText($0.first.median) }
        Member.shown("second", "B p50") { timeText($0.second.median) }
        Member("difference_ns") { nanoseconds($0.difference.medians) }.column("B - A") { differenceText($0.difference.medians) }
        Member("low_ns", "lower end of the 95% interval") { nanoseconds($0.difference.low) }
        Member("high_ns") { nanoseconds($0.difference.high) }
        Member.shown("interval", "95% interval", .text) { intervalText($0.difference) }
        Member("significant", \.difference.isSignificant)
        Member("change", "new, gone, slower or faster; null: no difference that can be distinguished from noise") { $0.change?.rawValue }
            .column("", .text) { $0.change?.rawValue ?? "" }
    }
}

extension Cause: Record {
    package static let members = declare {
        Member("kind", \.kind.rawValue)
        Member("name", \.name)
        Member("module", \.module)
        Member("difference_ns") { nanoseconds($0.difference) }.column("") { differenceText($0.difference) }
        Member("share", "of the difference, 0 to 1") { ($0.share * 10000).rounded() / 10000 }.column("share") { percent($0.share) }
        Member("change", \.change.rawValue).column("", .text) { $0.change.rawValue }
        Member("path", \.path)
        Member("calls_before", \.callsBefore)
        Member("calls_after", \.callsAfter)
        Member("waiting", "what it waited for, if the longer time is a wait: waiting for a lock, for the disk, for a CPU …", \.waiting)
        Member.shown("what", "what", .text) { LaunchText.describe($0) }
    }
}
