// Bytes put together for a file: an array without the checks for uniqueness and bounds that each append of a byte to
// a Swift array makes. The space for a record is reserved once, then its bytes are stored. All pointer arithmetic of
// the exports is here.
import CDeflate
import Glibc

struct ByteWriter: ~Copyable {
    private var base: UnsafeMutablePointer<UInt8>
    private var capacity: Int
    private(set) var count = 0

    init(capacity: Int = 1 << 16) {
        self.capacity = max(capacity, 64)
        base = .allocate(capacity: self.capacity)
    }

    deinit { base.deallocate() }

    /// Makes space for `byteCount` bytes more. Whatever is stored without a check of its own was reserved before.
    @inline(__always) mutating func reserve(_ byteCount: Int) {
        if _slowPath(capacity &- count < byteCount) { grow(byteCount) }
    }

    @inline(never) private mutating func grow(_ byteCount: Int) {
        capacity = max(capacity * 2, count + byteCount)
        let grown = UnsafeMutablePointer<UInt8>.allocate(capacity: capacity)
        grown.update(from: base, count: count)
        base.deallocate()
        base = grown
    }

    /// Precondition: reserved.
    @inline(__always) mutating func store(_ byte: UInt8) {
        assert(count < capacity)
        base[count] = byte
        count &+= 1
    }

    /// Precondition: `position` is that of a byte stored before.
    @inline(__always) mutating func patch(_ byte: UInt8, at position: Int) {
        assert(position < count)
        base[position] = byte
    }

    /// A protobuf varint: seven bits a byte, the lowest first. Precondition: 10 bytes are reserved.
    @inline(__always) mutating func storeVarint(_ value: UInt64) {
        var rest = value
        while rest > 127 {
            store(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest &>>= 7
        }
        store(UInt8(truncatingIfNeeded: rest))
    }

    /// Decimal digits, zeros in front up to `width`, at most 20. Precondition: 20 bytes are reserved.
    @inline(__always) mutating func storeDecimal(_ value: UInt64, width: Int = 1) {
        var digits = 1
        var limit: UInt64 = 10
        while digits < 20, value >= limit {
            digits &+= 1
            limit = digits == 20 ? .max : limit &* 10
        }
        digits = max(digits, width)
        assert(capacity - count >= digits)
        var rest = value
        var position = count &+ digits
        while position > count {
            position &-= 1
            base[position] = UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: rest % 10)
            rest /= 10
        }
        count &+= digits
    }

    @inline(__always) mutating func append(_ text: StaticString) {
        let length = text.utf8CodeUnitCount
        reserve(length)
        (base + count).update(from: text.utf8Start, count: length)
        count &+= length
    }

    @inline(__always) mutating func append(_ bytes: [UInt8]) {
        bytes.withUnsafeBufferPointer { bytes in
            guard let start = bytes.baseAddress else { return }
            reserve(bytes.count)
            (base + count).update(from: start, count: bytes.count)
            count &+= bytes.count
        }
    }

    mutating func append(_ text: String) { append(Array(text.utf8)) }

    @inline(__always) mutating func append(decimal value: UInt64) {
        reserve(20)
        storeDecimal(value)
    }

    mutating func append(signed value: Int64) {
        reserve(21)
        if value < 0 { store(UInt8(ascii: "-")) }
        storeDecimal(value.magnitude)
    }

    mutating func removeAll() { count = 0 }

    var bytes: [UInt8] { Array(UnsafeBufferPointer(start: base, count: count)) }

    /// Appends what `compressor` makes of everything here.
    func compressed(by compressor: Compressor, to result: inout [UInt8]) {
        compressor.zlib(UnsafeRawBufferPointer(start: base, count: count), to: &result)
    }
}

/// One at a time per thread.
final class Compressor {
    private let state: OpaquePointer

    /// - Parameter level: 1 fastest … 12 smallest
    init(level: Int32) {
        guard let state = libdeflate_alloc_compressor(level) else { fatalError("no memory") }
        self.state = state
    }

    deinit { libdeflate_free_compressor(state) }

    /// RFC 1950.
    func zlib(_ bytes: UnsafeRawBufferPointer, to result: inout [UInt8]) {
        append(libdeflate_zlib_compress_bound(state, bytes.count), to: &result) { buffer, capacity in
            libdeflate_zlib_compress(state, bytes.baseAddress, bytes.count, buffer, capacity)
        }
    }

    /// RFC 1952.
    func gzip(_ bytes: [UInt8]) -> [UInt8] {
        var result: [UInt8] = []
        append(libdeflate_gzip_compress_bound(state, bytes.count), to: &result) { buffer, capacity in
            bytes.withUnsafeBytes { libdeflate_gzip_compress(state, $0.baseAddress, $0.count, buffer, capacity) }
        }
        return result
    }

    /// The bound is libdeflate's promise that `body` fits.
    private func append(_ bound: Int, to result: inout [UInt8], _ body: (UnsafeMutableRawPointer?, Int) -> Int) {
        let compressed = [UInt8](unsafeUninitializedCapacity: bound) { buffer, count in
            count = body(UnsafeMutableRawPointer(buffer.baseAddress), bound)
        }
        result += compressed
    }
}
