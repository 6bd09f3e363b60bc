// A loaded ELF image: what its dynamic section says, as absolute addresses, checked against its load segments.
// The only file of the agent that follows pointers of an image. What may be read is what the loader has mapped readable:
// between two load segments may be nothing. An image whose tables do not lie in one such segment each is refused
// (`isUsable` false): nothing of it is followed or changed. Fuzz/elf shows it with images that lie.
import CSupport

struct Image: BitwiseCopyable {
    private(set) var bias: UInt64 = 0
    private(set) var low: UInt64 = 0 // [low, high): all load segments
    private(set) var high: UInt64 = 0
    private(set) var relroLow: UInt64 = 0
    private(set) var relroHigh: UInt64 = 0
    private(set) var isUsable = false
    /// The first readable segment: there are the tables of most modules.
    private var tableLow: UInt64 = 0, tableBytes: UInt64 = 0
    /// The first executable and the first writable segment: most modules have one of each.
    private var codeLow: UInt64 = 0
    private(set) var codeBytes: UInt64 = 0
    private var dataLow: UInt64 = 0, dataBytes: UInt64 = 0
    private var programHeaders: UInt64 = 0
    private var programHeaderCount = 0
    private var dynamic: UInt64 = 0
    private var dynamicCount = 0
    private var strings: UInt64 = 0
    private var stringBytes: UInt64 = 0
    private var symbols: UInt64 = 0
    private var symbolsEnd: UInt64 = 0 // at most
    private(set) var gnuHash = GnuHash()
    private(set) var sysvHashTable: UInt64 = 0
    private(set) var versionTable: UInt64 = 0
    private(set) var versionDefinitions: UInt64 = 0
    private(set) var versionDefinitionCount = 0
    private(set) var versionNeeds: UInt64 = 0
    private(set) var versionNeedCount = 0
    private(set) var jumpRelocations: UInt64 = 0
    /// DT_PLTGOT: what procedure linkage tables work with. Its second word is the loader's, its third leads to the loader.
    private(set) var linkageTable: UInt64 = 0
    private(set) var jumpRelocationCount = 0
    private var dataRelocations: UInt64 = 0
    private(set) var dataRelocationCount = 0
    /// The relative ones stand first and name no symbol (DT_RELACOUNT).
    private(set) var relativeRelocationCount = 0
    private(set) var hasRunpath = false
    private(set) var hasRpath = false
    private(set) var isInitFirst = false
    private(set) var hasTextRelocations = false

    /// From the program headers of the main program (AT_PHDR), or from the ELF header at the load address.
    init(bias: UInt64, dynamic: UInt64, programHeaders: UInt64, count: Int) {
        self.bias = bias
        self.dynamic = dynamic
        self.programHeaders = programHeaders
        programHeaderCount = count
        readSegments()
        readDynamic()
    }

    /// The ELF header stands at the bias of everything that was linked at 0: shared libraries and PIE.
    init(bias: UInt64, dynamic: UInt64) {
        self.init(bias: bias, dynamic: dynamic, programHeaders: 0, count: 0)
        // A library that was linked at another address has no header at its bias, perhaps nothing at all.
        guard bias & 4095 == 0, let header = UnsafePointer<ElfHeader>(bitPattern: UInt(bias)), Memory.isReadable(bias),
            header.pointee.magic == ElfHeader.magicWord, header.pointee.programHeaderBytes == 56,
            header.pointee.programHeaders & 7 == 0, header.pointee.programHeaders <= 4096,
            header.pointee.programHeaders &+ UInt64(header.pointee.programHeaderCount) &* 56 <= 4096
        else { return }
        self.init(
            bias: bias, dynamic: dynamic, programHeaders: bias &+ header.pointee.programHeaders,
            count: Int(header.pointee.programHeaderCount))
    }

    @inline(__always) func segment(_ index: Int) -> ProgramHeader {
        UnsafePointer<ProgramHeader>(bitPattern: UInt(programHeaders))![index]
    }
    /// The program headers as bytes, to be compared with those of the file.
    var programHeaderBytes: UnsafeRawBufferPointer {
        UnsafeRawBufferPointer(start: UnsafeRawPointer(bitPattern: UInt(programHeaders)), count: programHeaderCount &* 56)
    }
    var segmentCount: Int { programHeaderCount }
    /// End of the ELF header and the program headers in memory.
    var headersEnd: UInt64 { programHeaders &+ UInt64(programHeaderCount) &* 56 }

