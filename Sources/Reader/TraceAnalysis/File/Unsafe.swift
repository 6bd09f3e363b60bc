// All pointer arithmetic of the reader. A trace file is hostile input: it may be cut, damaged, or change while it is
// being read. So it is never mapped (a file truncated under a mapping is SIGBUS) but read with pread into buffers of
// our own, and every access to those is checked here. Above this file is ordinary Swift.
import ELF
import Glibc

/// An open file, readable at any offset from any thread.
final class InputFile: Sendable {
    let path: String
    fileprivate let descriptor: Int32

    /// Throws `TraceError.unreadable` with the reason the system gave.
    init(path: String) throws {
        self.path = path
        descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK) // a FIFO has nothing to wait for: it is no trace
        guard descriptor >= 0 else { throw TraceError.unreadable(path, String(cString: strerror(errno))) }
        var status = stat()
        if fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFDIR {
            close(descriptor)
            throw TraceError.unreadable(path, "it is a directory")
        }
    }

    deinit { close(descriptor) }

    /// Bytes in the file at this moment; it may be growing.
    var byteCount: UInt64 {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_size > 0 else { return 0 }
        return UInt64(status.st_size)
    }

    /// nil unknown.
    var inode: UInt64? {
        var status = stat()
        return fstat(descriptor, &status) == 0 ? UInt64(status.st_ino) : nil
    }

    /// On the disk at this moment.
    var allocatedByteCount: UInt64 {
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_blocks > 0 else { return 0 }
        return UInt64(status.st_blocks) &* 512 // stat(3type)
    }

    /// Up to `byteCount` bytes from `offset` into `buffer`, fewer at the end of the file. An error reads as the end.
    func read(_ byteCount: Int, at offset: UInt64, into buffer: inout ByteBuffer) {
        buffer.fill(byteCount) { base, wanted in
            var done = 0
            while done < wanted {
                guard let position = off_t(exactly: offset &+ UInt64(done)) else { break }
                let got = pread(descriptor, base + done, wanted - done, position)
                if got < 0, errno == EINTR { continue }
                if got <= 0 { break }
                done += got
            }
            return done
        }
    }

    /// `offset`, or where the hole around it ends: the file's end when there is nothing else (lseek(2), SEEK_DATA).
    func endOfHole(at offset: UInt64) -> UInt64 {
        guard let position = off_t(exactly: offset) else { return offset }
        let found = lseek(descriptor, position, 3) // SEEK_DATA, include/uapi/linux/fs.h
        if found >= 0 { return max(UInt64(found), offset) }
        return errno == ENXIO ? max(byteCount, offset) : offset
    }
}

/// Bytes read from a file, 16-aligned. Every load is checked against what was read.
struct ByteBuffer: ~Copyable {
    private var base: UnsafeMutableRawPointer
    private var capacity: Int
    private(set) var count = 0

    init(capacity: Int) {
        self.capacity = max(capacity, 16)
        base = .allocate(byteCount: self.capacity, alignment: 16)
    }

    deinit { base.deallocate() }

    fileprivate mutating func fill(_ wanted: Int, _ body: (UnsafeMutableRawPointer, Int) -> Int) {
        count = 0
        guard wanted > 0 else { return }
        if wanted > capacity {
            base.deallocate()
            capacity = wanted
            base = .allocate(byteCount: capacity, alignment: 16)
        }
        count = min(max(body(base, wanted), 0), wanted)
    }

    /// As much of `byteCount` bytes at `offset` of `other` as was read there.
    mutating func copy(_ byteCount: Int, at offset: Int, of other: borrowing ByteBuffer) {
        let present = offset >= 0 && offset < other.count ? other.count - offset : 0
        let source = other.base
        fill(min(byteCount, present)) { base, wanted in
            memcpy(base, source + offset, wanted) // within other.count
            return wanted
        }
    }

    /// The structure at `offset`, nil unless all of it was read.
    func load<T: BitwiseCopyable>(_ type: T.Type, at offset: Int) -> T? {
        guard offset >= 0, offset <= count, count - offset >= MemoryLayout<T>.size else { return nil }
        return base.loadUnaligned(fromByteOffset: offset, as: T.self) // in bounds by the line above
    }

    /// As much of `byteCount` bytes at `offset` as was read.
    func bytes(at offset: Int, byteCount: Int) -> [UInt8] {
        guard offset >= 0, byteCount > 0, offset < count else { return [] }
        return Array(UnsafeRawBufferPointer(start: base + offset, count: min(byteCount, count - offset)))
    }

    /// The text in as much of `byteCount` bytes at `offset` as was read, without a copy of them.
    func text(at offset: Int, byteCount: Int) -> String {
        guard offset >= 0, byteCount > 0, offset < count else { return "" }
        return printable(UnsafeRawBufferPointer(start: base + offset, count: min(byteCount, count - offset))) // in bounds by the line above
    }

    /// Returns true if nothing but zeros was read there.
    func isZero(at offset: Int, byteCount: Int) -> Bool {
        guard offset >= 0, byteCount > 0, offset < count else { return true }
        return UnsafeRawBufferPointer(start: base + offset, count: min(byteCount, count - offset)).allSatisfy { $0 == 0 }
    }

    /// The whole 8-byte words that were read. The pointer must not outlive `body`; the base is 16-aligned.
    @inline(__always)
    func withWords<R>(_ body: (UnsafeBufferPointer<UInt64>) throws -> R) rethrows -> R {
        try body(UnsafeBufferPointer(start: UnsafePointer(base.assumingMemoryBound(to: UInt64.self)), count: count / 8))
    }
}

/// An array without reference counts, copies on write or exclusivity checks, for the inner loops. Indices are checked.
package struct PlainArray<Element: BitwiseCopyable>: ~Copyable {
    private var base: UnsafeMutablePointer<Element>
    private var capacity: Int
    package private(set) var count: Int

    init() {
        capacity = 64
        count = 0
        base = .allocate(capacity: capacity)
    }

    init(repeating element: Element, count: Int) {
        self.count = count
        capacity = max(count, 16)
        base = .allocate(capacity: capacity)
        base.initialize(repeating: element, count: count)
    }

    deinit { base.deallocate() }

    subscript(index: Int) -> Element {
        @inline(__always) get {
            precondition(UInt(bitPattern: index) < UInt(bitPattern: count))
            return base[index]
        }
        @inline(__always) _modify {
            precondition(UInt(bitPattern: index) < UInt(bitPattern: count))
            yield &base[index]
        }
    }

    @inline(__always) mutating func append(_ element: Element) {
        if count == capacity { reserve(capacity * 2) }
        base[count] = element
        count &+= 1
    }

    mutating func append(repeating element: Element, count more: Int) {
        if count + more > capacity { reserve(max(capacity * 2, count + more)) }
        (base + count).initialize(repeating: element, count: more)
        count += more
    }

    /// Precondition: not empty.
    @inline(__always) mutating func removeLast() -> Element {
        precondition(count > 0)
        count &-= 1
        return base[count]
    }

    mutating func remove(at index: Int) -> Element {
        precondition(index >= 0 && index < count)
        let element = base[index]
        memmove(base + index, base + index + 1, (count - index - 1) * MemoryLayout<Element>.stride)
        count -= 1
        return element
    }

    mutating func removeAll() { count = 0 }

    private mutating func reserve(_ wanted: Int) {
        let grown = UnsafeMutablePointer<Element>.allocate(capacity: wanted)
        grown.update(from: base, count: count) // Element is BitwiseCopyable: no lifetimes to end
        base.deallocate()
        base = grown
        capacity = wanted
    }
}
