// Calls as the page has them, in itself or asked for later: of a thread in the order of time, and the sums of functions.
import Presentation
import TraceAnalysis

enum PageCalls {
    /// Returns the members that a `thread` and a `part` of schema.mjs have in common.
    static func members(_ timeline: CallTimeline, of trace: PageTrace, _ functions: inout FunctionNumbers) -> String {
        var slices = "", said = "", numbers: [UInt32: Int] = [:]
        for (index, slice) in timeline.slices.enumerated() {
            if let text = trace.said(slice, timeline.origin) {
                said += "\(said.isEmpty ? "" : ",")\(index),\(JSON.string(text).scriptText)"
            }
            let number: Int
            if let loaded = trace.loaded(slice, timeline) {
                number = functions.number(loaded.name, loaded.module)
            } else if let known = numbers[slice.slot] {
                number = known
            } else {
                let function = trace.function(slice.slot)
                number = functions.number(function.name, function.module)
                numbers[slice.slot] = number
            }
            slices +=
                "\(slices.isEmpty ? "" : ",")\(trace.moment(timeline.origin &+ slice.start)),\(trace.length(slice.length)),\(number),\(slice.depth)"
        }
        let dense = timeline.densities.map {
            "\(trace.moment(timeline.origin &+ $0.start)),\(trace.length($0.length)),\($0.depth),\($0.share)"
        }.joined(separator: ",")
        return
            "\"calls\":\(timeline.calls),\"levels\":\(timeline.levels),\"deeper\":\(timeline.deeper),\"short\":\(timeline.bandCalls),"
            + "\"slices\":[\(slices)],\"said\":[\(said)],\"dense\":[\(dense)]"
    }

    /// A `row` of schema.mjs for each function.
    static func rows(_ rows: [FunctionSummary], _ functions: inout FunctionNumbers) -> String {
        func text(_ times: [Int64?]) -> String { times.map { $0.map { "\($0)" } ?? "null" }.joined(separator: ",") }
        func nanoseconds(_ time: Nanoseconds?) -> Int64? { time.map { Int64(clamping: $0.count) } }
        func states(_ times: StateTimes?) -> [Int64?] { [times?.running, times?.waiting, times?.runnable] }
        let texts = rows.map { row in
            let lengths = [row.maximum, row.median?.time, row.percentile99?.time, row.median?.error, row.percentile99?.error]
            return "[\(functions.number(row.name, row.module)),\(row.calls),\(row.total.count),\(row.selfTime),"
                + text(lengths.map(nanoseconds) + states(row.states?.selfTime) + states(row.states?.total)) + "]"
        }
        return "[" + texts.joined(separator: ",") + "]"
    }
}
