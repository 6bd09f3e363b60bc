/// A generator whose numbers are the same in every process (Steele, Lea, Flood, "Fast Splittable Pseudorandom Number
/// Generators", 2014).
package struct SplitMix: RandomNumberGenerator, Sendable {
    private var state: UInt64
    package init(seed: UInt64) { state = seed }

    package mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ z >> 30) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ z >> 27) &* 0x94d0_49bb_1331_11eb
        return z ^ z >> 31
    }

    mutating func medianOfResample(_ ascending: [Double]) -> Double {
        // Sorting indices instead of values: the values are in order already.
        var indices = ascending.map { _ in Int.random(in: 0..<ascending.count, using: &self) }
        indices.sort()
        let middle = indices.count / 2
        let upper = ascending[indices[middle]]
        return indices.count % 2 == 1 ? upper : (ascending[indices[middle - 1]] + upper) / 2
    }
}
