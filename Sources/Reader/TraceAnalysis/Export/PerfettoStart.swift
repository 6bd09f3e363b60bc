// How a process started, above its threads: the phases on one track, the initializers of each thread on another, and the
// page faults counted at each of them.
import Presentation
import TraceFormat

struct PerfettoStart {
    private typealias Field = PerfettoField
    private let source: ExportSource
    private let records: StartRecords

    init(_ source: ExportSource) {
        self.source = source
        records = source.trace.metadata.start
    }

    /// Track id, above those of the threads, whose numbers are far smaller.
    private func track(_ number: Int) -> UInt64 { source.processTrack + 1 << 31 + UInt64(number) }
    private func time(_ ticks: Ticks) -> UInt64 { source.monotonic(ticks.raw) }
    /// Time of a phase; those before the agent are known in nanoseconds only.
    private func time(_ phase: Phase) -> UInt64 { phase.monotonic?.count ?? time(phase.usage.ticks) }

    func write(to message: inout ProtobufMessage) {
        writePhases(to: &message)
        let threads = Dictionary(grouping: records.initializers, by: { $0.thread })
        for (number, (thread, initializers)) in threads.sorted(by: { $0.key < $1.key }).enumerated() {
            describe(track(16 + number), "initializers" + (thread == 0 ? "" : " of thread \(thread)"), to: &message) { _ in }
            for initializer in initializers { write(initializer, on: track(16 + number), to: &message) }
        }
        writeFaults(to: &message)
    }

    private func describe(_ track: UInt64, _ name: String, to message: inout ProtobufMessage, _ body: (inout ProtobufMessage) -> Void) {
        message.track(track) {
            $0.add(Field.Track.parent, source.processTrack)
            $0.add(Field.Track.name, name)
            body(&$0)
        }
    }

    /// A phase lasts until the next, but for the agent's start, which is none of the program's.
    private func writePhases(to message: inout ProtobufMessage) {
        let phases = records.phases.sorted { time($0) < time($1) }
        guard !phases.isEmpty else { return }
        describe(track(0), "start", to: &message) { _ in }
        for (index, phase) in phases.enumerated() {
            let begin = time(phase), end = index + 1 < phases.count ? time(phases[index + 1]) : max(time(source.end), begin)
            let agent = agentStart.map { $0.clamped(to: begin..<max(end, begin)) }
            if let agent, !agent.isEmpty {
                writePhase(phase, begin..<agent.lowerBound, to: &message)
                slice("tracer's own start", agent, to: &message) { _ in }
                writePhase(phase, agent.upperBound..<max(end, agent.upperBound), to: &message)
            } else {
                slice(phase.kind.text, begin..<max(end, begin), to: &message) { annotate(phase, &$0) }
            }
        }
        for ready in records.ready {
            message.event(Field.instant, track: track(0), at: time(ready.ticks), category: "start", "ready: \(ready.reason.text)") { _ in }
        }
    }

    private var agentStart: Range<UInt64>? {
        source.trace.agentStart.map { start in
            let begin = time(Ticks(start.lowerBound))
            return begin..<max(time(Ticks(start.upperBound)), begin)
        }
    }

    /// A part of a phase, where there is one.
    private func writePhase(_ phase: Phase, _ time: Range<UInt64>, to message: inout ProtobufMessage) {
        if !time.isEmpty { slice(phase.kind.text, time, to: &message) { annotate(phase, &$0) } }
    }

    private func annotate(_ phase: Phase, _ message: inout ProtobufMessage) {
        if phase.error.count > 0 { message.annotation("began", "up to \(readable(phase.error)) earlier") }
    }

    private func slice(
        _ name: String, _ time: Range<UInt64>, to message: inout ProtobufMessage, _ body: (inout ProtobufMessage) -> Void
    ) {
        message.event(Field.sliceBegin, track: track(0), at: time.lowerBound, category: "start", name, body)
        message.event(Field.sliceEnd, track: track(0), at: time.upperBound) { _ in }
    }

    private func write(_ initializer: Initializer, on track: UInt64, to message: inout ProtobufMessage) {
        let module = source.trace.metadata.modules[initializer.module]
        let name =
            (module?.name ?? FunctionNames.noModule) + " " + initializer.kind.text
            + (initializer.kind == .initializer || initializer.kind == .finalizer ? "" : "[\(initializer.index)]")
        message.event(Field.sliceBegin, track: track, at: time(initializer.begin.ticks), category: "initializer", name) {
            $0.annotation("address", "0x" + String(initializer.address &- (module?.loadBias ?? 0), radix: 16))
            guard let end = initializer.end?.usage else { return }
            $0.annotation("minor page faults", String(end.minorFaults &- initializer.begin.minorFaults))
            $0.annotation("major page faults", String(end.majorFaults &- initializer.begin.majorFaults))
            if end.ownTicks > initializer.begin.ownTicks {
                let own = source.trace.timeScale.nanoseconds(end.ownTicks - initializer.begin.ownTicks)
                $0.annotation("tracer's own time", readable(own))
            }
            let cpu = Nanoseconds(end.cpu.count &- initializer.begin.cpu.count)
            if cpu.count < 1 << 63 { $0.annotation("CPU time", readable(cpu)) }
        }
        guard let end = initializer.end else { return } // it never came back
        message.event(Field.sliceEnd, track: track, at: time(end.usage.ticks)) {
            if end.wasLeft { $0.annotation("ended", TimelineEnd.unwound.note ?? "") }
        }
    }

    /// Counts of the process, and of the main thread while it was alone: they are the same then.
    private func writeFaults(to message: inout ProtobufMessage) {
        var usages = records.phases.filter { $0.kind.rawValue >= Phase.Kind.agent.rawValue }.map { $0.usage }
        for initializer in records.initializers where initializer.thread == 0 && initializer.load == nil && !initializer.isFinalizer {
            usages += [initializer.begin] + (initializer.end.map { [$0.usage] } ?? [])
        }
        guard !usages.isEmpty else { return }
        usages.sort { $0.ticks < $1.ticks }
        for (number, name) in ["minor page faults", "major page faults"].enumerated() {
            let track = track(1 + number)
            describe(track, name, to: &message) { $0.add(Field.Track.counter) { $0.add(Field.Counter.unitName, "faults") } }
            for usage in usages {
                message.event(Field.counter, track: track, at: time(usage.ticks)) {
                    $0.add(Field.Event.counterValue, UInt64(number == 0 ? usage.minorFaults : usage.majorFaults))
                }
            }
        }
    }
}

extension Phase.Kind {
    var text: String {
        switch self {
        case .created: "process created"
        case .exec: "exec"
        case .loader: "loader"
        case .agent: "initializers"
        case .main: "main"
        case .mainReturned: "after main"
        case .exit: "exit"
        }
    }
}

extension Ready.Reason {
    fileprivate var text: String {
        switch self {
        case .symbol: "a function of \(Variables.ready.name) was called"
        case .mark: "the program's mark"
        case .notify: "READY=1"
        case .output: "first output"
        case .frame: "first wl_surface_commit"
        }
    }
}
