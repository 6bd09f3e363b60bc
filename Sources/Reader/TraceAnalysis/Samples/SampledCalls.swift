// Finds the recorded calls that were open at each sample. Chunks are read in any order, so each call, as it ends, looks for the samples
// taken while it was open.
import CTraceLayout
import TraceFormat

struct SampledCalls: Sendable {
    struct Call: BitwiseCopyable, Sendable {
        var entered: UInt64
        /// .max: not before the trace did.
        var ended: UInt64
        var depth: Int32
        var function: UInt32
        /// The sample is further from its beginning and its end than the clocks may differ.
        var isCertain: Bool
    }
    /// Calls by sample number, outermost first.
    private let calls: [[Call]]

    init(_ trace: TraceFile, _ records: SampleRecords, workers: Int, progress: ReadingProgress?) {
        let ofThread = SamplesOfThread(trace, records), count = records.samples.count, clocks = CallPlaces.Limits(trace).clocks
        let all = StreamWorker.read(trace, FunctionNames(unnamed: trace.metadata), workers: workers, progress: progress) {
            SampledCallSink(ofThread, count, clocks)
        }
        calls = all.withSink { sink in
            sink.callsOfSample.map { $0.sorted { ($0.entered, $0.depth) < ($1.entered, $1.depth) } }
        }
    }

    /// Outermost first.
    subscript(_ sample: Int) -> [Call] { calls[sample] }
}

/// The samples of each thread of the trace, in the order of time.
struct SamplesOfThread: Sendable {
    struct Moment: BitwiseCopyable, Sendable {
        var at: UInt64
        var sample: Int32
    }
    /// Samples by thread id. Threads of the trace that have had the same id, one after the other, share them.
    private let moments: [UInt32: [Moment]]
    private let tids: [UInt32: UInt32]

    init(_ trace: TraceFile, _ records: SampleRecords) {
        var moments: [UInt32: [Moment]] = [:]
        for (number, sample) in records.samples.enumerated() {
            moments[sample.tid, default: []].append(Moment(at: sample.at, sample: Int32(clamping: number)))
        }
        self.moments = moments
        tids = Dictionary(
            trace.chunksOfThread.compactMap { $0.last }.map { ($0.thread, $0.tid) }, uniquingKeysWith: { first, _ in first })
    }

    func of(_ thread: UInt32) -> [Moment] { tids[thread].flatMap { moments[$0] } ?? [] }
}

private struct SampledCallSink: StreamSink, ~Copyable {
    private let ofThread: SamplesOfThread
    /// Ticks by which the clocks of samples and calls may differ.
    private let clocks: UInt64
    private var moments: [SamplesOfThread.Moment] = []
    /// First of `moments` that is not before the latest end. Calls of a unit end in the order of time.
    private var next = 0
    private(set) var callsOfSample: [[SampledCalls.Call]]
    var migratedCalls = Migrations()
    private(set) var calls: UInt64 = 0

    init(_ ofThread: SamplesOfThread, _ count: Int, _ clocks: UInt64) {
        self.ofThread = ofThread
        self.clocks = clocks
        callsOfSample = Array(repeating: [], count: count)
    }

    mutating func begin(thread: UInt32) {
        moments = ofThread.of(thread)
        next = 0
    }

    @inline(__always) private mutating func note(_ function: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        if next > 0, moments[next - 1].at >= end { next = bisect(moments.count) { moments[$0].at < end } } // another unit
        while next < moments.count, moments[next].at < end { next += 1 }
        var index = next
        while index > 0, moments[index - 1].at >= start {
            index -= 1
            let at = moments[index].at
            callsOfSample[Int(moments[index].sample)].append(
                SampledCalls.Call(
                    entered: start, ended: end, depth: Int32(clamping: depth), function: function,
                    isCertain: at &- start >= clocks && end &- at >= clocks))
        }
    }

    /// Functions are known by their ids.
    mutating func row(of function: UInt32) -> UInt32 { function }
    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending) {
        if ending == .elsewhere { return }
        // Samples may be younger than the last event: the calls that were open then still were.
        note(frame.row, from: frame.enter, to: ending == .open ? .max : time, depth: depth)
    }
    @inline(__always)
    mutating func leaf(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool) {
        note(row, from: start, to: end, depth: depth)
    }
    mutating func migrated(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        migratedCalls.insert(row, enter: start, end: end)
    }

    mutating func add(_ other: borrowing SampledCallSink) {
        for index in callsOfSample.indices { callsOfSample[index] += other.callsOfSample[index] }
        addMigratedCalls(of: other)
    }
}
