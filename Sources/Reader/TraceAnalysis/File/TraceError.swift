/// Why a file cannot be read at all. What can be read in part yields `TraceFile.warnings` instead.
package enum TraceError: Error, Equatable, CustomStringConvertible {
    case unreadable(String, String)
    case empty(String)
    case notATrace(String)
    case cutInHeader(String, byteCount: UInt64)
    case otherByteOrder(String)
    case newerVersion(String, found: UInt32, known: UInt32)

    package var description: String {
        switch self {
        case .unreadable(let path, let reason): "cannot read \(path): \(reason)"
        case .empty(let path): "\(path) is empty: nothing was recorded"
        case .notATrace(let path): "\(path) is not a trace: it does not begin with TRACER"
        case .cutInHeader(let path, let count): "\(path) is truncated after \(count) bytes, inside its header: nothing can be read"
        case .otherByteOrder(let path): "\(path) was written on a big-endian machine: traces are little-endian"
        case .newerVersion(let path, let found, let known):
            "\(path) has format version \(found), but this tool reads version \(known): use a newer tracer"
        }
    }
}
