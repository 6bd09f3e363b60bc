// Types of Swift. Their debug information has their mangled names (swift's docs/ABI/Mangling.rst, "Types") and few members.

/// What the debug information does not have, by the mangled names of types.
package struct SwiftTypeNames {
    /// Names of an enumeration's cases, none of which has a value with it.
    var cases: (String) -> [String]?
    /// Names and types of a structure's members.
    var fields: (String) -> [(name: String, type: String)]?

    package init(cases: @escaping (String) -> [String]?, fields: @escaping (String) -> [(name: String, type: String)]?) {
        (self.cases, self.fields) = (cases, fields)
    }
}

enum SwiftType {
    private static let integers: [String: (bytes: Int, isSigned: Bool)] = [
        "Si": (8, true), "s4Int8V": (1, true), "s5Int16V": (2, true), "s5Int32V": (4, true), "s5Int64V": (8, true),
        "Su": (8, false), "s5UInt8V": (1, false), "s6UInt16V": (2, false), "s6UInt32V": (4, false), "s6UInt64V": (8, false),
        "s7UnicodeO6ScalarV": (4, false),
    ]

    /// `$e`: in Embedded Swift.
    static func isMangled(_ name: String) -> Bool { ["$s", "$S", "$e"].contains { name.hasPrefix($0) } }

    /// nil: the type is told by its members, or is a typedef.
    /// - Parameters:
    ///   - name: `$s…D`: a type for a debugger
    ///   - bytes: -1: not said
    static func named(_ name: String, bytes: Int, _ names: SwiftTypeNames, depth: Int = 0) -> SourceType? {
        guard isMangled(name), name.hasSuffix("D") else { return nil }
        let text = String(name.dropFirst(2).dropLast())
        if let (size, isSigned) = integers[text] { return SourceType(.integer(isSigned: isSigned), bytes: size) }
        switch text {
        case "Sb":
            var type = SourceType(.boolean, bytes: 1)
            type.isBit = true
            return type
        case "Sf": return SourceType(.floatingPoint(isExtended: false), bytes: 4)
        case "Sd": return SourceType(.floatingPoint(isExtended: false), bytes: 8)
        case "SS":
            var type = SourceType(.aggregate, bytes: 16, alignment: 8)
            type.text = .swift
            return type
        case "yt": return SourceType(.void, bytes: 0)
        default: break
        }
        if ["s9AnyObjecta", "s9AnyObjectaSg"].contains(text) { return SourceType(.pointer(toText: false), bytes: 8) }
        // A type alias has a typedef, which leads to its type.
        if text.hasSuffix("a") { return nil }
        if text.hasSuffix("O"), let cases = names.cases(text), bytes == 1 {
            let values = cases.enumerated().map { SourceEnumeration.Value(name: $1, number: Int64($0)) }
            let name = SwiftName.last(of: text)
            return SourceType(.enumeration(SourceEnumeration(name: name, isSigned: false, values: values)), bytes: 1, name: name)
        }
        if isPointer(text) { return SourceType(.pointer(toText: false), bytes: 8) }
        return text.hasSuffix("V") ? structure(text, bytes, names, depth) ?? .unknown : .unknown
    }

    /// A structure: each member lies at the next offset that its alignment allows (docs/ABI/TypeLayout.rst, "Fragile Struct and Tuple Layout").
    private static func structure(_ text: String, _ bytes: Int, _ names: SwiftTypeNames, _ depth: Int) -> SourceType? {
        guard depth < deepest, let fields = names.fields(text) else { return nil }
        var whole = SourceType(.aggregate, bytes: 0, alignment: 1, name: SwiftName.last(of: text), leaves: []), end = 0
        whole.fields = []
        for (name, text) in fields {
            guard let type = member(text, names, depth + 1), let own = type.own else { return nil }
            let offset = (end + type.alignment - 1) / type.alignment * type.alignment
            whole.fields?.append(SourceField(name, offset: offset, type))
            whole.leaves? += own.map { $0.moved(by: offset) }
            whole.alignment = max(whole.alignment, type.alignment)
            end = offset + type.byteCount
            if end > SourceType.mostBytes { return nil }
        }
        whole.byteCount = end
        // The debug information has the size, or the distance between two in an array.
        let distance = (end + whole.alignment - 1) / whole.alignment * whole.alignment
        return bytes < 0 || bytes == end || bytes == distance ? whole : nil
    }
    private static let deepest = 4

    /// nil: its size is not known.
    private static func member(_ text: String, _ names: SwiftTypeNames, _ depth: Int) -> SourceType? {
        func opaque(_ bytes: Int, _ parts: [Int]) -> SourceType {
            let leaves = parts.map { offset in
                SourceType.Leaf(offset: offset, byteCount: min(8, bytes - offset), alignment: min(8, bytes - offset), kind: .integer)
            }
            return SourceType(.aggregate, bytes: bytes, alignment: leaves[0].alignment, leaves: leaves)
        }
        // An array, a dictionary or a set is a reference to its storage.
        if text.hasSuffix("G"), ["Say", "SDy", "Shy"].contains(where: { text.hasPrefix($0) }) { return opaque(8, [0]) }
        let type = named("$s" + text + "D", bytes: text.hasSuffix("O") ? 1 : -1, names, depth: depth)
        if type?.text != nil { return opaque(16, [0, 8]) }
        if let type, type.kind != .unknown, type.kind != .void {
            // A single case has no bytes.
            if case .enumeration(let source) = type.kind, source.values.count < 2 { return nil }
            return type
        }
        guard text.hasSuffix("Sg") else { return nil }
        switch String(text.dropLast(2)) {
        case "SS": return opaque(16, [0, 8])
        case "Sb": return opaque(1, [0])
        case let base:
            // A number has no spare bits to say that there is none: a byte behind it does.
            guard let type = named("$s" + base + "D", bytes: -1, names),
                [.integer(isSigned: true), .integer(isSigned: false), .floatingPoint(isExtended: false)].contains(type.kind),
                let own = type.own
            else { return nil }
            let flag = SourceType.Leaf(offset: type.byteCount, byteCount: 1, alignment: 1, kind: .integer)
            return SourceType(.aggregate, bytes: type.byteCount + 1, alignment: type.alignment, leaves: own + [flag])
        }
    }

