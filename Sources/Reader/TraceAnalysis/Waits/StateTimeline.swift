// The states of a thread in the order of time, as much of them as a page can hold: the long stretches each by itself, those off the
// CPU with what `tracer waits` says of them; of the short ones how much of each little stretch of time they fill.
import Presentation
import Symbols
import TraceFormat

package struct StateTimeline: Sendable {
    package enum State: String, Sendable, CaseIterable {
        case running, runnable, lock, condition, descriptor, disk, sleep, child, join, other, unknown

        /// Waits have the names of their kinds, but for those for a CPU, and for descriptors that are no files: so many colours could not
        /// be told apart.
        fileprivate init(_ kind: WaitKind) {
            switch kind {
            case .processor: self = .runnable
            case .pipe, .socket, .terminal, .event, .timer: self = .descriptor
            default: self = State(rawValue: kind.rawValue)!
            }
        }
    }
    /// Moments and lengths are ticks.
    package struct Span: Sendable {
        package var begin: UInt64, end: UInt64
        package var state: State
        /// Index in `waits`; nil: it ran, or that is not shown.
        package var wait: Int?
    }
    /// A stretch and the share of it, 0 … 1, that short spans of one state fill. Those of the same stretch follow each other.
    package struct Band: Sendable {
        package var begin: UInt64, length: UInt64
        package var state: State
        package var share: Double
    }
    package struct Wait: Sendable {
        package var what: String
        package var details: [String]
        /// Off-CPU time of all its stretches, in ticks.
        package var duration: UInt64
        package var stretches: Int
        /// Who let this one go on.
        package var waker: Waker?
    }
    package struct Waker: Sendable {
        /// Index in its trace.
        package var thread: UInt32
        /// The trace of the run that has the thread, by its first moment: CLOCK_MONOTONIC in nanoseconds; nil: this trace.
        package var begun: UInt64?
        /// When it did, and when the thread that waited ran.
        package var at: UInt64
        package var ran: UInt64?
    }

    /// Index in the trace.
    package let thread: UInt32
    /// In the order of time.
    package let spans: [Span]
    package let bands: [Band]
    package let waits: [Wait]
    /// Spans that are in `bands` alone.
    package let short: Int
    /// Off-CPU spans that are there without what is said of them.
    package let unexplained: Int

    private static let pieces = 16_384, mostPieces = 1024, fewestPieces = 64

    /// Returns the timelines of recorded threads; none if the trace has no context switches.
    /// - Parameters:
    ///   - mostSpans: spans to keep, over all threads
    ///   - mostWaits: waits to explain, over all threads
    ///   - wanted: threads to include
    ///   - origin: zero of the times in texts: CLOCK_MONOTONIC in nanoseconds
    package static func all(
        _ search: WaitSearch, in time: Range<UInt64>, mostSpans: Int, mostWaits: Int, of wanted: Set<UInt32>, origin: UInt64
    ) -> [StateTimeline] {
        guard search.noSwitches == nil else { return [] }
        let threads = search.threads.indices.filter { search.threads[$0].thread.map { wanted.contains($0) } ?? false }
        let stretches = threads.map { search.stretches(of: $0, in: time) }
        let least = Self.least(stretches.joined().lazy.map { $0.end - $0.begin }, most: mostSpans)
        // Waits for the agent (nil) always qualify: those of a thread share one entry.
        func length(_ wait: Int?) -> UInt64 { wait.map { search.waits[$0].duration } ?? .max }
        let shown = stretches.joined().lazy.filter { $0.isWait && $0.end - $0.begin >= least }.map { length($0.wait) }
        let leastShown = Self.least(shown, most: mostWaits)
        let explanation = WaitExplanation(search, Symbolizer(), origin: origin), short = ShortNames(search.names)
        let pieces = UInt64(min(max(Self.pieces / max(threads.count, 1), fewestPieces), mostPieces))
        return zip(threads, stretches).map { thread, stretches in
            var spans: [Span] = [], waits: [Wait] = [], numbers: [Int?: Int] = [:], unexplained = 0
            for stretch in stretches where stretch.end - stretch.begin >= least {
                var span = Span(begin: stretch.begin, end: stretch.end, state: stretch.state, wait: nil)
                if stretch.isWait, length(stretch.wait) >= leastShown {
                    if let known = numbers[stretch.wait] {
                        span.wait = known
                    } else {
                        span.wait = waits.count
                        numbers[stretch.wait] = waits.count
                        waits.append(Wait(stretch.wait, explanation, search) { short[$0] })
                    }
                } else if stretch.isWait {
                    unexplained += 1
                }
                spans.append(span)
            }
            let rest = stretches.filter { $0.end - $0.begin < least }
            return StateTimeline(
                thread: search.threads[thread].thread!, spans: spans, bands: bands(rest, in: time, pieces), waits: waits, short: rest.count,
                unexplained: unexplained)
        }
    }

    /// Returns the least length that at most `most` of the lengths reach; 0: there are no more than that.
    private static func least(_ lengths: some Sequence<UInt64>, most: Int) -> UInt64 {
        let lengths = lengths.sorted(by: >)
        return lengths.count > most ? max(lengths[most], lengths[most] &+ 1) : 0
    }

    private static func bands(_ spans: [WaitSearch.Stretch], in time: Range<UInt64>, _ pieces: UInt64) -> [Band] {
        guard !spans.isEmpty else { return [] }
        let piece = max((time.upperBound - time.lowerBound) / pieces + 1, 1)
        var filled: [UInt64: [State: UInt64]] = [:]
        for span in spans {
            var at = span.begin
            while at < span.end {
                // A damaged file may reach to the end of all numbers.
                let (number, past) = (at - time.lowerBound).quotientAndRemainder(dividingBy: piece), part = min(span.end - at, piece - past)
                filled[number, default: [:]][span.state, default: 0] += part
                at += part
            }
        }
        var bands: [Band] = []
        for (number, times) in filled.sorted(by: { $0.key < $1.key }) {
            for state in State.allCases {
                guard let part = times[state] else { continue }
                let share = (Double(part) / Double(piece) * 1000).rounded() / 1000
                if share > 0 { bands.append(Band(begin: time.lowerBound + number * piece, length: piece, state: state, share: share)) }
            }
        }
        return bands
    }
}

