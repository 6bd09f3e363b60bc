// Who held an object when, and who let go of it or signalled it: made of what all threads did to it, in the order of time.
import TraceFormat

struct LockHistory: Sendable {
    struct Hold: Sendable {
        /// It was taken by this call …
        var act: ThreadCall
        /// … when that returned, and is held until here. .max: to the end of the trace.
        var from: UInt64
        var until: UInt64
    }

    /// Sorted by the time at which they were taken.
    private let holds: [Hold]
    /// For each, the latest end of those up to it.
    private let latestEnd: [UInt64]
    /// Calls that may wake a waiter, in the order of time: releases of locks and semaphores, signals of conditions, futex calls.
    private let releases: [ThreadCall]

    /// - Parameters:
    ///   - acts: on one object; of calls that wait or signal, or run something once, those that did not wait
    ///   - functions: by row
    ///   - suspended: by thread, when it waited for a condition, in order
    ///   - takings: of calls that are not among `acts`, since nobody waited from before them until they were over
    init(
        _ acts: [ThreadCall], _ functions: [WaitingFunction?], suspended: [UInt32: [Range<UInt64>]], takings: [LockPairs.Taking] = []
    ) {
        func act(_ act: ThreadCall) -> WaitingFunction.Act? { functions[Int(act.call.row)]?.act }
        let sorted = acts.sorted { ($0.call.enter, $0.end) < ($1.call.enter, $1.end) }
        // What has a function that releases it has futex calls within that.
        let isReleased = !takings.isEmpty || sorted.contains { act($0) == .releases }
        releases = sorted.filter { [.releases, .signals].contains(act($0)) || !isReleased && act($0) == .waitsOrSignals }
        var holds = sorted.filter { act($0) == .runs }.map { Hold(act: $0, from: $0.call.enter, until: $0.end) }
        let isRun = !holds.isEmpty
        for own in Dictionary(grouping: sorted, by: { $0.thread }).values {
            var taken: ThreadCall?, depth = 0
            for (index, one) in own.enumerated() where one.isOver {
                switch act(one) {
                // It was taken only if the thread's next act is a release.
                case .mayAcquire where index + 1 == own.count || act(own[index + 1]) != .releases: break
                case .acquires, .mayAcquire:
                    if depth == 0 { taken = one }
                    depth += 1
                case .releases where depth > 0:
                    depth -= 1
                    if depth == 0, let taken { holds.append(Hold(act: taken, from: taken.end, until: one.call.enter)) }
                default: break
                }
            }
            if depth > 0, let taken { holds.append(Hold(act: taken, from: taken.end, until: .max)) }
        }
        holds.sort { $0.from < $1.from }
        // One thread at a time can have an exclusive object: a hold ends at the latest when the next begins.
        if !isRun, !sorted.contains(where: { functions[Int($0.call.row)]?.isShared == true }) {
            for index in holds.indices.dropLast() { holds[index].until = min(holds[index].until, holds[index + 1].from) }
            let takings = takings.chained()
            for index in holds.indices {
                // Its own thread takes what it holds once more, within the hold.
                var next = bisect(takings.count) { takings[$0].taking.at <= holds[index].from }
                if next < takings.count, takings[next].taking.thread == holds[index].act.thread { next = takings[next].nextOfOther }
                if next < takings.count { holds[index].until = min(holds[index].until, takings[next].taking.at) }
            }
        }
        if holds.contains(where: { suspended[$0.act.thread] != nil }) {
            holds = holds.flatMap { hold in Self.parts(hold, without: suspended[hold.act.thread] ?? []) }.sorted { $0.from < $1.from }
        } else {
            holds.removeAll { $0.from >= $0.until }
        }
        self.holds = holds
        var latest: UInt64 = 0
        latestEnd = self.holds.map { hold in
            latest = max(latest, hold.until)
            return latest
        }
    }

    /// A thread that waits for a condition has let go of a lock, and which is not known: it is not said to hold any.
    private static func parts(_ hold: Hold, without suspended: [Range<UInt64>]) -> [Hold] {
        var parts: [Hold] = [], rest = hold
        for index in bisect(suspended.count, { suspended[$0].upperBound <= hold.from })..<suspended.count {
            let wait = suspended[index]
            if wait.lowerBound >= rest.until { break }
            if wait.lowerBound > rest.from {
                var part = rest
                part.until = wait.lowerBound
                parts.append(part)
            }
            rest.from = max(rest.from, wait.upperBound)
        }
        return rest.from < rest.until ? parts + [rest] : parts
    }

    /// Who held it while `thread` waited from `begin` to `end`: at its beginning, or the first that took it in that time.
    func holder(while thread: UInt32, waitsFrom begin: UInt64, to end: UInt64) -> Hold? {
        let next = bisect(holds.count) { holds[$0].from <= begin }
        var index = next
        while index > 0, latestEnd[index - 1] > begin {
            index -= 1
            if holds[index].until > begin, holds[index].act.thread != thread { return holds[index] }
        }
        index = next
        while index < holds.count, holds[index].from < end {
            if holds[index].act.thread != thread { return holds[index] }
            index += 1
        }
        return nil
    }

    /// Who ran what `thread` waited for from `begin` on; nil: unknown, as when several may have.
    func runner(while thread: UInt32, waitsFrom begin: UInt64) -> Hold? {
        var index = bisect(holds.count) { holds[$0].from <= begin }, found: Hold?
        while index > 0, latestEnd[index - 1] > begin {
            index -= 1
            if holds[index].until <= begin || holds[index].act.thread == thread { continue }
            if found != nil { return nil }
            found = holds[index]
        }
        return found
    }

    /// How often it was taken by others in that time.
    func acquisitions(while thread: UInt32, waitsFrom begin: UInt64, to end: UInt64) -> Int {
        let low = bisect(holds.count) { holds[$0].from <= begin }, high = bisect(holds.count) { holds[$0].from < end }
        return low < high ? holds[low..<high].count { $0.act.thread != thread } : 0
    }

    /// The last of another thread that let go or signalled before `end`.
    /// - Parameter alone: of those who may have, nil where a third thread did so less than that before: it is not known which one it was
    func release(for thread: UInt32, waitingFrom begin: UInt64, to end: UInt64, alone: UInt64? = nil) -> ThreadCall? {
        let others = releases[
            bisect(releases.count) { releases[$0].call.enter < begin }..<bisect(releases.count) { releases[$0].call.enter <= end }
        ]
        .reversed().lazy.filter { $0.thread != thread }
        guard let last = others.first else { return nil }
        if let alone, others.prefix(while: { last.call.enter - $0.call.enter < alone }).contains(where: { $0.thread != last.thread }) {
            return nil
        }
        return last
    }
}
