// Reads the chunks of a trace in any order, on several threads, each into a sink of its own; the sinks are then added up.
// The sums in a sink must be additive: chunks are read alone, and a call may begin in one and end in another.
import CTraceLayout
import Dispatch
import Glibc
import Synchronization
import TraceFormat

/// A sink of which every reading thread has one.
protocol StreamSink: CallSink, ~Copyable {
    /// Calls reported so far.
    var calls: UInt64 { get }
    /// Begins a part of this thread: all that follows is from it.
    mutating func begin(thread: UInt32)
    /// True if a part of this thread between these ticks has something for the sink: otherwise it is not read.
    mutating func wants(thread: UInt32, from begin: UInt64, to end: UInt64) -> Bool
    /// The part ends at `time`, and the call goes on in another one, where its time is counted from then on.
    mutating func carried(_ frame: Frame, until time: UInt64, depth: Int, parent: Frame)
    /// The part has ended: all calls that go on have been carried.
    mutating func endPart()
    /// Adds the sums of the other sink.
    mutating func add(_ other: borrowing Self)
    /// Returns this sink's row for a row of `other`: the same, unless it numbers functions that no record describes.
    mutating func translate(_ row: UInt32, from other: borrowing Self) -> UInt32
    /// Returns a frame of `other`, which was added, with this sink's numbers for functions.
    mutating func translate(_ frame: Frame, from other: borrowing Self) -> Frame
    var migratedCalls: Migrations { get set }
    /// Returns the calls that were counted alone and for which recorded ones stand, by row, since it was asked last.
    mutating func takeStood() -> [UInt32: UInt64]
}

extension StreamSink where Self: ~Copyable {
    mutating func begin(thread: UInt32) {}
    mutating func wants(thread: UInt32, from begin: UInt64, to end: UInt64) -> Bool { true }
    mutating func carried(_ frame: Frame, until time: UInt64, depth: Int, parent: Frame) {}
    mutating func endPart() {}
    mutating func takeStood() -> [UInt32: UInt64] { [:] }

    mutating func translate(_ row: UInt32, from other: borrowing Self) -> UInt32 { row }

    mutating func translate(_ frame: Frame, from other: borrowing Self) -> Frame {
        var frame = frame
        frame.row = translate(frame.row, from: other)
        return frame
    }

    mutating func addMigratedCalls(of other: borrowing Self) {
        for (call, end) in other.migratedCalls.ends {
            let row = translate(call.row, from: other)
            migratedCalls.insert(row, enter: call.enter, end: end)
        }
    }
}

/// Progress of a command's work, for a progress bar: it may read its traces several times, each in a part of the work.
package final class ReadingProgress: Sendable {
    private struct State {
        /// The part that is being done, of the whole: 0 ... 1.
        var part = 0.0...1.0
        /// Units of it that are done, and all.
        var done = 0, all = 0
        /// A part may turn out to need another reading: progress does not go back.
        var reached = 0.0

        mutating func share() -> Double {
            let inPart = all == 0 ? 0 : min(Double(done) / Double(all), 1)
            reached = max(reached, part.lowerBound + (part.upperBound - part.lowerBound) * inPart)
            return reached
        }
    }
    private let state = Mutex(State())

    package init() {}

    /// 0 ... 1.
    package var share: Double { state.withLock { $0.share() } }

    func begin(_ count: Int) {
        state.withLock {
            _ = $0.share()
            ($0.done, $0.all) = (0, count)
        }
    }
    func advance() { state.withLock { $0.done += 1 } }

    fileprivate func enter(_ part: ClosedRange<Double>) -> ClosedRange<Double> {
        state.withLock {
            let whole = $0.part, length = whole.upperBound - whole.lowerBound
            $0.part = whole.lowerBound + length * part.lowerBound...whole.lowerBound + length * part.upperBound
            ($0.done, $0.all) = (0, 0)
            return whole
        }
    }
    fileprivate func leave(to whole: ClosedRange<Double>) {
        state.withLock {
            ($0.done, $0.all) = (1, 1)
            _ = $0.share()
            ($0.part, $0.done, $0.all) = (whole, 0, 0)
        }
    }
}

extension ReadingProgress? {
    /// Does a part of the work: from this share of what is being done to that one.
    package func part<R>(_ from: Double, _ to: Double, _ body: () throws -> R) rethrows -> R {
        guard let progress = self else { return try body() }
        let whole = progress.enter(from...max(from, to))
        defer { progress.leave(to: whole) }
        return try body()
    }

    /// Does the same for each element, each of which is as much of the work as its weight says.
    package func each<Element, R>(_ elements: [Element], weight: (Element) -> UInt64, _ body: (Element) throws -> R) rethrows -> [R] {
        let weights = elements.map { Double(max(weight($0), 1)) }, all = weights.reduce(0, +)
        var before = 0.0
        return try zip(elements, weights).map { element, weight in
            defer { before += weight }
            return try part(before / all, min((before + weight) / all, 1)) { try body(element) }
        }
    }
}

