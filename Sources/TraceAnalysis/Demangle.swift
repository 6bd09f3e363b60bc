// Mangled names become readable ones.
import CDemangle
import Glibc

/// The name as a programmer wrote it, or `name` itself when it is not mangled.
public func demangled(_ name: String) -> String {
    // A version is not part of the name: memcpy@@GLIBC_2.14.
    if name.hasPrefix("_Z") {
        guard let text = take(__cxa_demangle(name, nil, nil, nil)) else { return name }
        return withoutRustHash(name, text)
    }
    if name.hasPrefix("$s") || name.hasPrefix("$S") || name.hasPrefix("$e") || name.hasPrefix("_T0") {
        return take(swift_demangle(name, name.utf8.count, nil, nil, 0)) ?? name
    }
    return name
}

private func take(_ text: UnsafeMutablePointer<CChar>?) -> String? {
    guard let text else { return nil }
    defer { free(text) } // both demanglers return malloc'ed memory
    return String(cString: text)
}

/// Rust's legacy mangling is C++'s with a last component of "h" and 16 hexadecimal digits, and with $-escapes.
private func withoutRustHash(_ mangled: String, _ text: String) -> String {
    guard mangled.hasPrefix("_ZN"), mangled.hasSuffix("E"), mangled.dropLast(17).hasSuffix("17h") || mangled.dropLast(17).hasSuffix("h"),
          text.utf8.count > 19 else { return text }
    let hash = text.suffix(19)
    guard hash.hasPrefix("::h"), hash.dropFirst(3).allSatisfy({ $0.isHexDigit && !$0.isUppercase }) else { return text }
    var name = String(text.dropLast(19))
    for (escape, meaning) in [("$LT$", "<"), ("$GT$", ">"), ("$RF$", "&"), ("$BP$", "*"), ("$C$", ","), ("$LP$", "("),
                              ("$RP$", ")"), ("$u20$", " "), ("$u7b$", "{"), ("$u7d$", "}"), ("$u27$", "'"),
                              ("$u5b$", "["), ("$u5d$", "]"), ("$u3b$", ";"), ("$u2b$", "+"), ("..", "::")] {
        name = replacing(escape, with: meaning, in: name)
    }
    return replacing("_<", with: "<", in: name)
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
