// What `tracer order --check --json` prints: two builds side by side.
import Presentation

package struct BuildOutput {
    private let comparison: BuildComparison
    private let series: BuildSeries
    private let runs: Int

    package init(_ comparison: BuildComparison, _ series: BuildSeries, runs: Int) {
        self.comparison = comparison
        self.series = series
        self.runs = runs
    }
}

extension BuildOutput: Record {
    package static let members = declare {
        Member("schema", "1") { _ in 1 }
        Member("old", "the command", \.comparison.old.command.text)
        Member("new", \.comparison.new.command.text)
        Member("ready", "what ends a start", \.series.readyReason)
        Member("runs", "of each build for each figure", \.runs)
        Member("disturbed", "launches that were made again") { $0.comparison.old.disturbed + $0.comparison.new.disturbed }
        Member("disturbed_kept", "launches that were counted all the same") {
            $0.comparison.old.disturbedKept + $0.comparison.new.disturbedKept
        }
        Member("machine_noise", \.series.watch.noise)
        Member("touched_problem", "why there is no touched_text") { $0.comparison.old.touchProblem ?? $0.comparison.new.touchProblem }
        Member("figures", \.comparison.rows)
    }
}