/// Used by one thread at a time: by its own while it reads, then by the thread that merges.
final class StreamWorker<Sink: StreamSink & ~Copyable>: @unchecked Sendable {
    private let trace: TraceFile
    private var reader: ChunkReader
    private(set) var stack: CallStack<Sink>
    private(set) var latest: UInt64 = 0
    /// Ends by `ThreadEnds`, latest events (or the end of calls that the thread left open), calls and open frames, by thread index.
    private(set) var endOfThread: [UInt32: UInt64] = [:]
    private(set) var latestOfThread: [UInt32: UInt64] = [:]
    private(set) var calls: [UInt32: UInt64] = [:]
    private(set) var openFrames: [UInt32: Int] = [:]
    /// Calls that were counted alone and for which recorded ones stand, by thread and row.
    private var stood: [UInt32: [UInt32: UInt64]] = [:]
    /// Chunks that a ring overwrote between the walk over the file and the reading of them.
    private(set) var overwritten: UInt64 = 0
    /// Frames open at the end of each thread, and the next bound of the window there.
    private var openAtEnd: [(thread: UInt32, frames: [Frame], bound: Int)] = []

    private init(_ trace: TraceFile, _ sink: consuming Sink, rowCount: Int) {
        self.trace = trace
        reader = ChunkReader(trace)
        stack = CallStack(sink, rowCount: rowCount, window: trace.lifetime)
    }

    /// Reads all events of the trace that its window has. What is still running at the end has been closed.
    /// - Parameter workerCount: how many threads read; nil: one, and each thread's parts in the order of time
    static func read(
        _ trace: TraceFile, _ table: FunctionNames, workers workerCount: Int?, progress: ReadingProgress? = nil,
        _ sink: () -> Sink
    ) -> StreamWorker {
        // A ring's file has them in another order.
        let units = workerCount == nil ? trace.units().sorted { $0.begin < $1.begin } : trace.units()
        let next = Atomic<Int>(0)
        let count = max(min(workerCount ?? 1, units.count), 1)
        progress?.begin(units.count)
        var workers: [StreamWorker] = []
        for _ in 0..<count { workers.append(StreamWorker(trace, sink(), rowCount: table.rowCount)) }
        let readers = workers
        DispatchQueue.concurrentPerform(iterations: count) { index in
            while true {
                let unit = next.wrappingAdd(1, ordering: .relaxed).oldValue
                guard unit < units.count else { return }
                readers[index].read(units[unit])
                progress?.advance()
            }
        }
        let all = workers[0]
        for worker in workers.dropFirst() { all.add(worker) }
        // Calls may have returned on a thread that is not shown.
        var others: StreamWorker?
        if !all.openAtEnd.isEmpty, let hidden = trace.ofOtherThreads {
            others = read(hidden, table, workers: workerCount, sink)
        }
        all.closeOpenFrames(others)
        all.countRest()
        return all
    }

    /// Adds the calls that threads counted and for which no recorded one stands. In a window of time they are not known.
    private func countRest() {
        guard trace.window.isWhole else { return }
        for thread in latestOfThread.keys.sorted() {
            guard let counts = trace.metadata.passed[thread] else { continue }
            let callsBefore = stack.sink.calls
            stack.sink.begin(thread: thread)
            var ofRow: [UInt32: UInt64] = [:]
            for (function, count) in counts { ofRow[stack.sink.row(of: function), default: 0] &+= count }
            for (row, count) in ofRow.sorted(by: { $0.key < $1.key }) {
                let known = stood[thread]?[row] ?? 0
                if count > known { stack.sink.counted(row, count &- known) }
            }
            calls[thread, default: 0] &+= stack.sink.calls &- callsBefore
        }
    }

    private func read(_ unit: TraceFile.Unit) {
        guard let thread = unit.chunks.first?.thread else { return }
        // A thread's last unit says how long it lived.
        if !unit.isLast,
            !trace.window.touches(unit.begin, unit.end) || !stack.sink.wants(thread: thread, from: unit.begin, to: unit.end)
        {
            return
        }
        stack.seek(unit.begin)
        stack.sink.begin(thread: thread)
        stack.beginPart(at: unit.begin)
        let callsBefore = stack.sink.calls
        var latestOfThread: UInt64 = 0
        var previous: Chunk?
        for listed in unit.chunks {
            guard let chunk = reader.settled(listed) else {
                overwritten += 1
                continue
            }
            let stored = reader.storedFrames(chunk), sites = Sink.wantsSites ? reader.storedSites(chunk) : []
            // Calls that began in chunks which the file does not have are counted where they first show. Those of a
            // thread's very first chunk were made before the trace: by the parent of a forked process.
            let areCalls = (previous != nil || unit.isFirst) && chunk.sequence > 0
            stack.begin(chunk, stored, sites: sites, after: previous, latest: latestOfThread, areCalls: areCalls)
            latestOfThread = max(latestOfThread, reader.read(chunk, into: &stack))
            previous = chunk
        }
        if unit.isLast, let opened = previous?.opened.ticks { latestOfThread = max(latestOfThread, opened) }
        latest = max(latest, latestOfThread)
        self.latestOfThread[thread] = max(self.latestOfThread[thread] ?? 0, latestOfThread)
        calls[thread, default: 0] &+= stack.sink.calls &- callsBefore
        stood[thread, default: [:]].merge(stack.sink.takeStood()) { $0 &+ $1 }
        if unit.isLast, stack.frames.count > 0 {
            openAtEnd.append((thread, (0..<stack.frames.count).map { stack.frames[$0] }, stack.nextBound))
        }
        if !unit.isLast { // for what goes on in the next unit
            stack.advance(to: unit.end)
            stack.carry(until: unit.end)
            stack.sink.endPart()
        }
        stack.abandon()
    }

