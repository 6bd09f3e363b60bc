// From the trace of one launch to its profile.
import Presentation
import Symbols
import TraceAnalysis

enum LaunchReader {
    static func timeline(_ trace: TraceFile, _ symbolizer: Symbolizer, readySymbol: String?, cpuWaits: [UInt32: TimeWindow] = [:])
        throws(LaunchProblem) -> StartupTimeline
    {
        do {
            return try StartupTimeline(trace, symbolizer: symbolizer, options: .init(readySymbol: readySymbol, cpuWaits: cpuWaits))
        } catch {
            throw LaunchProblem(error.description)
        }
    }

    /// The same moment, as it can be seen from outside. Output through stdio leaves the process later than it is called,
    /// at its end perhaps: then the end of a program that ends is what both sides see.
    static func endPoint(of moment: ReadyMoment, hasEnded: Bool) -> EndPoint {
        switch moment.reason {
        case .listening: .listen
        case .output(nil): .output
        case .output: hasEnded ? .exit : .insideOnly
        case .mainReturned, .exited: .exit
        case .symbol, .mark, .notify, .frame: .insideOnly
        }
    }

    /// - Parameters:
    ///   - end: as it was seen from outside
    ///   - isToExit: what is measured ends with the program
    static func profile(
        _ trace: TraceFile, _ symbolizer: Symbolizer, readySymbol: String?, end: LaunchMoment, isToExit: Bool, isCold: Bool = false
    ) throws(LaunchProblem) -> LaunchProfile {
        let cpuWaits = CPUWaits(trace, waited: end.cpuWait.map { Nanoseconds($0) }, from: end.exec, until: end.at)
        var timeline = try timeline(trace, symbolizer, readySymbol: readySymbol, cpuWaits: cpuWaits.ofThread)
        timeline.addStates(trace, cpuWaits.search)
        timeline.addFiles(trace)
        let seesLoader = timeline.stages.contains { $0.kind == .exec }
        var stages = timeline.stages.map { stage in
            // Other stages need no waits here: those in constructors are in the constructors' times, those in main in its calls.
            let isWhole = [.exec, .load, .relocate].contains(stage.kind), waits = isWhole ? stage.states?.waits ?? [] : []
            let name = stage.kind == .load && !seesLoader ? loadingSinceExec : name(of: stage.kind)
            return CallNode(
                .init(.stage, module: stage.kind == .load ? CauseSearch.loading : "", name: name),
                count: 1, total: NanosecondCount(stage.duration.count),
                children: waits.map {
                    CallNode(.init(.wait, module: "", name: $0.text), count: 1, total: NanosecondCount($0.duration.count))
                })
        }
        /// The stage during which something began.
        func stage(at start: Nanoseconds) -> Int? { timeline.stages.lastIndex { $0.start <= start } }

        for (index, children) in constructors(timeline, load: nil, stage) { stages[index].children += children }
        for load in timeline.loads {
            guard let index = stage(at: load.start) else { continue }
            let inside = constructors(timeline, load: load.number, { _ in 0 })[0] ?? []
            stages[index].children.append(
                CallNode(
                    .init(.dlopen, module: load.name, name: load.name), count: 1,
                    total: NanosecondCount(load.total.count), children: inside))
        }
        if let index = timeline.stages.firstIndex(where: { $0.kind == .main }) {
            stages[index].children += LaunchCalls.untilReady(trace, timeline, symbolizer).map(node)
        }
        let ready = stages.reduce(0) { $0 + $1.total }
        let last = isToExit ? trace.ticks(monotonic: end.at).raw : timeline.origin.raw &+ trace.timeScale.ticks(timeline.total)
        let cpuWait = trace.timeScale.nanoseconds(timeline.mainCPUWaits.length(from: timeline.origin.raw, to: last))
        if isToExit {
            let rest = NanosecondCount(end.wall) - ready - NanosecondCount(timeline.tracerTime.count) - NanosecondCount(cpuWait.count)
            stages.append(CallNode(.init(.stage, module: "", name: "ready → exit"), count: 1, total: max(rest, 0)))
        }
        var reason = "end of the program"
        if case .ready(let moment) = timeline.outcome { reason = moment.text }
        var profile = LaunchProfile(
            tree: CallNode(.init(.root, module: "", name: ""), count: 1, total: stages.reduce(0) { $0 + $1.total }, children: stages),
            readyReason: reason, libraries: timeline.libraries.map { .init(name: $0.name, relocations: Int($0.relocations)) },
            minorFaults: Int(timeline.minorFaults), majorFaults: Int(timeline.majorFaults),
            tracerTime: NanosecondCount(timeline.tracerTime.count))
        profile.cpuWait = NanosecondCount(cpuWait.count)
        func length(_ moments: TimeWindow) -> NanosecondCount {
            NanosecondCount(trace.timeScale.nanoseconds(moments.length(from: timeline.origin.raw, to: last)).count)
        }
        profile.concurrentWait = length(cpuWaits.concurrent)
        profile.uncertainWait = length(cpuWaits.uncertain)
        profile.hiddenWait = trace.noSwitches == nil || end.cpuWait != nil ? cpuWaits.hidden.count : nil
        profile.items = timeline.items.map { item in
            var node = CallNode(
                .init(.item, module: item.registration.stageText, name: item.registration.name), count: 1,
                total: NanosecondCount(item.own.count))
            node.hiddenCalls = Int(item.calls)
            return node
        }
        profile.insideShare = trace.insideCostShare ?? profile.insideShare
        profile.files = timeline.files.map { Set($0.filter(\.hasSucceeded).map(\.path)) }
        if isCold, trace.noSwitches == nil {
            profile.diskFaults = KernelRecords(trace).programFaults.filter(\.isMajor).compactMap { fault in
                let since = trace.timeScale.nanoseconds(from: timeline.origin, to: fault.moment)
                if !isToExit, since > timeline.total { return nil } // the fault happened while the program was being ended
                let index = isToExit && since > timeline.total ? stages.count - 1 : stage(at: since),
                    page = UInt64(max(trace.header.page_bytes, 1))
                return index.map { DiskFault(stage: stages[$0].key.name, path: fault.path, offset: fault.offset / page * page) }
            }
        }
        return profile
    }

