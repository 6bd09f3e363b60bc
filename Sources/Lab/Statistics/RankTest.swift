// Tests if one set of runs tends to be slower than another, after Mann and Whitney ("On a Test of Whether one of Two Random
// Variables is Stochastically Larger than the Other", 1947). The test looks at the order of the values alone: a few wild
// runs say no more than "largest".
import Foundation

package enum RankTest {
    /// Probability of ranks at least this far apart when both sets are alike, both directions counted. 1 when either is
    /// empty or all values are the same.
    package static func probability(_ a: Sample, _ b: Sample) -> Double {
        guard !a.isEmpty, !b.isEmpty else { return 1 }
        let ranks = Ranks(a.values, b.values)
        // The exact distribution assumes that no two values are the same; where some are, and for many runs, the normal
        // one is close.
        if ranks.tieTerm == 0, a.count * b.count <= 2500 {
            return exact(ranks.smallerU, a.count, b.count)
        }
        let n1 = Double(a.count), n2 = Double(b.count), n = n1 + n2
        let variance = n1 * n2 / 12 * (n + 1 - (n > 1 ? ranks.tieTerm / (n * (n - 1)) : 0))
        guard variance > 0 else { return 1 }
        let distance = max(abs(ranks.u - n1 * n2 / 2) - 0.5, 0) // 0.5: ranks come in steps
        return min(erfc(distance / (2 * variance).squareRoot()), 1)
    }

    private struct Ranks {
        var u: Double
        var smallerU: Int
        /// Sum of t³ − t over groups of t equal values.
        var tieTerm: Double

        init(_ a: [Double], _ b: [Double]) {
            let all = (a.map { ($0, true) } + b.map { ($0, false) }).sorted { $0.0 < $1.0 }
            var rankSum = 0.0
            tieTerm = 0
            var start = 0
            while start < all.count {
                var end = start
                while end < all.count, all[end].0 == all[start].0 { end += 1 }
                let rank = Double(start + 1 + end) / 2 // the mean of start + 1 … end
                rankSum += rank * Double(all[start..<end].lazy.filter(\.1).count)
                let t = Double(end - start)
                tieTerm += t * t * t - t
                start = end
            }
            let pairs = Double(a.count * b.count)
            u = rankSum - Double(a.count * (a.count + 1)) / 2
            smallerU = Int(min(u, pairs - u))
        }
    }

    /// Returns the share of all orders of n1 and n2 values whose U is at most `u`, doubled. Counts by the recurrence on the
    /// set that the largest value belongs to.
    private static func exact(_ u: Int, _ n1: Int, _ n2: Int) -> Double {
        // ways[j][k]: probability of U = k with i values of the first set and j of the second, for the current i.
        var ways = [[Double]](repeating: [1], count: n2 + 1)
        for i in 1...n1 {
            var next: [[Double]] = [[1]]
            for j in 1...n2 {
                var row = [Double](repeating: 0, count: i * j + 1)
                let first = Double(i) / Double(i + j)
                for (k, p) in ways[j].enumerated() { row[k + j] += p * first } // the largest is the first set's: above j others
                for (k, p) in next[j - 1].enumerated() { row[k] += p * (1 - first) }
                next.append(row)
            }
            ways = next
        }
        return min(2 * ways[n2].prefix(u + 1).reduce(0, +), 1)
    }
}
