// The code of one ELF file as it will lie in memory, and every symbol that its symbol tables have for it: those of the file, of
// its separate debug file, and of the compressed table that Fedora's kin put into .gnu_debugdata.
import CElfutils
import Glibc

/// Not for use by two threads at once, but for `bytes` and what was taken from it.
public final class CodeFile {
    public struct Segment: Sendable {
        public var address: UInt64
        public var byteCount: UInt64
        public var offset: Int
        /// Number of its bytes that the file has, which may be shorter than its header says.
        public var fileByteCount: Int
        public var isExecutable: Bool
    }
    public struct Section: Sendable {
        public var name: String
        public var type: UInt32
        public var flags: UInt64
        public var address: UInt64
        public var offset: Int
        public var byteCount: Int
    }
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
    public enum Refusal: Error { case noFile(Int32), noELF }

    private let file: ObjectFile
    private var others: [ObjectFile] = []
    private var miniDebug: OpaquePointer? // Dwfl
    public let bytes: UnsafeRawBufferPointer
    public let segments: [Segment]
    public let sections: [Section]
    public var path: String { file.path }
    public var elfMachine: UInt16 { file.header.e_machine }
    public var type: UInt16 { file.header.e_type }
    public var entry: UInt64 { file.header.e_entry }
    public var buildID: [UInt8] { file.buildID }
    public let status: stat
    /// Status of the separate debug file; nil: there is none.
    public private(set) var debugStatus: stat?

    /// - Parameter debugDirectories: where separate debug files are looked for
    public init(path: String, debugDirectories: [String] = ["/usr/lib/debug"]) throws(Refusal) {
        var status = stat()
        guard stat(path, &status) == 0 else { throw .noFile(errno) }
        guard let file = ObjectFile(path: path) else {
            let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)
            if descriptor < 0 { throw .noFile(errno) }
            close(descriptor)
            throw .noELF
        }
        var count = 0
        guard let start = elf_rawfile(file.elf, &count), count > 0 else { throw .noELF }
        self.file = file
        self.status = status
        let bytes = UnsafeRawBufferPointer(start: start, count: count)
        self.bytes = bytes
        func within(_ offset: UInt64, _ wanted: UInt64) -> Int { offset >= UInt64(count) ? 0 : Int(min(wanted, UInt64(count) - offset)) }
        segments = file.loads.filter { $0.p_vaddr &+ $0.p_memsz >= $0.p_vaddr && $0.p_vaddr &+ $0.p_memsz < 1 << 62 }.map {
            Segment(
                address: $0.p_vaddr, byteCount: $0.p_memsz, offset: Int(clamping: $0.p_offset),
                fileByteCount: within($0.p_offset, min($0.p_filesz, $0.p_memsz)), isExecutable: $0.p_flags & UInt32(PF_X) != 0)
        }.sorted { $0.address < $1.address }
        var sections: [Section] = [], namesIndex = 0
        if elf_getshdrstrndx(file.elf, &namesIndex) == 0 {
            file.forEachSection { _, header in
                if header.sh_addr >= 1 << 62 { return } // damaged: its end could not be computed
                let name = elf_strptr(file.elf, namesIndex, Int(header.sh_name)).map { String(cString: $0) } ?? ""
                let isEmpty = header.sh_type == UInt32(SHT_NOBITS)
                sections.append(
                    Section(
                        name: name, type: header.sh_type, flags: header.sh_flags, address: header.sh_addr,
                        offset: Int(clamping: header.sh_offset), byteCount: isEmpty ? 0 : within(header.sh_offset, header.sh_size)))
            }
        }
        self.sections = sections
        if let found = DebugFiles(directories: debugDirectories).debugFile(of: file) {
            others.append(found)
            var status = stat()
            if stat(found.path, &status) == 0 { debugStatus = status }
        }
    }

    deinit { if let miniDebug { dwfl_end(miniDebug) } }

    public func section(_ name: String) -> Section? { sections.first { $0.name == name } }

    /// The loadable segments of a type, as (address, offset in the file, bytes there).
    public func headers(ofType type: Int32) -> [Segment] {
        file.programHeaders.filter { $0.p_type == UInt32(bitPattern: type) }.map {
            Segment(
                address: $0.p_vaddr, byteCount: $0.p_memsz, offset: Int(clamping: $0.p_offset),
                fileByteCount: $0.p_offset >= UInt64(bytes.count) ? 0 : Int(min($0.p_filesz, UInt64(bytes.count) - $0.p_offset)),
                isExecutable: false)
        }
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
