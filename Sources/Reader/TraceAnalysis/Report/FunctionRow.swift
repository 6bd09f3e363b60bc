// A row of `tracer report`: a function's figures, each declared once for the table, the JSON and its schema.
import ELF
import Presentation

package struct FunctionRow: Record {
    var figures: FunctionSummary
    var locations: FunctionLocations?
    /// Self times of all functions and the programs' own code together; nil: not known.
    var whole: Nanoseconds?
    /// How names are spelt in tables.
    var short: (String) -> String = { $0 }
    /// Marks an average that is far from the median.
    var isMarked = false

    fileprivate var share: Double? { whole.flatMap { $0.count > 0 ? Double(figures.selfTime) / Double($0.count) : nil } }
    fileprivate var shareText: String {
        guard let whole, whole.count > 0 else { return "-" }
        return figures.estimatedSelf.map { "~" + percent(Double($0) / Double(whole.count)) } ?? share.map { percent($0) } ?? "-"
    }
    fileprivate var isUntimed: Bool { figures.timedCalls == 0 && figures.total.count == 0 }

    /// With the number of functions that the linker has folded with it.
    fileprivate var name: String {
        let others = locations?.folded(with: figures.function).count ?? 0
        return short(figures.name) + (others > 0 ? " +\(others)" : "")
    }

    package static let members = declare {
        Member.optional("caller", "with --by caller") { $0.figures.caller }
            .column("caller", .name) { Summary.explained($0.short($0.figures.caller ?? "?")) }
        Member.optional("site", "with --by site: what it was called from; null: unknown") { $0.figures.site.map { $0.isKnown ? $0 : nil } }
            .column("called from", .name) { row in row.figures.site?.text(row.short) ?? "" }
        Member("name", "demangled", \.figures.name).column("function", .name) {
            $0.figures.caller == nil ? Summary.explained($0.name) : $0.name
        }
        Member("symbol", "as in the file", \.figures.symbol)
        Member("module", "file name of the module it lies in", \.figures.module).column("module", .text) { $0.figures.module }
        Member("calls", "that began", \.figures.calls).column("calls") {
            $0.figures.name == FunctionNames.ownCode ? "-" : $0.figures.callsMark + grouped($0.figures.calls)
        }
        Member("total_ns", "from entry to exit, a recursive function's outermost calls only", \.figures.total)
            .column("total") { $0.isUntimed ? "-" : $0.figures.totalText }
        Member(
            "self_ns", "without the recorded calls made from it; of calls that overlap (coroutines) the later one has the time",
            \.figures.selfTime
        )
        .column("self") { $0.isUntimed ? "-" : $0.figures.selfText }
        Member("share", "self_ns as a part of all self times and the programs' own code, 0 to 1; null: that is not known", \.share)
            .column("share") { $0.isUntimed ? "-" : $0.shareText }
        SplitTimes.members { $0.figures.states }
        Member("min_ns", "of one call; null where none has a known length", \.figures.minimum).column("minimum") {
            spelt($0.figures.minimum)
        }
        Member("max_ns", \.figures.maximum).column("maximum") { spelt($0.figures.maximum) }
        Percentile.members("p50", \.figures.median)
        Percentile.members("p99", \.figures.percentile99)
        Member.shown("average", "average") { ($0.isMarked ? "* " : "") + spelt($0.figures.average) }
        Member.shown("shape", DurationShape.title) { $0.figures.shape.text }
        CountedTime.members { $0.figures.counted }
        Member.optional("left_out", leftOutMeaning) {
            $0.figures.isSuppressed ? true : nil
        }
        Member.optional("self_holds_left_out", heldMeaning) {
            $0.figures.holdsSuppressed ? true : nil
        }
        Member(
            "recording_ns",
            "what of self_ns recording took, an estimate; null where the trace does not say what a call costs, and of rows that are no functions",
            \.figures.recording
        ).column("~recording") { $0.figures.recordingShare.map { percent($0) } ?? "" }
        corrected("corrected_self", "own time", "corrected self") { $0.correctedSelf }
        corrected("corrected_total", "time from entry to exit", "corrected") { $0.correctedTotal }
        LocatedFunction.locations { LocatedFunction(function: $0.figures.function, locations: $0.locations) }
        Member.shown("source", "source", .text) { row in row.locations?.text(of: row.figures.function) ?? "" }
    }

    /// A time without the cost of recording: its value, by how much it may be wrong, and what it is at most.
    private static func corrected(
        _ key: String, _ what: String, _ title: String, _ time: @escaping @Sendable (FunctionSummary) -> CorrectedTime?
    ) -> [Member<FunctionRow>] {
        declare {
            Member.optional(key + "_ns", "with --correct: \(what) without the cost of recording; null where the error is as large") { row in
                time(row.figures).map { $0.isKnown ? $0.nanoseconds : nil }
            }.column(title) { time($0.figures)?.text ?? "-" }
            Member.optional(key + "_error_ns", "by how much that may be wrong") { time($0.figures)?.error }
            Member.optional(key + "_most_ns", "what it is at most") { time($0.figures)?.most }
        }
    }

    private static func spelt(_ time: Nanoseconds?) -> String { time.map { column(readable($0)) } ?? "-" }
}

