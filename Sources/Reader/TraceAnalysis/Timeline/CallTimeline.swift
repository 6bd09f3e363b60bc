// The calls of a thread in the order of time, as much of them as a page can hold: the long ones each by itself; of the
// short ones how much of each little stretch of time they fill. What is long is found while reading: whenever there are too
// many, the limit doubles and those below it become short.
import CTraceLayout
import Dispatch
import Synchronization
import TraceFormat

package struct CallTimeline: Sendable {
    package struct Slice: Sendable {
        package var start: UInt64, length: UInt64
        package var slot: UInt32
        package var depth: UInt32
        /// What was recorded with the call.
        package var arguments: RecordedValues?, result: RecordedValues?
    }
    /// A stretch at one depth, and the share of it, 0 … 1, that short calls fill.
    package struct Density: Sendable {
        package var start: UInt64, length: UInt64
        package var depth: UInt32
        package var share: Double
    }

    package let tid: UInt32
    /// Index of the thread in the trace.
    package let thread: UInt32
    /// Ticks, from which all others count.
    package let origin: UInt64
    /// In the order of their start.
    package let slices: [Slice]
    package let densities: [Density]
    package let calls: UInt64
    /// Depths that have something.
    package let levels: Int
    /// Calls deeper than can be shown.
    package let deeper: UInt64
    /// Calls that are in `densities` alone.
    package let bandCalls: UInt64
    /// Ticks (not since the origin) at which the thread begins and ends to run the program's code, as far as that is within. nil where
    /// the file does not say.
    package let life: Range<UInt64>?
    /// Ticks of it that no call covers.
    package let own: UInt64?

    package static let mostLevels = 48
    /// The slot of own code: what lies between the calls of the lowest level.
    package static let ownCode = UInt32.max

    /// Returns the timelines of the threads with the most chunks, in the order of their numbers.
    /// - Parameters:
    ///   - mostSlices: slices to keep, over all threads
    ///   - wanted: threads to choose from; nil: all
    package static func all(
        _ trace: TraceFile, from origin: UInt64, until end: UInt64, mostThreads: Int, mostSlices: Int, of wanted: Set<UInt32>? = nil,
        progress: ReadingProgress? = nil
    ) -> [CallTimeline] {
        let all = trace.chunksOfThread.filter { chunks in chunks.first.map { wanted?.contains($0.thread) ?? true } ?? false }
        let largest = all.sorted { ($0.count, $1[0].thread) > ($1.count, $0[0].thread) }.prefix(mostThreads)
        let chosen = Set(largest.map { $0[0].thread }), spans = ThreadSpans(trace)
        let units = Dictionary(grouping: trace.units().filter { chosen.contains($0.chunks.first?.thread ?? 0) }) { $0.chunks.first!.thread }
        let threads = chosen.sorted(), ordered = threads.map { (units[$0] ?? []).sorted { $0.begin < $1.begin } }
        let words = ordered.map { units in units.reduce(UInt64(0)) { trace.window.touches($1.begin, $1.end) ? $0 &+ $1.wordCount : $0 } }
        let shares = SliceShares.all(of: mostSlices, among: words)
        let found = Mutex([CallTimeline?](repeating: nil, count: threads.count))
        progress?.begin(ordered.reduce(0) { $0 + $1.count })
        DispatchQueue.concurrentPerform(iterations: threads.count) { index in
            let timeline = CallTimeline(
                trace, threads[index], ordered[index], spans, from: origin, until: end, most: shares[index], progress: progress)
            found.withLock { $0[index] = timeline }
        }
        return found.withLock { $0.compactMap { $0 } }
    }

    /// - Parameter most: slices to keep
    private init(
        _ trace: TraceFile, _ thread: UInt32, _ units: [TraceFile.Unit], _ spans: ThreadSpans, from origin: UInt64, until end: UInt64,
        most: Int, progress: ReadingProgress?
    ) {
        self.thread = thread
        self.origin = origin
        tid = units.first?.chunks.first?.tid ?? 0
        var reader = ChunkReader(trace)
        var sink = LaneSink(from: origin, until: end, most: most, window: trace.window)
        sink.ownSince = spans[thread]?.begin
        var stack = CallStack(sink, rowCount: 0, window: trace.window)
        var latest: UInt64 = 0, isRead = false
        for unit in units {
            defer { progress?.advance() }
            // A unit stores the frames that are open when it begins, so units outside the window need not be read.
            guard trace.window.touches(unit.begin, unit.end) else { continue }
            stack.seek(unit.begin)
            var previous: Chunk?
            for listed in unit.chunks {
                guard let chunk = reader.settled(listed) else { continue }
                let areCalls = (previous != nil || unit.isFirst) && chunk.sequence > 0
                stack.begin(chunk, reader.storedFrames(chunk), after: previous, latest: latest, areCalls: areCalls)
                previous = chunk
                latest = max(latest, reader.read(chunk, into: &stack))
            }
            if unit.isLast {
                isRead = true
                if let opened = previous?.opened.ticks { latest = max(latest, opened) }
            } else {
                stack.advance(to: unit.end)
                stack.abandon()
            }
        }
        let last = CallEnds.End(trace.ends, of: thread, after: latest, latest: end), isOpen = stack.frames.count > 0
        stack.closeAll(at: min(last.time, end), last.how)
        // The end of a thread that is not read to its end is beyond the window.
        let ended = isRead ? min(last.time, end) : end
        let span = spans.settled(thread, end: ended, latest: isRead && !isOpen ? latest : ended)
        if let span { stack.sink.finishOwnCode(at: span.end) }
        life = span.map { span in
            let from = min(max(span.begin, origin), end)
            return from..<max(min(span.end, end), from)
        }
        own = span == nil ? nil : stack.sink.own
        slices = stack.sink.slices.sorted { ($0.start, $1.length) < ($1.start, $0.length) }
        densities = stack.sink.densities
        calls = stack.sink.calls
        levels = stack.sink.levels
        deeper = stack.sink.deeper
        bandCalls = stack.sink.filledCalls
    }
}