    /// A reference to an object of a class, a pointer of the standard library, or an optional one, which is as large.
    private static func isPointer(_ text: String) -> Bool {
        guard var shape = SwiftName.operators(of: text) else { return false }
        if shape.hasSuffix("Sg") { shape.removeLast(2) }
        if ["Sv", "SV", "yXl", "s#V"].contains(shape) { return shape != "s#V" || text.hasPrefix("s13OpaquePointerV") }
        // UnsafePointer and UnsafeMutablePointer, of one type that is known or nominal.
        if shape.hasPrefix("SPy") || shape.hasPrefix("Spy"), shape.hasSuffix("G") {
            let pointee = String(shape.dropFirst(3).dropLast())
            return pointee.count == 2 && pointee.hasPrefix("S") || ["C", "V", "O"].contains { isNominal(pointee, $0) }
        }
        return isNominal(shape, "C")
    }

    /// Names, and what each that encloses another one is.
    private static func isNominal(_ shape: String, _ kind: String) -> Bool {
        var names = shape
        guard names.hasSuffix(kind) else { return false }
        names.removeLast()
        if names.hasSuffix("LL") { names.removeLast(2) } // private
        return names.hasSuffix("#") && names.drop(while: { $0 == "s" }).allSatisfy { "#VOC".contains($0) }
    }
}

/// Mangled names of Swift (Mangling.rst, "Identifiers").
package enum SwiftName {
    /// A type's name with `#` in place of each identifier; nil: it is damaged, or repeats something.
    static func operators(of text: some StringProtocol) -> String? {
        var rest = Array(text.utf8)[...], result = "", last: UInt8 = 0
        while let byte = rest.first {
            // A number after one of these counts a known type, and is no identifier's length.
            if byte >= 0x30, byte <= 0x39, last == UInt8(ascii: "S") || last == UInt8(ascii: "A") { return nil }
            last = byte
            if byte < 0x30 || byte > 0x39 {
                result.unicodeScalars.append(Unicode.Scalar(byte))
                rest = rest.dropFirst()
                continue
            }
            guard skipIdentifier(&rest) else { return nil }
            result += "#"
        }
        return result
    }

    /// The identifier that a nominal type's name ends with; nil: it has words of others.
    static func last(of text: String) -> String? {
        var rest = Array(text.utf8)[...], found: ArraySlice<UInt8>?
        while let byte = rest.first {
            let start = rest
            if byte < 0x30 || byte > 0x39 {
                rest = rest.dropFirst()
            } else if !skipIdentifier(&rest) {
                return nil
            } else {
                found = byte == 0x30 ? nil : start[..<rest.startIndex].drop { $0 >= 0x30 && $0 <= 0x39 }
            }
        }
        return found.map { String(decoding: $0, as: UTF8.self) }
    }

    /// `03FooB0`: of words of earlier ones, in letters of which the last is a capital, and others.
    private static func skipIdentifier(_ rest: inout ArraySlice<UInt8>) -> Bool {
        var hasWords = false
        if rest.first == 0x30 {
            rest = rest.dropFirst()
            if rest.first == 0x30 { rest = rest.dropFirst() } else { hasWords = true } // 00: in Punycode
        }
        repeat {
            while hasWords, let byte = rest.first, byte >= 0x41, byte | 0x20 <= 0x7a, byte | 0x20 >= 0x61 {
                rest = rest.dropFirst()
                if byte < 0x61 { hasWords = false }
            }
            if rest.first == 0x30 {
                rest = rest.dropFirst()
                return true
            }
            var count = 0, digits = 0
            while let digit = rest.first, digit >= 0x30, digit <= 0x39, digits < 5 {
                count = count * 10 + Int(digit - 0x30)
                digits += 1
                rest = rest.dropFirst()
            }
            guard count > 0 else { return false }
            guard count <= rest.count else { return false }
            rest = rest.dropFirst(count)
        } while hasWords
        return true
    }

    /// The function returns what its type says, and in every case: none that is async or throws, or of which that is not known.
    package static func returnsAlways(_ name: String) -> Bool {
        guard SwiftType.isMangled(name), !name.contains("Ya") else { return false }
        guard let end = ["F", "FZ", "g", "gZ"].first(where: { name.hasSuffix($0) }) else { return false }
        var text = name.dropLast(end.count)
        // Generic parameters come after what says that it throws ("Types", function-signature).
        if text.last == "l" { return !text.contains("K") }
        while let last = text.last, last != "K", text.dropLast().last == "Y", last.isLetter { text = text.dropLast(2) }
        return text.last != "K"
    }
}
