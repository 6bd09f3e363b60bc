// /proc/PID/maps, read without a buffer of its own size.
import CSupport

enum ProcessMaps {
    /// struct procmap_query (linux/fs.h, Linux 6.11): its size, flags, address; start and end of the mapping there; what else is of it.
    private typealias Query = InlineArray<13, UInt64>
    private static let query = 0xc068_6611 // PROCMAP_QUERY
    /// Number of times that all mappings may still be read, where the kernel has no such call.
    nonisolated(unsafe) private static var readingsLeft = 256

    /// Returns the mapping that holds the address. nil: none, or it cannot be known.
    static func mapping(around address: UInt64) -> Range<UInt64>? {
        let descriptor = open()
        if failed(descriptor) { return nil }
        defer { _ = SystemCall.call(SystemCall.close, descriptor) }
        var words = Query(repeating: 0)
        words[0] = UInt64(MemoryLayout<Query>.size)
        words[2] = address
        let result = withUnsafeMutablePointer(to: &words) { SystemCall.call(SystemCall.ioctl, descriptor, query, bits($0)) }
        if result == 0 { return words[3] <= address && address < words[4] ? words[3]..<words[4] : nil }
        if readingsLeft == 0 { return nil }
        readingsLeft &-= 1
        return read(descriptor, address)
    }
    /// Returns true if some of these addresses may be written to. nil: the kernel has no such call.
    static func hasWritable(in range: Range<UInt64>) -> Bool? {
        let descriptor = open()
        if failed(descriptor) { return nil }
        defer { _ = SystemCall.call(SystemCall.close, descriptor) }
        return hasWritable(in: range, descriptor)
    }
    /// A descriptor for it, or a negative number.
    static func open(_ path: StaticString = "/proc/self/maps") -> Int {
        SystemCall.call(SystemCall.openat, SystemCall.currentDirectory, bits(path.utf8Start), Open.closeOnExec, 0)
    }
    static func hasWritable(in range: Range<UInt64>, _ descriptor: Int) -> Bool? {
        let writable: UInt64 = 0x02, orNext: UInt64 = 0x10 // PROCMAP_QUERY_VMA_WRITABLE, PROCMAP_QUERY_COVERING_OR_NEXT_VMA
        var words = Query(repeating: 0)
        words[0] = UInt64(MemoryLayout<Query>.size)
        words[1] = writable | orNext
        words[2] = range.lowerBound
        let result = withUnsafeMutablePointer(to: &words) { SystemCall.call(SystemCall.ioctl, descriptor, query, bits($0)) }
        if result == -Failure.noEntry { return false }
        return result == 0 ? words[3] < range.upperBound : nil
    }
    /// A line begins with `start-end `, in hexadecimal digits.
    private static func read(_ descriptor: Int, _ address: UInt64) -> Range<UInt64>? {
        var bytes = InlineArray<4096, UInt8>(repeating: 0)
        var window = bytes.mutableSpan
        return window.withUnsafeMutableBufferPointer { buffer in
            var start: UInt64 = 0, number: UInt64 = 0, isAtStart = true
            while true {
                let count = SystemCall.call(SystemCall.read, descriptor, bits(buffer.baseAddress), 4096)
                if count <= 0 { return nil }
                for n in 0..<count {
                    let byte = buffer[n]
                    if byte == 0x0a {
                        isAtStart = true
                        number = 0
                    } else if isAtStart && byte == 0x2d { // -
                        start = number
                        number = 0
                    } else if isAtStart && byte == 0x20 {
                        isAtStart = false
                        if start <= address && address < number { return start..<number }
                    } else if isAtStart {
                        number = number &<< 4 | UInt64(byte <= 0x39 ? byte &- 0x30 : byte &- 0x57)
                    }
                }
            }
        }
    }

    /// True when the process has a file called libtracer.so mapped. False when that cannot be known.
    static func mentionsAgent(_ pid: UInt64) -> Bool {
        var pathBuffer = InlineArray<64, UInt8>(repeating: 0)
        var span = pathBuffer.mutableSpan
        let descriptor = span.withUnsafeMutableBufferPointer {
            var path = TextBuffer($0.baseAddress!, capacity: 64)
            path.append("/proc/")
            path.append(decimal: pid)
            path.append("/maps")
            return SystemCall.call(SystemCall.openat, SystemCall.currentDirectory, bits(path.start), Open.closeOnExec, 0)
        }
        if failed(descriptor) { return false }
        defer { _ = SystemCall.call(SystemCall.close, descriptor) }
        let wanted: StaticString = "/libtracer.so\n"
        var bytes = InlineArray<4096, UInt8>(repeating: 0)
        var window = bytes.mutableSpan
        return window.withUnsafeMutableBufferPointer { buffer in
            var matched = 0
            while true {
                let count = SystemCall.call(SystemCall.read, descriptor, bits(buffer.baseAddress), 4096)
                if count <= 0 { return false }
                for n in 0..<count {
                    // The first byte of the pattern occurs nowhere else in it, so a restart needs no look back.
                    if buffer[n] == wanted.utf8Start[matched] { matched &+= 1 } else { matched = buffer[n] == wanted.utf8Start[0] ? 1 : 0 }
                    if matched == wanted.utf8CodeUnitCount { return true }
                }
            }
        }
    }
}
