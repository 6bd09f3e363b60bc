// A sampled stack and the calls that the trace has open at that moment become one. The sample is exact from the instruction outwards as far
// as it reaches; the trace is exact from the outermost call inwards, and has recorded calls only. Marks in the sample (TRACE_SAMPLE_CALL) say
// between which frames a recorded call lies. What neither knows is "…".
import CTraceLayout

struct MergedStack {
    /// In `SampledCode.functions`, outermost first.
    private(set) var functions: [Int] = []

    static let unknown = CallTree.Function(name: "…", symbol: "…", module: FunctionNames.noModule)
    static let kernel = CallTree.Function(name: "(kernel)", symbol: "(kernel)", module: FunctionNames.noModule)

    /// - Parameters:
    ///   - stack: innermost first
    ///   - open: function ids of the calls that have a label, innermost first
    init(_ sample: SampleRecords.Sample, _ stack: ArraySlice<UInt64>, open: [UInt32], _ code: SampledCode, _ metadata: Metadata) {
        var found: [Int] = [] // innermost first
        if sample.isInKernel { found.append(code.number(Self.kernel)) }
        let (segments, isWhole) = Self.segments(stack, sample, code)
        var next = 0 // of the open calls
        func isOf(_ call: Int, _ place: SampledCode.Place?) -> Bool {
            guard call < open.count, let start = place?.start else { return false }
            return metadata.functions[open[call]]?.address == start
        }
        for (index, segment) in segments.enumerated() {
            for place in segment { found += place.functions }
            guard index + 1 < segments.count else { continue }
            // A mark: whose call is it? Of the outermost frame here, as a rule, which then goes by the name that the trace has for it.
            if let call = isOf(next, segment.last) ? next : Self.nextCall(after: next, segment, isFirst: index == 0, isOf) {
                found[found.count - 1] = code.number(ofCall: open[call], metadata)
                next = call + 1
            } else if index + 2 < segments.count, isOf(next, segments[index + 1].last) || next >= open.count {
                // Its call was not open yet, or no more: one of its two trampolines has been interrupted.
            } else if next < open.count, index > 0 || segment.contains(where: { !$0.isAgent }) {
                found.append(code.number(ofCall: open[next], metadata)) // it has gone on by a jump (a tail call)
                next += 1
            }
        }
        if !isWhole {
            // Those without a mark whose frames are here.
            for place in segments.last ?? [] where isOf(next, place) { next += 1 }
            found.append(code.number(Self.unknown))
            for call in open.dropFirst(next) { found.append(code.number(ofCall: call, metadata)) }
        }
        functions = found.reversed()
    }

    /// Calls without a mark come first: those that -finstrument-functions tells of, whose frames are here; and where the innermost one's
    /// return has been interrupted, that one.
    private static func nextCall(
        after next: Int, _ segment: [SampledCode.Place], isFirst: Bool, _ isOf: (Int, SampledCode.Place?) -> Bool
    ) -> Int? {
        var call = next
        while segment.contains(where: { isOf(call, $0) }) || isFirst && call == next {
            call += 1
            if isOf(call, segment.last) { return call }
        }
        return nil
    }

    /// What lies between marks; and whether the last of it is the outermost frame.
    private static func segments(
        _ stack: ArraySlice<UInt64>, _ sample: SampleRecords.Sample, _ code: SampledCode
    ) -> ([[SampledCode.Place]], Bool) {
        var segments: [[SampledCode.Place]] = [[]]
        for (index, address) in zip(stack.indices, stack) {
            switch address {
            case UInt64(TRACE_SAMPLE_CALL): segments.append([])
            case UInt64(TRACE_SAMPLE_UNKNOWN): return (segments, false)
            default:
                let place = code.place(index == stack.startIndex ? address : address &- 1, at: sample.at)
                // Of the agent one frame is enough.
                if place.isAgent, segments[segments.count - 1].last?.isAgent == true { continue }
                segments[segments.count - 1].append(place)
            }
        }
        return (segments, sample.isWhole)
    }
}
