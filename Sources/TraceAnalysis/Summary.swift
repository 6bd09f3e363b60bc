// Reads every event of a trace, on several threads, and adds up what each function did.
import CTraceLayout
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
    /// Without what recording took; nil where that is not asked for.
    public var correctedTotal: Nanoseconds?
    public var correctedSelf: Int64?
    /// Where rows tell callers apart.
    public var caller: String?
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
    public init(_ trace: TraceFile, workers: Int = TraceFile.processorCount, names: Bool = true, progress: ReadingProgress? = nil) {
        let table = FunctionTable(trace.metadata)
        let all = StreamWorker.read(trace, table, workers: workers, progress: progress) { Accumulator(table) }
        end = all.end
        duration = trace.timeScale.nanoseconds(from: trace.firstTicks, to: end)
        summarize(trace, all)
        guard names else { return }
        functions = all.withSink { $0.functions(table, trace.timeScale) }
    }

    /// Leaves out rows; the counts of the whole stay.
    public mutating func keep(_ isWanted: (FunctionSummary) -> Bool) { functions = functions.filter(isWanted) }

    /// Rows of another grouping of the same trace.
    public mutating func replaceRows(_ rows: [FunctionSummary]) { functions = rows }

    private mutating func summarize(_ trace: TraceFile, _ all: StreamWorker<Accumulator>) {
        completes = all.stack.completes
        enters = all.stack.enters
        exits = all.stack.exits
        all.withSink { sums in
            calls = sums.calls
            orphans = sums.orphans
            unwound = sums.unwound
            migrations = sums.migrations
            lost = sums.lost
            marks = sums.marks
            unknownWords = sums.unknownWords
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
}