    /// Nothing of the program runs in this stage.
    static func isBeforeThreads(_ stage: String) -> Bool { isLoading(stage) || [.exec, .relocate].contains { stage == name(of: $0) } }

    static func isLoading(_ stage: String) -> Bool { stage == name(of: .load) || stage == loadingSinceExec }

    /// Name of the loading stage when it is not known when the loader began.
    private static let loadingSinceExec = "exec, " + name(of: .load)

    /// The same in every launch: without the number of libraries and the call that was taken for ready.
    static func name(of kind: StartupStage.Kind) -> String {
        switch kind {
        case .exec: "exec → loader"
        case .load: "map and relocate libraries"
        case .relocate: "relocate libraries"
        case .preinit: "pre-initializers"
        case .libraryConstructors: "constructors of libraries"
        case .executableConstructors: "constructors of the executable"
        case .main: "main → ready"
        }
    }

    /// Returns, by index of the stage, the libraries with their constructors, without the time of those that they loaded in turn.
    private static func constructors(_ timeline: StartupTimeline, load: UInt32?, _ stage: (Nanoseconds) -> Int?) -> [Int: [CallNode]] {
        var libraries: [Int: [CallNode]] = [:]
        for run in timeline.constructors where run.load == load {
            guard let index = stage(run.start) else { continue }
            let module = basename(run.name.module)
            let own = NanosecondCount(run.selfTime.count)
            var node = CallNode(.init(.constructor, module: module, name: run.name.name), count: 1, total: own)
            node.hiddenCalls = Int(run.calls)
            if let known = libraries[index]?.firstIndex(where: { $0.key.module == module }) {
                libraries[index]![known].children.append(node)
                libraries[index]![known].total += own
            } else {
                libraries[index, default: []].append(
                    CallNode(.init(.library, module: module, name: module), count: 1, total: own, children: [node]))
            }
        }
        return libraries
    }

    private static func node(_ call: LaunchCalls.Node) -> CallNode {
        CallNode(
            .init(call.isWait ? .wait : call.isItem ? .item : call.isLazy ? .lazy : .call, module: call.module, name: call.name),
            count: Int(call.calls),
            total: NanosecondCount(call.total.count),
            children: call.children.map(node))
    }
}
