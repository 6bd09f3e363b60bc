// /proc/PID/maps, read without a buffer of its own size.
import CSupport

enum ProcessMaps {
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
