// How many calls a page draws of each thread, or each process, where it cannot hold all.

package enum SliceShares {
    /// At least so many of each, so that one with few calls is not empty beside one with many.
    private static let least: UInt64 = 500

    /// Returns for each how many of `most` it may have: what it needs if that is little, and of the rest a part in proportion to what it
    /// needs.
    /// - Parameter words: of events, in each
    package static func all(of most: Int, among words: [UInt64]) -> [Int] {
        // A call is a word or two, beside it there may be a slice of own code, and at the beginning the calls that are open.
        let needs = words.map { min($0, 1 << 60) * 2 + UInt64(CallTimeline.mostLevels) + 1 }
        let first = needs.map { min($0, least) }
        let taken = first.reduce(0) { $0 &+ $1 }
        let left = UInt64(max(most, 0)) > taken ? UInt64(max(most, 0)) - taken : 0
        let rest = zip(needs, first).map { $0 - $1 }, all = Double(rest.reduce(0) { $0 &+ $1 })
        return zip(first, rest).map { first, rest in
            let part = all > 0 ? min(Double(left) * Double(rest) / all, Double(rest)) : 0
            return max(Int(first) + Int(part), 1)
        }
    }
}
