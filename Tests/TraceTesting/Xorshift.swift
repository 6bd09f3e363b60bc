/// Numbers that are the same in every run (Marsaglia 2003). The seed is not 0.
public struct Xorshift: Sendable {
    private var state: UInt64

    public init(seed: UInt64) { state = seed }

    public mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state
    }

    public mutating func below(_ bound: Int) -> Int { Int(next() % UInt64(bound)) }
}
