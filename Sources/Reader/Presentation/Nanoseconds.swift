/// A length of time in nanoseconds. Not interchangeable with a number of ticks.
@frozen public struct Nanoseconds: Equatable, Comparable, Hashable, Sendable {
    public var count: UInt64

    @inlinable public init(_ count: UInt64) { self.count = count }

    /// The nearest; 0 for what is negative or no number.
    public init(rounding value: Double) {
        count = value > 0 ? UInt64(exactly: value.rounded()) ?? .max : 0
    }

    @inlinable public static func < (a: Nanoseconds, b: Nanoseconds) -> Bool { a.count < b.count }

    /// 0 at least.
    public func without(_ part: Nanoseconds) -> Nanoseconds { Nanoseconds(count > part.count ? count - part.count : 0) }
}
