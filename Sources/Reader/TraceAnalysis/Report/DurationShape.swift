// How long the calls of a function were, as ten characters: how many took less than 10 ns, less than 100 ns, and so on, to a second and
// more. All rows have the same scale, so that they can be compared.
import Presentation

package struct DurationShape: Sendable, Equatable {
    private var counts = [UInt64](repeating: 0, count: Self.title.count)

    package init() {}

    /// Above the decades: the first letter stands above what takes less than 10 ns, then less than 100 ns, then less than 1 us.
    package static let title = "ns us ms s"
    private static let glyphs = Array(" ▁▂▃▄▅▆▇█")

    package mutating func add(_ time: Nanoseconds, _ count: UInt64) {
        var decade = 0, end: UInt64 = 10
        while decade < counts.count - 1, time.count >= end {
            decade += 1
            end *= 10
        }
        counts[decade] &+= count
    }

    /// A bar per decade; the one with most calls has the full height, and even a single call is visible.
    package var text: String {
        guard let most = counts.max(), most > 0 else { return "" }
        return String(counts.map { $0 == 0 ? Self.glyphs[0] : Self.glyphs[1 + Int(Double($0) / Double(most) * 7)] })
    }
}
