// Advice on what to look at first: the most expensive parts, in words, each with the time that would be saved if it did not happen. The
// cost of recording its calls is not counted as saved: without tracing there is none. Nor is the time in which others had the CPUs: that
// is the machine's. Where the kernel has not reported it, what may contain such time is an estimate.
import Presentation

package struct StartupAdvice: Sendable, Equatable {
    package var text: String
    package var saving: Nanoseconds
    /// The saving was estimated, not measured.
    package var isEstimate = false
}

extension StartupTimeline {
    /// The largest first; nothing below a hundredth of the whole.
    package func advice(atMost count: Int = 3) -> [StartupAdvice] {
        let ownCodeAdvice = ownCode?.advice(basename(program)) ?? []
        let all =
            earlierAdvice + constructorAdvice + loadAdvice + lazyAdvice + callAdvice + ownCodeAdvice + libraryAdvice + relocationAdvice
        return Array(all.filter { isWorthAdvice($0.saving) }.sorted { ($0.saving, $1.text) > ($1.saving, $0.text) }.prefix(count))
    }

    func isWorthAdvice(_ saving: Nanoseconds) -> Bool { saving.count >= max(programTime.count / 100, 50_000) }

    private var earlierAdvice: [StartupAdvice] {
        guard let earlierProgram, let stage = stages.first else { return [] }
        let name = basename(program)
        return [
            StartupAdvice(
                text: "\(earlierProgram) ran first and became \(name) by exec: start \(program) itself", saving: stage.withoutPreemption)
        ]
    }

    private var constructorAdvice: [StartupAdvice] {
        Dictionary(grouping: constructors, by: { $0.module }).values.compactMap { runs in
            guard let largest = runs.max(by: { $0.selfTime < $1.selfTime }) else { return nil }
            let sum = Nanoseconds(runs.reduce(UInt64(0)) { $0 &+ $1.selfTime.count }).without(
                Nanoseconds(runs.reduce(UInt64(0)) { $0 &+ $1.selfRecording.count }))
            let what =
                largest.name.name
                + (largest.name.sourceLocation.map { $0 == largest.name.file && largest.name.name.hasSuffix($0) ? "" : " (\($0))" } ?? "")
            var text = "\(largest.name.module): "
            text += runs.count == 1 ? what : "\(runs.count) constructors, most of it \(what)"
            let runnable = Nanoseconds(runs.reduce(UInt64(0)) { $0 &+ ($1.selfOffCPU?.runnable.count ?? 0) }),
                saving = sum.without(runnable)
            func isMost(_ time: Nanoseconds) -> Bool { time.count > largest.total.count / 2 && time.count > saving.count / 2 }
            if let off = largest.offCPU {
                if off.waiting.count > largest.total.without(off.runnable).count / 2, off.waiting.count > saving.count / 2 {
                    text += ", which waits \(readable(off.waiting))"
                }
            } else if isMost(largest.withoutCPU) {
                text += ", which is off-CPU for \(readable(largest.withoutCPU))"
            }
            return StartupAdvice(
                text: text + ": do it when it is first needed", saving: saving,
                isEstimate: largest.offCPU == nil && isMost(largest.withoutCPU))
        }
    }

    private var loadAdvice: [StartupAdvice] {
        // Loads that are mostly constructors are left to the advice on constructors.
        loads.filter { $0.constructors.count <= $0.total.without($0.lockWait).count / 2 }.map { load in
            let by = (load.constructor ?? load.caller).map { " by \($0)" } ?? ""
            return StartupAdvice(
                text:
                    "\(load.name): opened\(by) before ready, \(readable(load.constructors)) of it in constructors: open it when it is first needed",
                saving: load.total.without(load.lockWait).without(load.recording).without(load.offCPU?.runnable ?? Nanoseconds(0)))
        }
    }

    private var lazyAdvice: [StartupAdvice] {
        lazyInitializers.compactMap { lazy in
            guard let duration = lazy.duration else { return nil }
            return StartupAdvice(
                text:
                    "\(lazy.name.module): \(lazy.name.name) is initialized before ready\(lazy.during.map { ", in \($0)" } ?? ""): does the start need it?",
                saving: duration.without(lazy.recording).without(lazy.offCPU?.runnable ?? Nanoseconds(0)))
        }
    }

    private var callAdvice: [StartupAdvice] {
        functionsOfMain.prefix(Self.mostAdvised).compactMap { function in
            // Time of lazy initializers in it, which have a line of their own.
            let own = lazyInitializers.reduce(UInt64(0)) { $0 &+ ($1.during == function.name ? $1.duration?.count ?? 0 : 0) }
            let time = function.selfTime.without(function.recording).without(function.offCPU?.runnable ?? Nanoseconds(0))
            if time.count <= own &* 2 || Self.withOwnLine.contains(function.name) { return nil }
            let name = "\(function.name) [\(function.module)]", place = function.place?.text.map { ", \($0)" }
            let text =
                if Self.waits.contains(function.name) {
                    "\(name)\(place ?? ""): main waits there for another thread: tracer waits shows for which"
                } else if Self.processWaits.contains(function.name) {
                    "\(name)\(place ?? ""): main waits there for a process: tracer tree\(readyProcess.map { " --process \($0)" } ?? "") shows what that one does"
                } else {
                    "\(name), called \(function.calls == 1 ? "once" : "\(grouped(function.calls)) times") between main and ready\(Self.waiting(function, of: time))"
                        + (place ?? ": tracer callers shows from where")
                }
            return StartupAdvice(text: text, saving: time.without(Nanoseconds(own)))
        }
    }
    static let mostAdvised = 5

