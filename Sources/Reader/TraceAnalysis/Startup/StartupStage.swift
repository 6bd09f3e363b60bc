// The stages of a start-up. Each begins where the one before ends; without the agent's own work, so that the stages and
// the agent's time add up to the whole.
import Presentation
import TraceFormat

package struct StartupStage: Sendable, Equatable {
    package enum Kind: String, Sendable, CaseIterable {
        /// To the loader's first instructions: the kernel's part, and fork when the moment of exec is not known.
        case exec, load
        /// Only when the loader audit was on: `load` is then searching and mapping alone.
        case relocate
        case preinit
        case libraryConstructors = "library_constructors"
        case executableConstructors = "executable_constructors"
        case main
    }
    package var kind: Kind
    package var name: String
    package var start: Nanoseconds
    /// Without the agent's own work, and without waits for a CPU that the timeline was given.
    package var duration: Nanoseconds
    /// The agent's own work in it.
    package var tracerTime: Nanoseconds
    package var isExact: Bool
    /// It did not come to its end: the program ended in it.
    package var isCut: Bool
    /// nil: the kernel has not reported them.
    package var states: StageStates?
    /// As long as it would have taken if nobody else had wanted the CPUs.
    var withoutPreemption: Nanoseconds {
        duration.without(states?.waits.first { $0.kind == WaitKind.processor.rawValue }?.duration ?? Nanoseconds(0))
    }

    static func all(_ moments: StartMoments, audit: LoaderAudit? = nil) -> [StartupStage] {
        let records = moments.trace.metadata.start, clock = moments.clock, end = moments.end
        let (first, agent, main, outcome) = (moments.first, moments.agent, moments.main, moments.outcome)
        let thread = main?.thread ?? agent.thread
        var cuts: [(kind: Kind, name: String, begin: Ticks, isExact: Bool)] = []
        let loader = records.phase(.loader).flatMap { $0.usage.ticks >= clock.origin && $0.usage.ticks <= agent.usage.ticks ? $0 : nil }
        let isExact = first.error.count == 0
        let startName = first.kind != .exec ? "process start" : moments.earlierProgram.map { "exec of \($0)" } ?? "exec"
        let libraries = counted(moments.libraryCount, "library", "libraries")
        if let loader, first.kind != .loader {
            cuts.append((.exec, "\(startName) → loader", clock.origin, isExact && loader.error.count == 0))
            cuts.append((.load, "map and relocate \(libraries)", loader.usage.ticks, loader.error.count == 0))
        } else {
            let name = first.kind == .loader ? "map and relocate \(libraries)" : "\(startName), map and relocate \(libraries)"
            if first.kind != .agent { cuts.append((.load, name, clock.origin, isExact)) }
        }
        if let audit, let last = cuts.last, last.kind == .load {
            let mapped = moments.trace.ticks(monotonic: audit.mapped)
            if mapped > last.begin, mapped < agent.usage.ticks {
                cuts[cuts.count - 1].name = last.name.replacing("map and relocate", "find and map")
                cuts.append((.relocate, "relocate", mapped, true))
            }
        }
        let mainTicks = main?.usage.ticks ?? end
        let initial = records.initializers.filter { $0.load == nil && $0.parent == nil && !$0.isFinalizer && $0.begin.ticks < mainTicks }
        var constructorsBegin = agent.usage.ticks
        if let preinit = initial.last(where: { $0.kind == .preinitArray }) {
            cuts.append((.preinit, "pre-initializers of the executable", constructorsBegin, true))
            constructorsBegin = preinit.end?.usage.ticks ?? end
        }
        if constructorsBegin <= end { cuts.append((.libraryConstructors, "constructors of libraries", constructorsBegin, true)) }
        if let own = initial.first(where: { $0.module == moments.trace.metadata.executable && $0.kind != .preinitArray }) {
            cuts.append((.executableConstructors, "constructors of the executable", max(own.begin.ticks, constructorsBegin), true))
        } else if main != nil {
            cuts.append((.executableConstructors, "constructors of the executable", mainTicks, true))
        }
        if let main {
            let name = if case .ready(let moment) = outcome { "main → ready (\(moment.text))" } else { "main → end (never ready)" }
            cuts.append((.main, name, main.usage.ticks, main.error.count == 0))
        }
        var stages: [StartupStage] = []
        for (index, cut) in cuts.enumerated() where cut.begin <= end {
            let next = min(index + 1 < cuts.count ? cuts[index + 1].begin : end, end)
            let isLast = index + 1 == cuts.count || cuts[index + 1].begin > end
            let isCut = isLast && (outcome == .neverReady || main == nil)
            let nextIsExact = index + 1 < cuts.count ? cuts[index + 1].isExact : true
            stages.append(
                StartupStage(
                    kind: cut.kind, name: cut.name, start: clock.since(cut.begin), duration: clock.net(cut.begin, next, on: thread),
                    tracerTime: clock.scale.nanoseconds(clock.agentTicks(cut.begin, next)), isExact: cut.isExact && nextIsExact,
                    isCut: isCut))
        }
        return stages
    }
}
