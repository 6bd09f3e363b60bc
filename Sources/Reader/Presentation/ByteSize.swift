/// "812 bytes", "16.0 KB", "1.2 GB"; a KB is 1024 bytes.
package func readable(byteCount: UInt64) -> String {
    if byteCount < 1024 { return "\(byteCount) bytes" }
    var value = Double(byteCount) / 1024, units = ["KB", "MB", "GB"][...]
    while value >= 1024, units.count > 1 {
        value /= 1024
        units.removeFirst()
    }
    return "\((value * 10).rounded() / 10) \(units.first!)"
}