    private mutating func readSegments() {
        low = programHeaderCount == 0 ? 0 : .max
        for n in 0..<programHeaderCount {
            let header = segment(n)
            let start = bias &+ header.address, end = start &+ header.memoryBytes
            if header.type == ProgramHeader.load {
                if end < start { // around the end of all addresses: not what a loader maps
                    programHeaderCount = 0
                    return
                }
                let isReadable = header.flags & ProgramHeader.readable != 0
                if tableBytes == 0 && isReadable {
                    tableLow = start
                    tableBytes = header.memoryBytes
                }
                if start < low { low = start }
                if end > high { high = end }
                if codeBytes == 0 && header.flags & ProgramHeader.executable != 0 {
                    codeLow = start
                    codeBytes = header.memoryBytes
                }
                if dataBytes == 0 && isReadable && header.flags & ProgramHeader.writable != 0 {
                    dataLow = start
                    dataBytes = header.memoryBytes
                }
            } else if header.type == ProgramHeader.relro {
                // The loader protects whole pages only (glibc elf/dl-reloc.c, _dl_protect_relro).
                relroLow = start & ~UInt64(Memory.pageBytes &- 1)
                relroHigh = end & ~UInt64(Memory.pageBytes &- 1)
            }
        }
    }

    @inline(__always) func contains(_ address: UInt64) -> Bool { address &- low < high &- low }
    @inline(__always) func contains(_ address: UInt64, _ byteCount: UInt64) -> Bool {
        contains(address) && byteCount <= high &- address
    }

    /// True inside a segment that may be executed.
    @inline(__always) func isCode(_ address: UInt64) -> Bool {
        address &- codeLow < codeBytes || isInSegment(address, ProgramHeader.executable)
    }
    /// True inside the first of them, which most modules have alone. Nothing of the module is read, which may be going away.
    @inline(__always) func isFirstCode(_ address: UInt64) -> Bool { address &- codeLow < codeBytes }
    /// True inside a segment that may be written.
    @inline(__always) func isData(_ address: UInt64) -> Bool {
        address &- dataLow < dataBytes || isInSegment(address, ProgramHeader.writable)
    }
    @inline(__always) func isRelro(_ address: UInt64) -> Bool { address &- relroLow < relroHigh &- relroLow }
    /// Returns the whole pages of the writable segment at this address, without its RELRO part, and mprotect(2)'s bits for them.
    func writablePart(around address: UInt64) -> (low: UInt64, high: UInt64, protection: Int)? {
        if !contains(address) { return nil }
        let page = UInt64(Memory.pageBytes)
        for n in 0..<programHeaderCount {
            let header = segment(n), start = bias &+ header.address
            if header.type != ProgramHeader.load || address &- start >= header.memoryBytes { continue }
            if header.flags & ProgramHeader.writable == 0 { return nil }
            var low = start & ~(page &- 1), high = (start &+ header.memoryBytes &+ page &- 1) & ~(page &- 1)
            if relroLow < relroHigh {
                if relroHigh <= address { low = max(low, relroHigh) } else if relroLow > address { high = min(high, relroLow) }
            }
            let canRun = header.flags & ProgramHeader.executable != 0
            return (low, high, canRun ? Memory.readWriteExecute : Memory.readWrite)
        }
        return nil
    }
    /// Calls `body` with the bounds of the segments that may be read and not written to.
    func forEachConstantSegment(_ body: (UInt64, UInt64) -> Void) {
        for n in 0..<programHeaderCount {
            let header = segment(n), start = bias &+ header.address
            if header.type == ProgramHeader.load
                && header.flags & (ProgramHeader.readable | ProgramHeader.writable) == ProgramHeader.readable
            {
                body(start, start &+ header.fileBytes)
            }
        }
    }
    private func isInSegment(_ address: UInt64, _ flag: UInt32) -> Bool {
        if !contains(address) { return false }
        for n in 0..<programHeaderCount {
            let header = segment(n)
            if header.type == ProgramHeader.load && address &- (bias &+ header.address) < header.memoryBytes {
                return header.flags & flag != 0
            }
        }
        return false
    }

