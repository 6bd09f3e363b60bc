// A row of two builds side by side: one figure's values, each declared once for the table, the JSON and its schema.
import Presentation
import Statistics

extension BuildComparison.Row: Record {
    package static let members = declare {
        Member("figure", \.figure.kind).column("", .text) { $0.figure.name }
        Member("unit", \.figure.unit)
        Member("start", "", .choice(["warm", "cold"])) { .string($0.figure.isCold ? "cold" : "warm") }
        Member("place", "all: all files together", .choice(["all", "program", "library"])) { .string($0.figure.scopeName) }
        Member("file", "file name; null for the program and for all files together", \.figure.library)
        Member("old", "median", \.old.median).column("old") { $0.figure.unit.spelt($0.old.median) }
        Member("new", "median", \.new.median).column("new") { $0.figure.unit.spelt($0.new.median) }
        Member("difference", "new minus old, of the medians", \.difference.medians)
            .column("new - old") { $0.figure.unit.spelt(difference: $0.difference.medians) }
        Member("low", "of the difference's 95% interval", \.difference.low).column("95% interval", .text) { row in
            let bounds = [row.difference.low, row.difference.high].map { row.figure.unit.spelt(difference: $0) }
            return bounds.joined(separator: " … ")
        }
        Member("high", \.difference.high)
        Member("significant", "the interval and the rank test both show a difference", \.difference.isSignificant)
            .column("", .text) { $0.verdict }
        Member("probability", "of the rank test", \.difference.probability)
        Member("old_values", "of each launch, ascending", \.old.values)
        Member("new_values", \.new.values)
    }

    private var verdict: String {
        guard difference.isSignificant else { return isSame ? "the same" : "no difference shown" }
        let isLess = difference.medians < 0
        return switch figure.unit {
        case .nanoseconds: isLess ? "faster" : "slower"
        case .bytes: isLess ? "less" : "more"
        case .count: isLess ? "fewer" : "more"
        }
    }
}

extension BuildFigure {
    fileprivate var name: String {
        switch (kind, scope) {
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

    fileprivate var scopeName: String {
        switch scope {
        case .all: "all"
        case .program: "program"
        case .library: "library"
        }
    }

    /// nil: it is not a library's.
    fileprivate var library: String? { if case .library(let name) = scope { name } else { nil } }
}

extension BuildFigure.Unit {
    fileprivate func spelt(_ value: Double) -> String {
        switch self {
        case .nanoseconds: column(readable(nanoseconds: value))
        case .bytes: "\(grouped(Int((value / 1024).rounded()))) KB"
        // The median of an even number of launches may lie between two counts.
        case .count: value == value.rounded() ? grouped(Int(value)) : "\(grouped(Int(value))).5"
        }
    }

    fileprivate func spelt(difference: Double) -> String {
        if self == .nanoseconds { return column(readable(difference: difference)) }
        return (difference < 0 ? "-" : "+") + spelt(abs(difference))
    }
}