    private func add(_ other: StreamWorker) {
        stack.add(other.stack)
        latest = max(latest, other.latest)
        overwritten += other.overwritten
        latestOfThread.merge(other.latestOfThread) { max($0, $1) }
        calls.merge(other.calls) { $0 &+ $1 }
        for (thread, calls) in other.stood {
            for (row, count) in calls {
                stood[thread, default: [:]][stack.sink.translate(row, from: other.stack.sink), default: 0] &+= count
            }
        }
        for (thread, frames, bound) in other.openAtEnd {
            openAtEnd.append((thread, frames.map { stack.sink.translate($0, from: other.stack.sink) }, bound))
        }
    }

    /// The end of the process, or its latest event.
    var end: Ticks { Ticks(max(latest, trace.ends.process.raw)) }

    /// Calls that had not returned last until their thread ended, or the process.
    /// - Parameter others: threads that are not shown, on which they may have returned
    private func closeOpenFrames(_ others: StreamWorker?) {
        if let others { stack.sink.addMigratedCalls(of: others.stack.sink) }
        let ends = Dictionary(
            uniqueKeysWithValues: latestOfThread.map { ($0, CallEnds.End(trace.ends, of: $0, after: $1, latest: latest)) })
        endOfThread = ends.mapValues(\.time)
        let migrated = stack.sink.migratedCalls
        for (thread, frames, bound) in openAtEnd {
            guard let end = ends[thread] else { continue }
            stack.sink.begin(thread: thread)
            stack.resume(bound)
            stack.restore(frames)
            stack.closeDeparted { migrated.end(of: $0).map { min($0, end.time) } }
            openFrames[thread] = stack.frames.count
            if stack.frames.count > 0 { latestOfThread[thread] = end.time }
            stack.closeAll(at: end.time, end.how)
        }
        openAtEnd = []
    }

    /// Calls `body` with the sink, which has the sums.
    func withSink<R>(_ body: (inout Sink) -> R) -> R { body(&stack.sink) }
}

extension TraceFile {
    /// Chunks of one thread that one worker must read in order.
    struct Unit: Sendable {
        var chunks: ArraySlice<Chunk>
        /// True if it is the first, or the last, unit of its thread.
        var isFirst: Bool
        var isLast: Bool
        /// Ticks between which it lies: from its own opening (0 for the first unit) to that of the thread's next unit (.max for the last).
        var begin: UInt64
        var end: UInt64

        /// Words of its events, whether they record a call or not.
        var wordCount: UInt64 { chunks.reduce(0) { $0 &+ UInt64(max($1.endOffset - $1.bodyOffset, 0)) / 8 } }
    }

    /// A chunk that stores all its open frames and follows its predecessor can be read alone; one with a gap before it,
    /// or with frames cut off, cannot. Nor can the one that first stores frames which were open, and cut off, before a thread's first chunk
    /// or in a gap: that they are new only the chunk before says.
    func units() -> [Unit] {
        var units: [Unit] = []
        for chunks in chunksOfThread {
            var first = 0, areHidden = chunks.first?.isCut ?? false
            for index in 1...max(chunks.count, 1) {
                let isNext = index == chunks.count || chunks[index].sequence == chunks[index - 1].sequence &+ 1
                let isBoundary = index == chunks.count || isNext && !chunks[index].isCut && !areHidden
                if index < chunks.count { areHidden = chunks[index].isCut && (areHidden || !isNext) }
                guard isBoundary else { continue }
                let isLast = index == chunks.count
                let begin = first == 0 ? 0 : chunks[first].opened.ticks
                units.append(
                    Unit(
                        chunks: chunks[first..<index], isFirst: first == 0, isLast: isLast, begin: begin,
                        end: isLast ? .max : max(chunks[index].opened.ticks, begin)))
                first = index
            }
        }
        return units.sorted { $0.chunks.first!.offset < $1.chunks.first!.offset }
    }

    /// Words of event chunks that the window touches, whether they record a call or not.
    package var wordCount: UInt64 {
        units().lazy.filter { window.touches($0.begin, $0.end) }.reduce(0) { $0 &+ $1.wordCount }
    }

    package static var cpuCount: Int { min(max(sysconf(Int32(_SC_NPROCESSORS_ONLN)), 1), 16) }
}
