// The few functions that make most of a recording's calls and take next to none of its time, and what leaving them out would save.
import Presentation
import TraceFormat

package struct ExclusionAdvice: Sendable {
    package let functions: [FunctionSummary]
    /// For `record --exclude`: it matches these functions and none of the others that were called.
    package let pattern: String
    package let calls: UInt64
    /// Part of all calls.
    package let callShare: Double
    /// Part of all threads' time, both without what recording took and without calls that wait.
    package let timeShare: Double
    /// Size of these calls in the file; nil: it is a ring, which holds older calls instead.
    package let bytes: UInt64?
    /// Time that recording these calls took; nil: the agent could not measure what a call costs.
    package let recording: Nanoseconds?

    /// Fewer calls are not worth another recording.
    package static let leastCalls: UInt64 = 1_000_000
    /// A smaller file has fewer calls.
    package static let leastBytes = leastCalls * 8
    private static let mostFunctions = 5
    private static let leastCallShare = 0.5, mostTimeShare = 0.1
    /// How much of the time functions may take that run for less than it takes to record them: what is measured of these is mostly that.
    private static let mostOfCheap = 0.25
    /// Part of the calls that a function must make to be named.
    private static let leastOfFunction = 0.03
    /// The functions that take the most time are what one records for, and so many of them are never named; if that time is next to
    /// nothing, or less than recording them takes, they may be.
    private static let topFunctions = 3, nextToNothing = 0.03

    /// nil: nothing is worth leaving out.
    /// - Parameters:
    ///   - summary: with a row for each function, of all threads and of all the time
    ///   - isNeeded: whether a symbol is of a function that waits or wakes others, which `waits` asks for
    ///   - leastCalls: of fewer nothing is said
    package init?(_ summary: Summary, isRing: Bool, keeping isNeeded: (String) -> Bool, leastCalls: UInt64 = leastCalls) {
        func own(_ row: FunctionSummary) -> Double { max(Double(row.selfTime) - Double(row.recording?.count ?? 0), 0) }
        let all = summary.recordedCalls, rows = summary.functions.filter { !isNeeded($0.symbol) }
        // The programs' own code has its share of what recording takes, too.
        let waited = summary.functions.reduce(0) { isNeeded($1.symbol) ? $0 + own($1) : $0 }
        let net = Double(summary.selfTime.count) - Double(summary.recording?.count ?? 0) - waited
        let time = max(net, rows.reduce(0) { $0 + own($1) })
        guard all >= leastCalls, time > 0 else { return nil }
        let cost = summary.recording.map { Double($0.count) / Double(all) } ?? 0
        func isCheap(_ row: FunctionSummary) -> Bool { own(row) <= Double(row.calls) * cost }
        let top = Set(
            rows.indices.sorted { own(rows[$0]) > own(rows[$1]) }.prefix(Self.topFunctions)
                .filter { own(rows[$0]) > Self.nextToNothing * time && !isCheap(rows[$0]) })
        let names = Dictionary(grouping: summary.functions) { $0.symbol }, modules = Set(summary.functions.map(\.module))
        let candidates = rows.indices.filter { index in
            let row = rows[index]
            return Double(row.calls) >= Self.leastOfFunction * Double(all) && !top.contains(index) && row.isLeaf && !row.isSuppressed
                && Self.isPlain(row.symbol) && Self.isPlain(row.module)
        }.map { rows[$0] }.sorted { ($0.calls, $1.symbol) > ($1.calls, $0.symbol) }
        var chosen: [FunctionSummary] = [], taken = 0.0
        for row in candidates
        where chosen.count < Self.mostFunctions && taken + own(row) <= (isCheap(row) ? Self.mostOfCheap : Self.mostTimeShare) * time {
            chosen.append(row)
            taken += own(row)
        }
        let calls = chosen.reduce(0) { $0 &+ $1.calls }
        guard calls >= leastCalls, Double(calls) > Self.leastCallShare * Double(all) else { return nil }
        functions = chosen
        pattern = chosen.map { row in
            names[row.symbol]?.count == 1 && !modules.contains(row.symbol) ? row.symbol : "\(row.module)!\(row.symbol)"
        }.joined(separator: ":")
        self.calls = calls
        callShare = Double(calls) / Double(all)
        timeShare = taken / time
        bytes = isRing ? nil : calls &* summary.leafBytes
        recording = summary.recording.map { Nanoseconds(UInt64(Double($0.count) * Double(calls) / Double(all))) }
    }

    /// True if it means itself in a list of globs.
    private static func isPlain(_ name: String) -> Bool {
        !name.isEmpty && !name.hasPrefix("0x") && !name.utf8.contains { [0x21, 0x2a, 0x3a, 0x3f].contains($0) } // ! * : ?
    }

    package var text: String {
        let saved = [
            counted(calls, "call"), bytes.map { readable(byteCount: $0) }, recording.map { "~\(readable($0)) of recording" },
        ].compactMap { $0 }
        return "\(functions.map(\.name).joined(separator: ", ")): \(percent(callShare)) of the calls, \(percent(timeShare)) of the"
            + " time without waits and recording: --exclude \(shellWord(pattern)) would save \(saved.joined(separator: ", "))"
    }
}

extension FunctionSummary {
    /// No recorded call was made from it.
    fileprivate var isLeaf: Bool { calls > 0 && timedCalls == calls && selfTime == Int64(clamping: total.count) }
}

extension ExclusionAdvice: Record {
    package static let members = declare {
        Member("exclude", "value of record --exclude: it matches these functions and no other that was called", \.pattern)
        Member("functions", "the most often called first", \.functions.excluded)
        Member("calls", "that would not be recorded", \.calls)
        Member("call_share", "of all calls, 0 to 1", \.callShare)
        Member(
            "time_share", "of the time of all threads, both without what recording took and without calls that wait or wake, 0 to 1",
            \.timeShare)
        Member("bytes", "that the file would be smaller at least; null: a ring holds older calls instead", \.bytes)
        Member("recording_ns", "time that recording these calls took; null where the trace does not say what a call costs", \.recording)
    }
}

private struct ExcludedFunction: Record {
    var figures: FunctionSummary

    static let members = declare {
        Member("name", \.figures.name)
        Member("symbol", \.figures.symbol)
        Member("module", \.figures.module)
        Member("calls", \.figures.calls)
    }
}

extension [FunctionSummary] {
    fileprivate var excluded: [ExcludedFunction] { map { ExcludedFunction(figures: $0) } }
}
