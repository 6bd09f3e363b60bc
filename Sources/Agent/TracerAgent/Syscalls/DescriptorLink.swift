// What a descriptor of this process refers to, as the kernel names it: a path, "pipe:[4711]", "anon_inode:[eventfd]" (proc(5), fd).

enum DescriptorLink {
    static let capacity = 1024

    /// Puts the name, without a NUL, into `bytes`, which has room for `capacity`. Returns its length, 0: unknown.
    @inline(never) static func read(_ descriptor: Int32, into bytes: UnsafeMutablePointer<UInt8>) -> Int {
        var path = TextBuffer(bytes, capacity: capacity)
        path.append("/proc/self/fd/")
        path.append(decimal: UInt64(descriptor))
        return max(0, SystemCall.call(SystemCall.readlinkat, SystemCall.currentDirectory, bits(bytes), bits(bytes), capacity))
    }
}
