// Every symbol that a file's symbol tables have for its code: those of the file, of its separate debug file, and of the compressed table
// that Fedora's kin put into .gnu_debugdata.
import CElfutils

extension CodeFile {
    public struct Symbol {
        /// Without a version. Valid as long as the file is open.
        public var name: UnsafeRawBufferPointer
        public var address: UInt64
        public var byteCount: UInt64
        /// A symbol without a type, of hand-written code.
        public var isNoType: Bool
        /// The name is that of what an IFUNC resolver chooses.
        public var isResolver: Bool
        public var isLocal: Bool
        public var isWeak: Bool
    }

    /// Symbols of code, of all tables: a function may come several times.
    public func forEachCodeSymbol(_ body: (Symbol) -> Void) {
        var hasTable = false
        for each in [file] + others {
            each.forEachSection { section, header in
                guard header.sh_type == UInt32(SHT_SYMTAB) || header.sh_type == UInt32(SHT_DYNSYM) else { return }
                if header.sh_type == UInt32(SHT_SYMTAB) { hasTable = true }
                guard let table = SymbolSection(section, header, of: each) else { return }
                for symbol in table where Self.isOfInterest(symbol) {
                    if let name = table.name(of: symbol) { body(Self.symbol(symbol, name)) }
                }
            }
        }
        if !hasTable, section(".gnu_debugdata") != nil { forEachMiniDebugSymbol(body) }
    }

    /// Calls `body` with the address of each function that .dynsym defines: other modules may be bound to it.
    public func forEachExport(_ body: (UInt64) -> Void) {
        file.forEachSection { section, header in
            guard header.sh_type == UInt32(SHT_DYNSYM), let table = SymbolSection(section, header, of: file) else { return }
            for symbol in table where Self.isOfInterest(symbol) { body(symbol.st_value) }
        }
    }

    private static func isOfInterest(_ symbol: GElf_Sym) -> Bool {
        let type = Int32(symbol.st_info & 0xf)
        return symbol.st_shndx != UInt16(SHN_UNDEF) && symbol.st_value != 0
            && (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE)
    }

    private static func symbol(_ symbol: GElf_Sym, _ name: UnsafePointer<CChar>) -> Symbol {
        let type = Int32(symbol.st_info & 0xf), binding = Int32(symbol.st_info >> 4)
        return Symbol(
            name: SymbolSection.withoutVersion(name), address: symbol.st_value, byteCount: symbol.st_size, isNoType: type == STT_NOTYPE,
            isResolver: type == STT_GNU_IFUNC, isLocal: binding == STB_LOCAL, isWeak: binding == STB_WEAK)
    }

    /// libdwfl unpacks .gnu_debugdata (https://sourceware.org/gdb/current/onlinedocs/gdb.html/MiniDebugInfo.html).
    private func forEachMiniDebugSymbol(_ body: (Symbol) -> Void) {
        var calls = Dwfl_Callbacks()
        calls.find_elf = { _, _, _, _, _, _ in -1 }
        calls.find_debuginfo = { _, _, _, _, _, _, _, _ in -1 }
        // libdwfl keeps the pointer.
        let kept = UnsafeMutablePointer<Dwfl_Callbacks>.allocate(capacity: 1)
        kept.initialize(to: calls)
        guard let dwfl = dwfl_begin(kept) else { return }
        miniDebug = dwfl
        dwfl_report_begin(dwfl)
        var bias: GElf_Addr = 0
        let module = dwfl_report_elf(dwfl, "", path, -1, 0, false)
        dwfl_report_end(dwfl, nil, nil)
        guard let module, dwfl_module_getelf(module, &bias) != nil else { return }
        for index in 0..<max(dwfl_module_getsymtab(module), 0) {
            var symbol = GElf_Sym(), address: GElf_Addr = 0
            guard let name = dwfl_module_getsym_info(module, index, &symbol, &address, nil, nil, nil), Self.isOfInterest(symbol) else {
                continue
            }
            var here = Self.symbol(symbol, name)
            here.address = address &- bias
            body(here)
        }
    }
}
