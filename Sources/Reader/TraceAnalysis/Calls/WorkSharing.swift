// Files that are read several at a time: one that would hold up all others at the end by all CPUs together, and the many small
// ones one by each.
import Dispatch
import Synchronization

struct WorkSharing {
    let workers: Int
    private let large: [Int]
    private let small: [Int]

    /// A file of which no part is worth another thread.
    private static let smallBytes: UInt64 = 8 << 20

    init(_ byteCounts: [UInt64], workers wanted: Int) {
        workers = max(min(wanted, byteCounts.count), 1)
        let all = byteCounts.reduce(0) { $0 &+ $1 }
        let order = byteCounts.indices.sorted { (byteCounts[$0], $1) > (byteCounts[$1], $0) }
        let limit = max(all / UInt64(2 * workers), Self.smallBytes)
        let count = byteCounts.count == 1 ? 1 : order.prefix { byteCounts[$0] > limit }.count
        large = Array(order.prefix(count))
        small = Array(order.dropFirst(count))
    }

    /// Calls `body` for each file, with the number of the worker that does it; one worker does one file at a time.
    /// - Parameter body: is passed whether the file is to be read by several threads
    func forEach(_ body: @Sendable (_ file: Int, _ worker: Int, _ isShared: Bool) -> Void) {
        for file in large { body(file, 0, true) }
        let next = Atomic<Int>(0)
        DispatchQueue.concurrentPerform(iterations: workers) { worker in
            while true {
                let index = next.wrappingAdd(1, ordering: .relaxed).oldValue
                guard index < small.count else { return }
                body(small[index], worker, false)
            }
        }
    }
}
