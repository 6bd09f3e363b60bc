// Mangled names become readable ones.
import CDemangle
import ELF
import Glibc

/// The name as a programmer wrote it, or `name` itself when it is not mangled, or mangled in a way that only a hostile file has: its
/// readable form is then beyond all measure.
package func demangled(_ name: String) -> String {
    // A version is not part of the name: memcpy@@GLIBC_2.14.
    let most = mostBytes(of: name)
    if name.hasPrefix("_Z") {
        // Rust's legacy mangling is C++'s with a hash at the end and $-escapes: the stricter reader goes first.
        return take(rust_name(name, most)) ?? take(cxx_name(name, most)) ?? name
    }
    if name.hasPrefix("_R") { return take(rust_name(name, most)) ?? name }
    if name.hasPrefix("$s") || name.hasPrefix("$S") || name.hasPrefix("$e") || name.hasPrefix("_T0") {
        guard swiftGrowth(name) <= 1 << 18, let text = take(swift_demangle(name, name.utf8.count, nil, nil, 0)), text.utf8.count <= most
        else { return name }
        return text
    }
    return objectiveCMethod(name) ?? name
}

/// What a trace's names take altogether stays in proportion to the trace. No name of the libraries of LLVM, LLDB and
/// Debian is more than 29 times as long as it is mangled.
private func mostBytes(of name: String) -> Int { min(1024 + 64 * name.utf8.count, 64 << 10) }

/// Returns a bound of how many times longer than its parts a Swift name may become: each generic type (G), extension (E), local (L) and
/// opaque (Q) entity may be referred to later, and holds no more than the substitutions (A…) since the one before it. Letters of
/// identifiers count as well, so this errs upwards (swift, docs/ABI/Mangling.rst, "Substitutions").
private func swiftGrowth(_ name: String) -> Int {
    let mostRepeats = 2048 // swift, lib/Demangling/Demangler.h, MaxRepeatCount
    var growth = 1, references = 0, repeats = 0, isSubstitution = false
    for byte in name.utf8 {
        switch byte {
        case UInt8(ascii: "A") where !isSubstitution:
            isSubstitution = true
            repeats = 0
        case UInt8(ascii: "0")...UInt8(ascii: "9") where isSubstitution: repeats = min(repeats * 10 + Int(byte & 15), mostRepeats)
        case UInt8(ascii: "a")...UInt8(ascii: "z") where isSubstitution:
            references += max(repeats, 1)
            repeats = 0
        case _ where isSubstitution: // the last of them
            references += max(repeats, 1)
            isSubstitution = false
        case UInt8(ascii: "G"), UInt8(ascii: "E"), UInt8(ascii: "L"), UInt8(ascii: "Q"):
            growth = min(growth * (references + 1), 1 << 32)
            references = 0
        default: break
        }
        if references > 1 << 20 { return .max }
    }
    return min(growth * (references + 1), 1 << 32)
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
    return printable(text) // identifiers in Punycode may hold any character
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
