// Input of an export: traces, often of several processes of one run, and their threads.
import Presentation
import TraceFormat

/// One trace of an export.
package final class ExportSource: Sendable {
    package let trace: TraceFile
    package let table: FunctionNames
    /// From 0, in the order given.
    let index: Int
    /// Numbers of all threads of the export: this source's begin here.
    let firstThread: Int
    /// The end of the process, and the ends of calls that are still open, by thread index.
    let end: Ticks
    fileprivate let endOfThread: [UInt32: CallEnds.End]

    private init(_ trace: TraceFile, index: Int, firstThread: Int) {
        self.trace = trace
        self.index = index
        self.firstThread = firstThread
        table = FunctionNames(trace.metadata)
        let end = TraceEnd(trace)
        self.end = end.ticks
        endOfThread = Dictionary(uniqueKeysWithValues: trace.threads.map { ($0.index, end.end(of: $0.index)) })
    }

    package static func sources(_ traces: [TraceFile]) -> [ExportSource] {
        var threadCount = 0
        return traces.enumerated().map { index, trace in
            defer { threadCount += trace.chunksOfThread.count }
            return ExportSource(trace, index: index, firstThread: threadCount)
        }
    }

    var pid: UInt32 { trace.header.pid }
    var name: String { trace.processName }

    /// Category of a function's events: its module; "mark" or "span" for those of the program, which have none.
    func category(of function: UInt32) -> String {
        guard let known = trace.metadata.functions[function] else { return FunctionNames.noModule }
        if known.isMark { return "mark" }
        return known.isSpan ? "span" : table.name(of: function).module
    }

    /// Beginning and end of the recording, or of each window that is exported, with a text.
    var marks: [(Ticks, String)] {
        guard !trace.window.isWhole else {
            return [(trace.firstTicks, "recording begins"), (end, "recording ends: \(trace.stateText)")]
        }
        let first = trace.firstTicks, last = end
        return trace.window.moments.flatMap {
            [(max(Ticks($0.lowerBound), first), "window begins"), (min(Ticks($0.upperBound), last), "window ends")]
        }
    }

    func monotonic(_ ticks: UInt64) -> UInt64 { ClockScale(self).monotonic(ticks) }

    /// The main thread first.
    var threads: [ExportThread] {
        let all = trace.chunksOfThread.enumerated().compactMap { number, chunks -> ExportThread? in
            guard let last = chunks.last else { return nil }
            let name = trace.threadName(last.thread)
            return ExportThread(source: self, index: last.thread, number: firstThread + number, tid: last.tid, name: name, chunks: chunks)
        }
        return all.sorted { ($0.isMain ? 0 : 1, $0.index) < ($1.isMain ? 0 : 1, $1.index) }
    }
}

package struct ExportThread: Sendable {
    package let source: ExportSource
    /// As in the trace.
    package let index: UInt32
    /// Number among all threads of the export, from 0.
    let number: Int
    let tid: UInt32
    let name: String
    let chunks: [Chunk]

    var isMain: Bool { tid == source.pid }

    /// The moment that ends frames which are open after the last chunk, and how.
    var atEnd: CallEnds.End { source.endOfThread[index] ?? CallEnds.End(time: source.end.raw, how: .open) }

    /// For people: category, name, and what else is known.
    func text(of moment: TimelineMoment) -> (category: String, name: String, details: [(String, String)]) {
        switch moment {
        case .missing(let count):
            ("tracer", "\(counted(count, "chunk")) \(source.trace.isRing ? "overwritten" : "missing") before this", [])
        case .orphan(let function):
            ("tracer", "return without a call: \(source.table.name(of: function).name)", [])
        case .arrived(let function, let start):
            (
                "tracer", "return of a call made on another thread: \(source.table.name(of: function).name)",
                [("called", "\(secondsText(source.trace.timeScale.nanoseconds(from: source.trace.firstTicks, to: Ticks(start)))) s")]
            )
        }
    }
}

extension [ExportSource] {
    /// Time 0 of formats that count from the start.
    var origin: UInt64 { self.map { $0.trace.header.first.monotonic_ns }.min() ?? 0 }
}

/// Ticks of one trace as nanoseconds of the CLOCK_MONOTONIC that all processes of a machine share.
struct ClockScale {
    private let firstTicks: UInt64
    private let firstTime: UInt64
    private let scale: TimeScale

    init(_ source: ExportSource) {
        firstTicks = source.trace.header.first.ticks
        firstTime = source.trace.header.first.monotonic_ns
        scale = source.trace.timeScale
    }

    /// Rounded to the nearest. A frame inherited from the parent process began before the first tick.
    @inline(__always) func monotonic(_ ticks: UInt64) -> UInt64 {
        if _fastPath(ticks >= firstTicks) { return firstTime &+ scale.nanoseconds(ticks &- firstTicks).count }
        let before = scale.nanoseconds(firstTicks &- ticks).count
        return before < firstTime ? firstTime &- before : 0
    }
}
