// Names of the cases of Swift's enumerations, which the debug information does not have: those that the run-time library finds them by. The
// layouts are stable: swift's include/swift/ABI/Metadata.h (TargetEnumDescriptor) and include/swift/RemoteInspection/Records.h (FieldDescriptor).
import CElfutils

/// Enumerations of one file whose cases have no values with them: what is passed is the number of the case.
package struct SwiftCases {
    private let content: SegmentContent
    /// Addresses of descriptions, by the mangled names of types without `$s`.
    private var descriptions: [String: UInt64] = [:]

    private static let mostCases = 200, mostBytes = 200

    package init(_ file: CodeFile) {
        content = file.content
        let prefix = "$s", suffix = "Mn"
        file.forEachSymbol { name, address in
            guard name.hasSuffix("OMn"), name.hasPrefix(prefix) else { return }
            descriptions[String(name.dropFirst(prefix.count).dropLast(suffix.count))] = address
        }
    }

    /// nil: it is none, or none of this file.
    package func names(of type: String) -> [String]? {
        guard let address = descriptions[type], let flags = word(address), let payloads = word(address &+ 20),
            let count = word(address &+ 24),
            let fields = target(address &+ 16), let sizes = word(fields &+ 8), let records = word(fields &+ 12)
        else { return nil }
        // An enumeration that is not generic; a description of one with records of twelve bytes.
        guard flags & 0x1f == 18, flags & 0x80 == 0, payloads & 0xff_ffff == 0, count > 0, count <= Self.mostCases, records == count,
            sizes & 0xffff == 2, sizes >> 16 == 12
        else { return nil }
        var names: [String] = []
        for n in 0..<UInt64(count) {
            guard let place = target(fields &+ 16 &+ n &* 12 &+ 8), let name = text(place) else { return nil }
            names.append(name)
        }
        return names
    }

    private func word(_ address: UInt64) -> UInt32? { content.bytes(at: address).load(0, as: UInt32.self) }
    /// What a reference says that is relative to its own place.
    private func target(_ place: UInt64) -> UInt64? {
        guard let distance = word(place), distance != 0 else { return nil }
        return place &+ UInt64(bitPattern: Int64(Int32(bitPattern: distance)))
    }
    private func text(_ address: UInt64) -> String? {
        let bytes = content.bytes(at: address).prefix(Self.mostBytes)
        guard let end = bytes.firstIndex(of: 0), end > bytes.startIndex else { return nil }
        return String(decoding: bytes[..<end], as: UTF8.self)
    }
}

extension CodeFile {
    /// Calls `body` with each symbol that the file defines.
    fileprivate func forEachSymbol(_ body: (String, UInt64) -> Void) {
        for each in [file] + others {
            each.forEachSection { section, header in
                guard header.sh_type == UInt32(SHT_SYMTAB) || header.sh_type == UInt32(SHT_DYNSYM),
                    let table = SymbolSection(section, header, of: each)
                else { return }
                for symbol in table where symbol.st_shndx != UInt16(SHN_UNDEF) && symbol.st_value != 0 {
                    if let name = table.name(of: symbol) {
                        body(String(decoding: SymbolSection.withoutVersion(name), as: UTF8.self), symbol.st_value)
                    }
                }
            }
        }
    }
}
