// Shares: one decimal, no blank before the sign.

/// "12.3%", "<0.1%", "-4.0%", "0.0%"; "-" for what is no number.
package func percent(_ share: Double) -> String {
    let tenths = (share * 1000).rounded()
    guard tenths.isFinite else { return "-" }
    if tenths == 0, share > 0 { return "<0.1%" }
    let magnitude = UInt64(exactly: abs(tenths)) ?? .max // in a damaged file
    return "\(tenths < 0 ? "-" : "")\(magnitude / 10).\(magnitude % 10)%"
}

/// "-" of nothing.
package func percent(_ part: UInt64, of whole: UInt64) -> String {
    whole > 0 ? percent(Double(part) / Double(whole)) : "-"
}

/// Always with a sign: "+12.3%", "-0.4%", "+0.0%".
package func percent(difference share: Double) -> String {
    let tenths = (share * 1000).rounded()
    return tenths == 0 ? "+0.0%" : (tenths > 0 ? "+" : "") + percent(share)
}
