// Mangled names become readable ones.
import CDemangle
import Glibc

/// The name as a programmer wrote it, or `name` itself when it is not mangled.
package func demangled(_ name: String) -> String {
    // A version is not part of the name: memcpy@@GLIBC_2.14.
    if name.hasPrefix("_Z") {
        // Rust's legacy mangling is C++'s with a hash at the end and $-escapes: the stricter reader goes first.
        return take(rust_demangle(name, 0)) ?? take(__cxa_demangle(name, nil, nil, nil)) ?? name
    }
    if name.hasPrefix("_R") { return take(rust_demangle(name, 0)) ?? name }
    if name.hasPrefix("$s") || name.hasPrefix("$S") || name.hasPrefix("$e") || name.hasPrefix("_T0") {
        return take(swift_demangle(name, name.utf8.count, nil, nil, 0)) ?? name
    }
    return objectiveCMethod(name) ?? name
}

/// _i_Class_Category_selector_ of clang and gcc for the GNU runtimes, GNUstep's too, where a selector's colons have become underscores
/// (clang, CGObjCGNU.cpp, SymbolNameForMethod). A C function may be called so as well: classes and categories begin with a capital.
private func objectiveCMethod(_ name: String) -> String? {
    guard name.hasPrefix("_i_") || name.hasPrefix("_c_") else { return nil }
    let parts = name.dropFirst(3).split(separator: "_", maxSplits: 2, omittingEmptySubsequences: false)
    guard parts.count == 3, let capital = parts[0].utf8.first, isCapital(capital), parts[1].utf8.first.map(isCapital) ?? true else {
        return nil
    }
    let leading = parts[2].prefix { $0 == "_" }, selector = parts[2].dropFirst(leading.count)
    guard let first = selector.unicodeScalars.first, first.properties.isAlphabetic else { return nil }
    let category = parts[1].isEmpty ? "" : "(\(parts[1]))"
    return "\(name.hasPrefix("_i_") ? "-" : "+")[\(parts[0])\(category) \(leading)\(replacing("_", with: ":", in: String(selector)))]"
}

private func isCapital(_ byte: UInt8) -> Bool { byte >= UInt8(ascii: "A") && byte <= UInt8(ascii: "Z") }

private func take(_ text: UnsafeMutablePointer<CChar>?) -> String? {
    guard let text else { return nil }
    defer { free(text) } // all demanglers return malloc'ed memory
    return String(cString: text)
}

func replacing(_ part: String, with other: String, in text: String) -> String {
    guard !part.isEmpty else { return text }
    let pattern = Array(part.utf8), bytes = Array(text.utf8)
    var result: [UInt8] = []
    var index = 0
    while index < bytes.count {
        if bytes[index...].starts(with: pattern) {
            result += other.utf8
            index += pattern.count
        } else {
            result.append(bytes[index])
            index += 1
        }
    }
    return String(decoding: result, as: UTF8.self)
}
