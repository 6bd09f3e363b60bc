// Samples for the programs that show profiles: folded stacks, whose weights are samples, and pprof.
import TraceFormat

extension SampleReport {
    package func writeFolded(to output: ([UInt8]) throws -> Void) throws { try FoldedExport.write(tree, .selfTime, to: output) }

    /// - Parameter traces: those that it was made of
    package func writePprof(_ traces: [TraceFile], to output: ([UInt8]) throws -> Void) throws {
        try PprofExport.write(tree, ExportSource.sources(traces), .samples(period: period?.count ?? 0), to: output)
    }
}
