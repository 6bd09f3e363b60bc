import Statistics

/// Changes inputs as fuzzers do, without looking at what they reach; the same changes for the same seed.
struct Mutation {
    private var random: SplitMix
    private let corpus: [[UInt8]]
    /// Beyond these nothing new is reached, and reading takes longer.
    private static let mostBytes = 65536

    init(seed: UInt64, corpus: [[UInt8]]) {
        random = SplitMix(seed: seed)
        self.corpus = corpus
    }

    mutating func next() -> [UInt8] {
        var bytes = corpus.randomElement(using: &random)!
        for _ in 0..<Int.random(in: 1...6, using: &random) { change(&bytes) }
        return Array(bytes.prefix(Self.mostBytes))
    }

    private mutating func change(_ bytes: inout [UInt8]) {
        if bytes.isEmpty { return bytes = corpus[0] }
        switch Int.random(in: 0..<10, using: &random) {
        case 0..<2: bytes[anywhere(bytes)] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 2: bytes[anywhere(bytes)] = UInt8.random(in: 0...255, using: &random)
        case 3..<6: putNumber(&bytes)
        case 6: copyBlock(bytes, into: &bytes)
        case 7: copyBlock(corpus.randomElement(using: &random)!, into: &bytes)
        case 8: bytes.removeSubrange(range(bytes))
        default:
            let part = bytes[range(bytes)]
            bytes.insert(contentsOf: part, at: anywhere(bytes) & ~7)
        }
    }

    /// A number where a format has one: at a multiple of its size, and of a value that code forgets.
    private mutating func putNumber(_ bytes: inout [UInt8]) {
        let byteCount = [1, 2, 4, 8].randomElement(using: &random)!
        let offset = anywhere(bytes) & -byteCount
        let old = (0..<byteCount).reversed().reduce(UInt64(0)) { $0 << 8 | UInt64(offset + $1 < bytes.count ? bytes[offset + $1] : 0) }
        let near = UInt64.random(in: 0...16, using: &random)
        let values: [UInt64] = [
            0, 1, .max, .max >> 1, 1 << 63, 1 << 31, 1 << 32, .max >> 32, old &+ near, old &- near, old << 1, UInt64(bytes.count),
        ]
        let value = values.randomElement(using: &random)!
        for n in 0..<byteCount where offset + n < bytes.count { bytes[offset + n] = UInt8(truncatingIfNeeded: value >> (8 * n)) }
    }

    private mutating func copyBlock(_ source: [UInt8], into bytes: inout [UInt8]) {
        let part = source[range(source)]
        let offset = anywhere(bytes) & ~7
        bytes.replaceSubrange(offset..<min(offset + part.count, bytes.count), with: part)
    }

    private mutating func anywhere(_ bytes: [UInt8]) -> Int { Int.random(in: 0..<bytes.count, using: &random) }

    /// Short ranges as often as long ones, most of them of whole words.
    private mutating func range(_ bytes: [UInt8]) -> Range<Int> {
        let first = anywhere(bytes) & ~7
        let bits = Int.random(in: 3...14, using: &random)
        let longest = Swift.min(1 << bits, bytes.count - first)
        let count = Int.random(in: 1...Swift.max(1, longest), using: &random)
        return first..<Swift.min(first + (count + 7 & ~7), bytes.count)
    }
}