let leftOutMeaning = "true: there were more calls, which are neither recorded nor counted (record --keep-hot)"
let heldMeaning = "true: self_ns includes calls of functions with left_out or only_counted that are not recorded"

/// What stands before figures of suppressed functions, and of those that call them.
enum SuppressionMark {
    static func calls(_ isSuppressed: Bool, isEstimate: Bool = false) -> String { isSuppressed ? "≥" : isEstimate ? "~" : "" }
    static func selfTime(_ holdsSuppressed: Bool) -> String { holdsSuppressed ? "≤" : "" }

    /// The lines that explain the marks which are there.
    static func notes(isSuppressed: Bool, isCounted: Bool, holdsSuppressed: Bool) -> [String] {
        (isSuppressed ? ["≥ short and called very often: later calls were suppressed; record --keep-hot keeps them"] : [])
            + (isCounted
                ? ["~ short and called very often: later calls were counted, and about one in 1,024 timed; record --keep-hot records all"]
                : [])
            + (holdsSuppressed ? ["≤ with the suppressed calls of functions that it calls"] : [])
    }
}

extension FunctionSummary {
    var callsMark: String { SuppressionMark.calls(isSuppressed, isEstimate: areCallsEstimated || counted?.isExact == false) }
    var selfMark: String { SuppressionMark.selfTime(holdsSuppressed) }
    var isCounted: Bool { areCallsEstimated || counted != nil }

    /// The time of calls that are counted and not recorded is an estimate. It is wall time.
    private var estimate: CountedTime? { states == nil || shownTime == .wall ? counted : nil }
    var totalText: String {
        guard let estimate else { return column(readable(total)) }
        return "~" + readable(Nanoseconds(total.count &+ estimate.time.count)) + " ±" + readable(estimate.timeError)
    }
    var selfText: String { estimatedSelf.map { "~" + readable(signed: $0) } ?? selfMark + column(readable(signed: selfTime)) }
    /// With the same part of the estimate as of the recorded calls' time; nil: there is none.
    fileprivate var estimatedSelf: Int64? {
        estimate.map { estimate in
            let part = total.count > 0 ? Double(max(selfTime, 0)) / Double(total.count) : 1
            return selfTime &+ (Int64(exactly: (Double(estimate.time.count) * min(part, 1)).rounded()) ?? .max)
        }
    }
}

extension CountedTime {
    /// Members of any record that has it.
    static func members<Row: Record>(_ counted: @escaping @Sendable (Row) -> CountedTime?) -> [Member<Row>] {
        Row.declare {
            Member.optional("only_counted", "what of calls is counted and not recorded, of short functions that are called very often") {
                counted($0)?.calls
            }
            Member.optional("only_counted_ns", "an estimate of the time that these took; it is not in total_ns and self_ns") {
                counted($0)?.time
            }
            Member.optional("only_counted_error_ns", "by how much that may be wrong") { counted($0)?.timeError }
        }
    }
}

/// A function with what the files say of where it is.
struct LocatedFunction: Record {
    var function: ReportedFunction
    var locations: FunctionLocations?

    static let members = declare {
        Member("name", \.function.name)
        Member("module", \.function.module)
        locations { $0 }
    }

    /// Members of any record that has one.
    static func locations<Row: Record>(_ located: @escaping @Sendable (Row) -> LocatedFunction) -> [Member<Row>] {
        Row.declare {
            Member.optional("file", "with --lines: where it is in the source; null: no line information") { row in
                located(row).sources.map { $0.first?.path }
            }
            Member.optional("line", "with --lines") { row in located(row).sources.map { $0.first?.line } }
            Member.optional("other_places", "with --lines: of other functions of that name in the module") { row in
                located(row).sources.flatMap { $0.count > 1 ? $0.dropFirst().map { SourceLine(location: $0) } : nil }
            }
            Member.optional("aliases", "other names at the same address, of functions that were recorded by themselves") { row in
                located(row).aliases
            }
        }
    }

    /// nil without --lines.
    private var sources: [SourceLocation]? { locations.flatMap { $0.hasLines ? $0.sources(of: function) : nil } }
    private var aliases: [String]? { locations.map { $0.folded(with: function) }.flatMap { $0.isEmpty ? nil : $0 } }
}

/// A line of source.
struct SourceLine: Record {
    var location: SourceLocation

    static let members = declare {
        Member("file", \.location.path)
        Member("line", \.location.line)
    }
}

extension CallSite: Record {
    package static let members = declare {
        Member("function", "demangled; module+0x1234 where it has no symbol", \.name)
        Member("symbol", "as in the file; empty where it has none", \.symbol)
        Member("module", "file name of the module it lies in", \.module)
        Member("file", "of the source, without its directory; null: no line information", \.file)
        Member("line", \.line)
        Member("address", "what the call returns to, in the module's file; null where the line is known", \.address)
    }
}
