// Files in which the kernel says something in a few lines (proc(5)).

enum KernelText {
    /// Reads what the file begins with, by one read. Returns the number of bytes, or minus an errno.
    @inline(never) static func read(_ path: StaticString, _ text: UnsafeMutablePointer<UInt8>, _ capacity: Int) -> Int {
        let descriptor = SystemCall.call(SystemCall.openat, SystemCall.currentDirectory, bits(path.utf8Start), Open.own)
        if failed(descriptor) { return descriptor }
        defer { _ = SystemCall.call(SystemCall.close, descriptor) }
        return SystemCall.call(SystemCall.read, descriptor, bits(text), capacity)
    }
}
