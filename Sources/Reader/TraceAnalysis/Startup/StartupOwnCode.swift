// What the main thread did between main and ready outside of all recorded calls: in the program's own functions, unless they are recorded.
import Presentation

package struct StartupOwnCode: Sendable {
    package struct Waiting: Sendable {
        /// As of `tracer waits`.
        var kind: String
        var duration: Nanoseconds
        /// What it waited for, with the time, the longest first; none where that is not known.
        var objects: [(name: String, duration: Nanoseconds)]
    }
    /// All of it, without lazy initializers, and without what recording the calls took that were made in it.
    package let time: Nanoseconds
    /// True if `time` is not known exactly: a lazy initializer ran in it, of which some was spent in recorded calls.
    private let isEstimate: Bool
    /// True if the program's own functions were to be recorded, too.
    private let isRecorded: Bool
    /// Parts of `time`, the longest first; nil: the kernel has not reported them.
    var waits: [Waiting]?
    /// Part of `time` in which others had the CPUs.
    var runnable = Nanoseconds(0)

    /// - Parameters:
    ///   - stage: from main to ready
    ///   - lazies: lazy initializers that ran on the main thread
    init(_ stage: StartupStage, _ context: StartupContext, _ lazies: [LazyRun]) {
        let functions = context.trace.metadata.functions
        let calls = context.calls.functionsOfMain.filter { functions[$0.function]?.isSpan != true }
        let recording = context.recording(calls.reduce(0) { $0 &+ $1.calls })
        let ticks = calls.reduce((time: Int64(0), recording: 0.0)) { ($0.time &+ $1.selfTicks, $0.recording + $1.recordingTicks) }
        let scale = context.clock.scale, recordingInside = scale.nanoseconds(UInt64(exactly: ticks.recording.rounded()) ?? 0)
        // What a guard's call lets run is after it; what other calls run is in their time.
        let guarded = lazies.filter { $0.means == "__cxa_guard_acquire" && $0.during == nil && $0.start >= stage.start }
        let lazy = Nanoseconds(guarded.reduce(0) { $0 &+ ($1.duration?.count ?? 0) })
        time = stage.duration.without(scale.nanoseconds(UInt64(clamping: ticks.time))).without(recording.without(recordingInside)).without(
            lazy)
        isEstimate = lazy.count > 0
        isRecorded = context.executable.flatMap { context.trace.metadata.patched[$0] } != nil
    }

    private var running: Nanoseconds {
        time.without(runnable).without(Nanoseconds((waits ?? []).reduce(0) { $0 &+ $1.duration.count }))
    }

    /// - Parameter program: its name
    func advice(_ program: String) -> [StartupAdvice] {
        let what = "\(program)'s own code between main and ready"
        let waits = (waits ?? []).map { waiting in
            StartupAdvice(
                text: "\(what), \(MainWait.text(waiting.kind))\(Self.listed(waiting)): tracer waits shows each wait",
                saving: waiting.duration)
        }
        if isRecorded { return waits }
        return waits + [
            StartupAdvice(
                text: "\(what), in which no call is recorded: tracer record --functions '*' shows which of its functions", saving: running,
                isEstimate: isEstimate || self.waits == nil)
        ]
    }

    private static func listed(_ waiting: Waiting) -> String {
        guard let longest = waiting.objects.first else { return "" }
        if waiting.objects.count == 1 { return ", \(longest.name)" }
        return ", \(counted(waiting.objects.count, "object")), the longest for \(longest.name)"
    }
}
