// Each figure of two builds side by side, and whether they differ.
import Statistics

package struct BuildComparison: Sendable {
    package struct Row: Sendable {
        package var figure: BuildFigure
        package var old: Sample, new: Sample
        package var difference: Difference

        /// In all launches of both.
        package var isSame: Bool {
            old.values.first == old.values.last && old.values.first == new.values.first && new.values.first == new.values.last
        }
    }

    package let old: BuildLaunches, new: BuildLaunches
    /// Warm ones first; all files together, the program, then libraries by their faults.
    package let rows: [Row]

    package init(old: BuildLaunches, new: BuildLaunches) {
        (self.old, self.new) = (old, new)
        let figures = Set(old.values.keys).union(new.values.keys)
        let faults = [BuildFigure.Kind.minorTextFaults, .majorTextFaults]
        rows = figures.compactMap { figure -> Row? in
            // A library that only one of them has is faulted on no times by the other. Nothing else may be missing on one side.
            let none = faults.contains(figure.kind) ? Double(0) : nil
            func sample(_ values: [Double]?, _ other: [Double]?) -> Sample? {
                values.map(Sample.init) ?? none.map { Sample([Double](repeating: $0, count: other?.count ?? 0)) }
            }
            guard let before = sample(old.values[figure], new.values[figure]), let after = sample(new.values[figure], old.values[figure])
            else { return nil }
            return Row(figure: figure, old: before, new: after, difference: Difference(before, after))
        }.sorted { Self.order($0) < Self.order($1) }
    }

    private static func order(_ row: Row) -> (Int, Int, Int, Double, String) {
        let kinds: [BuildFigure.Kind] = [.timeToReady, .touchedText, .minorTextFaults, .majorTextFaults, .readFromDisk]
        let kind = kinds.firstIndex(of: row.figure.kind)!, cold = row.figure.isCold ? 1 : 0
        return switch row.figure.scope {
        case .all: (cold, kind, 0, 0, "")
        case .program: (cold, kind, 1, 0, "")
        case .library(let name): (cold, kind, 2, -max(row.old.median, row.new.median), name)
        }
    }
}
