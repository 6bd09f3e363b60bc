// The numbers of the ELF specification (gABI chapters 4 and 5) and of the processor supplements that the agent uses.
import CSupport

struct ElfHeader { // Elf64_Ehdr
    var magic: UInt32 = 0, classAndData: UInt32 = 0
    var padding: UInt64 = 0
    var type: UInt16 = 0, architecture: UInt16 = 0
    var version: UInt32 = 0
    var entry: UInt64 = 0, programHeaders: UInt64 = 0, sectionHeaders: UInt64 = 0
    var flags: UInt32 = 0
    var headerBytes: UInt16 = 0, programHeaderBytes: UInt16 = 0, programHeaderCount: UInt16 = 0
    var sectionHeaderBytes: UInt16 = 0, sectionHeaderCount: UInt16 = 0, sectionNames: UInt16 = 0
    static let magicWord: UInt32 = 0x464c_457f
}

struct SectionHeader { // Elf64_Shdr
    var name: UInt32 = 0, type: UInt32 = 0
    var flags: UInt64 = 0, address: UInt64 = 0, offset: UInt64 = 0, byteCount: UInt64 = 0
    var link: UInt32 = 0, info: UInt32 = 0
    var alignment: UInt64 = 0, entryBytes: UInt64 = 0
    static let executable: UInt64 = 4, noBits: UInt32 = 8
}

struct ProgramHeader { // Elf64_Phdr
    var type: UInt32, flags: UInt32
    var offset: UInt64, address: UInt64, physical: UInt64
    var fileBytes: UInt64, memoryBytes: UInt64, alignment: UInt64
    static let load: UInt32 = 1, dynamic: UInt32 = 2, note: UInt32 = 4, itself: UInt32 = 6, relro: UInt32 = 0x6474_e552
    static let executable: UInt32 = 1, writable: UInt32 = 2, readable: UInt32 = 4
}

struct DynamicEntry { // Elf64_Dyn
    var tag: Int64
    var value: UInt64
}

enum DynamicTag {
    static let end: Int64 = 0, pltBytes: Int64 = 2, linkageTable: Int64 = 3, hash: Int64 = 4, strings: Int64 = 5, symbols: Int64 = 6
    static let rela: Int64 = 7, relaBytes: Int64 = 8, initializer: Int64 = 12, soname: Int64 = 14, needed: Int64 = 1
    static let rpath: Int64 = 15, debug: Int64 = 21, pltKind: Int64 = 20, jumpRelocations: Int64 = 23, stringBytes: Int64 = 10
    static let initArray: Int64 = 25, initArrayBytes: Int64 = 27, runpath: Int64 = 29, textRelocations: Int64 = 22, flags: Int64 = 30
    static let withTextRelocations: UInt64 = 4 // a bit of DT_FLAGS
    static let finalizer: Int64 = 13, finiArray: Int64 = 26, finiArrayBytes: Int64 = 28
    static let preinitArray: Int64 = 32, preinitArrayBytes: Int64 = 33, relrBytes: Int64 = 35
    static let relativeCount: Int64 = 0x6fff_fff9, moreFlags: Int64 = 0x6fff_fffb // DT_FLAGS_1
    static let initFirst: UInt64 = 0x20 // a bit of DT_FLAGS_1
    static let gnuHash: Int64 = 0x6fff_fef5, versions: Int64 = 0x6fff_fff0
    static let versionDefinitions: Int64 = 0x6fff_fffc, versionDefinitionCount: Int64 = 0x6fff_fffd
    static let versionNeeds: Int64 = 0x6fff_fffe, versionNeedCount: Int64 = 0x6fff_ffff
}

struct Symbol { // Elf64_Sym
    var name: UInt32
    var info: UInt8, other: UInt8
    var section: UInt16
    var value: UInt64, size: UInt64
    @inline(__always) var type: UInt8 { info & 15 }
    @inline(__always) var binding: UInt8 { info &>> 4 }
    static let function: UInt8 = 2, notype: UInt8 = 0, indirectFunction: UInt8 = 10
    static let local: UInt8 = 0, weak: UInt8 = 2
    /// It passes or keeps more registers than the base standard.
    @inline(__always) var hasVariantConvention: Bool { other & Architecture.variantConvention != 0 }
}

struct Relocation { // Elf64_Rela
    var offset: UInt64, info: UInt64
    var addend: Int64
    @inline(__always) var type: UInt32 { UInt32(truncatingIfNeeded: info) }
    @inline(__always) var symbol: Int { Int(info &>> 32) }
}
