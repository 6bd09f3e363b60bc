// Who waits for whom: while one thread waits for a lock, who holds it may wait as well.
import Symbols
import TraceFormat

struct WaitChain: Sendable {
    /// What the holder did in the meantime: it waited itself.
    struct Link: Sendable {
        /// Index of the wait.
        var wait: Int
        /// As far as it lies within the one before.
        var duration: UInt64
    }

    /// From the thread that holds what is waited for to those that it waits for.
    private(set) var links: [Link] = []
    /// The last one waits for a thread of the chain.
    private(set) var isCircular = false
    /// How long the first holder could have run and had no processor.
    private(set) var preempted: UInt64 = 0

    init(of index: Int, in search: WaitSearch) {
        var wait = search.waits[index], threads = Set([wait.thread])
        if let holder = wait.holder { preempted = search.preempted(holder.thread, from: max(wait.begin, holder.since), to: wait.end) }
        while let holder = wait.holder {
            guard threads.insert(holder.thread).inserted else {
                isCircular = true
                return
            }
            guard let next = search.longestWait(of: holder.thread, from: max(wait.begin, holder.since), to: wait.end) else { return }
            links.append(next)
            wait = search.waits[next.wait]
        }
    }
}

extension WaitSearch {
    /// Of those of a thread that lie between two moments; for a processor it does not wait for anybody.
    fileprivate func longestWait(of thread: Int, from begin: UInt64, to end: UInt64) -> WaitChain.Link? {
        let all = waitsOfThread[thread]
        var index = all.lowerBound + bisect(all.count) { waits[all.lowerBound + $0].end <= begin }, longest: WaitChain.Link?
        while index < all.upperBound, waits[index].begin < end {
            let wait = waits[index], low = max(wait.begin, begin), high = min(wait.end, end)
            if wait.kind != .processor, high > low, high - low > longest?.duration ?? 0 {
                longest = WaitChain.Link(wait: index, duration: min(high - low, wait.duration))
            }
            index += 1
        }
        return longest
    }

    fileprivate func preempted(_ thread: Int, from begin: UInt64, to end: UInt64) -> UInt64 {
        let all = parts[thread]
        var index = bisect(all.count) { all[$0].end <= begin }, sum: UInt64 = 0
        while index < all.count, all[index].begin < end {
            let low = max(all[index].begin, begin), high = min(all[index].end, end)
            if all[index].kind == .processor, high > low { sum += high - low }
            index += 1
        }
        return sum
    }
}