    /// True when all of it lies in one segment that may be read.
    @inline(__always) func isReadable(_ address: UInt64, _ byteCount: UInt64) -> Bool {
        let end = readableEnd(address)
        return end != 0 && byteCount <= end &- address
    }
    /// Returns the end of the readable segment at this address; 0: it lies in none.
    @inline(__always) private func readableEnd(_ address: UInt64) -> UInt64 {
        if address &- tableLow < tableBytes { return tableLow &+ tableBytes }
        if address &- dataLow < dataBytes { return dataLow &+ dataBytes }
        return otherReadableEnd(address)
    }
    private func otherReadableEnd(_ address: UInt64) -> UInt64 {
        if !contains(address) { return 0 }
        for n in 0..<programHeaderCount {
            let header = segment(n), start = bias &+ header.address
            if header.type == ProgramHeader.load && header.flags & ProgramHeader.readable != 0
                && address &- start < header.memoryBytes
            {
                return start &+ header.memoryBytes
            }
        }
        return 0
    }

    /// The loader relocates some entries in place and not others, and none in read-only dynamic sections.
    private func absolute(_ value: UInt64) -> UInt64 {
        contains(value) ? value : contains(bias &+ value) ? bias &+ value : 0
    }

    private mutating func readDynamic() {
        guard programHeaderCount > 0, dynamic & 7 == 0, isReadable(dynamic, 16) else { return }
        let entries = UnsafePointer<DynamicEntry>(bitPattern: UInt(dynamic))!
        let most = Int((readableEnd(dynamic) &- dynamic) / 16)
        var pltBytes: UInt64 = 0, relaBytes: UInt64 = 0, pltKind: UInt64 = 7, gnuHashTable: UInt64 = 0
        while dynamicCount < most && entries[dynamicCount].tag != DynamicTag.end {
            let value = entries[dynamicCount].value
            switch entries[dynamicCount].tag {
            case DynamicTag.strings: strings = absolute(value)
            case DynamicTag.stringBytes: stringBytes = value
            case DynamicTag.symbols: symbols = absolute(value)
            case DynamicTag.gnuHash: gnuHashTable = absolute(value)
            case DynamicTag.hash: sysvHashTable = absolute(value)
            case DynamicTag.versions: versionTable = absolute(value)
            case DynamicTag.versionDefinitions: versionDefinitions = absolute(value)
            case DynamicTag.versionDefinitionCount: versionDefinitionCount = Int(min(value, 1 << 16))
            case DynamicTag.versionNeeds: versionNeeds = absolute(value)
            case DynamicTag.versionNeedCount: versionNeedCount = Int(min(value, 1 << 16))
            case DynamicTag.jumpRelocations: jumpRelocations = absolute(value)
            case DynamicTag.pltBytes: pltBytes = value
            case DynamicTag.linkageTable: linkageTable = absolute(value)
            case DynamicTag.pltKind: pltKind = value
            case DynamicTag.rela: dataRelocations = absolute(value)
            case DynamicTag.relaBytes: relaBytes = value
            case DynamicTag.relativeCount: relativeRelocationCount = Int(truncatingIfNeeded: value)
            case DynamicTag.runpath: hasRunpath = true
            case DynamicTag.rpath: hasRpath = true
            case DynamicTag.textRelocations: hasTextRelocations = true
            case DynamicTag.flags where value & DynamicTag.withTextRelocations != 0: hasTextRelocations = true
            case DynamicTag.moreFlags: isInitFirst = value & DynamicTag.initFirst != 0
            default: break
            }
            dynamicCount &+= 1
        }
        if pltKind != 7 { jumpRelocations = 0 } // DT_REL: not on these architectures
        if jumpRelocations & 7 == 0 && isReadable(jumpRelocations, pltBytes) { jumpRelocationCount = Int(pltBytes / 24) }
        if dataRelocations & 7 == 0 && isReadable(dataRelocations, relaBytes) { dataRelocationCount = Int(relaBytes / 24) }
        if relativeRelocationCount < 0 || relativeRelocationCount > dataRelocationCount { relativeRelocationCount = 0 }
        let gnuHashEnd = readableEnd(gnuHashTable)
        if gnuHashEnd != 0 { gnuHash = GnuHash(gnuHashTable, gnuHashEnd &- gnuHashTable) }
        symbolsEnd = symbols & 7 == 0 ? readableEnd(symbols) : 0
        endStrings()
        isUsable =
            symbolsEnd != 0 && readableEnd(strings) != 0
            && (relroLow == relroHigh
                || relroLow < relroHigh && relroLow >= low & ~UInt64(Memory.pageBytes &- 1)
                    && relroHigh <= (high &+ 4095) & ~4095)
        if !isUsable {
            jumpRelocationCount = 0
            dataRelocationCount = 0
            relativeRelocationCount = 0
        }
    }

