// A trace in the time of a page: nanoseconds since the beginning of the first process.
import Presentation
import Symbols
import TraceAnalysis
import TraceFormat

struct PageTrace: Sendable {
    let trace: TraceFile
    /// Ticks at which the process begins, with its start where that was recorded, and ends.
    let origin: UInt64, end: UInt64
    /// CLOCK_MONOTONIC when it begins.
    let begun: UInt64
    /// The same in nanoseconds of the page's time.
    var start: UInt64 = 0
    let names: FunctionNames
    let startup: StartupTimeline?
    /// nil where the kernel did not report when threads ran.
    private(set) var waits: WaitSearch?
    private let files: LoadedFiles
    private let descriptors: DescriptorNames?

    /// - Parameter run: all traces that the page may show
    init(_ trace: TraceFile, in run: [TraceFile], _ symbolizer: Symbolizer, progress: ReadingProgress?) {
        self.trace = trace
        files = LoadedFiles(trace)
        let whole = trace.ofAllThreads
        let others = whole.startedProcesses(in: run.map(\.ofAllThreads))
        startup = try? progress.part(0, 0.5) {
            try StartupTimeline(whole, symbolizer: symbolizer, options: .init(processes: others), progress: progress)
        }
        // Time begins at exec. In a damaged file perhaps at its end.
        origin = min(startup.map { $0.origin.raw } ?? trace.firstTicks.raw, .max - 1)
        end = max(TraceEnd(trace).ticks.raw, origin + 1)
        let before = trace.timeScale.nanoseconds(from: Ticks(origin), to: trace.firstTicks).count, first = trace.header.first.monotonic_ns
        begun = first - min(before, first)
        names = FunctionNames(trace.metadata)
        descriptors = DescriptorNames(trace, names)
        waits = trace.noSwitches == nil ? progress.part(0.5, 1) { WaitSearch(whole, progress: progress) } : nil
    }

    /// Finds who woke the threads of a run, which needs the traces of all its processes.
    static func connect(_ traces: inout [PageTrace]) {
        let withWaits = traces.indices.filter { traces[$0].waits != nil }
        var searches = withWaits.compactMap { traces[$0].waits }
        WaitSearch.findWakers(&searches)
        for (index, search) in zip(withWaits, searches) { traces[index].waits = search }
    }

    func length(_ ticks: UInt64) -> UInt64 { trace.timeScale.nanoseconds(ticks).count }
    /// - Parameter ticks: since the trace's first
    func moment(_ ticks: UInt64) -> UInt64 { start &+ length(ticks &- min(ticks, origin)) }

    /// Returns the ticks of the trace that lie in a range of the page's time; empty where it has none.
    func ticks(_ time: Range<UInt64>) -> Range<UInt64> {
        func ticks(_ time: UInt64) -> UInt64 {
            let (sum, overflow) = origin.addingReportingOverflow(trace.timeScale.ticks(Nanoseconds(time - min(time, start))))
            return overflow ? end : min(sum, end)
        }
        let low = ticks(time.lowerBound)
        // Who asks for its end asks for all that comes after it, too: nanoseconds are rounded.
        let high = time.upperBound >= moment(end) ? .max : ticks(time.upperBound)
        return low..<max(low, high)
    }

    func function(_ slot: UInt32) -> (name: String, module: String) {
        slot == CallTimeline.ownCode ? (FunctionNames.ownCode, basename(trace.program)) : names.name(of: slot &- 1)
    }

    /// Arguments and result of a call as its line has them: `("/etc/passwd", O_RDONLY) = 3`; nil: none are recorded. Long ones are cut.
    /// - Parameter origin: of its timeline
    func said(_ slice: CallTimeline.Slice, _ origin: UInt64) -> String? {
        if slice.arguments == nil, slice.result == nil { return nil }
        let start = origin &+ slice.start
        let arguments = trace.metadata.arguments(slice.arguments, slice.result, descriptors, from: start)
        let result = trace.metadata.result(slice.result, descriptors, at: start &+ slice.length)
        if arguments == nil, result == nil { return nil }
        let text = shortened("(" + (arguments?.text ?? ""), Self.longestSaid) + ")"
        return text + (result.map { " = " + $0.value.text + ($0.errno.map { " " + $0 } ?? "") } ?? "")
    }
    /// A page may have tens of thousands of them.
    private static let longestSaid = 160

    /// A call of dlopen that brought a file, by its name.
    func loaded(_ slice: CallTimeline.Slice, _ timeline: CallTimeline) -> (name: String, module: String)? {
        if files.isEmpty || slice.slot == CallTimeline.ownCode { return nil }
        let function = function(slice.slot), start = timeline.origin &+ slice.start
        return files.file(function.name, thread: timeline.thread, from: start, to: start &+ slice.length).map {
            (LoadedFiles.name(function.name, $0), function.module)
        }
    }
}
