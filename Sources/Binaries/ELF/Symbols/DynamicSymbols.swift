// The symbols that a module exports, and those that its relocations refer to, from its file.
import CElfutils

package struct DynamicSymbols: Sendable {
    /// Strong definitions that others may be bound to: the version of each name, "" without one. Weak ones are meant to be
    /// there many times (inline functions, templates, type information).
    package fileprivate(set) var definitions: [String: String] = [:]
    /// Names that its relocations ask for, its own included.
    package fileprivate(set) var references: Set<String> = []

    package init(_ file: ObjectFile, isExecutable: Bool) {
        var table: (section: OpaquePointer, header: GElf_Shdr, index: Int)?
        var versions: OpaquePointer?, versionDefinitions: (OpaquePointer, GElf_Shdr)?
        var relocations: [(OpaquePointer, GElf_Shdr)] = []
        file.forEachSection { section, header in
            switch Int64(header.sh_type) {
            case Int64(SHT_DYNSYM): table = (section, header, elf_ndxscn(section))
            case 0x6fff_ffff: versions = section // SHT_GNU_versym; the macros are signed and do not come through as such
            case 0x6fff_fffd: versionDefinitions = (section, header)
            case Int64(SHT_RELA): relocations.append((section, header))
            default: break
            }
        }
        guard let table, let symbols = SymbolSection(table.section, table.header, of: file) else { return }
        let versionData = versions.flatMap { elf_getdata($0, nil) }
        let versionNames = versionDefinitions.map { Self.versionNames($0.0, $0.1, file) } ?? [:]
        func name(_ symbol: GElf_Sym) -> String? { symbols.name(of: symbol).map { printable($0) } }

        for (index, symbol) in symbols.enumerated() {
            let type = Int32(symbol.st_info & 0xf)
            guard symbol.st_shndx != UInt16(SHN_UNDEF), Int32(symbol.st_info >> 4) == STB_GLOBAL,
                symbol.st_other & 3 == UInt8(STV_DEFAULT), type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_OBJECT,
                !(isExecutable && type == STT_OBJECT), // a copy of a library's variable
                let name = name(symbol), !name.isEmpty
            else { continue }
            var version: GElf_Versym = 1
            if let versionData { _ = gelf_getversym(versionData, Int32(index), &version) }
            if version & 0x8000 != 0 { continue } // hidden: an old version, for old programs
            definitions[name] = versionNames[version & 0x7fff] ?? ""
        }
        for (section, header) in relocations where Int(header.sh_link) == table.index {
            guard let entries = elf_getdata(section, nil), header.sh_entsize > 0 else { continue }
            for index in 0..<min(Int(clamping: UInt64(entries.pointee.d_size) / header.sh_entsize), 16 << 20) {
                var relocation = GElf_Rela()
                guard gelf_getrela(entries, Int32(index), &relocation) != nil else { break }
                let number = Int(Int32(truncatingIfNeeded: relocation.r_info >> 32))
                if number > 0, let symbol = symbols[number], let name = name(symbol) { references.insert(name) }
            }
        }
    }

    private static func versionNames(_ section: OpaquePointer, _ header: GElf_Shdr, _ file: ObjectFile) -> [UInt16: String] {
        guard let data = elf_getdata(section, nil) else { return [:] }
        var names: [UInt16: String] = [:]
        var offset: Int32 = 0
        for _ in 0..<min(header.sh_info, 65536) {
            var definition = GElf_Verdef()
            var auxiliary = GElf_Verdaux()
            guard gelf_getverdef(data, offset, &definition) != nil else { break }
            if gelf_getverdaux(data, offset &+ Int32(truncatingIfNeeded: definition.vd_aux), &auxiliary) != nil,
                definition.vd_flags & 1 == 0,
                let name = elf_strptr(file.elf, Int(header.sh_link), Int(auxiliary.vda_name))
            {
                names[definition.vd_ndx & 0x7fff] = printable(name)
            }
            guard definition.vd_next > 0 else { break }
            offset = offset &+ Int32(truncatingIfNeeded: definition.vd_next)
        }
        return names
    }
}