    /// Makes the string table end in a NUL: strings in it are read up to theirs. The loader does not ask for its size (glibc reads DT_STRTAB
    /// alone), so that may be anything.
    @inline(never) private mutating func endStrings() {
        let end = readableEnd(strings)
        stringBytes = end == 0 ? 0 : min(stringBytes, end &- strings)
        guard let table = CText(bitPattern: UInt(strings)) else { return }
        while stringBytes > 0 && table[Int(stringBytes) &- 1] != 0 { stringBytes = stringBytes &- 1 }
    }
    /// A string that is not within the size that the table says: up to a NUL in the same segment.
    @inline(never) private func stringBeyond(_ offset: Int) -> CText? {
        let address = strings &+ UInt64(bitPattern: Int64(offset)), end = readableEnd(address)
        if offset < 0 || end == 0 || address < strings || end != readableEnd(strings) { return nil }
        guard let text = CText(bitPattern: UInt(address)) else { return nil }
        var n = 0
        while n < Int(min(end &- address, Image.longestString)) {
            if text[n] == 0 { return text }
            n &+= 1
        }
        return nil
    }
    private static var longestString: UInt64 { 1 << 16 }

    /// The entry itself, to be changed in place, or nil: also when the section may not be written.
    func dynamicEntry(_ tag: Int64) -> UnsafeMutablePointer<DynamicEntry>? {
        guard isUsable, isData(dynamic), let entries = UnsafeMutablePointer<DynamicEntry>(bitPattern: UInt(dynamic)) else { return nil }
        for n in 0..<dynamicCount where entries[n].tag == tag { return entries + n }
        return nil
    }
    func dynamicEntry(at index: Int) -> DynamicEntry {
        UnsafePointer<DynamicEntry>(bitPattern: UInt(dynamic))![index]
    }
    var dynamicEntryCount: Int { dynamicCount }

    @inline(__always) func jumpRelocation(_ index: Int) -> Relocation {
        UnsafePointer<Relocation>(bitPattern: UInt(jumpRelocations))![index]
    }
    @inline(__always) func dataRelocation(_ index: Int) -> Relocation {
        UnsafePointer<Relocation>(bitPattern: UInt(dataRelocations))![index]
    }
    @inline(__always) func symbol(_ index: Int) -> UnsafePointer<Symbol>? {
        let address = symbols &+ UInt64(index) &* 24 // an index has 32 bits
        return address &+ 24 <= symbolsEnd ? UnsafePointer(bitPattern: UInt(address)) : nil
    }
    @inline(__always) func prefetch(jumpRelocation index: Int) {
        tracer_prefetch(UnsafePointer<Relocation>(bitPattern: UInt(jumpRelocations))! + index)
    }
    /// Asks for what lies at an address of the file.
    @inline(__always) func prefetch(_ address: UInt64) { tracer_prefetch(UnsafeRawPointer(bitPattern: UInt(bias &+ address))) }
    /// Asks for the symbol and its version number.
    @inline(__always) func prefetch(symbol index: Int) {
        tracer_prefetch(symbol(index))
        if versionTable != 0 { tracer_prefetch(UnsafeRawPointer(bitPattern: UInt(versionTable) &+ UInt(index) &* 2)) }
    }
    /// A NUL-terminated string: the table ends in a NUL (`endStrings`).
    @inline(__always) func string(_ offset: Int) -> CText? {
        offset >= 0 && offset < stringBytes ? CText(bitPattern: UInt(strings) &+ UInt(offset)) : stringBeyond(offset)
    }
    @inline(__always) func name(of symbol: Symbol) -> CText? { string(Int(symbol.name)) }
    @inline(__always) func isNamed(_ symbol: Symbol, _ name: Name) -> Bool {
        let offset = Int(symbol.name)
        return offset &+ name.byteCount < stringBytes
            ? name.isAt(UnsafeRawPointer(bitPattern: UInt(strings) &+ UInt(offset))!) : isNamedBeyond(offset, name)
    }
    @inline(never) private func isNamedBeyond(_ offset: Int, _ name: Name) -> Bool {
        guard let text = string(offset) else { return false }
        return length(text) == name.byteCount && name.isAt(text)
    }

