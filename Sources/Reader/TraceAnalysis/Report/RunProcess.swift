// The processes of a run, each with the programs that it was one after the other: exec replaces the program and begins a new trace, and
// the process stays.
import CTraceLayout
import Presentation

/// One trace of a run.
package struct ProcessImage: Sendable {
    package let path: String
    package let program: String
    /// What it calls itself, or was called by.
    package let name: String
    package let commandLine: String
    /// The command line that it has written over its own; nil: none.
    package let title: String?
    package let pid: UInt32
    package let parentPid: UInt32
    let namespace: UInt64
    /// Nanoseconds since the epoch.
    package let startedAt: UInt64
    /// Nanoseconds of CLOCK_MONOTONIC.
    package let begun: UInt64, ended: UInt64
    package let calls: UInt64
    package let filtered: UInt64
    package let dropped: UInt64
    package let inCalls: Nanoseconds
    package let agentWaits: AgentWaits
    package let pauses: RecordingPauses
    /// How often functions were chosen anew.
    let choiceCount: Int
    let keptConditions: KeptConditions
    /// The time of its threads by state, and what of that is `inCalls`; nil: not asked for of functions, or not known.
    let states: StateTimes?
    let callStates: StateTimes?
    package let byteCount: UInt64
    package let isRing: Bool
    /// Functions that were called, where that is all that was recorded; nil: calls were.
    package let calledCount: Int?
    package let isUnfinished: Bool
    package let exitStatus: Int32?
    /// nil: not known.
    package let end: ProcessEnd?
    /// It may have gone on after what the trace has.
    let mayGoOn: Bool
    /// Made by fork: it began as a copy of its parent, not by exec.
    let isCopy: Bool
    package let lossText: String?
    package let warnings: [String]
    package let notes: [String]
    /// nil of programs that are no interpreters.
    let interpreterHint: String?
    /// Requested kernel events that the kernel refused, why, and what allows them; nil: none.
    package let kernelRefusal: String?
    /// Programs of the run without a trace, where this trace has them.
    let unrecorded: [UnrecordedProcess]

    init(_ trace: TraceFile, _ summary: Summary) {
        path = trace.path
        program = trace.program
        name = trace.processName
        commandLine = trace.commandLine
        title = trace.title
        pid = trace.header.pid
        parentPid = trace.header.parent_pid
        namespace = trace.header.pid_namespace
        startedAt = trace.header.first_realtime_ns
        begun = trace.header.first.monotonic_ns
        ended = begun &+ summary.duration.count < begun ? .max : begun &+ summary.duration.count
        calls = summary.calls
        filtered = summary.filtered
        dropped = summary.dropped
        inCalls = summary.inCalls
        agentWaits = trace.agentWaits
        pauses = trace.pauses
        choiceCount = trace.metadata.choices.count
        keptConditions = trace.keptConditions
        callStates = summary.callStates
        states = summary.callStates == nil ? nil : summary.states
        byteCount = trace.usedByteCount
        isRing = trace.isRing
        calledCount = trace.hasCountsAlone ? trace.metadata.functions.values.count { $0.isThereByCall } : nil
        isUnfinished = trace.header.state == UInt32(TRACE_RECORDING)
        exitStatus = trace.exitStatus
        end = trace.processEnd
        mayGoOn = trace.header.state == UInt32(TRACE_RECORDING) && trace.mayGoOn
        isCopy = trace.isOfFork
        lossText = trace.lossText
        warnings = trace.warnings
        notes = trace.flagTexts
        interpreterHint = trace.interpreterHint
        kernelRefusal = trace.metadata.kernel?.refusedParts
        unrecorded = trace.metadata.unrecorded
    }
}

