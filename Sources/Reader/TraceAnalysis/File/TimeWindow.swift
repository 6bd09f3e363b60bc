// The moments of a trace that are asked for: one stretch of time, or several (those in which some call was open). Every reader of calls
// goes through it: `CallStack` reports what happens within, each call with the part of it that lies there.
import Presentation
import TraceFormat

package struct TimeWindow: Sendable, Equatable {
    /// Ticks at which a moment begins or ends, alternately and rising. The last moment has no end when their number is odd.
    let bounds: [UInt64]

    package static let whole = TimeWindow(bounds: [0])

    private init(bounds: [UInt64]) { self.bounds = bounds }

    /// Any number of moments in any order; those that overlap or touch are one. `.max` as an end is none.
    package init(_ moments: [Range<UInt64>]) {
        var bounds: [UInt64] = []
        for moment in moments.filter({ !$0.isEmpty }).sorted(by: { $0.lowerBound < $1.lowerBound }) {
            if let end = bounds.last, moment.lowerBound <= end {
                bounds[bounds.count - 1] = max(end, moment.upperBound)
            } else {
                bounds += [moment.lowerBound, moment.upperBound]
            }
        }
        if bounds.last == .max { bounds.removeLast() }
        self.bounds = bounds
    }

    package var isWhole: Bool { bounds.count == 1 && bounds[0] == 0 }
    package var isEmpty: Bool { bounds.isEmpty }

    package var moments: [Range<UInt64>] {
        stride(from: 0, to: bounds.count, by: 2).map { bounds[$0]..<($0 + 1 < bounds.count ? bounds[$0 + 1] : .max) }
    }
    package var momentCount: Int { (bounds.count + 1) / 2 }

    /// From the first moment's beginning to the last one's end.
    package var hull: Range<UInt64> { bounds.isEmpty ? 0..<0 : bounds[0]..<(bounds.count % 2 == 0 ? bounds[bounds.count - 1] : .max) }

    /// Returns true if any part of the time from `start` to `end`, both inclusive, lies in a moment.
    package func touches(_ start: UInt64, _ end: UInt64) -> Bool {
        let next = bisect(bounds.count) { bounds[$0] <= start }
        return next % 2 == 1 || next < bounds.count && bounds[next] <= end
    }

    /// Returns the index of the moment that `ticks` is in or, outside of all, of the one before; 0 before the first.
    package func moment(at ticks: UInt64) -> Int { max(bisect(bounds.count) { bounds[$0] <= ticks } - 1, 0) / 2 }

    /// Returns how much of the time from `start` to `end` lies within.
    package func length(from start: UInt64, to end: UInt64) -> UInt64 {
        if isWhole { return end > start ? end - start : 0 }
        var next = bisect(bounds.count) { bounds[$0] <= start }, length: UInt64 = 0, from = start
        while from < end {
            let until = min(next < bounds.count ? bounds[next] : .max, end)
            if next % 2 == 1 { length += until - from }
            from = until
            next += 1
        }
        return length
    }

    package func intersection(_ other: Range<UInt64>) -> TimeWindow {
        TimeWindow(moments.map { $0.clamped(to: other) })
    }
}

extension TraceFile {
    /// The same trace, of which only what happens in the window is shown.
    package func narrowed(to window: TimeWindow) -> TraceFile {
        var copy = self
        copy.window = window
        return copy
    }

    /// "window 1.2 s to 1.5 s of 3 s", nil for the whole trace.
    /// - Parameter end: of the trace
    package func windowText(until end: Ticks) -> String? {
        guard !window.isWhole else { return nil }
        let whole = readable(timeScale.nanoseconds(from: firstTicks, to: end))
        guard window.momentCount == 1 else {
            let length = timeScale.nanoseconds(window.length(from: firstTicks.raw, to: end.raw))
            return "window of \(counted(UInt64(window.momentCount), "moment")), \(readable(length)) of \(whole)"
        }
        let (from, to) = windowEnds(until: end)
        return "window \(readable(from)) to \(readable(to)) of \(whole)"
    }

    /// nil when all is shown.
    package func reportedWindow(until end: Ticks) -> ReportedWindow? {
        guard !window.isWhole else { return nil }
        let (from, to) = windowEnds(until: end)
        return ReportedWindow(
            from: from, to: to, moments: window.momentCount,
            length: timeScale.nanoseconds(window.length(from: firstTicks.raw, to: end.raw)))
    }

    private func windowEnds(until end: Ticks) -> (Nanoseconds, Nanoseconds) {
        let hull = window.hull
        return (
            timeScale.nanoseconds(from: firstTicks, to: Ticks(hull.lowerBound)),
            timeScale.nanoseconds(from: firstTicks, to: Ticks(min(hull.upperBound, end.raw)))
        )
    }
}

/// A window of time as JSON has it.
package struct ReportedWindow: Record, Sendable {
    var from, to: Nanoseconds
    var moments: Int
    var length: Nanoseconds

    package static let members = declare {
        Member("from_ns", "since the beginning of the trace, of a run since that of its first process", \.from)
        Member("to_ns", \.to)
        Member("moments", "with --around there may be several", \.moments)
        Member("length_ns", "of all moments together", \.length)
    }
}

/// What every output with a window says of it.
let windowMeaning = "the part of the time that is shown; null: all"
