// One of the threads that read a trace for a summary.
import CTraceLayout
import TraceFormat

/// Used by one thread at a time: by its own while reading, then by the one that merges.
final class SummaryWorker: @unchecked Sendable {
    private let trace: TraceFile
    private var reader: ChunkReader
    private var stack: CallStack<Accumulator>
    private(set) var latest: UInt64 = 0
    /// By thread index.
    private(set) var calls: [UInt32: UInt64] = [:]
    private(set) var openFrames: [UInt32: Int] = [:]
    /// Chunks that a ring overwrote between the walk over the file and the reading of them.
    private(set) var overwritten: UInt64 = 0
    private var openAtEnd: [(thread: UInt32, frames: [Frame])] = []

    init(_ trace: TraceFile, _ table: FunctionTable) {
        self.trace = trace
        reader = ChunkReader(trace)
        stack = CallStack(Accumulator(table), slotCount: table.slotCount)
    }

    func read(_ unit: Summary.Unit) {
        guard let thread = unit.chunks.first?.thread else { return }
        let callsBefore = stack.sink.calls
        var latestOfThread: UInt64 = 0
        var previous: Chunk?
        for listed in unit.chunks {
            guard let chunk = reader.settled(listed) else {
                overwritten += 1
                continue
            }
            let stored = reader.storedFrames(chunk)
            // Calls that began in chunks which the file does not have are counted where they first show. Those of a
            // thread's very first chunk were made before the trace: by the parent of a forked process.
            let areCalls = (previous != nil || unit.isFirst) && chunk.sequence > 0
            let bottom = previous == nil ? 0 : chunk.openFrames - chunk.storedFrames
            stack.adopt(stored, bottom: bottom, latest: latestOfThread, areCalls: areCalls)
            latestOfThread = max(latestOfThread, reader.read(chunk, into: &stack))
            previous = chunk
        }
        calls[thread, default: 0] &+= stack.sink.calls &- callsBefore
        latest = max(latest, latestOfThread)
        if unit.isLast, stack.frames.count > 0 {
            openAtEnd.append((thread, (0 ..< stack.frames.count).map { stack.frames[$0] }))
        }
        stack.abandon()
    }

    func add(_ other: SummaryWorker) {
        stack.add(other.stack)
        latest = max(latest, other.latest)
        overwritten += other.overwritten
        calls.merge(other.calls) { $0 &+ $1 }
        for (thread, frames) in other.openAtEnd {
            openAtEnd.append((thread, frames.map { frame in
                var frame = frame
                frame.slot = stack.sink.translate(frame.slot, from: other.stack.sink)
                return frame
            }))
        }
    }

    /// Calls that had not returned run until their thread ended or the trace does.
    func closeOpenFrames(at end: Ticks) {
        for (thread, frames) in openAtEnd {
            let own = frames.filter { !stack.sink.migrated.contains(.init(slot: $0.slot, enter: $0.enter)) }
            openFrames[thread] = own.count
            let ended = trace.metadata.threads[thread]?.ended
            stack.restore(own)
            stack.closeAll(at: min(ended ?? end, end).raw, ended == nil ? .open : .unwound)
        }
        openAtEnd = []
    }

    struct Counts {
        var calls, completes, enters, exits, orphans, unwound, migrations, lost, marks, unknownWords: UInt64
    }

    func withCounts(_ body: (Counts) -> Void) {
        body(Counts(calls: stack.sink.calls, completes: stack.completes, enters: stack.enters, exits: stack.exits,
                    orphans: stack.sink.orphans, unwound: stack.sink.unwound, migrations: stack.sink.migrations,
                    lost: stack.sink.lost, marks: stack.sink.marks, unknownWords: stack.sink.unknownWords))
    }

    func functions(_ table: FunctionTable, _ scale: TimeScale) -> [FunctionSummary] {
        stack.sink.functions(table, scale)
    }
}

extension Accumulator {
    /// The rows of a report. Entries and calls of one symbol and module are one row.
    mutating func functions(_ table: FunctionTable, _ scale: TimeScale) -> [FunctionSummary] {
        var slotOfRow: [FunctionTable.Row: Int] = [:]
        for slot in 1 ..< max(table.slotCount, 1) where isUsed(slot) {
            var key = table.rows[slot - 1]
            key.isTail = false
            if let first = slotOfRow[key] {
                merge(slot, into: first)
            } else {
                slotOfRow[key] = slot
            }
        }
        var result: [FunctionSummary] = []
        for slot in 1 ..< max(sums.count, 1) where isUsed(slot) {
            if slot < table.slotCount {
                result.append(summary(slot, table.rows[slot - 1], scale))
            } else {
                let name = FunctionTable.strangerName(strangers[slot - table.slotCount])
                let row = FunctionTable.Row(name: name, symbol: name, module: FunctionTable.noModule, isTail: false)
                result.append(summary(slot, row, scale))
            }
        }
        return result
    }

    private func isUsed(_ slot: Int) -> Bool {
        let sums = sums[slot]
        return sums.calls != 0 || sums.timed != 0 || sums.total != 0
    }

    private func summary(_ slot: Int, _ function: FunctionTable.Row, _ scale: TimeScale) -> FunctionSummary {
        let sums = sums[slot]
        var row = FunctionSummary(name: function.name, symbol: function.symbol, module: function.module, calls: sums.calls,
                                  timedCalls: sums.timed, total: scale.nanoseconds(sums.total),
                                  selfTime: scale.signedNanoseconds(sums.selfTime))
        guard sums.timed > 0 else { return row }
        row.average = scale.nanoseconds(sums.sum / sums.timed)
        row.minimum = scale.nanoseconds(sums.minimum)
        row.maximum = scale.nanoseconds(sums.maximum)
        if let values = durations.percentiles([50, 99], row: sums.row, minimum: sums.minimum, maximum: sums.maximum) {
            row.median = scale.nanoseconds(values[0])
            row.percentile99 = scale.nanoseconds(values[1])
        }
        return row
    }
}
