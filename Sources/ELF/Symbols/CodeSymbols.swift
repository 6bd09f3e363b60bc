// Every symbol that a file's symbol tables have for its code: those of the file, of its separate debug file, and of the compressed table
// that Fedora's kin put into .gnu_debugdata.
import CElfutils

extension CodeFile {
    public struct Symbol {
        /// Valid as long as the file is open. With a version, where the table has it in the name.
        public var name: UnsafePointer<CChar>
        public var address: UInt64
        public var byteCount: UInt64
        /// STT_FUNC, STT_GNU_IFUNC, STT_NOTYPE
        public var type: UInt8
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
                guard let data = elf_getdata(section, nil), header.sh_entsize > 0 else { return }
                let strings = Int(header.sh_link)
                for index in 0..<min(Int(clamping: UInt64(data.pointee.d_size) / header.sh_entsize), Self.mostSymbols) {
                    var symbol = GElf_Sym()
                    guard gelf_getsym(data, Int32(index), &symbol) != nil else { return }
                    guard Self.isOfInterest(symbol), let name = elf_strptr(each.elf, strings, Int(symbol.st_name)) else { continue }
                    body(Self.symbol(symbol, name))
                }
            }
        }
        if !hasTable, section(".gnu_debugdata") != nil { forEachMiniDebugSymbol(body) }
    }

    /// Calls `body` with the address of each function that .dynsym defines: other modules may be bound to it.
    public func forEachExport(_ body: (UInt64) -> Void) {
        file.forEachSection { section, header in
            guard header.sh_type == UInt32(SHT_DYNSYM), let data = elf_getdata(section, nil), header.sh_entsize > 0 else { return }
            for index in 0..<min(Int(clamping: UInt64(data.pointee.d_size) / header.sh_entsize), Self.mostSymbols) {
                var symbol = GElf_Sym()
                guard gelf_getsym(data, Int32(index), &symbol) != nil else { return }
                if Self.isOfInterest(symbol) { body(symbol.st_value) }
            }
        }
    }

    /// More than the largest program has.
    private static let mostSymbols = 8 << 20

    private static func isOfInterest(_ symbol: GElf_Sym) -> Bool {
        let type = Int32(symbol.st_info & 0xf)
        return symbol.st_shndx != UInt16(SHN_UNDEF) && symbol.st_value != 0
            && (type == STT_FUNC || type == STT_GNU_IFUNC || type == STT_NOTYPE)
    }

    private static func symbol(_ symbol: GElf_Sym, _ name: UnsafePointer<CChar>) -> Symbol {
        Symbol(
            name: name, address: symbol.st_value, byteCount: symbol.st_size, type: symbol.st_info & 0xf,
            isLocal: symbol.st_info >> 4 == UInt8(STB_LOCAL), isWeak: symbol.st_info >> 4 == UInt8(STB_WEAK))
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
