// Numbers of DWARF and of .eh_frame, out of memory that may be damaged: `failed` once something reaches outside.
// Inlinable: the numbers of an unwinder's rules are read by the hundred thousand.
// https://refspecs.linuxfoundation.org/LSB_5.0.0/LSB-Core-generic/LSB-Core-generic/dwarfext.html

public struct DwarfReader {
    public let bytes: UnsafeRawBufferPointer
    /// Address of the first of the bytes, as linked: for pointers relative to their own address.
    public let address: UInt64
    public var offset: Int
    public var end: Int
    public var failed = false

    @inlinable public init(_ bytes: UnsafeRawBufferPointer, address: UInt64, offset: Int = 0, end: Int? = nil) {
        self.bytes = bytes
        self.address = address
        self.offset = offset
        self.end = Swift.min(end ?? bytes.count, bytes.count)
    }

    @inlinable public var isAtEnd: Bool { failed || offset >= end }

    @inlinable @inline(__always) public mutating func number<T: FixedWidthInteger>(_ type: T.Type) -> T {
        guard !failed, offset <= end - MemoryLayout<T>.size, let value = bytes.load(offset, as: type) else {
            failed = true
            return 0
        }
        offset += MemoryLayout<T>.size
        return value
    }

    @inlinable public mutating func byte() -> UInt8 { number(UInt8.self) }

    @inlinable public mutating func skip(_ count: UInt64) {
        guard !failed, count <= UInt64(end - offset) else {
            failed = true
            return
        }
        offset += Int(count)
    }

    @inlinable public mutating func unsigned() -> UInt64 {
        var value: UInt64 = 0, shift: UInt64 = 0
        while true {
            let byte = byte()
            if shift < 64 { value |= UInt64(byte & 0x7f) << shift }
            shift += 7
            if byte & 0x80 == 0 || failed { return value }
        }
    }

    @inlinable public mutating func signed() -> Int64 {
        var value: UInt64 = 0, shift: UInt64 = 0
        while true {
            let byte = byte()
            if shift < 64 { value |= UInt64(byte & 0x7f) << shift }
            shift += 7
            if byte & 0x80 == 0 || failed {
                if shift < 64, byte & 0x40 != 0 { value |= ~0 << shift }
                return Int64(bitPattern: value)
            }
        }
    }

    /// DW_EH_PE_…; nil: omitted, or 0, which means none. What is indirect is read where it points to only by the unwinder.
    @inlinable public mutating func pointer(_ encoding: UInt8) -> UInt64? {
        if encoding == 0xff { return nil }
        let here = address &+ UInt64(offset)
        let value: UInt64
        switch encoding & 0xf {
        case 0x0, 0x4: value = number(UInt64.self)
        case 0x1: value = unsigned()
        case 0x2: value = UInt64(number(UInt16.self))
        case 0x3: value = UInt64(number(UInt32.self))
        case 0x9: value = UInt64(bitPattern: signed())
        case 0xa: value = UInt64(bitPattern: Int64(number(Int16.self)))
        case 0xb: value = UInt64(bitPattern: Int64(number(Int32.self)))
        case 0xc: value = number(UInt64.self)
        default:
            failed = true
            return nil
        }
        if value == 0 || failed { return nil }
        switch encoding & 0x70 {
        case 0x00: return value
        case 0x10: return here &+ value
        default: return nil // relative to sections that .eh_frame of these architectures does not refer to
        }
    }
}
