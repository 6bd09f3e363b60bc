// The user's folder for caches: $XDG_CACHE_HOME, or $HOME/.cache (XDG Base Directory Specification). Its content is believed only if it
// is the effective user's own and closed to others' writing.
import CSupport

enum CacheHome {
    /// As the user has set them: TRACER_CACHE, and the two variables.
    nonisolated(unsafe) static var isUsed = true
    nonisolated(unsafe) static var folder: CText?
    nonisolated(unsafe) static var home: CText?

    /// User whose files are believed: the effective one. nil: it is 65534, which in a namespace may be anybody.
    static var user: Int? {
        let user = SystemCall.call(SystemCall.geteuid)
        return user == 65534 ? nil : user
    }

    /// False: there is none.
    static func append(to text: inout TextBuffer) -> Bool {
        guard let base = folder ?? home else { return false }
        text.append(contentsOf: base)
        if folder == nil { text.append("/.cache") }
        return true
    }

    /// Reads a file of the user's own into pages of its own. nil: there is none, or others may write to it.
    static func read(_ path: CText, of user: Int, atMost most: Int) -> (bytes: UnsafeMutableRawPointer, count: Int)? {
        guard let file = CachedFile(path, of: user, atMost: most) else { return nil }
        defer { file.close() }
        return file.read(from: 0, file.byteCount).map { ($0, file.byteCount) }
    }
}

/// A file of the user's own, open. Read, not mapped: whoever cuts a mapped file kills who reads it.
struct CachedFile: BitwiseCopyable {
    private let descriptor: Int
    let byteCount: Int

    /// nil: there is none, nothing is in it, or others may write to it. Not waiting for who would write to a FIFO of that name.
    @inline(never) init?(_ path: CText, of user: Int, atMost most: Int) {
        descriptor = SystemCall.call(
            SystemCall.openat, SystemCall.currentDirectory, bits(path), Open.own | Open.nonBlocking | Open.keepAccessTime, 0)
        if failed(descriptor) { return nil }
        guard let status = FileStatus(ofDescriptor: descriptor), status.isFile(of: user), status.byteCount > 0, status.byteCount <= most
        else {
            _ = SystemCall.call(SystemCall.close, descriptor)
            return nil
        }
        byteCount = status.byteCount
    }
    func close() { _ = SystemCall.call(SystemCall.close, descriptor) }

    /// Reads `wanted` bytes into pages of their own. nil: there are fewer by now.
    @inline(never) func read(from offset: Int, _ wanted: Int) -> UnsafeMutableRawPointer? {
        guard let buffer = Memory.pages(wanted) else { return nil }
        if read(from: offset, wanted, to: buffer) { return buffer }
        Memory.release(buffer, wanted)
        return nil
    }
    /// False: there are fewer by now.
    @inline(never) func read(from offset: Int, _ wanted: Int, to buffer: UnsafeMutableRawPointer) -> Bool {
        Memory.preferLargePages(buffer, wanted)
        var count = 0
        while count < wanted {
            let result = SystemCall.call(SystemCall.pread64, descriptor, bits(buffer + count), wanted &- count, offset &+ count)
            if failed(result) || result == 0 { return false }
            count &+= result
        }
        return true
    }
}
