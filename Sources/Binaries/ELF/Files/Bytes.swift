// Bytes of files that may be damaged: what lies outside is never read.
import Glibc

/// Reads at most `count` bytes at `offset`; fewer at the end of the file.
package typealias ReadBytes = (_ offset: UInt64, _ count: Int) -> [UInt8]

/// Returns a reader of an open file, as long as it is now.
package func readBytes(of descriptor: Int32) -> ReadBytes {
    var status = stat()
    let end = fstat(descriptor, &status) == 0 ? UInt64(clamping: status.st_size) : 0
    return { offset, count in
        guard count > 0, offset < end else { return [] }
        let count = min(count, Int(end - offset))
        return [UInt8](unsafeUninitializedCapacity: count) { bytes, used in
            while used < count { // a short read is legal, the end is 0
                let got = pread(descriptor, bytes.baseAddress! + used, count - used, off_t(offset) + off_t(used))
                if got <= 0 { break }
                used += got
            }
        }
    }
}

/// Little-endian, at any alignment; nil after the end. Inlinable: a planner reads each word of a module's code, an unwinder of a stack.
extension UnsafeRawBufferPointer {
    @inlinable @inline(__always) public func load<T: FixedWidthInteger>(_ offset: Int, as type: T.Type) -> T? {
        guard offset >= 0, offset <= count - MemoryLayout<T>.size else { return nil }
        return T(littleEndian: loadUnaligned(fromByteOffset: offset, as: type))
    }
}
