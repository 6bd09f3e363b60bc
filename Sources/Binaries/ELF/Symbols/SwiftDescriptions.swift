// Cases of Swift's enumerations and members of its structures, which the debug information does not have: by the names that the run-time library
// finds them by. The layouts are stable: swift's include/swift/ABI/Metadata.h (TargetEnumDescriptor, TargetStructDescriptor) and
// include/swift/RemoteInspection/Records.h (FieldDescriptor).
import CElfutils

/// What one file has of its types.
package struct SwiftDescriptions {
    private let content: SegmentContent
    /// Addresses of descriptions, by the mangled names of types without `$s`; and back.
    private var descriptions: [String: UInt64] = [:], names: [UInt64: String] = [:]
    /// Types of other files, by the words that the loader fills with the addresses of their descriptions.
    private var references: [UInt64: String] = [:]

    private static let mostCases = 200, mostFields = 64, mostBytes = 200

    package init(_ file: CodeFile) {
        content = file.content
        file.forEachSymbol { name, address in
            guard let type = Self.type(describedBy: name) else { return }
            descriptions[type] = address
            names[address] = type
        }
        file.file.forEachReference { name, place in if let type = Self.type(describedBy: name) { references[place] = type } }
    }
    /// nil: it is no symbol of a nominal type's description.
    private static func type(describedBy symbol: String) -> String? {
        guard symbol.hasPrefix("$s"), ["OMn", "VMn", "CMn"].contains(where: { symbol.hasSuffix($0) }) else { return nil }
        return String(symbol.dropFirst(2).dropLast(2))
    }

    /// Names of the cases of an enumeration whose cases have no values with them: what is passed is the number of the case. nil: it is none, or
    /// none of this file.
    package func cases(of type: String) -> [String]? {
        guard let address = descriptions[type], let payloads = word(address &+ 20), payloads & 0xff_ffff == 0,
            let records = records(of: address, kind: 18, countAt: 24, fieldKind: 2, most: Self.mostCases)
        else { return nil }
        var names: [String] = []
        for record in records {
            guard let name = target(record &+ 8).flatMap(text) else { return nil }
            names.append(name)
        }
        return names
    }
    /// Addresses of the records of a type that is not generic; nil: it is another, or has other records.
    private func records(of address: UInt64, kind: UInt32, countAt offset: UInt64, fieldKind: UInt32, most: Int) -> [UInt64]? {
        guard let flags = word(address), flags & 0x1f == kind, flags & 0x80 == 0, let count = word(address &+ offset), count > 0,
            count <= most,
            let fields = target(address &+ 16), let sizes = word(fields &+ 8), sizes & 0xffff == fieldKind, sizes >> 16 == 12,
            word(fields &+ 12) == count
        else { return nil }
        return (0..<UInt64(count)).map { fields &+ 16 &+ $0 &* 12 }
    }

    /// Names and mangled types of a structure's members, in their order. nil: it is none, none of this file, or has a type of another file.
    package func fields(of type: String) -> [(name: String, type: String)]? {
        guard let address = descriptions[type],
            let records = records(of: address, kind: 17, countAt: 20, fieldKind: 0, most: Self.mostFields)
        else { return nil }
        var all: [(name: String, type: String)] = []
        for record in records {
            guard let type = target(record &+ 4).flatMap(typeName), let name = target(record &+ 8).flatMap(text) else { return nil }
            all.append((name, type))
        }
        return all
    }
    /// A mangled name, in which 1 and a distance stand for the type that is described there, and 2 for the one whose description's address is there
    /// (Mangling.rst, "Symbolic references").
    private func typeName(_ address: UInt64) -> String? {
        let bytes = content.bytes(at: address)
        var name = "", n = 0
        while n < min(bytes.count, Self.mostBytes) {
            switch bytes[n] {
            case 0: return name.isEmpty ? nil : name
            case 1, 2:
                let known = bytes[n] == 1 ? names : references
                guard let described = target(address &+ UInt64(n) &+ 1).flatMap({ known[$0] }) else { return nil }
                name += described
                n += 5
            case 0x20..<0x7f:
                name.unicodeScalars.append(Unicode.Scalar(bytes[n]))
                n += 1
            default: return nil
            }
        }
        return nil
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

extension ObjectFile {
    /// Calls `body` with the symbol of each relocation that has one, and its place.
    fileprivate func forEachReference(_ body: (String, UInt64) -> Void) {
        var tables: [Int: SymbolSection] = [:], relocations: [(section: OpaquePointer, header: GElf_Shdr)] = []
        forEachSection { section, header in
            if header.sh_type == UInt32(SHT_DYNSYM) { tables[elf_ndxscn(section)] = SymbolSection(section, header, of: self) }
            if header.sh_type == UInt32(SHT_RELA) { relocations.append((section, header)) }
        }
        for (section, header) in relocations {
            guard let symbols = tables[Int(header.sh_link)], let entries = elf_getdata(section, nil), header.sh_entsize > 0 else {
                continue
            }
            for index in 0..<min(Int(clamping: UInt64(entries.pointee.d_size) / header.sh_entsize), 16 << 20) {
                var relocation = GElf_Rela()
                guard gelf_getrela(entries, Int32(index), &relocation) != nil else { break }
                let number = Int(Int32(truncatingIfNeeded: relocation.r_info >> 32))
                guard number > 0, relocation.r_addend == 0, let symbol = symbols[number], let name = symbols.name(of: symbol) else {
                    continue
                }
                body(String(decoding: SymbolSection.withoutVersion(name), as: UTF8.self), relocation.r_offset)
            }
        }
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
