// Text that others have written: names in files, traces and plans. All of it comes through here before it is shown or exported.

/// UTF-8 as far as it is. Characters that would do something, rather than stand in their place, become U+FFFD: control characters, which
/// a terminal obeys, and ends of lines, which begin another row; those that turn the direction of what follows around (Unicode TR36,
/// 2.6).
package func printable(_ bytes: some Collection<UInt8>) -> String {
    let text = String(decoding: bytes, as: UTF8.self)
    // Nearly every name is plain ASCII, and a run of many processes has a million of them.
    return bytes.allSatisfy({ $0 >= 0x20 && $0 < 0x7f }) ? text : printable(text)
}

package func printable(_ text: String) -> String {
    if text.utf8.allSatisfy({ $0 >= 0x20 && $0 < 0x7f }) || !text.unicodeScalars.contains(where: isActive) { return text }
    return String(String.UnicodeScalarView(text.unicodeScalars.map { isActive($0) ? "\u{fffd}" : $0 }))
}

package func printable(_ text: UnsafePointer<CChar>) -> String { printable(String(cString: text)) }

private func isActive(_ scalar: Unicode.Scalar) -> Bool {
    switch scalar.value {
    case 0..<0x20, 0x7f...0x9f: true
    case 0x2028, 0x2029: true // line and paragraph separators
    case 0x61c, 0x200e, 0x200f, 0x202a...0x202e, 0x2066...0x2069: true
    default: false
    }
}
