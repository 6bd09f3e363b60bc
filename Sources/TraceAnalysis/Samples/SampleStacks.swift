// The merged stack of each sample of a trace.
import Symbols

/// Not for use by two threads at once.
struct SampleStacks {
    let records: SampleRecords
    private let trace: TraceFile
    private let open: SampledCalls
    private let code: SampledCode

    /// nil: the trace has no samples.
    init?(_ trace: TraceFile, _ records: SampleRecords, _ symbolizer: Symbolizer, workers: Int, progress: ReadingProgress? = nil) {
        guard !records.samples.isEmpty else { return nil }
        self.trace = trace
        self.records = records
        open = SampledCalls(trace, records, workers: workers, progress: progress)
        code = SampledCode(trace, records, symbolizer)
    }

    /// Those of the stacks that were asked for.
    var functions: [CallTree.Function] { code.functions }

    /// - Parameter number: of the sample
    /// - Returns: in `functions`, outermost first
    func stack(_ number: Int) -> [Int] {
        // Spans are between functions, nobody knows which.
        let labelled = open[number].filter { trace.metadata.functions[$0].map { !$0.isSpan && !$0.isMark } ?? true }
        let sample = records.samples[number]
        return MergedStack(sample, records.stack(of: sample), open: labelled.reversed(), code, trace.metadata).functions
    }
}
