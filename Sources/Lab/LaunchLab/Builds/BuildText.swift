// Two builds side by side, for people.
import ELF
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
            style.bold("old  ") + printable(comparison.old.command.text), style.bold("new  ") + printable(comparison.new.command.text),
            "\(counted(runs, "launch", "launches")) of each build per figure, old and new alternately, without the agent; ready: \(readyReason)",
            machine(comparison),
        ]
        for isCold in [false, true] {
            lines += ["", style.bold(isCold ? "From disk" : "Warm")]
            var shown: [BuildComparison.Row] = [], libraries = 0, hidden = 0
            for row in comparison.rows where row.figure.isCold == isCold {
                if case .library = row.figure.scope {
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
                if row.figure.kind == .majorTextFaults, row.figure.scope == .program, row.old.median == 0, row.new.median == 0 { continue }
                shown.append(row)
            }
            let columns = BuildComparison.Row.columns(["figure", "old", "new", "difference", "low", "significant"])
            lines += TextTable(shown, columns).lines(style)
            if hidden > 0 { lines.append("\(counted(hidden, "row")) of libraries not shown: --json has them") }
        }
        if let problem = comparison.old.touchProblem ?? comparison.new.touchProblem {
            lines += ["", "the touched text is not known: \(problem)"]
        }
        for build in [comparison.old, comparison.new] where build.keptOfProgram > 0 {
            lines += [
                "",
                "\(build.command.words[0]) stayed in memory: its page faults are not those of a cold start",
            ]
        }
        if let drop = comparison.new.drop, let stayed = drop.stayed(" of \(readable(byteCount: drop.bytes))") {
            lines += ["", "from disk: \(stayed)"]
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
}
