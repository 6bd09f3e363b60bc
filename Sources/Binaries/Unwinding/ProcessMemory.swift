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
