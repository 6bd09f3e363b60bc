// Constructors that ran during the start-up, and their counterparts at exit.
import Presentation
import TraceFormat

package struct ConstructorRun: Sendable {
    package var number: UInt32
    package var kind: Initializer.Kind
    package var module: UInt32
    package var name: CodeName
    package var tid: UInt32
    package var start: Nanoseconds
    /// With everything that ran inside it; up to the end of the start-up when it had not returned by then.
    package var total: Nanoseconds
    /// Without nested constructors and the loads that it made.
    package var selfTime: Nanoseconds
    package var cpu: Nanoseconds
    package var minorFaults: UInt32
    package var majorFaults: UInt32
    /// Recorded calls made inside.
    package var calls: UInt64
    /// Estimated cost of recording them, contained in `total` and in `selfTime`.
    package var recording: Nanoseconds, selfRecording: Nanoseconds
    /// Number of the load that ran it; nil: of a module that was there at the start.
    package var load: UInt32?
    package var parent: UInt32?
    package var isOver: Bool
    /// True if it was left by an exception or longjmp.
    package var wasLeft: Bool

    /// Part of `total`; nil: the kernel has not reported it.
    package internal(set) var offCPU: OffCPUTime?
    /// Part of `selfTime`; nil likewise.
    package internal(set) var selfOffCPU: OffCPUTime?
    /// From its beginning to its end, and those parts of it that are its own.
    let ticks: Range<UInt64>
    let ownTicks: [Range<UInt64>]

    package var isFinalizer: Bool { kind == .finalizer || kind == .finiArray }
    /// Without a CPU: it waited, or others had the CPUs.
    package var withoutCPU: Nanoseconds { total.without(cpu) }

    /// Returns the constructors that began before the end of the start-up.
    static func all(_ context: StartupContext) -> [ConstructorRun] {
        runs(
            context, context.trace.metadata.start.initializers.filter { !$0.isFinalizer && $0.begin.ticks <= context.end },
            until: context.end)
    }

    static func finalizers(_ context: StartupContext) -> [ConstructorRun] {
        runs(context, context.trace.metadata.start.initializers.filter { $0.isFinalizer }, until: nil)
    }

    private static func runs(_ context: StartupContext, _ initializers: [Initializer], until end: Ticks?) -> [ConstructorRun] {
        let clock = context.clock, records = context.trace.metadata.start
        func ended(_ initializer: Initializer) -> Ticks {
            let ticks = initializer.end?.usage.ticks ?? end ?? initializer.begin.ticks
            return end.map { min(ticks, $0) } ?? ticks
        }
        // Time ranges inside each initializer: loads that it made, and nested initializers.
        var inside: [UInt32: [Range<UInt64>]] = [:]
        func add(_ number: UInt32, _ from: Ticks, _ to: Ticks) {
            if from < to { inside[number, default: []].append(from.raw..<to.raw) }
        }
        for load in records.loads {
            guard let initializer = load.initializer else { continue }
            let from = context.begin(of: load), to = context.end(of: load)
            add(initializer, from, end.map { min(to, $0) } ?? to)
        }
        for nested in records.initializers {
            if let parent = nested.parent { add(parent, nested.begin.ticks, ended(nested)) }
        }
        return initializers.map { initializer in
            let from = initializer.begin.ticks, to = max(ended(initializer), from)
            let covered = TimeWindow((inside[initializer.number] ?? []).map { $0.clamped(to: from.raw..<to.raw) }).moments
            let total = clock.netTicks(from, to, on: initializer.thread)
            let nested = covered.reduce(UInt64(0)) {
                $0 &+ clock.netTicks(Ticks($1.lowerBound), Ticks($1.upperBound), on: initializer.thread)
            }
            let after = initializer.end?.usage ?? initializer.begin
            func calls(_ from: UInt64, _ to: UInt64) -> UInt64 {
                context.calls.calls(on: initializer.thread, from: Ticks(from), to: Ticks(to))
            }
            let made = initializer.isFinalizer ? 0 : calls(from.raw, to.raw) // calls at exit were not read
            let ownCalls = made &- min(covered.reduce(0) { $0 &+ calls($1.lowerBound, $1.upperBound) }, made)
            return ConstructorRun(
                number: initializer.number, kind: initializer.kind, module: initializer.module,
                name: context.names.name(at: initializer.address, in: initializer.module), tid: context.tid(initializer.thread),
                start: clock.since(from), total: clock.scale.nanoseconds(total),
                selfTime: clock.scale.nanoseconds(total > nested ? total - nested : 0),
                cpu: Nanoseconds(after.cpu.count > initializer.begin.cpu.count ? after.cpu.count - initializer.begin.cpu.count : 0),
                minorFaults: difference(after.minorFaults, initializer.begin.minorFaults),
                majorFaults: difference(after.majorFaults, initializer.begin.majorFaults),
                calls: made, recording: context.recording(made), selfRecording: context.recording(ownCalls), load: initializer.load,
                parent: initializer.parent,
                isOver: initializer.end.map { $0.usage.ticks <= (end ?? $0.usage.ticks) } ?? false,
                wasLeft: initializer.end?.wasLeft ?? false, ticks: from.raw..<to.raw, ownTicks: rest(of: from.raw..<to.raw, covered))
        }
    }

    /// - Parameter covered: in order, and within the whole
    private static func rest(of whole: Range<UInt64>, _ covered: [Range<UInt64>]) -> [Range<UInt64>] {
        let ends = [whole.lowerBound] + covered.map { $0.upperBound }, begins = covered.map { $0.lowerBound } + [whole.upperBound]
        return zip(ends, begins).filter { $0 < $1 }.map { $0..<$1 }
    }

    private static func difference(_ after: UInt32, _ before: UInt32) -> UInt32 { after > before ? after - before : 0 }
}
