// The header of an ELF file, and its program headers. Every read is checked: the file may be anything.
// https://refspecs.linuxfoundation.org/elf/gabi4+/ch4.eheader.html, ch5.pheader.html

/// The header of a 64-bit little-endian file.
package struct FileHeader {
    package enum Refusal: Error {
        case noELF, truncated, otherClass(UInt8), otherByteOrder
        /// Bytes that it says each program header has.
        case programHeaderBytes(Int)
        case programHeadersOutside
    }
    package let type, elfMachine: UInt16
    private let tableOffset: UInt64, entryBytes: Int, entryCount: Int

    package static let bytes = 64
    /// A 32-bit file's; its class is in both.
    private static let bytes32 = 52
    private static let mostProgramHeaders = 4096

    /// - Parameter start: the first bytes of the file
    package init(_ start: [UInt8]) throws(Refusal) {
        guard start.starts(with: [0x7f, 0x45, 0x4c, 0x46]) else { throw .noELF }
        guard start.count >= Self.bytes32 else { throw .truncated }
        guard start[4] == 2 else { throw .otherClass(start[4]) }
        guard start[5] == 1 else { throw .otherByteOrder }
        guard start.count >= Self.bytes else { throw .truncated }
        (type, elfMachine, tableOffset, entryBytes, entryCount) = start.withUnsafeBytes { bytes in
            func number(_ offset: Int) -> UInt16 { bytes.load(offset, as: UInt16.self)! }
            return (number(16), number(18), bytes.load(32, as: UInt64.self)!, Int(number(54)), Int(number(56)))
        }
    }

    /// In the order of the file; the first 4096 of more.
    package func programHeaders(_ read: ReadBytes) throws(Refusal) -> [ProgramHeader] {
        guard entryBytes == ProgramHeader.bytes else { throw .programHeaderBytes(entryBytes) }
        let count = min(entryCount, Self.mostProgramHeaders), table = read(tableOffset, count * entryBytes)
        guard table.count == count * entryBytes else { throw .programHeadersOutside }
        return table.withUnsafeBytes { bytes in (0..<count).map { ProgramHeader(bytes, at: $0 * entryBytes) } }
    }
}

/// A program header as it stands: nothing of it has been checked.
package struct ProgramHeader {
    package enum Kind: UInt32 {
        case load = 1, dynamic, interpreter, note
        case frameIndex = 0x6474_e550, property = 0x6474_e553 // PT_GNU_EH_FRAME, PT_GNU_PROPERTY
    }
    /// nil: another one.
    package let kind: Kind?
    package let isExecutable: Bool
    package let offset, address, fileByteCount, byteCount: UInt64

    static let bytes = 56

    /// The bytes are there.
    fileprivate init(_ bytes: UnsafeRawBufferPointer, at start: Int) {
        func word(_ offset: Int) -> UInt64 { bytes.load(start + offset, as: UInt64.self)! }
        kind = Kind(rawValue: bytes.load(start, as: UInt32.self)!)
        isExecutable = bytes.load(start + 4, as: UInt32.self)! & 1 != 0 // PF_X
        (offset, address, fileByteCount, byteCount) = (word(8), word(16), word(32), word(40))
    }
}