    @inline(__always) func word16(_ address: UInt64) -> UInt16? { load(address) }
    @inline(__always) func word32(_ address: UInt64) -> UInt32? { load(address) }
    @inline(__always) func word64(_ address: UInt64) -> UInt64? { load(address) }
    /// Reads a word, not inlined: for rare reads, so that the checks are compiled once.
    @inline(never) func rareWord32(_ address: UInt64) -> UInt32? { load(address) }
    @inline(__always) private func load<T: FixedWidthInteger & BitwiseCopyable>(_ address: UInt64) -> T? {
        isReadable(address, UInt64(MemoryLayout<T>.size))
            ? UnsafeRawPointer(bitPattern: UInt(address))!.loadUnaligned(as: T.self) : nil
    }

    /// Returns the content of a note whose owner's name has up to three letters.
    func note(ofOwner name: UInt32, type wanted: UInt32) -> (content: UInt64, byteCount: UInt32)? {
        for n in 0..<programHeaderCount where segment(n).type == ProgramHeader.note {
            var address = bias &+ segment(n).address
            let end = address &+ segment(n).memoryBytes
            while address &+ 12 <= end, let owner = rareWord32(address), let size = rareWord32(address &+ 4),
                let type = rareWord32(address &+ 8)
            {
                let content = address &+ 12 &+ (UInt64(owner) &+ 3) & ~3
                if type == wanted && owner > 0 && owner <= 4 && rareWord32(address &+ 12) == name { return (content, size) }
                address = content &+ (UInt64(size) &+ 3) & ~3
            }
        }
        return nil
    }

    /// NT_GNU_BUILD_ID, of up to twenty bytes; the byte count, 0 without one.
    func copyBuildID(_ id: UnsafeMutableRawPointer) -> UInt32 {
        guard let (content, size) = note(ofOwner: 0x0055_4e47, type: 3), size <= 20, isReadable(content, UInt64(size)) else { return 0 }
        id.copyMemory(from: UnsafeRawPointer(bitPattern: UInt(content))!, byteCount: Int(size))
        return size
    }
}

/// The names of functions and variables that a module refers to and does not define, as its relocations have them; or those of its slots
/// alone.
struct OutsideNames {
    private let image: UnsafePointer<Image>
    private let ofSlots: Bool
    private var index = 0
    init(_ image: UnsafePointer<Image>, ofSlots: Bool = false) {
        self.image = image
        self.ofSlots = ofSlots
    }

    @inline(never) mutating func next() -> CText? {
        let jumps = image.pointee.jumpRelocationCount, relative = image.pointee.relativeRelocationCount
        while index < jumps &+ image.pointee.dataRelocationCount &- relative {
            let isJump = index < jumps
            let relocation = isJump ? image.pointee.jumpRelocation(index) : image.pointee.dataRelocation(relative &+ index &- jumps)
            index &+= 1
            if ofSlots && !isJump && relocation.type != Architecture.globalData { continue }
            let symbol = relocation.symbol
            if symbol != 0, let found = image.pointee.symbol(symbol)?.pointee, found.section == 0, let name = image.pointee.name(of: found)
            {
                return name
            }
        }
        return nil
    }
}
