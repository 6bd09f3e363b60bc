// How long something took: ns, us, ms or s, the unit that fits, with three decimals.

/// "812 ns", "1.234 us", "56.789 ms", "2.345 s".
package func readable(_ time: Nanoseconds) -> String {
    var text: [UInt8] = []
    text.append(time)
    return String(decoding: text, as: UTF8.self)
}

/// As above, with a sign when it is negative.
package func readable(signed nanoseconds: Int64) -> String {
    (nanoseconds < 0 ? "-" : "") + readable(Nanoseconds(nanoseconds.magnitude))
}

/// As above, to the nanosecond.
package func readable(nanoseconds: Double) -> String {
    (nanoseconds.rounded() < 0 ? "-" : "") + readable(Nanoseconds(rounding: abs(nanoseconds)))
}

/// Always with a sign: "+1.234 ms", "-12 ns", "+0 ns".
package func readable(difference nanoseconds: Double) -> String {
    (nanoseconds.rounded() < 0 ? "" : "+") + readable(nanoseconds: nanoseconds)
}

/// With a unit of two letters, so that the digits of a column stand below each other.
package func column(_ time: String) -> String { time.hasSuffix(" s") ? time.dropLast() + " s" : time }

/// Seconds with nine decimals: "0.001234567".
package func secondsText(_ time: Nanoseconds) -> String {
    var text: [UInt8] = []
    text.append(seconds: time)
    return String(decoding: text, as: UTF8.self)
}

/// Milliseconds to the microsecond, as files and JSON have them: more is noise, and would change in every review.
package func milliseconds(_ nanoseconds: Double) -> Double { (nanoseconds / 1000).rounded() / 1000 }

extension [UInt8] {
    /// Appends what `readable` gives.
    package mutating func append(_ time: Nanoseconds) { append(time, " s") }

    /// Appends what `column` makes of it.
    package mutating func append(column time: Nanoseconds) { append(time, "  s") }

    private mutating func append(_ time: Nanoseconds, _ seconds: String) {
        switch time.count {
        case 0..<1000:
            append(time.count)
            append(" ns")
        case 1000..<1_000_000: append(thousandths: time.count, " us")
        case 1_000_000..<1_000_000_000: append(thousandths: time.count / 1000, " ms")
        default: append(thousandths: time.count / 1_000_000, seconds)
        }
    }

    private mutating func append(thousandths value: UInt64, _ unit: String) {
        append(value / 1000)
        append(UInt8(ascii: "."))
        append(value % 1000, width: 3)
        append(unit)
    }

    /// Appends what `secondsText` gives.
    package mutating func append(seconds time: Nanoseconds) {
        append(time.count / 1_000_000_000)
        append(UInt8(ascii: "."))
        append(time.count % 1_000_000_000, width: 9)
    }
}
