// One symbol table of a file, as it stands.
import CElfutils
import Glibc

/// Up to the first symbol that cannot be read.
struct SymbolSection: Sequence, IteratorProtocol {
    private let elf: OpaquePointer
    private let data: UnsafeMutablePointer<Elf_Data>
    private let strings: Int
    let count: Int
    private var index = 0

    /// More than the largest program has.
    private static let mostSymbols = 8 << 20

    init?(_ section: OpaquePointer, _ header: GElf_Shdr, of file: ObjectFile) {
        guard let data = elf_getdata(section, nil), header.sh_entsize > 0 else { return nil }
        (elf, strings) = (file.elf, Int(header.sh_link))
        count = Swift.min(Int(clamping: UInt64(data.pointee.d_size) / header.sh_entsize), Self.mostSymbols)
        self.data = data
    }

    subscript(_ index: Int) -> GElf_Sym? {
        var symbol = GElf_Sym()
        return gelf_getsym(data, Int32(index), &symbol) == nil ? nil : symbol
    }

    mutating func next() -> GElf_Sym? {
        guard index < count, let symbol = self[index] else { return nil }
        index += 1
        return symbol
    }

    /// Valid as long as the file is open.
    func name(of symbol: GElf_Sym) -> UnsafePointer<CChar>? { elf_strptr(elf, strings, Int(symbol.st_name)).map { UnsafePointer($0) } }

    /// Bytes, not characters: a large program has hundreds of thousands.
    static func withoutVersion(_ name: UnsafePointer<CChar>) -> UnsafeRawBufferPointer {
        guard name.pointee != 0 else { return UnsafeRawBufferPointer(start: name, count: 0) }
        let end = strchr(name + 1, Int32(UInt8(ascii: "@"))).map { UnsafePointer($0) } ?? name + strlen(name)
        return UnsafeRawBufferPointer(start: name, count: end - name)
    }
}