/// Slots are function ids plus one.
private struct LaneSink: CallSink {
    private let from: UInt64, until: UInt64
    private let most: Int
    private let window: TimeWindow
    /// Ticks of own code.
    private(set) var own: UInt64 = 0
    /// Since when no call of the lowest level was open; nil where own code is not known.
    var ownSince: UInt64?
    private(set) var slices: [CallTimeline.Slice] = []
    private(set) var calls: UInt64 = 0
    private(set) var levels = 0
    private(set) var deeper: UInt64 = 0
    private(set) var filledCalls: UInt64 = 0
    /// Shorter calls are short. Ticks.
    private var limit: UInt64
    /// Ticks that short calls fill, by depth and stretch.
    private var filled: [UInt64]
    private static let stretches = 4096
    private let stretch: UInt64
    /// Arguments of open calls; a call may go on in another part of the thread.
    private var passed: [FrameKey: RecordedValues] = [:]
    private var nextArguments: RecordedValues?, nextResult: RecordedValues?

    init(from: UInt64, until: UInt64, most: Int, window: TimeWindow) {
        self.window = window
        let range = until > from ? min(until - from, 1 << 62) : 0 // a damaged file may say anything
        (self.from, self.until, self.most) = (from, from + range, most)
        limit = max(range / 200_000, 1)
        stretch = max((range + UInt64(Self.stretches) - 1) / UInt64(Self.stretches), 1)
        filled = [UInt64](repeating: 0, count: Self.stretches * CallTimeline.mostLevels)
    }

