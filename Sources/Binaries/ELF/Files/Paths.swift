// Paths of files, and what directories hold.
import Glibc

/// Returns the path of the file without symbolic links; nil when there is no such file.
package func resolvedPath(_ path: String) -> String? {
    guard let resolved = realpath(path, nil) else { return nil }
    defer { free(resolved) }
    return String(cString: resolved)
}

/// Returns lib/tracer beside the folder of the program, where an installed tool has its libraries; nil unknown.
package func installedLibraryFolder() -> String? {
    resolvedPath("/proc/self/exe").map { "/" + $0.split(separator: "/").dropLast(2).joined(separator: "/") + "/lib/tracer" }
}

/// Returns the names of a directory's entries, in no order. nil, and errno, when it cannot be read.
package func entryNames(in directory: String) -> [String]? {
    guard let listing = opendir(directory) else { return nil }
    defer { closedir(listing) }
    var names: [String] = []
    while let entry = readdir(listing) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if name != ".", name != ".." { names.append(name) }
    }
    return names
}
