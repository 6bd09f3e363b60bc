// The native stacks of threads that were found waiting, with the names that samples have.
import CTraceLayout
import Presentation
import Symbols
import TraceFormat

/// Not for use by two threads at once.
final class WaitStacks {
    struct Stack {
        /// Innermost first.
        var frames: [CallTree.Function]
        /// The last is the thread's outermost.
        var isWhole: Bool
    }
    private let records: SampleRecords
    private let code: SampledCode
    /// Indices of the stacks of each thread id, in the order of time.
    private var ofThread: [UInt32: [Int]] = [:]

    init(_ trace: TraceFile, _ symbolizer: Symbolizer) {
        records = SampleRecords(trace, TRACE_RECORD_WAIT_STACKS)
        code = SampledCode(trace, records, symbolizer)
        for (index, stack) in records.samples.enumerated() { ofThread[stack.tid, default: []].append(index) }
    }

    /// The first that was found in this time, during which the thread waited; nil: nobody has looked, or it ran just then.
    func first(of tid: UInt32, in time: Range<UInt64>) -> Stack? {
        guard let all = ofThread[tid] else { return nil }
        let next = bisect(all.count) { records.samples[all[$0]].at < time.lowerBound }
        guard next < all.count, time.contains(records.samples[all[next]].at) else { return nil }
        return stack(records.samples[all[next]])
    }

    private func stack(_ sample: SampleRecords.Sample) -> Stack {
        var frames: [CallTree.Function] = [], wasAgent = false
        for address in records.stack(of: sample) where address != UInt64(TRACE_SAMPLE_CALL) {
            if address == UInt64(TRACE_SAMPLE_UNKNOWN) { return Stack(frames: frames, isWhole: false) }
            let frame = code.frame(address &- 1, at: sample.at)
            defer { wasAgent = frame.isAgent }
            if frame.isAgent, wasAgent { continue } // one frame of the agent is enough
            frames += frame.functions.map { code.functions[$0] }
        }
        return Stack(frames: frames, isWhole: sample.isWhole)
    }
}

extension WaitStacks.Stack {
    /// "read (libc.so.6) ← main (app) ← … 2 more": each called by the next; a last "…" stands for frames that are not known.
    /// - Parameter deepest: frames to show, 0 all
    func text(deepest: Int, _ spelt: (String) -> String) -> String {
        let shown = deepest == 0 ? frames[...] : frames.prefix(deepest)
        var parts = shown.map { spelt($0.name) + ($0.module == FunctionNames.noModule ? "" : " (\($0.module))") }
        if shown.count < frames.count { parts.append("… \(grouped(frames.count - shown.count)) more") }
        if !isWhole { parts.append(MergedStack.unknown.name) }
        return parts.joined(separator: " ← ")
    }
}

extension WaitStacks.Stack: Record {
    static let members = declare {
        Member("frames", "innermost first, inlined functions as well") { $0.frames.map { FrameRow(function: $0) } }
        Member("is_whole", "the last frame is the thread's outermost; false: the others are not known", \.isWhole)
    }
}

private struct FrameRow: Record {
    var function: CallTree.Function

    static let members = declare {
        Member("name", \.function.name)
        Member("symbol", "mangled; empty where it has none", \.function.symbol)
        Member("module", \.function.module)
    }
}
