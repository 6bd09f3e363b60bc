// The memory of a process that the tool may trace: /proc/PID/mem (proc(5)).
import Glibc

final class RemoteMemory {
    let descriptor: Int32

    /// nil, with errno: it may not be opened.
    init?(_ pid: pid_t) {
        descriptor = open("/proc/\(pid)/mem", O_RDWR | O_CLOEXEC)
        if descriptor < 0 { return nil }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    /// The process still has this memory: it has neither ended nor called exec (mem_rw of fs/proc/base.c reads 0 bytes of memory that nobody uses).
    var isInUse: Bool {
        var byte: UInt8 = 0
        return pread(descriptor, &byte, 1, 0) != 0
    }

    /// Fewer than wanted where a page is missing.
    func bytes(_ address: UInt64, _ count: Int) -> [UInt8] {
        guard let offset = off_t(exactly: address) else { return [] }
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, got in
            got = max(pread(descriptor, buffer.baseAddress, count, offset), 0)
        }
    }

    func word(_ address: UInt64) -> UInt64? {
        let bytes = bytes(address, 8)
        return bytes.count == 8 ? bytes.withUnsafeBytes { $0.loadUnaligned(as: UInt64.self) } : nil
    }

    /// False: not all of it is there.
    func write(_ bytes: [UInt8], at address: UInt64) -> Bool {
        guard let offset = off_t(exactly: address) else { return false }
        return pwrite(descriptor, bytes, bytes.count, offset) == bytes.count
    }
    func write(_ word: UInt64, at address: UInt64) -> Bool { write(withUnsafeBytes(of: word) { Array($0) }, at: address) }
}
