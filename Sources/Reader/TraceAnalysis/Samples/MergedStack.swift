// Merges a sampled stack with the calls that the trace has open at that moment. The sample is exact from the instruction outwards as far as
// it reaches; the trace is exact from the outermost call inwards, and has recorded calls only. Frames that neither knows are "…".
//
// Every frame of the sample is shown where it is. A call is shown besides only where it must be: its function has gone on by a jump to
// one that is there (a tail call), or its frames are beyond the sample. The agent's own work is below the function that called, since it
// belongs to no call: a trampoline runs before its function does and after.
import CTraceLayout

package struct MergedStack {
    /// In `SampledCode.functions`, outermost first.
    private(set) var functions: [Int] = []

    package static let unknown = CallTree.Function(name: "…", symbol: "…", module: FunctionNames.noModule)

    /// - Parameters:
    ///   - kernel: the kernel's part of the stack, innermost first
    ///   - stack: the process's part, innermost first
    ///   - open: the calls that have a label, innermost first
    init(
        _ sample: SampleRecords.Sample, kernel: ArraySlice<UInt64>, _ stack: ArraySlice<UInt64>, open: [SampledCalls.Call],
        _ code: SampledCode, _ metadata: Metadata, _ limits: CallPlaces.Limits
    ) {
        var found = sample.isInKernel ? code.kernel(kernel) : [] // innermost first
        let (segments, isWhole) = Self.segments(stack, sample, code)
        let isInMain = limits.isInMain(sample)
        let places = CallPlaces(segments, isWhole: isWhole, open, metadata, limits) { mark in
            code.isStart(
                segments[mark], calledBy: segments[mark + 1], isOutermost: isWhole && mark + 2 == segments.count, isInMain: isInMain)
        }
        func number(_ call: Int) -> Int { code.number(ofCall: open[call].function, metadata) }
        for (index, segment) in segments.enumerated() {
            for frame in segment { found += frame.functions }
            if let call = places.ofFrame[index] { found[found.count - 1] = number(call) } // it goes by the name that the trace has for it
            found += places.jumped[index, default: []].map(number)
        }
        if !isWhole { found += [code.number(Self.unknown)] + places.beyond.map(number) }
        functions = found.reversed()
    }

    /// Splits a stack at its marks (TRACE_SAMPLE_CALL); the Bool is true if the last segment ends with the thread's outermost frame.
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
