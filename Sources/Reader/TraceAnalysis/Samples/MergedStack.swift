// Merges a sampled stack with the calls that the trace has open at that moment. The sample is exact from the instruction outwards as far as
// it reaches; the trace is exact from the outermost call inwards, and has recorded calls only. Marks in the sample (TRACE_SAMPLE_CALL) say
// between which frames a recorded call lies. Frames that neither knows are "…".
import CTraceLayout

package struct MergedStack {
    /// In `SampledCode.functions`, outermost first.
    private(set) var functions: [Int] = []

    package static let unknown = CallTree.Function(name: "…", symbol: "…", module: FunctionNames.noModule)

    /// - Parameters:
    ///   - kernel: the kernel's part of the stack, innermost first
    ///   - stack: the process's part, innermost first
    ///   - open: function ids of the calls that have a label, innermost first
    init(
        _ sample: SampleRecords.Sample, kernel: ArraySlice<UInt64>, _ stack: ArraySlice<UInt64>, open: [UInt32], _ code: SampledCode,
        _ metadata: Metadata
    ) {
        var found = sample.isInKernel ? code.kernel(kernel) : [] // innermost first
        let (segments, isWhole) = Self.segments(stack, sample, code)
        var next = 0 // index in `open`
        func isOf(_ call: Int, _ frame: SampledCode.Frame?) -> Bool {
            guard call < open.count, let start = frame?.start else { return false }
            return metadata.functions[open[call]]?.address == start
        }
        for (index, segment) in segments.enumerated() {
            let marks = segments.count - 1 - index // from here on
            // As a rule the mark is for the call of the outermost frame here, which then goes by the name that the trace has for it.
            let call = marks == 0 ? nil : Self.call(from: next, of: open.count, marks: marks, segment, isFirst: index == 0, isOf)
            if let call, index > 0 {
                // They share the mark before, whose function they have gone on to by a jump (a tail call through a slot).
                for jumped in next..<call where !segment.contains(where: { isOf(jumped, $0) }) {
                    found.append(code.number(ofCall: open[jumped], metadata))
                }
            }
            for frame in segment { found += frame.functions }
            if marks == 0 { continue }
            if let call {
                found[found.count - 1] = code.number(ofCall: open[call], metadata)
                next = call + 1
            } else if index + 2 < segments.count, isOf(next, segments[index + 1].last) || next >= open.count {
                // Its call was not open yet, or no more: one of its two trampolines has been interrupted.
            } else if next < open.count, index > 0 || segment.contains(where: { !$0.isAgent }) {
                found.append(code.number(ofCall: open[next], metadata)) // it has gone on by a jump to code that records nothing
                next += 1
            }
        }
        if !isWhole {
            // Skip the calls without a mark whose frames are here.
            for frame in segments.last ?? [] where isOf(next, frame) { next += 1 }
            found.append(code.number(Self.unknown))
            for call in open.dropFirst(next) { found.append(code.number(ofCall: call, metadata)) }
        }
        functions = found.reversed()
    }

    /// The next open call whose function the outermost frame is in. Before it there may be calls without a mark of their own: those that
    /// -finstrument-functions reports, whose frames are here; where the innermost one's return has been interrupted, that one; and as
    /// many as there are more calls than marks.
    private static func call(
        from next: Int, of count: Int, marks: Int, _ segment: [SampledCode.Frame], isFirst: Bool, _ isOf: (Int, SampledCode.Frame?) -> Bool
    ) -> Int? {
        var call = next, others = min(count - next - marks, mostJumps)
        while call < count {
            if isOf(call, segment.last) { return call }
            if !segment.contains(where: { isOf(call, $0) }), !(isFirst && call == next) {
                if others <= 0 { return nil }
                others -= 1
            }
            call += 1
        }
        return nil
    }
    private static let mostJumps = 64

    /// Splits a stack at its marks; the Bool is true if the last segment ends with the thread's outermost frame.
    private static func segments(
        _ stack: ArraySlice<UInt64>, _ sample: SampleRecords.Sample, _ code: SampledCode
    ) -> ([[SampledCode.Frame]], Bool) {
        var segments: [[SampledCode.Frame]] = [[]]
        for (index, address) in zip(stack.indices, stack) {
            switch address {
            case UInt64(TRACE_SAMPLE_CALL): segments.append([])
            case UInt64(TRACE_SAMPLE_UNKNOWN): return (segments, false)
            default:
                let frame = code.frame(index == stack.startIndex ? address : address &- 1, at: sample.at)
                // One frame of the agent is enough.
                if frame.isAgent, segments[segments.count - 1].last?.isAgent == true { continue }
                segments[segments.count - 1].append(frame)
            }
        }
        return (segments, sample.isWhole)
    }
}
