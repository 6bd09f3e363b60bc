// How many columns of a terminal a text takes: Unicode Standard Annex #11, wide characters two, combining ones none.

/// Ranges of scalars that take two columns (EastAsianWidth.txt, W and F, joined where nothing assigned lies between).
private let wide: [ClosedRange<UInt32>] = [
    0x1100...0x115f, 0x231a...0x231b, 0x2329...0x232a, 0x23e9...0x23ec, 0x2e80...0x303e, 0x3041...0xa4cf, 0xa960...0xa97c, 0xac00...0xd7a3,
    0xf900...0xfaff, 0xfe10...0xfe19, 0xfe30...0xfe6f, 0xff01...0xff60, 0xffe0...0xffe6, 0x16fe0...0x18aff, 0x1b000...0x1b2ff,
    0x1f300...0x1f64f, 0x1f680...0x1f6ff, 0x1f900...0x1f9ff, 0x1fa70...0x1faff, 0x20000...0x3fffd,
]

/// Columns of one character.
package func displayWidth(_ character: Character) -> Int {
    guard let first = character.unicodeScalars.first else { return 0 }
    if first.value < 0x300 { return first.value < 0x20 || (0x7f..<0xa0).contains(first.value) ? 0 : 1 }
    switch first.properties.generalCategory {
    case .nonspacingMark, .enclosingMark, .format, .control: return 0
    default: return wide.contains { $0.contains(first.value) } ? 2 : 1
    }
}

package func displayWidth(_ text: String) -> Int { text.reduce(0) { $0 + displayWidth($1) } }

/// As much of the text as `width` columns have space for, with an ellipsis where some is missing.
package func clipped(_ text: String, _ width: Int) -> String {
    if text.utf8.count <= width || displayWidth(text) <= width { return text }
    guard width > 0 else { return "" }
    var result = "", taken = 0
    for character in text {
        let columns = displayWidth(character)
        if taken + columns > width - 1 { break }
        result.append(character)
        taken += columns
    }
    return result + "…"
}
