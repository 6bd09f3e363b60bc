// Numbers of things.

/// "1,234,567".
package func grouped(_ value: some BinaryInteger) -> String {
    var result: [UInt8] = []
    let digits = Array(String(value.magnitude).utf8)
    if value < 0 { result.append(UInt8(ascii: "-")) }
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index) % 3 == 0 { result.append(UInt8(ascii: ",")) }
        result.append(digit)
    }
    return String(decoding: result, as: UTF8.self)
}

/// "1 call", "2 calls".
package func counted(_ value: some BinaryInteger, _ noun: String, _ plural: String? = nil) -> String {
    "\(grouped(value)) \(value == 1 ? noun : plural ?? noun + "s")"
}

/// "a, b, c and 4 more".
package func listed(_ names: [String], most: Int) -> String {
    names.prefix(most).joined(separator: ", ") + (names.count > most ? " and \(names.count - most) more" : "")
}

/// Decimal digits with zeros in front.
package func padded(_ value: UInt64, _ width: Int) -> String {
    let digits = String(value)
    return String(repeating: "0", count: max(width - digits.utf8.count, 0)) + digits
}
