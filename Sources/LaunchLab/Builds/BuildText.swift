// Two builds side by side, for people.
import Presentation
import Statistics

package struct BuildText {
    private let watch: MachineWatch
    private let style: TextStyle
    private let readyReason: String
    private let runs: Int
    /// Most libraries shown in each list.
    private static let mostLibraries = 5

    package init(_ series: BuildSeries, runs: Int, style: TextStyle) {
        watch = series.watch
        readyReason = series.readyReason
        self.runs = runs
        self.style = style
    }

    package func lines(_ comparison: BuildComparison) -> [String] {
        var lines = [
            style.bold("old  ") + comparison.old.command.text, style.bold("new  ") + comparison.new.command.text,
            "\(counted(runs, "launch", "launches")) of each build per figure, old and new alternately, without the agent; ready: \(readyReason)",
            machine(comparison),
        ]
        for isCold in [false, true] {
            lines += ["", style.bold(isCold ? "From disk" : "Warm")]
            var table = TextTable(["", "old", "new", "new - old", "95% interval", ""], leftAligned: [0, 4, 5])
            var libraries = 0, hidden = 0
            for row in comparison.rows where row.figure.isCold == isCold {
                if case .library = row.figure.place {
                    if row.old.median == 0, row.new.median == 0 { continue }
                    libraries += 1
                    if libraries > Self.mostLibraries {
                        hidden += 1
                        continue
                    }
                } else {
                    libraries = 0
                }
                // No row for the program if none of its pages came from disk.
                if row.figure.kind == .majorTextFaults, row.figure.place == .program, row.old.median == 0, row.new.median == 0 { continue }
                table.add(cells(row))
            }
            lines += table.lines(style)
            if hidden > 0 { lines.append("\(counted(hidden, "row")) of libraries not shown: --json has them") }
        }
        if let problem = comparison.old.touchProblem ?? comparison.new.touchProblem {
            lines += ["", "the touched text is not known: \(problem)"]
        }
        for build in [comparison.old, comparison.new] where build.keptOfProgram > 0 {
            lines += [
                "",
                "\(build.command.words[0]) is in use by another process, which keeps its pages in memory: its page faults are not those of a cold start",
            ]
        }
        if let drop = comparison.new.drop, drop.kept > 0 {
            lines += [
                "",
                "from disk: \(readable(byteCount: drop.kept)) of \(readable(byteCount: drop.bytes)) stayed in memory, in use by other processes",
            ]
        }
        return lines
    }

    private func machine(_ comparison: BuildComparison) -> String {
        var text = "machine noise \(percent(watch.noise))"
        let disturbed = comparison.old.disturbed + comparison.new.disturbed,
            kept = comparison.old.disturbedKept + comparison.new.disturbedKept
        if disturbed > 0 { text += ", \(disturbed) disturbed and repeated" }
        if kept > 0 { text += ", \(kept) disturbed and counted (machine too noisy)" }
        return text
    }

    private func cells(_ row: BuildComparison.Row) -> [String] {
        let difference = row.difference
        return [
            name(row.figure), value(row.old.median, row.figure.unit), value(row.new.median, row.figure.unit),
            signed(difference.medians, row.figure.unit),
            "\(signed(difference.low, row.figure.unit)) … \(signed(difference.high, row.figure.unit))", verdict(row),
        ]
    }

    private func name(_ figure: BuildFigure) -> String {
        switch (figure.kind, figure.place) {
        case (.timeToReady, _): "time to ready"
        case (.touchedText, _): "text of the program touched"
        case (.readFromDisk, _): "the program's file, read in"
        case (.minorTextFaults, .all): "minor faults of text"
        case (.majorTextFaults, .all): "major faults of text"
        case (_, .program): "  the program"
        case (_, .library(let name)): "  " + name
        case (_, .all): ""
        }
    }

    private func verdict(_ row: BuildComparison.Row) -> String {
        guard row.difference.isSignificant else { return row.isSame ? "the same" : "no difference shown" }
        let isLess = row.difference.medians < 0
        return switch row.figure.unit {
        case .nanoseconds: isLess ? "faster" : "slower"
        case .bytes: isLess ? "less" : "more"
        case .count: isLess ? "fewer" : "more"
        }
    }

    private func value(_ value: Double, _ unit: BuildFigure.Unit) -> String {
        switch unit {
        case .nanoseconds: column(readable(nanoseconds: value))
        case .bytes: "\(grouped(Int((value / 1024).rounded()))) KB"
        // The median of an even number of launches may lie between two counts.
        case .count: value == value.rounded() ? grouped(Int(value)) : "\(grouped(Int(value))).5"
        }
    }

    private func signed(_ difference: Double, _ unit: BuildFigure.Unit) -> String {
        if unit == .nanoseconds { return column(readable(difference: difference)) }
        return (difference < 0 ? "-" : "+") + value(abs(difference), unit)
    }
}
