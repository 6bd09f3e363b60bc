// The files that a process used until it was ready, as far as the calls that use files were recorded with their arguments.
import TraceFormat

extension StartupTimeline {
    package mutating func addFiles(_ trace: TraceFile, workers: Int = TraceFile.cpuCount) {
        var end: Ticks?
        if case .ready(let moment) = outcome { end = moment.ticks }
        let report = FileReport([trace], until: end, workers: workers)
        if !report.files.isEmpty || report.without == 0 && !trace.metadata.recordedPrototypes.isEmpty {
            files = report.chosen({ _ in true }, by: .time, limit: 0)
        }
    }
}
