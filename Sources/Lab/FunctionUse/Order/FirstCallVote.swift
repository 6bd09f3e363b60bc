// One order of several traces, each of which has its own of first calls: by the middle one of the ranks that a function has in those that
// called it. What fewer than half of them called comes last.

package struct FirstCallVote {
    private var ranks: [UInt64: [Int]] = [:]
    private var traceCount = 0

    package init() {}

    /// - Parameter functions: by their first calls, each once
    package mutating func add(_ functions: [UInt64]) {
        traceCount += 1
        for (rank, function) in functions.enumerated() { ranks[function, default: []].append(rank) }
    }

    package var order: [UInt64] {
        let votes = ranks.map { function, ranks -> (isRare: Int, rank: Int, function: UInt64) in
            let sorted = ranks.sorted(), middle = sorted.count / 2
            let rank = sorted[middle] + sorted[(sorted.count - 1) / 2] // twice the median
            return (ranks.count * 2 < traceCount ? 1 : 0, rank, function)
        }
        return votes.sorted { $0 < $1 }.map { $0.function }
    }
}