    /// Adds the own code since the last call of the lowest level. A part too short to be drawn gets no slice: the bands beneath say how
    /// much of the time calls fill.
    private mutating func own(until time: UInt64) {
        guard let since = ownSince, time > since else { return }
        let bounds = window.bounds
        var moment = window.moment(at: since)
        while 2 * moment < bounds.count, bounds[2 * moment] < time {
            let begin = max(since, bounds[2 * moment], from)
            let end = min(time, 2 * moment + 1 < bounds.count ? bounds[2 * moment + 1] : .max, until)
            if end > begin {
                own &+= end - begin
                if end - begin >= limit { add(CallTimeline.ownCode, begin, end, 0) }
            }
            moment += 1
        }
        ownSince = time
    }

    mutating func finishOwnCode(at time: UInt64) { own(until: time) }

    private mutating func add(
        _ slot: UInt32, _ start: UInt64, _ end: UInt64, _ depth: Int, _ arguments: RecordedValues? = nil, _ result: RecordedValues? = nil
    ) {
        if depth == 0, slot != CallTimeline.ownCode, let since = ownSince {
            own(until: start)
            ownSince = max(since, end)
        }
        let start = max(start, from), end = min(end, until)
        guard end >= start, start <= until else { return }
        guard depth < CallTimeline.mostLevels else {
            deeper &+= 1
            return
        }
        levels = max(levels, depth + 1)
        let slice = CallTimeline.Slice(
            start: start - from, length: end - start, slot: slot, depth: UInt32(depth), arguments: arguments, result: result)
        guard slice.length >= limit else { return fill(slice) }
        slices.append(slice)
        while slices.count > most {
            limit *= 2
            var kept: [CallTimeline.Slice] = []
            kept.reserveCapacity(most)
            for slice in slices {
                if slice.length >= limit { kept.append(slice) } else if slice.slot != CallTimeline.ownCode { fill(slice) }
            }
            slices = kept
        }
    }

    private mutating func fill(_ slice: CallTimeline.Slice) {
        filledCalls &+= 1
        // Over the stretches that it touches: at most a few, since it is short.
        var at = slice.start, left = slice.length
        while true {
            let bin = min(at / stretch, UInt64(Self.stretches - 1))
            let part = min(left, (bin + 1) * stretch - at)
            filled[Int(slice.depth) * Self.stretches + Int(bin)] &+= part
            left -= part
            at += part
            if left == 0 || part == 0 { return }
        }
    }

    /// Neighbours that are filled alike are one.
    var densities: [CallTimeline.Density] {
        var result: [CallTimeline.Density] = []
        for depth in 0..<CallTimeline.mostLevels {
            var open: (start: Int, level: Int)?
            func level(_ bin: Int) -> Int {
                guard bin < Self.stretches else { return 0 }
                let share = Double(filled[depth * Self.stretches + bin]) / Double(stretch)
                return share <= 0 ? 0 : max(1, Int(min(share * 10, 10).rounded()))
            }
            for bin in 0...Self.stretches {
                let now = level(bin)
                if let known = open, known.level != now {
                    result.append(
                        .init(
                            start: UInt64(known.start) * stretch, length: UInt64(bin - known.start) * stretch, depth: UInt32(depth),
                            share: Double(known.level) / 10))
                    open = nil
                }
                if open == nil, now > 0 { open = (bin, now) }
            }
        }
        return result
    }

    mutating func row(of function: UInt32) -> UInt32 { function &+ 1 }
    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        let values = nextArguments.take()
        guard isCall else { return }
        calls &+= 1
        if let values { passed[frame.key] = values }
    }
    static var wantsArguments: Bool { true }
    mutating func nextArguments(_ values: RecordedValues?) { nextArguments = values }
    mutating func nextResult(_ values: RecordedValues?) { nextResult = values }
    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending) {
        let arguments = passed.isEmpty ? nil : passed.removeValue(forKey: frame.key), result = nextResult.take()
        add(frame.row, frame.enter, time, depth, arguments, ending == .returned ? result : nil)
    }
    mutating func leaf(_ slot: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool) {
        calls &+= 1
        add(slot, start, end, depth, nextArguments.take())
    }
}
