// A series of launches, and two of them side by side, for people.
import ELF
import Foundation
import Presentation
import Statistics
import TraceAnalysis

package struct LaunchText {
    private let plan: LaunchPlan
    private let watch: MachineWatch
    private let style: TextStyle

    package init(_ plan: LaunchPlan, _ watch: MachineWatch, style: TextStyle) {
        self.plan = plan
        self.watch = watch
        self.style = style
    }

    // MARK: - One program

    package func table(_ result: LaunchResult, _ command: LaunchCommand, top: Int = 5) -> String {
        let summary = LaunchSummary(result.corrected)
        var lines = [heading(printable(command.text), result), ""]
        var columns = LaunchSummary.Stage.columns(["name", "p50_ns", "p90_ns", "p95_ns", "mean_ns", "spread_ns"])
        if let map = result.pageInMap {
            columns.append(
                Column("from disk") { stage in
                    grouped(UInt64(map.faults { stage.name == LaunchSummary.wholeLaunch || $0.stage == stage.name }))
                })
        }
        lines += TextTable(summary.stages, columns).lines(style)
        lines.append("")
        lines += overhead(result)
        lines += result.contradictions.map { "error: \($0)" }
        lines.append(
            "\(grouped(UInt64(summary.libraries.count))) libraries, \(grouped(UInt64(max(summary.relocations, 0)))) relocations, page faults \(grouped(UInt64(max(summary.minorFaults, 0)))) minor, \(grouped(UInt64(max(summary.majorFaults, 0)))) from disk\(summary.files.map { ", \(counted(UInt64($0.count), "file")) used" } ?? "")"
        )
        let slow = summary.constructors.prefix(top).filter { $0.median >= 10_000 }
        if !slow.isEmpty {
            lines += ["", style.bold("Constructors, the slowest")]
            lines += TextTable(slow, LaunchSummary.Constructor.columns(["p50_ns", "module", "name"])).lines(style).dropFirst()
        }
        lines += items(summary)
        if plan.cold != .no { lines += cold(result, top) }
        return lines.joined(separator: "\n") + "\n"
    }

    private func items(_ summary: LaunchSummary) -> [String] {
        guard !summary.items.isEmpty else { return [] }
        let table = TextTable(summary.items, LaunchSummary.Item.columns(["p50_ns", "interval", "p90_ns", "stage", "name"]))
        return ["", style.bold("Start-up items")] + table.lines(style)
    }

    private func heading(_ command: String, _ result: LaunchResult) -> String {
        var parts = ["\(result.profiles.count) launches", plan.cold == .no ? "warm" : "cold"]
        parts.append("ready: \(plan.controls.runsToExit ? "end of the program" : result.readyReason)")
        return style.bold(command) + "   " + parts.joined(separator: ", ") + machine([result])
    }

    private func machine(_ results: [LaunchResult]) -> String {
        let disturbed = results.reduce(0) { $0 + $1.disturbed.count }, kept = results.reduce(0) { $0 + $1.disturbedKept }
        let switches = Sample(results.flatMap(\.involuntarySwitches).map(Double.init)).median
        var text = "\nmachine noise \(percent(watch.noise))"
        if let frequencies = watch.frequencies {
            text += String(format: ", %.1f to %.1f GHz", frequencies.lowerBound, frequencies.upperBound)
        }
        if let stolen = watch.allStolen { text += ", \(readable(Nanoseconds(stolen))) stolen by the hypervisor" }
        text += ", \(Int(switches)) involuntary context switches per launch"
        if disturbed > 0 { text += ", \(disturbed) disturbed and repeated" }
        if kept > 0 { text += ", \(kept) disturbed and counted (machine too noisy)" }
        let cpu = results.map { $0.cpuTime.map(timeText) ?? "not known" }, waits = results.map { $0.cpuWait.map(timeText) ?? "not known" }
        return text
            + "\nCPU time \(cpu.joined(separator: " and ")), waiting for a CPU \(waits.joined(separator: " and ")) per launch (not counted)"
    }

    private func overhead(_ result: LaunchResult) -> [String] {
        let own = Sample(result.profiles.map { Double($0.tracerTime) }).median
        guard let overhead = result.overhead else {
            return ["tracer's own work \(timeText(own)), already subtracted; no launch was made without the agent"]
        }
        return [
            "without the agent \(timeText(result.untraced.median)) (\(counted(UInt64(result.untraced.count), "launch", "launches"))); the agent adds ~\(timeText(max(overhead, 0))) by recording and \(timeText(own)) of its own work, both subtracted above"
        ]
    }

    private func cold(_ result: LaunchResult, _ top: Int) -> [String] {
        var lines = ["", style.bold("Read from disk")]
        if let drop = result.drops.last {
            var text = "\(drop.files) files, \(readable(byteCount: drop.bytes)), dropped before each launch"
            if let stayed = drop.stayed("") { text += "; \(stayed)" }
            if drop.unknown > 0 {
                text += "; of \(drop.unknown) the kernel does not report how much is cached"
            }
            lines.append(text)
        }
        if let complaint = result.faultComplaint { lines.append(complaint) }
        let map = result.pageInMap
        if map != nil {
            lines.append(
                "\"from disk\" and \"waits\": page faults that waited for the disk, in the median launch; \"read\" includes read-ahead")
        }
        let read = Dictionary(result.pageIns.map { ($0.path, $0) }) { first, _ in first }
        let paths = Set(read.keys).union(map?.paths ?? [])
        let rows = paths.map { path in
            (path: path, waits: map?.faults { $0.path == path } ?? 0, file: read[path])
        }.sorted { ($1.waits, $1.file?.bytes ?? 0, $0.path) < ($0.waits, $0.file?.bytes ?? 0, $1.path) }
        var table = TextTable(["waits", "read", "file", "where the launch waited"], leftAligned: [2, 3])
        for row in rows.prefix(max(top, 10)) {
            let usual = map?.usual(row.path) ?? []
            var parts: [String] = []
            for (stage, pages) in Dictionary(grouping: usual, by: \.fault.stage).sorted(by: { $0.key < $1.key }) {
                let offsets = pages.prefix(4).map { String($0.fault.offset / 1024) }.joined(separator: ", ")
                parts.append("\(stage): at \(offsets)\(pages.count > 4 ? ", …" : "") KB")
            }
            table.add([
                map == nil ? "?" : "\(row.waits)", row.file.map { readable(byteCount: $0.bytes) } ?? "", row.path,
                parts.joined(separator: "; "),
            ])
        }
        if rows.count > max(top, 10) {
            lines.append("showing \(max(top, 10)) of \(rows.count) files; --json lists all, with each range and fault")
        }
        return lines + table.lines(style)
    }

    // MARK: - Two programs

    package func comparison(
        _ first: LaunchResult, _ second: LaunchResult, _ commands: (LaunchCommand, LaunchCommand), _ comparison: LaunchComparison
    ) -> String {
        var lines = [
            style.bold("A  ") + printable(commands.0.text), style.bold("B  ") + printable(commands.1.text),
            "\(first.profiles.count) launches each, \(plan.cold == .no ? "warm" : "cold"), in random order; ready: \(second.readyReason)"
                + machine([first, second]), "",
        ]
        let columns = LaunchComparison.Stage.columns(["name", "first", "second", "difference_ns", "interval", "significant"])
        lines += TextTable(comparison.stages, columns).lines(style)
        lines.append("")
        let whole = comparison.stages[0].difference
        if !whole.isSignificant {
            lines.append("no difference larger than \(timeText(whole.largest)) is visible with \(first.profiles.count) launches each")
        }
        if !comparison.items.isEmpty {
            lines.append(style.bold("Start-up items"))
            let columns = LaunchComparison.Item.columns(["first", "second", "difference_ns", "interval", "change", "stage", "name"])
            lines += TextTable(comparison.items, columns).lines(style) + [""]
        }
        if let files = comparison.files, let text = files.text(most: 5) { lines.append(text) }
        let causes = comparison.attribution.causes.prefix(10)
        if !causes.isEmpty {
            lines.append(style.bold("Why (B - A = \(differenceText(comparison.attribution.difference)))"))
            var table = TextTable(Array(causes), Cause.columns(["difference_ns", "share", "change", "what"]))
            table.add([
                differenceText(comparison.attribution.unexplained),
                whole.medians == 0 ? "" : percent(comparison.attribution.unexplained / comparison.attribution.difference), "",
                "unexplained",
            ])
            lines += table.lines(style).dropFirst()
        } else if whole.isSignificant {
            lines.append("No single stage, library, constructor or call explains it.")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// "constructor slow_init of libslow.so", "work of libw.so, 10 → 100 times, from main".
    package static func describe(_ cause: Cause) -> String {
        var text: String
        switch cause.kind {
        case .constructor: text = "constructor \(cause.name) of \(cause.module)"
        case .library: text = "library \(cause.name)"
        case .dlopen: text = "dlopen of \(cause.name)"
        case .stage, .root, .wait: text = cause.name
        case .item: text = "start-up item \(cause.name) of \(cause.module)"
        case .lazy: text = "lazy initializer \(cause.name) of \(cause.module)"
        case .call: text = cause.name.hasPrefix(cause.module + "+0x") ? cause.name : "\(cause.name) of \(cause.module)"
        }
        if cause.kind == .call, cause.change == .new || cause.change == .gone {
            text += ", \(counted(UInt64(max(cause.callsBefore, cause.callsAfter).rounded()), "time"))"
        } else if cause.callsBefore != cause.callsAfter, cause.kind == .call {
            text += ", \(Int(cause.callsBefore.rounded())) → \(Int(cause.callsAfter.rounded())) times"
        }
        if let waiting = cause.waiting { text += ", \(waiting)" }
        if cause.kind == .call || cause.kind == .lazy, cause.path.count > 2 { text += ", from \(cause.path[cause.path.count - 2])" }
        return text
    }
}

/// A time in a table.
func timeText(_ nanoseconds: Double) -> String { column(readable(nanoseconds: nanoseconds)) }
func differenceText(_ nanoseconds: Double) -> String { column(readable(difference: nanoseconds)) }
func intervalText(_ difference: Difference) -> String { "\(differenceText(difference.low)) … \(differenceText(difference.high))" }

/// Stages are indented below the whole launch.
func stageText(_ name: String) -> String { name == LaunchSummary.wholeLaunch ? "launch" : "  " + name }
