// Where the user keeps what can be made again: $XDG_CACHE_HOME, or $HOME/.cache (XDG Base Directory Specification). What is
// there is believed only if it is the effective user's own and closed to others' writing.
import CSupport

enum CacheHome {
    /// As the user has set them: TRACER_CACHE, and the two variables.
    nonisolated(unsafe) static var isUsed = true
    nonisolated(unsafe) static var folder: CText?
    nonisolated(unsafe) static var home: CText?

    /// Whose files are believed. nil: in a namespace everybody may be that one.
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

    /// What a file of the user's own holds, in pages of its own. nil: there is none, or others may write to it. Read, not mapped: whoever
    /// cuts a mapped file kills who reads it. Not waiting for who would write to a FIFO of that name.
    static func read(_ path: CText, of user: Int, atMost most: Int) -> (bytes: UnsafeMutableRawPointer, count: Int)? {
        let descriptor = SystemCall.call(
            SystemCall.openat, SystemCall.currentDirectory, bits(path), Open.own | Open.nonBlocking | Open.keepAccessTime, 0)
        if failed(descriptor) { return nil }
        defer { _ = SystemCall.call(SystemCall.close, descriptor) }
        guard let status = FileStatus(ofDescriptor: descriptor), status.isFile(of: user), status.byteCount > 0, status.byteCount <= most,
            let room = Memory.pages(status.byteCount)
        else { return nil }
        Memory.preferLargePages(room, status.byteCount)
        var count = 0
        while count < status.byteCount {
            let result = SystemCall.call(SystemCall.pread64, descriptor, bits(room + count), status.byteCount &- count, count)
            if failed(result) || result == 0 { break }
            count &+= result
        }
        if count == status.byteCount { return (room, count) }
        Memory.release(room, status.byteCount)
        return nil
    }
}
