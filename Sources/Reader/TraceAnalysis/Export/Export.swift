// The formats that other programs read.
import TraceFormat

package enum ExportFormat: String, CaseIterable, Sendable {
    case perfetto, chrome, speedscope, folded, pprof, callgrind, csv

    package var suffix: String {
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

    package var isBinary: Bool { self == .perfetto || self == .pprof }
}

extension ExportFormat {
    /// The formats that add up calls, and so can show a part of their time.
    package var isSum: Bool { [.folded, .pprof, .callgrind].contains(self) }
}

package enum ExportWeight: String, CaseIterable, Sendable {
    case selfTime = "self"
    case total
}

package struct Export: Sendable {
    package let sources: [ExportSource]
    private let workerCount: Int
    private let time: CallTime

    /// The traces become one picture, on the clock that the processes of a machine share.
    /// - Parameter time: for the formats that add up
    package init(_ traces: [TraceFile], time: CallTime = .wall, workers: Int = TraceFile.cpuCount) {
        sources = ExportSource.sources(traces)
        workerCount = workers
        self.time = time
    }

    /// Calls `output` with the parts of the file, in order. What it throws ends the export.
    package func write(_ format: ExportFormat, weight: ExportWeight = .selfTime, to output: @escaping ([UInt8]) throws -> Void) throws {
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
        case .folded: try FoldedExport.write(tree(time == .wall ? .nothing : .ofFunctions(time)), weight, to: output)
        case .pprof: // a profile has all times
            let tree = tree(.ofFunctions(time))
            try PprofExport.write(tree, sources, .calls(states: tree.time == nil ? nil : time), to: output)
        case .callgrind: try CallgrindExport.write(tree(time == .wall ? .nothing : .ofFunctions(time)), to: output)
        }
    }

    /// Returns the approximate size of the file, from what the formats took for each word that records calls in traces of real programs.
    /// 0 for formats that add up: they grow with the paths, not with the calls, and stay small.
    package func estimatedByteCount(_ format: ExportFormat) -> UInt64 {
        let bytesOfWord: UInt64
        switch format {
        case .perfetto: bytesOfWord = 2 // compressed
        case .chrome: bytesOfWord = 95
        case .speedscope, .csv: bytesOfWord = 75
        case .folded, .pprof, .callgrind: return 0
        }
        return sources.reduce(0) { $0 &+ $1.trace.wordCount } &* bytesOfWord
    }

    private func tree(_ states: StateReading) -> CallTree {
        CallTree(sources.map { CallTree($0.trace, states: states, workers: workerCount) })
    }
}
