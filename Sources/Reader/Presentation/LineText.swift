// Text as bytes, put together in place: `replay` writes millions of lines, and a String for each column of each takes
// longer than reading the events.

extension [UInt8] {
    package mutating func append(_ text: String) { append(contentsOf: text.utf8) }

    package mutating func append(line text: String) {
        append(text)
        append(UInt8(ascii: "\n"))
    }

    package mutating func append(spaces count: Int) {
        for _ in 0..<Swift.max(count, 0) { append(UInt8(ascii: " ")) }
    }

    /// Decimal digits, with zeros in front up to `width`.
    package mutating func append(_ value: UInt64, width: Int = 1) {
        var divisor: UInt64 = 1
        var digits = 1
        while digits < 20, digits < width || value / divisor >= 10 {
            divisor *= 10
            digits += 1
        }
        var rest = value
        while divisor > 0 {
            append(UInt8(ascii: "0") + UInt8(rest / divisor))
            rest %= divisor
            divisor /= 10
        }
    }

    /// Moves what was appended since `start` to the right end of `width` columns. All of it is ASCII.
    package mutating func align(from start: Int, width: Int) {
        let missing = width - (count - start)
        guard missing > 0 else { return }
        append(spaces: missing)
        for index in stride(from: count - 1, through: start + missing, by: -1) { self[index] = self[index - missing] }
        for index in start..<start + missing { self[index] = UInt8(ascii: " ") }
    }
}
