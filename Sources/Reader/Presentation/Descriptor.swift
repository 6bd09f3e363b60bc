import Glibc

/// Writes all of it; a signal that interrupts does not matter. 0, or the errno of the write that failed.
@discardableResult package func writeAll(_ bytes: [UInt8], to descriptor: Int32) -> Int32 {
    bytes.withUnsafeBytes { bytes in
        var rest = bytes[...]
        while !rest.isEmpty {
            let written = write(descriptor, bytes.baseAddress! + rest.startIndex, rest.count) // within bytes
            if written < 0, errno == EINTR { continue }
            if written <= 0 { return written < 0 ? errno : EIO }
            rest = rest.dropFirst(written)
        }
        return 0
    }
}

/// Returns the system's text for an errno: "No such file or directory".
package func systemReason(_ error: Int32) -> String { String(cString: strerror(error)) }

/// Returns the path without links; nil where there is no such file.
func resolvedPath(_ path: String) -> String? {
    guard let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return String(cString: resolved)
}
