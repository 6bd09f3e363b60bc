import Glibc

/// Writes all of it there, however often the kernel is asked for it. Returns errno, 0 when done.
func writeWhole(_ bytes: UnsafeRawBufferPointer, to file: Int32, at offset: off_t = 0) -> Int32 {
    var done = 0
    while done < bytes.count {
        let count = pwrite(file, bytes.baseAddress! + done, bytes.count - done, offset + off_t(done))
        if count < 0, errno == EINTR { continue }
        if count <= 0 { return count < 0 ? errno : ENOSPC }
        done += count
    }
    return 0
}
func writeWhole(_ bytes: [UInt8], to file: Int32, at offset: off_t = 0) -> Int32 {
    bytes.withUnsafeBytes { writeWhole($0, to: file, at: offset) }
}
