// The formats that other programs read.
import TraceFormat

public enum ExportFormat: String, CaseIterable, Sendable {
    case perfetto, chrome, speedscope, folded, pprof, callgrind, csv

    public var suffix: String {
        switch self {
        case .perfetto: ".pftrace"
        case .chrome: ".chrome.json"
        case .speedscope: ".speedscope.json"
        case .folded: ".folded"
        case .pprof: ".pb.gz"
        case .callgrind: ".callgrind"
        case .csv: ".csv"
        }
    }

    public var isBinary: Bool { self == .perfetto || self == .pprof }
}

public enum ExportWeight: String, CaseIterable, Sendable {
    case selfTime = "self"
    case total
}

public struct Export: Sendable {
    public let sources: [ExportSource]
    private let workerCount: Int

    /// The traces become one picture, on the clock that the processes of a machine share.
    public init(_ traces: [TraceFile], workers: Int = TraceFile.processorCount) {
        sources = ExportSource.sources(traces)
        workerCount = workers
    }

    /// Calls `output` with the parts of the file, in order. What it throws ends the export.
    public func write(_ format: ExportFormat, weight: ExportWeight = .selfTime, to output: @escaping ([UInt8]) throws -> Void) throws {
        switch format {
        case .perfetto:
            var writer = PerfettoWriter(output)
            try TimelineExport(workers: workerCount) { PerfettoSink() }.write(sources, to: &writer)
        case .chrome:
            var writer = ChromeWriter(output)
            let origin = sources.origin
            try TimelineExport(workers: workerCount) { ChromeSink(origin: origin) }.write(sources, to: &writer)
        case .speedscope:
            let frames = SpeedscopeFrames(), origin = sources.origin
            var writer = SpeedscopeWriter(frames, output)
            try TimelineExport(workers: workerCount) { SpeedscopeSink(origin: origin, frames) }.write(sources, to: &writer)
        case .csv:
            try CallRowExport.write(sources, to: output)
        case .folded: try FoldedExport.write(tree, weight, to: output)
        case .pprof: try PprofExport.write(tree, sources, to: output)
        case .callgrind: try CallgrindExport.write(tree, to: output)
        }
    }

    private var tree: CallTree { CallTree(sources.map { CallTree($0.trace, workers: workerCount) }) }
}
