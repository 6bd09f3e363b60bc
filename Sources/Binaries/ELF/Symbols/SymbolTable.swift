// The functions, or the variables, of one ELF file, by address.
import CElfutils
import TraceFormat

/// A function as a symbol table has it.
package struct FunctionSymbol: Sendable, Equatable {
    /// Mangled, without a version.
    package var name: String
    /// As linked: where it is in memory, less the load bias.
    package var address: UInt64
    /// 0 unknown.
    package var byteCount: UInt64
    /// Source file of a local symbol, when the symbol table has it (STT_FILE).
    package var sourceFile: String?

    package init(name: String, address: UInt64, byteCount: UInt64, sourceFile: String? = nil) {
        self.name = name
        self.address = address
        self.byteCount = byteCount
        self.sourceFile = sourceFile
    }
}

package struct SymbolTable {
    private struct Entry {
        var address: UInt64
        var end: UInt64
        /// Decides between two names of one function: the one of lower rank is shown.
        var rank: UInt8
        var name: Int
        var file: Int
        var hasSize: Bool
    }
    private var entries: [Entry] = []
    private var names: [String] = []

    package var isEmpty: Bool { entries.isEmpty }

    package enum Kind { case functions, variables }
    private let kind: Kind

    /// .symtab if the file has one, else .dynsym.
    package init(_ file: ObjectFile, _ kind: Kind = .functions) {
        self.kind = kind
        var tables: [(section: OpaquePointer, header: GElf_Shdr)] = []
        file.forEachSection { section, header in
            if header.sh_type == UInt32(SHT_SYMTAB) || header.sh_type == UInt32(SHT_DYNSYM) { tables.append((section, header)) }
        }
        guard let table = tables.first(where: { $0.header.sh_type == UInt32(SHT_SYMTAB) }) ?? tables.first else { return }
        if let symbols = SymbolSection(table.section, table.header, of: file) { read(symbols, of: file) }
        entries.sort { a, b in
            if (a.address, a.rank) != (b.address, b.rank) { return (a.address, a.rank) < (b.address, b.rank) }
            // Names of equal rank are ordered as in a plan (EntryPlan, FunctionList).
            return (names[a.name].utf8.count, names[a.name]) < (names[b.name].utf8.count, names[b.name])
        }
    }

    private mutating func read(_ symbols: SymbolSection, of file: ObjectFile) {
        var sectionEnds: [UInt16: UInt64] = [:]
        var sourceFile = -1
        for symbol in symbols {
            let type = Int32(symbol.st_info & 0xf), binding = Int32(symbol.st_info >> 4)
            if type == STT_FILE {
                // gABI, "Symbol Table": it precedes the file's other local symbols. The linker's own has no name.
                sourceFile = symbols.name(of: symbol).map { add(printable($0)) } ?? -1
                continue
            }
            guard symbol.st_shndx != UInt16(SHN_UNDEF), symbol.st_value != 0,
                kind == .variables
                    ? type == STT_OBJECT
                    : type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE && Self.isCode(symbol, file),
                let name = symbols.name(of: symbol), name.pointee != 0
            else { continue }
            var end = symbol.st_value &+ symbol.st_size
            if symbol.st_size == 0 || end < symbol.st_value { // assembly without .size: as far as the next, in its section
                let known = sectionEnds[symbol.st_shndx] ?? file.section(at: Int(symbol.st_shndx)).map { $0.sh_addr &+ $0.sh_size } ?? 0
                sectionEnds[symbol.st_shndx] = known
                end = max(known, symbol.st_value &+ 1)
            }
            let bytes = SymbolSection.withoutVersion(name), text = printable(bytes)
            let isResolver = type == STT_GNU_IFUNC
            entries.append(
                Entry(
                    address: symbol.st_value, end: end,
                    rank: SymbolRank.of(
                        bytes, isNoType: type == STT_NOTYPE, isResolver: isResolver, isLocal: binding == STB_LOCAL,
                        isWeak: binding == STB_WEAK),
                    name: add(isResolver ? ResolverNames.of(text) : text), file: binding == STB_LOCAL ? sourceFile : -1,
                    hasSize: symbol.st_size != 0))
        }
    }

    private mutating func add(_ name: String) -> Int {
        names.append(name)
        return names.count - 1
    }

    /// Returns true if a symbol without a type is global and lies in code. Mapping symbols ($x, $d) are local.
    private static func isCode(_ symbol: GElf_Sym, _ file: ObjectFile) -> Bool {
        symbol.st_info >> 4 != UInt8(STB_LOCAL)
            && file.section(at: Int(symbol.st_shndx)).map { $0.sh_flags & UInt64(SHF_EXECINSTR) != 0 } ?? false
    }

    /// The function or variable that holds the address.
    package func symbol(at address: UInt64) -> FunctionSymbol? {
        let low = bisect(entries.count) { entries[$0].address <= address }
        // The nearest start in front; of those, the best name that reaches so far. Functions do not nest.
        var index = low - 1
        guard index >= 0 else { return nil }
        let start = entries[index].address
        while index > 0, entries[index - 1].address == start { index -= 1 }
        while index < low {
            if address < entries[index].end { return symbol(index, next: low) }
            index += 1
        }
        return nil
    }

    /// All names of what begins at the address, the one to show first.
    package func names(at address: UInt64) -> [String] {
        var found: [String] = []
        for entry in entries[bisect(entries.count) { entries[$0].address < address }...] {
            guard entry.address == address else { break }
            if !found.contains(names[entry.name]) { found.append(names[entry.name]) }
        }
        return found
    }

    /// Functions that begin in `range` and whose names satisfy `isWanted`.
    package func functions(in range: Range<UInt64>, where isWanted: (String) -> Bool) -> [FunctionSymbol] {
        var found: [FunctionSymbol] = []
        for index in bisect(entries.count) { entries[$0].address < range.lowerBound }..<entries.count {
            guard entries[index].address < range.upperBound else { break }
            if isWanted(names[entries[index].name]) { found.append(symbol(index, next: index + 1)) }
        }
        return found
    }

    private func symbol(_ index: Int, next: Int) -> FunctionSymbol {
        let entry = entries[index]
        var end = entry.end
        if !entry.hasSize, next < entries.count { end = min(end, max(entries[next].address, entry.address)) }
        let file = entry.file >= 0 && !names[entry.file].isEmpty ? names[entry.file] : nil
        return FunctionSymbol(name: names[entry.name], address: entry.address, byteCount: end - entry.address, sourceFile: file)
    }
}
