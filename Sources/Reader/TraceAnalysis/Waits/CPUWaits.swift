// When the threads of a program could have gone on and had no CPU. On a busy machine that is much of a start, and says nothing of the program.
import Presentation
import TraceFormat

package struct CPUWaits: Sendable {
    /// Times by index of the thread, in ticks. Those of the main thread include when it waited for other threads of the program, and none of
    /// those that it may have waited for had a CPU.
    package private(set) var ofThread: [UInt32: TimeWindow] = [:]
    /// When the main thread had no CPU, and another thread of the program went on: what the main thread waits for afterwards may take that much
    /// less than if it had had one.
    package private(set) var concurrent = TimeWindow([])
    /// When the main thread waited for other threads of the program that themselves had waited, for what comes without them, and may have had no
    /// CPU when it had come: nobody knows how long. As long as the main thread itself had none each time, on an average.
    package private(set) var uncertain = TimeWindow([])
    /// How long the main thread had no CPU at moments that are not known.
    package private(set) var hidden = Nanoseconds(0)
    /// The waits from exec to the end, where the kernel has reported them.
    package private(set) var search: WaitSearch?

    /// - Parameters:
    ///   - waited: how long the main thread could have run and had no CPU until `end`, as the kernel accounts for it; nil: it does not. Context
    ///     switches show that for a thread that was preempted, not for one that was woken and did not run at once.
    ///   - exec: when execve was called. The kernel reports context switches from the moment in it at which the old program is gone
    ///     (perf_event_open(2), enable_on_exec).
    ///   - end: as `exec`, CLOCK_MONOTONIC, nanoseconds
    package init(_ trace: TraceFile, waited: Nanoseconds?, from exec: UInt64, until end: UInt64) {
        guard trace.noSwitches == nil, let kernel = trace.metadata.kernel else {
            hidden = waited ?? hidden
            return
        }
        let last = trace.ticks(monotonic: end).raw, first = min(trace.ticks(monotonic: kernel.from.count).raw, last)
        let time = first..<max(last, first + 1)
        let search = WaitSearch(trace.narrowed(to: TimeWindow([time])))
        self.search = search
        for thread in search.threads {
            guard let index = thread.thread else { continue }
            ofThread[index] = TimeWindow((ofThread[index]?.moments ?? []) + thread.moments(.runnable, in: time))
        }
        guard let main = search.threads.firstIndex(where: { $0.tid == trace.header.pid }), let index = search.threads[main].thread else {
            hidden = waited ?? hidden
            return
        }
        let preempted = ofThread[index]?.length(from: time.lowerBound, to: time.upperBound) ?? 0
        let late = waited.map { trace.timeScale.ticks($0) }.map { $0 - min(preempted, $0) } ?? 0
        let unseen = min(trace.ticks(monotonic: exec).raw, first)..<first
        let waits = search.threads[main].moments(.waiting, in: time).filter { $0.upperBound < time.upperBound }
        let delays = Self.delays(late, (unseen.isEmpty ? [] : [unseen]) + waits)
        hidden = trace.timeScale.nanoseconds(late - delays.reduce(0) { $0 + ($1.upperBound - $1.lowerBound) })
        let own = TimeWindow((ofThread[index]?.moments ?? []) + delays)
        concurrent = Self.concurrent(search, main, own, in: time)
        let times = UInt64(waits.count + (ofThread[index]?.momentCount ?? 0))
        uncertain = Self.uncertain(search, main, atMost: (preempted + late) / max(times, 1))
        ofThread[index] = TimeWindow(own.moments + Self.withoutOthers(search, main, in: time))
    }

    private static func concurrent(_ search: WaitSearch, _ main: Int, _ own: TimeWindow, in time: Range<UInt64>) -> TimeWindow {
        let others = search.threads.indices.filter { $0 != main }
        let moments = others.flatMap { other in
            search.threads[other].moments(.running, in: time)
                + search.parts[other].filter { [.sleep, .disk, .timer, .child].contains($0.kind) }.map { $0.begin..<max($0.begin, $0.end) }
        }
        let goingOn = TimeWindow(moments)
        return TimeWindow(own.moments.flatMap { goingOn.intersection($0).moments })
    }

    private static func uncertain(_ search: WaitSearch, _ main: Int, atMost delay: UInt64) -> TimeWindow {
        let others = search.threads.indices.filter { $0 != main }
        let moments = forOthers(search, main).flatMap { time, waker in
            (waker.map { [$0] } ?? others).flatMap { search.parts[$0] }.filter { part in
                part.wait != nil && part.end <= time.upperBound && ![.lock, .condition, .join, .processor].contains(part.kind)
            }.map { part in
                let inside = (part.begin..<max(part.begin, part.end)).clamped(to: time)
                return inside.upperBound - min(delay, inside.upperBound - inside.lowerBound)..<inside.upperBound
            }
        }
        return TimeWindow(moments)
    }

    /// Waits of the thread that another one of the program may have ended, and which one did, where that is known.
    private static func forOthers(_ search: WaitSearch, _ thread: Int) -> [(time: Range<UInt64>, waker: Int?)] {
        search.parts[thread].compactMap { part in
            guard [.lock, .condition, .pipe, .join, .other].contains(part.kind), part.begin < part.end else { return nil }
            return (part.begin..<part.end, part.wait.flatMap { search.waits[$0].waker }?.thread)
        }
    }

    /// When the thread waited for others of the program and had to wait longer because they had no CPU: the one that let it go on then, where
    /// that is known, or else all of them.
    private static func withoutOthers(_ search: WaitSearch, _ thread: Int, in time: Range<UInt64>) -> [Range<UInt64>] {
        let nobodyRan = TimeWindow(Self.idle(search.threads.indices.filter { $0 != thread }.map { search.threads[$0] }, in: time))
        return forOthers(search, thread).flatMap { time, waker -> [Range<UInt64>] in
            (waker.map { search.threads[$0].moments(.runnable, in: time) } ?? []) + nobodyRan.intersection(time).moments
        }
    }

    /// When at least one of the threads could have run, and none did.
    private static func idle(_ threads: [ThreadStates], in time: Range<UInt64>) -> [Range<UInt64>] {
        var changes: [(at: UInt64, running: Int, runnable: Int)] = []
        for moment in threads.flatMap({ $0.moments(.running, in: time) }) {
            changes += [(moment.lowerBound, 1, 0), (moment.upperBound, -1, 0)]
        }
        for moment in threads.flatMap({ $0.moments(.runnable, in: time) }) {
            changes += [(moment.lowerBound, 0, 1), (moment.upperBound, 0, -1)]
        }
        changes.sort { $0.at < $1.at }
        var idle: [Range<UInt64>] = [], running = 0, runnable = 0
        for (index, change) in changes.enumerated() {
            running += change.running
            runnable += change.runnable
            if running == 0, runnable > 0, index + 1 < changes.count { idle.append(change.at..<changes[index + 1].at) }
        }
        return idle
    }

    /// Returns when a thread waited for a CPU, `ticks` in all, of which only is known that it was at the ends of these waits: in equal shares,
    /// but in none longer than the wait.
    static func delays(_ ticks: UInt64, _ waits: [Range<UInt64>]) -> [Range<UInt64>] {
        var left = ticks, count = UInt64(waits.count)
        return waits.sorted { $0.upperBound - $0.lowerBound < $1.upperBound - $1.lowerBound }.map { wait in
            let share = min(left / count, wait.upperBound - wait.lowerBound)
            left -= share
            count -= 1
            return wait.upperBound - share..<wait.upperBound
        }
    }
}

extension ThreadStates {
    fileprivate func moments(_ state: State, in time: Range<UInt64>) -> [Range<UInt64>] {
        stretches.filter { $0.state == state && $0.end > $0.begin }.map { ($0.begin..<$0.end).clamped(to: time) }.filter { !$0.isEmpty }
    }
}
