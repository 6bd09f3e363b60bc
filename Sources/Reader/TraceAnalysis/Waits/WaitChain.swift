// Who waits for whom: while one thread waits for a lock, who holds it may wait as well.
import TraceFormat

package struct WaitChain: Sendable {
    /// A wait of the holder itself in the meantime.
    package struct Link: Sendable {
        /// Index of the wait.
        package var wait: Int
        /// As far as it lies within the one before.
        package var duration: UInt64
    }

    /// From the thread that holds what is waited for to those that it waits for.
    package private(set) var links: [Link] = []
    /// The last one waits for a thread of the chain.
    package private(set) var isCircular = false
    /// How long the first holder could have run and had no CPU.
    package private(set) var preempted: UInt64 = 0
    /// Priorities of the holder and the waiter if the holder was preempted and has the lower one: priority inversion.
    package private(set) var inversion: (holder: SchedulerPriority, waiter: SchedulerPriority)?

    package init(of index: Int, in search: WaitSearch) {
        var wait = search.waits[index], threads = Set([wait.thread])
        // Each link is clipped to the time in which all earlier threads of the chain wait, and the holders hold what is waited for.
        var window = wait.begin..<wait.end
        while let holder = wait.holder {
            window = window.clamped(to: min(holder.since, holder.until)..<holder.until)
            if window.isEmpty { return }
            if links.isEmpty {
                preempted = search.preempted(holder.thread, in: window)
                if preempted > 0, let own = search.priority(wait.thread, at: wait.end),
                    let holders = search.priority(holder.thread, at: wait.end),
                    holders.isLower(than: own)
                {
                    inversion = (holders, own)
                }
            }
            guard threads.insert(holder.thread).inserted else {
                isCircular = true
                return
            }
            guard let next = search.longestWait(of: holder.thread, in: window) else { return }
            links.append(next)
            wait = search.waits[next.wait]
            window = window.clamped(to: wait.begin..<wait.end)
        }
    }
}

extension WaitSearch {
    /// Returns a thread's longest wait in the window, nil without one. Waits for a CPU do not count: they are for nobody.
    fileprivate func longestWait(of thread: Int, in window: Range<UInt64>) -> WaitChain.Link? {
        let all = waitsOfThread[thread]
        var index = all.lowerBound + bisect(all.count) { waits[all.lowerBound + $0].end <= window.lowerBound }, longest: WaitChain.Link?
        while index < all.upperBound, waits[index].begin < window.upperBound {
            let wait = waits[index], length = min(window.clamped(to: wait.begin..<wait.end).length, wait.duration)
            if wait.kind != .processor, length > longest?.duration ?? 0 { longest = WaitChain.Link(wait: index, duration: length) }
            index += 1
        }
        return longest
    }

    fileprivate func preempted(_ thread: Int, in window: Range<UInt64>) -> UInt64 {
        let all = parts[thread]
        var index = bisect(all.count) { all[$0].end <= window.lowerBound }, sum: UInt64 = 0
        while index < all.count, all[index].begin < window.upperBound {
            if all[index].kind == .processor { sum += window.clamped(to: all[index].begin..<all[index].end).length }
            index += 1
        }
        return sum
    }
}

extension Range<UInt64> {
    /// `count` is an Int.
    fileprivate var length: UInt64 { upperBound - lowerBound }
}
