// Call frame information: the entries of .eh_frame, which say for each function how its caller is found.
// DWARF 5, 6.4; Linux Standard Base Core Specification 5.0, 10.6. Nothing of them is trusted.

/// Valid as long as its bytes.
package struct CallFrames {
    /// A common information entry (CIE).
    package struct Common {
        package let codeFactor: UInt64, dataFactor: Int64
        /// DWARF number of the register that holds the return address.
        package let returnColumn: Int
        /// The kernel calls these functions, to handle a signal.
        package fileprivate(set) var isSignalFrame = false
        /// Its instructions, as a range of the bytes.
        package fileprivate(set) var program = 0..<0
        fileprivate var addressEncoding: UInt8 = 0, lsdaEncoding: UInt8 = 0xff
        /// Augmentation data is preceded by its length.
        fileprivate var hasLength = false
    }

    /// A frame description entry (FDE).
    package struct Function {
        package let address, byteCount: UInt64
        fileprivate let common: Int
        /// Its instructions, as a range of the bytes.
        package let program: Range<Int>
        /// Address of the table of its exception handlers.
        package let lsda: UInt64?
    }

    /// The common entries that have been met: many functions have one.
    package struct Commons {
        fileprivate var entries: [Common] = []
        /// Indices by offset; nil: it is not understood.
        fileprivate var known: [Int: Int?] = [:]

        package init() {}

        package subscript(_ function: Function) -> Common { entries[function.common] }
    }

    private let bytes: UnsafeRawBufferPointer
    private let address: UInt64

    /// - Parameter address: of the first byte, as linked
    package init(_ bytes: UnsafeRawBufferPointer, address: UInt64) { (self.bytes, self.address) = (bytes, address) }

    /// - Parameter program: of a function or of the CIE that it has
    package func instructions(_ program: Range<Int>, _ common: Common) -> FrameInstructions {
        FrameInstructions(DwarfReader(bytes, address: address, offset: program.lowerBound, end: program.upperBound), common)
    }

    /// Returns a reader of the entry at this offset, after its length; nil: there is none.
    private func entry(at offset: Int) -> DwarfReader? {
        var reader = DwarfReader(bytes, address: address, offset: offset)
        var length = UInt64(reader.number(UInt32.self))
        if length == 0xffff_ffff { length = reader.number(UInt64.self) }
        guard !reader.failed, length > 0, length <= UInt64(reader.end - reader.offset) else { return nil }
        reader.end = reader.offset + Int(length)
        return reader
    }

    /// The function that the entry at this offset describes; nil: none that is understood.
    package func function(at offset: Int, _ commons: inout Commons) -> Function? {
        guard var reader = entry(at: offset) else { return nil }
        return function(&reader, &commons)
    }

    /// Calls `body` with each function, up to the first entry that is damaged.
    package func forEachFunction(_ commons: inout Commons, _ body: (Function) -> Void) {
        var offset = 0
        while var reader = entry(at: offset) {
            offset = reader.end
            if let function = function(&reader, &commons) { body(function) }
        }
    }

    private func function(_ reader: inout DwarfReader, _ commons: inout Commons) -> Function? {
        let field = reader.offset, back = Int(reader.number(UInt32.self))
        guard back > 0, back <= field, let index = commonIndex(at: field - back, &commons) else { return nil }
        let common = commons.entries[index]
        guard let start = reader.pointer(common.addressEncoding), let count = reader.pointer(common.addressEncoding & 0xf)
        else { return nil } // 0 bytes: the linker has discarded the function
        var lsda: UInt64?
        if common.hasLength {
            let length = reader.unsigned()
            guard !reader.failed, length <= UInt64(reader.end - reader.offset) else { return nil }
            let after = reader.offset + Int(length)
            lsda = reader.pointer(common.lsdaEncoding)
            if common.lsdaEncoding & 0x80 != 0 { lsda = nil }
            (reader.offset, reader.failed) = (after, false)
        }
        return Function(address: start, byteCount: count, common: index, program: reader.offset..<reader.end, lsda: lsda)
    }

    private func commonIndex(at offset: Int, _ commons: inout Commons) -> Int? {
        if let known = commons.known[offset] { return known }
        var index: Int?
        if let common = readCommon(at: offset) {
            index = commons.entries.count
            commons.entries.append(common)
        }
        commons.known[offset] = .some(index)
        return index
    }

    private func readCommon(at offset: Int) -> Common? {
        guard var reader = entry(at: offset) else { return nil }
        let id = reader.number(UInt32.self), version = reader.byte()
        guard id == 0, version == 1 || version == 3 else { return nil }
        var augmentation: [UInt8] = []
        while case let letter = reader.byte(), letter != 0 {
            augmentation.append(letter)
            if augmentation.count > 8 { return nil }
        }
        let codeFactor = reader.unsigned(), dataFactor = reader.signed()
        let column = version == 1 ? UInt64(reader.byte()) : reader.unsigned()
        guard !reader.failed, column < 64 else { return nil }
        var common = Common(codeFactor: codeFactor, dataFactor: dataFactor, returnColumn: Int(column))
        if augmentation.first == UInt8(ascii: "z") {
            common.hasLength = true
            let length = reader.unsigned()
            guard !reader.failed, length <= UInt64(reader.end - reader.offset) else { return nil }
            let after = reader.offset + Int(length)
            for letter in augmentation.dropFirst() {
                switch letter {
                case UInt8(ascii: "R"): common.addressEncoding = reader.byte()
                case UInt8(ascii: "L"): common.lsdaEncoding = reader.byte()
                case UInt8(ascii: "P"): _ = reader.pointer(reader.byte())
                case UInt8(ascii: "S"): common.isSignalFrame = true
                case UInt8(ascii: "B"), UInt8(ascii: "G"): break // aarch64: signed by the B key; tagged memory
                default: return nil
                }
            }
            reader.offset = after
        } else if !augmentation.isEmpty {
            return nil
        }
        guard !reader.failed else { return nil }
        common.program = reader.offset..<reader.end
        return common
    }
}
