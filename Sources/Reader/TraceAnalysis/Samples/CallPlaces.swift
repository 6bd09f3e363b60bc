// Finds where in a sampled stack the open calls of its thread are. The stack is in segments, the innermost first, with a mark
// (TRACE_SAMPLE_CALL) after each but the last: there the agent's label was the return address. So the last frame of a segment, its front,
// is the function that was called through the agent, or one that this function has gone on to by a jump.
//
// A call and a front of the same address belong together. What remains between two such pairs says little: there are marks without a
// call (main and initializers, which the agent calls but does not record as calls, and calls that are in no trace) and calls without a
// mark (of -finstrument-functions, of other stacks, and short ones, of which the clocks do not say whether they had begun). Nothing is
// made of them unless it can be nothing else.
import Presentation
import TraceFormat

struct CallPlaces {
    /// The call of each segment's front. Indices are those of the open calls, innermost first, here and below.
    private(set) var ofFrame: [Int: Int] = [:]
    /// The calls that have gone on to a segment's front by a jump, innermost first.
    private(set) var jumped: [Int: [Int]] = [:]
    /// Calls beyond the last frame of a stack that was cut, innermost first.
    private(set) var beyond: [Int] = []

    /// What is the same for all stacks of a trace.
    struct Limits {
        /// Ticks by which the clock of the samples and that of the calls may differ.
        let clocks: UInt64
        /// Ticks from the end of a call to that of the one which has gone on to it by a jump: both return at once.
        let ends: UInt64
        private let main: (tid: UInt32, ticks: Range<UInt64>)?

        init(_ trace: TraceFile) {
            // The clocks agree to 100 ns (docs/guide/samples.md).
            clocks = trace.timeScale.ticks(Nanoseconds(250))
            ends = trace.timeScale.ticks(Nanoseconds(5000))
            let start = trace.metadata.start
            main = start.phase(.main).map { main in
                let end = start.phase(.mainReturned)?.usage.ticks.raw ?? .max
                return (trace.header.pid, main.usage.ticks.raw..<max(end, main.usage.ticks.raw))
            }
        }

        /// Returns whether main was running on the sample's thread.
        func isInMain(_ sample: SampleRecords.Sample) -> Bool {
            main.map { $0.tid == sample.tid && $0.ticks.contains(sample.at) } ?? false
        }
    }

    private struct Pair {
        var segment: Int
        var isFront: Bool
        var call: Int
    }

    private let segments: [[SampledCode.Frame]]
    private let calls: [SampledCalls.Call]
    private let starts: [UInt64?]
    private let limits: Limits
    private var pairs: [Pair] = []

    /// Most calls without a mark between two that have one, and most marks without a call.
    private static let mostBetween = 64

    /// - Parameters:
    ///   - open: innermost first
    ///   - isStart: whether what was called at the mark after this segment is a function that the agent calls without a call in the trace
    init(
        _ segments: [[SampledCode.Frame]], isWhole: Bool, _ open: [SampledCalls.Call], _ metadata: Metadata, _ limits: Limits,
        isStart: (Int) -> Bool
    ) {
        self.segments = segments
        calls = open
        starts = open.map { metadata.functions[$0.function]?.address }
        self.limits = limits
        pair()
        var inner: Pair?
        for outer in pairs {
            place(after: inner, before: outer, isWhole: isWhole, isStart)
            inner = outer
        }
        place(after: inner, before: nil, isWhole: isWhole, isStart)
    }

    private func isOf(_ call: Int, _ frame: SampledCode.Frame?) -> Bool {
        guard call < calls.count, let start = frame?.start else { return false }
        return starts[call] == start
    }

    /// The front of a segment; the last one has none.
    private func front(_ segment: Int) -> SampledCode.Frame? { segment + 1 < segments.count ? segments[segment].last : nil }

    // MARK: - Calls whose functions are there

    private mutating func pair() {
        var next = 0
        for (index, segment) in segments.enumerated() {
            let front = front(index)
            for frame in segment.dropLast(front == nil ? 0 : 1) {
                // A call without a mark; but that of a front which then called itself.
                guard let call = same(from: next, frame), callCount(of: frame, from: call) > frontCount(like: frame, from: index) else {
                    continue
                }
                pairs.append(Pair(segment: index, isFront: false, call: call))
                next = call + 1
            }
            guard let front, let call = call(of: front, in: index, from: next) else { continue }
            ofFrame[index] = call
            pairs.append(Pair(segment: index, isFront: true, call: call))
            next = call + 1
        }
    }

    /// The next call, if it is the frame's; calls that are not certain may come before it.
    private func same(from next: Int, _ frame: SampledCode.Frame) -> Int? {
        var call = next
        while call < calls.count, !isOf(call, frame), !calls[call].isCertain { call += 1 }
        return isOf(call, frame) ? call : nil
    }

    /// The number of calls of the frame's function that follow each other.
    private func callCount(of frame: SampledCode.Frame, from call: Int) -> Int {
        (call..<min(call + Self.mostBetween, calls.count)).prefix { isOf($0, frame) }.count
    }

    /// The number of fronts of the frame's function that follow each other.
    private func frontCount(like frame: SampledCode.Frame, from segment: Int) -> Int {
        (segment..<min(segment + Self.mostBetween, segments.count)).prefix { front($0)?.start == frame.start }.count
    }

    /// The next call of the front's function. Either it or the front of one of the next marks is that of the call which is next; the
    /// nearer one is.
    private func call(of front: SampledCode.Frame, in segment: Int, from next: Int) -> Int? {
        var call = next, between = 0, first: Int?
        while call < calls.count, !isOf(call, front) {
            if calls[call].isCertain {
                first = first ?? call
                between += 1
                if between > Self.mostBetween { return nil }
            }
            call += 1
        }
        guard call < calls.count else { return nil }
        guard let first else { return call }
        let marks = (1...between).first { isOf(first, self.front(segment + $0)) }
        return marks == nil ? call : nil
    }

    // MARK: - Calls and marks between them

    private mutating func place(after inner: Pair?, before outer: Pair?, isWhole: Bool, _ isStart: (Int) -> Bool) {
        var open = ((inner?.call ?? -1) + 1..<(outer?.call ?? calls.count)).filter { calls[$0].isCertain }
        let first = inner.map { $0.isFront ? $0.segment + 1 : $0.segment } ?? 0
        var marks = (first..<max(outer?.segment ?? segments.count - 1, first)).filter { !isStart($0) }
        if inner == nil, segments[0].first?.isAgent == true {
            // A trampoline may be at work on the innermost call, which its function has not begun yet or has left.
            let isAtMark = segments[0].count == 1 && marks.first == 0
            if !open.isEmpty, isAtMark ? open.count >= marks.count : open.count > marks.count { open.removeFirst() }
            if isAtMark { marks.removeFirst() }
        }
        if open.isEmpty { return }
        if let mark = marks.first {
            // Some of a thread's outermost calls may be on other stacks.
            let isSure = outer == nil && isWhole ? open.count == marks.count : open.count >= marks.count
            guard isSure else { return }
            if marks.count == 1, outer != nil || isWhole {
                jumped[mark, default: []] += open
            } else {
                for (mark, call) in zip(marks, open) { jumped[mark, default: []].append(call) }
                if outer == nil { beyond = Array(open.dropFirst(marks.count)) }
            }
        } else if outer == nil, !isWhole {
            beyond = open
        } else if let inner, inner.isFront {
            var end = calls[inner.call].ended
            for call in open {
                guard calls[call].ended &- end <= limits.ends else { break }
                end = calls[call].ended
                jumped[inner.segment, default: []].append(call)
            }
        }
    }
}
