// Phrases for the parts of a program's run that a trace does not have: every reader that shows calls prints them.
import CTraceLayout
import Presentation

extension TraceFile {
    /// Chunks that a ring overwrote, or that a damaged file lacks.
    package var missingChunkCount: UInt64 {
        chunksOfThread.reduce(0) { sum, chunks in sum &+ (chunks.last.map { $0.sequence &+ 1 &- UInt64(chunks.count) } ?? 0) }
    }

    /// Calls that were made and are not kept, as was asked for.
    package var filteredCalls: UInt64 {
        chunksOfThread.joined().reduce(0) { $0 &+ $1.filtered }
    }

    /// A phrase each; none of a trace that has everything. Whether it is damaged is in `warnings`.
    package var losses: [String] {
        let all = Losses([self])
        return all.lost + all.filtered + all.unrecorded + all.state
    }
}

/// Phrases for what several traces together do not have.
package struct Losses {
    /// Losses against the user's will.
    package private(set) var lost: [String] = []
    /// Filtered calls, and short functions suppressed after many calls.
    package private(set) var filtered: [String] = []
    /// Programs of the run that have no trace: nothing of these traces is missing.
    package private(set) var unrecorded: [String] = []
    /// States of traces that are not finished.
    package private(set) var state: [String] = []

    package init(_ traces: [TraceFile]) {
        func sum(_ count: (TraceFile) -> UInt64) -> UInt64 { traces.reduce(0) { $0 &+ count($1) } }
        func add(_ count: UInt64, _ noun: String, _ nouns: String, _ what: String, to list: inout [String]) {
            if count > 0 { list.append("\(counted(count, noun, nouns)) \(what)") }
        }
        add(sum { $0.lostCalls }, "call", "calls", "dropped", to: &lost)
        add(sum { UInt64($0.header.unrecorded_children) }, "forked process", "forked processes", "not recorded", to: &lost)
        if let text = traces.flatMap(\.metadata.unrecorded).countText { unrecorded.append(text) }
        add(sum { $0.isRing ? $0.missingChunkCount : 0 }, "chunk", "chunks", "overwritten", to: &lost)
        add(sum { $0.isRing ? 0 : $0.missingChunkCount }, "chunk", "chunks", "missing", to: &lost)
        add(sum { $0.chunksOfThread.joined().reduce(0) { $0 &+ $1.filteredByTime } }, "call", "calls", "filtered by time", to: &filtered)
        add(sum { $0.chunksOfThread.joined().reduce(0) { $0 &+ $1.filteredByDepth } }, "call", "calls", "filtered by depth", to: &filtered)
        add(
            sum { $0.chunksOfThread.joined().reduce(0) { $0 &+ $1.filteredByCondition } }, "call", "calls", "filtered by condition",
            to: &filtered)
        add(sum { UInt64($0.metadata.suppressed.count) }, "short function", "short functions", "suppressed after many calls", to: &filtered)
        let unfinished = traces.filter { $0.mayGoOn }.map { $0.stateText }
        for text in Set(unfinished).sorted() {
            let count = unfinished.count { $0 == text }
            state.append(traces.count == 1 ? text : "\(counted(UInt64(count), "trace")) \(text)")
        }
    }
}
