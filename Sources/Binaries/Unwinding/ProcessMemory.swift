// The memory of another process, as it is now: /proc/PID/mem, see proc(5). It stays that of the program which was there when it was
// opened: once the process has called exec or has ended, there is none.
import Glibc

final class ProcessMemory {
    private let descriptor: Int32

    init(pid: pid_t) { descriptor = open("/proc/\(pid)/mem", O_RDONLY | O_CLOEXEC) }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// How many bytes of those wanted there were, up to the first page that is missing: 0 also when it may not be read.
    func read(_ address: UInt64, _ bytes: UnsafeMutableRawBufferPointer) -> Int {
        guard let offset = off_t(exactly: address) else { return 0 }
        return max(pread(descriptor, bytes.baseAddress, bytes.count, offset), 0)
    }

    func word(_ address: UInt64) -> UInt64? {
        var value: UInt64 = 0
        return withUnsafeMutableBytes(of: &value) { read(address, $0) } == 8 ? value : nil
    }
}

/// The same for who asks for many words that are close to each other, while nothing of them changes: each page is read once.
package final class ProcessPages {
    private let memory: ProcessMemory
    private var pages: [UInt64: [UInt8]] = [:]
    private static let pageBytes: UInt64 = 4096, mostPages = 64

    package init(pid: pid_t) { memory = ProcessMemory(pid: pid) }

    /// nil: it is not there, or not aligned, or more than `mostPages` were asked for.
    func word(_ address: UInt64) -> UInt64? {
        guard address % 8 == 0 else { return nil }
        let start = address & ~(Self.pageBytes - 1)
        if pages[start] == nil {
            guard pages.count < Self.mostPages else { return nil }
            pages[start] = [UInt8](unsafeUninitializedCapacity: Int(Self.pageBytes)) { buffer, count in
                count = memory.read(start, UnsafeMutableRawBufferPointer(buffer))
            }
        }
        return pages[start]!.withUnsafeBytes { $0.load(Int(address - start), as: UInt64.self) }
    }
}
