// How much threads waited for each lock, and from where in the code: those who waited, and those who held it then.
import Presentation
import TraceFormat

package struct LockTotals: Sendable {
    /// Waits that follow each other without a gap: whenever the lock was let go, somebody waited for it.
    package struct Queue: Sendable, Equatable {
        package var waits: Int
        var threads: Int
        package var duration: UInt64
        /// True if it is a convoy: three threads or more wait one after the other, and some come back for more.
        package var isConvoy: Bool { threads >= 3 && waits > threads }
    }
    package struct CallSiteTotal: Sendable {
        /// "refresh, dir.c:12 (git)" or a function; nil unknown.
        var name: String?
        package var waits = 0
        var duration: UInt64 = 0
    }

    let process: Int
    let object: String
    private(set) var waits = 0
    private(set) var duration: UInt64 = 0
    package private(set) var longest: UInt64 = 0
    package private(set) var threads = 0
    package private(set) var mostAtOnce = 0
    package private(set) var longestQueue: Queue
    /// Most time first.
    package private(set) var waitedIn: [CallSiteTotal] = []
    private(set) var heldIn: [CallSiteTotal] = []

    /// - Parameters:
    ///   - all: of one object
    ///   - site: where a call was made
    package init(_ all: [Wait], process: Int, object: String, site: (OpenCall) -> String?, heldIn holding: (Wait.Holder) -> String?) {
        self.process = process
        self.object = object
        var waiters: [String?: CallSiteTotal] = [:], holders: [String?: CallSiteTotal] = [:]
        for wait in all {
            duration &+= wait.duration
            longest = max(longest, wait.duration)
            Self.add(wait, site(wait.call), to: &waiters)
            if let holder = wait.holder { Self.add(wait, holding(holder), to: &holders) }
        }
        waits = all.count
        threads = Set(all.map { $0.thread }).count
        waitedIn = Self.sorted(waiters)
        heldIn = Self.sorted(holders)
        longestQueue = Queue(waits: 0, threads: 0, duration: 0)
        findQueues(all.sorted { $0.begin < $1.begin })
    }

    private static func add(_ wait: Wait, _ name: String?, to sites: inout [String?: CallSiteTotal]) {
        sites[name, default: CallSiteTotal(name: name)].waits += 1
        sites[name]!.duration &+= wait.duration
    }

    private static func sorted(_ sites: [String?: CallSiteTotal]) -> [CallSiteTotal] {
        sites.values.sorted { ($0.duration, $1.name ?? "") > ($1.duration, $0.name ?? "") }
    }

    private mutating func findQueues(_ waits: [Wait]) {
        var first = 0, end: UInt64 = 0, ends: [UInt64] = []
        func close(_ last: Int) -> Queue {
            Queue(
                waits: last - first, threads: Set(waits[first..<last].map { $0.thread }).count,
                duration: first < last ? end - waits[first].begin : 0)
        }
        for (index, wait) in waits.enumerated() {
            ends.removeAll { $0 <= wait.begin }
            if ends.isEmpty {
                longestQueue = max(longestQueue, close(index))
                (first, end) = (index, wait.end)
            }
            ends.append(wait.end)
            end = max(end, wait.end)
            mostAtOnce = max(mostAtOnce, ends.count)
        }
        longestQueue = max(longestQueue, close(waits.count))
    }
}

extension LockTotals.Queue: Comparable {
    package static func < (a: Self, b: Self) -> Bool { (a.isConvoy ? 1 : 0, a.duration) < (b.isConvoy ? 1 : 0, b.duration) }
}