    private var readyProcess: UInt32? { if case .ready(let moment) = outcome { moment.process?.pid } else { nil } }

    private static func waiting(_ function: FunctionShare, of time: Nanoseconds) -> String {
        guard let waiting = function.offCPU?.waiting, waiting.count > time.count / 2 else { return "" }
        return ", waiting \(readable(waiting))"
    }

    /// In them passes the time of another process.
    private static let processWaits: Set<String> = ["wait", "wait3", "wait4", "waitid", "waitpid"]
    /// In them passes the time of another thread.
    private static let waits: Set<String> = [
        "pthread_join", "pthread_cond_wait", "pthread_cond_timedwait", "pthread_cond_clockwait", "sem_wait",
        "sem_timedwait",
    ]
    private static let withOwnLine: Set<String> = ["dlopen", "dlmopen", "swift_once", "pthread_once", "__cxa_guard_acquire"]

    /// Time of the stage in which libraries are mapped and relocated; 0 when it is not distinguished.
    private var loadTime: Nanoseconds {
        Nanoseconds(stages.filter { $0.kind == .load || $0.kind == .relocate }.reduce(0) { $0 &+ $1.withoutPreemption.count })
    }

    private var libraryAdvice: [StartupAdvice] {
        let initial = libraries.filter { $0.load == nil }
        let unused = initial.filter { library in
            library.boundFromOthers == 0 && !library.neededBy.isEmpty && library.calls == 0
                && !library.neededBy.contains { needer in
                    libraries.first { $0.name == needer }.map { !$0.unusedNeeds.contains(library.name) && $0.relocations == 0 } ?? false
                }
        }
        guard !unused.isEmpty, !initial.isEmpty else { return [] }
        let constructors = unused.reduce(UInt64(0)) { $0 &+ $1.constructorTime.count }
        // To find, map and check a library takes some ten system calls and page faults.
        let share = min(loadTime.count / UInt64(initial.count), 150_000) &* UInt64(unused.count)
        let names = listed(unused.map { $0.name }, most: 4), fragile = Set(unused.flatMap { $0.fragile }).sorted()
        let how =
            fragile.isEmpty
            ? " (-Wl,--as-needed)"
            : "; -Wl,--as-needed would also omit \(listed(fragile, most: 4)) with lld and gold, which other libraries use"
        let them = unused.count == 1 ? "it" : "them",
            unless = nameLookups > 0 ? " unless dlsym looks for what \(unused.count == 1 ? "it has" : "they have")" : ""
        return [
            StartupAdvice(
                text: "\(names): linked, but nothing is bound to \(them): do not link \(them)\(unless)\(how)",
                saving: Nanoseconds(constructors &+ share), isEstimate: true)
        ]
    }

    private var relocationAdvice: [StartupAdvice] {
        let initial = libraries.filter { $0.load == nil }
        let weight = initial.reduce(UInt64(0)) { $0 &+ $1.relocationWeight }
        guard weight > 0, let heaviest = initial.max(by: { $0.relocationWeight < $1.relocationWeight }) else { return [] }
        let share = Double(heaviest.relocationWeight) / Double(weight)
        // Without the loader audit half of that stage is taken for mapping, in round figures.
        let time = stages.first { $0.kind == .relocate }?.withoutPreemption.count ?? loadTime.count / 2
        let saving = min(UInt64(exactly: (Double(time) * share).rounded()) ?? .max, heaviest.relocationWeight &* 3)
        let what =
            heaviest.lookups &* 30 > heaviest.relocationWeight / 2
            ? "\(counted(heaviest.lookups, "symbol look-up")): -Bsymbolic-functions or fewer exported symbols"
                + (heaviest.detail.isLazy ? "" : ", or bind lazily")
            : "\(grouped(heaviest.relocations)) relocations: -Wl,-z,pack-relative-relocs, or fewer pointer tables"
        return [
            StartupAdvice(
                text: "\(heaviest.name): \(percent(share)) of the relocation work, \(what)",
                saving: Nanoseconds(saving), isEstimate: true)
        ]
    }
}

extension LaunchCalls.Place {
    /// As in "92% of it below main > load > … > copy"; nil: there is no one place.
    fileprivate var text: String? {
        guard !callers.isEmpty else { return nil }
        let path = callers.count > Self.mostCallers ? callers.prefix(1) + ["…"] + callers.suffix(Self.mostCallers - 1) : callers[...]
        return "\(share > 0.995 ? "all" : percent(share)) of it below \((["main"] + path).joined(separator: " > "))"
    }
    private static let mostCallers = 4
}
