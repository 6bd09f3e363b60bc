// Reads every event of a trace, on several threads, and adds up what each function did.
import CTraceLayout
import Dispatch
import Glibc
import Synchronization
import TraceFormat

public struct FunctionSummary: Sendable {
    public var name: String
    /// As in the file, not demangled.
    public var symbol: String
    public var module: String
    public var calls: UInt64
    /// Calls whose length is known: not entries of which no exit is recorded.
    public var timedCalls: UInt64
    /// Recursive calls are counted once, by their outermost.
    public var total: Nanoseconds
    /// Without the calls made from it, in nanoseconds. Negative only where frames did not nest (coroutines).
    public var selfTime: Int64
    /// Of one call; nil when none has a known length.
    public var average, minimum, maximum, median, percentile99: Nanoseconds?
}

public struct ThreadSummary: Sendable {
    public var index: UInt32
    public var tid: UInt32
    public var name: String
    public var calls: UInt64
    public var chunks: Int
    /// Chunks that a ring overwrote, or that a damaged file lacks.
    public var missingChunks: UInt64
    public var openFrames: Int
}

public struct Summary: Sendable {
    /// Only those with calls or times, in no order.
    public private(set) var functions: [FunctionSummary] = []
    public private(set) var threads: [ThreadSummary] = []
    public private(set) var duration = Nanoseconds(0)
    public private(set) var end = Ticks(0)
    public private(set) var calls: UInt64 = 0
    /// Words that record calls: enters, exits and complete calls.
    public private(set) var events: UInt64 = 0
    public private(set) var completes: UInt64 = 0
    public private(set) var enters: UInt64 = 0
    public private(set) var exits: UInt64 = 0
    public private(set) var filteredByTime: UInt64 = 0
    public private(set) var filteredByDepth: UInt64 = 0
    public private(set) var dropped: UInt64 = 0
    /// Exits without an enter.
    public private(set) var orphans: UInt64 = 0
    public private(set) var unwound: UInt64 = 0
    public private(set) var migrations: UInt64 = 0
    public private(set) var lost: UInt64 = 0
    public private(set) var marks: UInt64 = 0
    public private(set) var unknownWords: UInt64 = 0
    /// Chunks of a ring still being recorded that were overwritten before or while they were read.
    public private(set) var overwritten: UInt64 = 0

    /// - Parameter workers: how many threads read; memory is a megabyte or two for each and what the functions need.
    public init(_ trace: TraceFile, workers workerCount: Int = Summary.processorCount, names: Bool = true) {
        let table = FunctionTable(trace.metadata)
        let units = Self.units(trace)
        let next = Atomic<Int>(0)
        let count = max(min(workerCount, units.count), 1)
        let workers = (0 ..< count).map { _ in SummaryWorker(trace, table) }
        DispatchQueue.concurrentPerform(iterations: count) { index in
            while true {
                let unit = next.wrappingAdd(1, ordering: .relaxed).oldValue
                guard unit < units.count else { return }
                workers[index].read(units[unit])
            }
        }
        let all = workers[0]
        for worker in workers.dropFirst() { all.add(worker) }
        end = Ticks(max(all.latest, trace.lastSample.raw))
        all.closeOpenFrames(at: end)
        duration = trace.timeScale.nanoseconds(from: trace.firstTicks, to: end)
        summarize(trace, all, table)
        guard names else { return }
        functions = all.functions(table, trace.timeScale)
    }

    public static var processorCount: Int { min(max(sysconf(Int32(_SC_NPROCESSORS_ONLN)), 1), 16) }

    private mutating func summarize(_ trace: TraceFile, _ all: SummaryWorker, _ table: FunctionTable) {
        all.withCounts { counts in
            calls = counts.calls
            completes = counts.completes
            enters = counts.enters
            exits = counts.exits
            orphans = counts.orphans
            unwound = counts.unwound
            migrations = counts.migrations
            lost = counts.lost
            marks = counts.marks
            unknownWords = counts.unknownWords
        }
        overwritten = all.overwritten
        events = completes &+ enters &+ exits
        dropped = trace.header.dropped
        for chunks in trace.chunksOfThread {
            guard let last = chunks.last else { continue }
            for chunk in chunks {
                filteredByTime &+= chunk.filteredByTime
                filteredByDepth &+= chunk.filteredByDepth
                dropped &+= chunk.dropped
            }
            threads.append(ThreadSummary(
                index: last.thread, tid: last.tid, name: trace.threadName(last.thread), calls: all.calls[last.thread] ?? 0,
                chunks: chunks.count, missingChunks: last.sequence &+ 1 &- UInt64(chunks.count),
                openFrames: all.openFrames[last.thread] ?? 0))
        }
    }

    /// Chunks of one thread that one worker must read in order. A chunk that stores all its open frames and follows
    /// its predecessor can be read alone; one with a gap before it, or with frames cut off, cannot.
    static func units(_ trace: TraceFile) -> [Unit] {
        var units: [Unit] = []
        for chunks in trace.chunksOfThread {
            var first = 0
            for index in 1 ... max(chunks.count, 1) {
                let isBoundary = index == chunks.count || (chunks[index].sequence == chunks[index - 1].sequence &+ 1
                    && !chunks[index].isCut)
                guard isBoundary else { continue }
                units.append(Unit(chunks: chunks[first ..< index], isFirst: first == 0, isLast: index == chunks.count))
                first = index
            }
        }
        return units.sorted { $0.chunks.first!.offset < $1.chunks.first!.offset }
    }

    struct Unit: Sendable {
        var chunks: ArraySlice<Chunk>
        /// Of its thread.
        var isFirst: Bool
        var isLast: Bool
    }
}
