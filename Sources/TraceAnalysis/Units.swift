// Numbers for people.

/// "812 ns", "1.234 us", "56.789 ms", "2.345 s": at most three decimals, a unit that fits.
public func readable(_ time: Nanoseconds) -> String {
    switch time.count {
    case 0 ..< 1000: "\(time.count) ns"
    case 1000 ..< 1_000_000: thousandths(time.count) + " us"
    case 1_000_000 ..< 1_000_000_000: thousandths(time.count / 1000) + " ms"
    default: thousandths(time.count / 1_000_000) + " s"
    }
}

/// Two letters wide in its unit, so that the digits of a column stand below each other.
public func column(_ time: String) -> String { time.hasSuffix(" s") ? time.dropLast() + " s" : time }

/// As above, with a sign when it is negative.
public func readable(signed nanoseconds: Int64) -> String {
    (nanoseconds < 0 ? "-" : "") + readable(Nanoseconds(nanoseconds.magnitude))
}

private func thousandths(_ value: UInt64) -> String {
    "\(value / 1000).\(padded(value % 1000, 3))"
}

/// Decimal digits with zeros in front.
func padded(_ value: UInt64, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(width - digits.utf8.count, 0)) + digits
}

/// "1,234,567".
public func grouped(_ value: UInt64) -> String {
    var result: [UInt8] = []
    let digits = Array(String(value).utf8)
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index) % 3 == 0 { result.append(UInt8(ascii: ",")) }
        result.append(digit)
    }
    return String(decoding: result, as: UTF8.self)
}

/// "1 call", "2 calls".
public func counted(_ value: UInt64, _ noun: String, _ plural: String? = nil) -> String {
    "\(grouped(value)) \(value == 1 ? noun : plural ?? noun + "s")"
}

/// "16.0 KB", "1.2 GB".
public func readable(byteCount: UInt64) -> String {
    var value = Double(byteCount)
    for unit in ["bytes", "KB", "MB", "GB"] {
        if value < 1024 || unit == "GB" {
            return unit == "bytes" ? "\(byteCount) bytes" : "\((value * 10).rounded() / 10) \(unit)"
        }
        value /= 1024
    }
    return "\(byteCount) bytes"
}

/// Seconds of the trace with nine decimals: "0.001234567".
public func secondsText(_ time: Nanoseconds) -> String {
    "\(time.count / 1_000_000_000).\(padded(time.count % 1_000_000_000, 9))"
}

public func hexadecimal(_ bytes: [UInt8]) -> String {
    bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
