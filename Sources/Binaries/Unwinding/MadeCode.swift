// Code that a program made while it ran, by its names. Where it was made, other code may have been before.
import TraceFormat

package struct MadeCode: Sendable {
    package struct Code: Sendable, Hashable {
        package var start, end: UInt64
        package var name: String
    }
    /// Sorted by address, disjoint.
    package let code: [Code]

    /// - Parameter made: in the order of time: of two that overlap the later holds, and of the earlier what comes before it
    package init(_ made: [Code]) {
        var kept: [Code] = [], last = -1
        for (order, code) in made.enumerated().sorted(by: { ($0.element.start, $1.offset) < ($1.element.start, $0.offset) }) {
            if let previous = kept.last, code.start < previous.end {
                if order < last { continue }
                kept[kept.count - 1].end = code.start
            }
            kept.append(code)
            last = order
        }
        code = kept
    }

    /// Returns the code that holds one of these addresses of samples, sorted. All of a stack but the first are return addresses, which may
    /// lie just after the code that made the call.
    func code(holding addresses: Set<UInt64>) -> [Code] {
        Set(addresses.compactMap { code(at: $0) ?? code(at: $0 &- 1) }).sorted { $0.start < $1.start }
    }

    package func code(at address: UInt64) -> Code? {
        let index = bisect(code.count) { code[$0].end <= address }
        return index < code.count && code[index].start <= address ? code[index] : nil
    }
}