package struct RunProcess: Sendable {
    /// In the order of time; at least one.
    package internal(set) var images: [ProcessImage]
    /// How many processes of the run are above it: its parent and its parent's parents.
    package internal(set) var depth = 0

    package var pid: UInt32 { images[0].pid }
    package var parentPid: UInt32 { images[0].parentPid }
    /// The last one.
    package var program: String { images[images.count - 1].program }
    package var name: String { images[images.count - 1].name }
    package var commandLine: String { images[images.count - 1].commandLine }
    package var title: String? { images[images.count - 1].title }
    package var calls: UInt64 { images.reduce(0) { $0 &+ $1.calls } }
    package var filtered: UInt64 { images.reduce(0) { $0 &+ $1.filtered } }
    package var dropped: UInt64 { images.reduce(0) { $0 &+ $1.dropped } }
    package var inCalls: Nanoseconds { Nanoseconds(images.reduce(0) { $0 &+ $1.inCalls.count }) }
    /// As of its images; nil where they are not known of one.
    var states: StateTimes? { sum(\.states) }
    var callStates: StateTimes? { sum(\.callStates) }
    private func sum(_ times: (ProcessImage) -> StateTimes?) -> StateTimes? {
        images.reduce(StateTimes()) { sum, image in sum.flatMap { sum in times(image).map { sum.adding($0) } } }
    }
    package var byteCount: UInt64 { images.reduce(0) { $0 &+ $1.byteCount } }
    /// From its first recorded moment to its end, between its images too.
    package var duration: Nanoseconds {
        let begun = images[0].begun, ended = images.reduce(0) { max($0, $1.ended) }
        return Nanoseconds(ended > begun ? ended - begun : 0)
    }
    /// As a shell reports it; nil when nobody saw it who could write it down.
    package var exitStatus: Int32? { images[images.count - 1].exitStatus }
    package var isUnfinished: Bool { images[images.count - 1].isUnfinished }
    /// nil: not known.
    package var end: ProcessEnd? { images[images.count - 1].end }
    /// It has not ended, or nobody knows when it did.
    package var mayGoOn: Bool { images[images.count - 1].mayGoOn }

    /// Parents before their children, children in the order of their beginnings.
    static func processes(of images: [ProcessImage]) -> [RunProcess] {
        struct Key: Hashable {
            var pid: UInt32
            var namespace: UInt64
        }
        var processes: [RunProcess] = []
        var latest: [Key: Int] = [:]
        for image in images.sorted(by: { ($0.begun, $0.path) < ($1.begun, $1.path) }) {
            let key = Key(pid: image.pid, namespace: image.namespace)
            if let known = latest[key], processes[known].isFollowed(by: image) {
                processes[known].images.append(image)
            } else {
                latest[key] = processes.count
                processes.append(RunProcess(images: [image]))
            }
        }
        // If several processes had a parent's pid, the parent is the one that was there when the child began.
        var holders: [Key: [Int]] = [:]
        for (index, process) in processes.enumerated() {
            holders[Key(pid: process.pid, namespace: process.images[0].namespace), default: []].append(index)
        }
        var children: [[Int]] = Array(repeating: [], count: processes.count), roots: [Int] = []
        for (index, process) in processes.enumerated() {
            let parents = holders[Key(pid: process.parentPid, namespace: process.images[0].namespace)] ?? []
            if let parent = parents.last(where: { $0 < index }) { children[parent].append(index) } else { roots.append(index) }
        }
        var result: [RunProcess] = []
        var stack = roots.reversed().map { (index: $0, depth: 0) }
        while let (index, depth) = stack.popLast() {
            processes[index].depth = depth
            result.append(processes[index])
            for child in children[index].reversed() { stack.append((child, depth + 1)) }
        }
        return result
    }

    /// Returns true if `image` replaced this process by exec; its pid may instead have been given to another process.
    private func isFollowed(by image: ProcessImage) -> Bool {
        guard !image.isCopy, isUnfinished, exitStatus == nil else { return false }
        // A process whose parent has ended belongs to init, or to whoever adopts.
        return image.parentPid == images[images.count - 1].parentPid || image.parentPid == 1
    }
}

extension TraceFile {
    /// Its process began as a copy of its parent, not by exec: it has no start of its own, though perhaps an end.
    var isOfFork: Bool { !hasStart && !isOfRunning }

    /// The module that was there first: the executable.
    package var executableModule: Module? { metadata.modules.keys.min().flatMap { metadata.modules[$0] } }
}