extension StateTimeline.Wait {
    /// - Parameter index: nil: the agent had it wait
    fileprivate init(_ index: Int?, _ explanation: WaitExplanation, _ search: WaitSearch, _ spelt: (String) -> String) {
        guard let index else {
            (what, details, duration, stretches) = (WaitSearch.forAgent, [], 0, 1)
            return
        }
        let wait = search.waits[index]
        what = explanation.what(wait, spelt)
        details =
            explanation.details(index, spelt) + [explanation.stackText(index, deepest: WaitReport.usualFrames, spelt)].compactMap { $0 }
        duration = wait.duration
        stretches = wait.count
        if let waker = wait.waker, let thread = search.threads[waker.thread].thread {
            self.waker = .init(thread: thread, begun: nil, at: waker.at, ran: waker.late.map { waker.at &+ $0 })
        } else if let other = wait.otherProcess, let thread = other.thread {
            let late = search.trace.timeScale.ticks(other.late)
            self.waker = .init(thread: thread, begun: other.begun, at: wait.end - min(late, wait.end), ran: wait.end)
        }
    }
}

extension WaitSearch {
    fileprivate struct Stretch {
        var begin: UInt64, end: UInt64
        var state: StateTimeline.State
        var isWait = false
        var wait: Int?
    }

    /// Returns a thread's stretches clipped to a part of the time, without empty ones, in order.
    fileprivate func stretches(of thread: Int, in time: Range<UInt64>) -> [Stretch] {
        let ran = threads[thread].stretches.lazy.filter { $0.state == .running || $0.state == .unknown }.flatMap { trace.window.parts($0) }
            .map { Stretch(begin: $0.begin, end: $0.end, state: $0.state == .running ? .running : .unknown) }
        let waited = parts[thread].lazy.map {
            Stretch(begin: $0.begin, end: $0.end, state: StateTimeline.State($0.kind), isWait: true, wait: $0.wait)
        }
        return (Array(ran) + Array(waited)).compactMap { stretch in
            let part = (stretch.begin..<stretch.end).clamped(to: time)
            guard !part.isEmpty else { return nil }
            var cut = stretch
            (cut.begin, cut.end) = (part.lowerBound, part.upperBound)
            return cut
        }.sorted { $0.begin < $1.begin }
    }
}
