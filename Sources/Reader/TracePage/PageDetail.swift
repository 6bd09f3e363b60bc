// Details that are too much to stand in a page, which asks for them: calls of a part of the time, one by one; the exact sums of a part.
import Presentation
import TraceAnalysis

extension ViewPage {
    /// Questions that the script asks: `detail` of schema.mjs.
    package enum Question: String, CaseIterable {
        /// A `part` for each thread, in the order of `lanes`.
        case calls
        /// The functions of a part of the time.
        case sums
    }

    /// - Parameters:
    ///   - time: nanoseconds of the page's time
    ///   - wanted: indices of its threads; those that it does not have are skipped
    package func answer(_ question: Question, _ time: Range<UInt64>, lanes wanted: [Int]) -> String {
        let chosen = Set(wanted.filter { lanes.indices.contains($0) }).sorted()
        let narrowed = Dictionary(grouping: chosen) { lanes[$0].trace }.sorted { $0.key < $1.key }.map { index, lanes in
            let trace = traces[index], ticks = trace.ticks(time)
            return (
                index: index, whole: trace, ticks: ticks, lanes: lanes, threads: Set(lanes.map { self.lanes[$0].timeline.thread }),
                trace: trace.trace.narrowed(to: trace.trace.window.intersection(ticks))
            )
        }
        var functions = FunctionNumbers()
        let ends = "\"from\":\(time.lowerBound),\"to\":\(time.upperBound)"
        switch question {
        case .calls:
            let shares = SliceShares.all(of: Self.mostSlices, among: narrowed.map(\.trace.wordCount))
            var parts: [String] = []
            for (part, share) in zip(narrowed, shares) {
                let timelines = CallTimeline.all(
                    part.trace, from: part.ticks.lowerBound, until: min(part.ticks.upperBound, part.whole.end), mostThreads: .max,
                    mostSlices: share, of: part.threads)
                let states = states(of: part.index, in: part.ticks, lanes: part.lanes, share: narrowed.count)
                let lanes = Dictionary(part.lanes.map { (self.lanes[$0].timeline.thread, $0) }) { first, _ in first }
                for timeline in timelines {
                    guard let lane = lanes[timeline.thread] else { continue }
                    parts.append(
                        "{\"lane\":\(lane),\"states\":\(states[lane] ?? "null")," + PageCalls.members(timeline, of: part.whole, &functions)
                            + "}")
                }
            }
            return "{\(ends),\"functions\":\(functions.text),\"parts\":[\(parts.joined(separator: ",\n"))]}"
        case .sums:
            let files = narrowed.map { $0.trace.only($0.threads) }
            let summary = RunSummary(files, path: "", states: .ofFunctions(.wall)).summary
            let rows = PageCalls.rows(summary.functions + summary.ownCodes, &functions)
            return "{\(ends),\"functions\":\(functions.text),\"rows\":\(rows)}"
        }
    }
}
