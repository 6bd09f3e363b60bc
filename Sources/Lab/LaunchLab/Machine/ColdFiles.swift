// Cold starts without root: evicts exactly the files that the program maps and opens from the page cache, and checks that
// they are gone. What stays is reported: files that have no disk to be read from, and most often pages that other processes have mapped.
import CLaunch
import ELF
import Glibc
import Presentation

package struct ColdFiles: Sendable {
    package struct Drop: Sendable {
        /// Number of regular files, and of those whose cached pages could not be counted.
        package var files = 0, unknown = 0
        package var bytes: UInt64 = 0
        /// Still cached after the drop: in use by another process, or kept there by the kernel for a reason that it does not tell.
        package var kept: UInt64 = 0
        /// In file systems that are memory: nothing can be dropped there.
        package var diskless: UInt64 = 0

        /// What stayed (`whole`: said after each size), as in "1.2 MB stayed cached, …"; nil: nothing.
        package func stayed(_ whole: String) -> String? {
            let texts = [
                kept > 0 ? "\(readable(byteCount: kept))\(whole) stayed cached, probably in use by other processes" : nil,
                diskless > 0 ? "\(readable(byteCount: diskless))\(whole) have no disk (tmpfs)" : nil,
            ].compactMap { $0 }
            return texts.isEmpty ? nil : texts.joined(separator: "; ")
        }
    }
    package struct Range: Equatable, Sendable {
        package var offset: UInt64, bytes: UInt64
    }
    package struct PageIn: Sendable {
        package var path: String
        package var bytes: UInt64
        package var ranges: [Range]
    }

    package private(set) var paths: [String]
    private let pageBytes = UInt64(sysconf(Int32(_SC_PAGESIZE)))

    /// Keeps regular files only, each once.
    package init(_ paths: some Sequence<String>) {
        var seen: Set<String> = []
        self.paths = []
        for path in paths where !path.hasPrefix("/proc/") && !path.hasPrefix("/sys/") {
            var info = stat()
            guard let name = resolvedPath(path), stat(name, &info) == 0, info.st_mode & S_IFMT == S_IFREG, info.st_size > 0 else {
                continue
            }
            if seen.insert(name).inserted { self.paths.append(name) }
        }
    }

    package func drop() -> Drop {
        var result = Drop()
        for path in paths {
            withFile(path) { file, bytes in
                fsync(file) // pages not yet written cannot be dropped (posix_fadvise(2))
                posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED)
                result.files += 1
                result.bytes += bytes
                if launch_is_in_memory(file) != 0 {
                    result.diskless += bytes
                    return
                }
                if let cached = cachedPages(file, bytes) {
                    result.kept += min(UInt64(cached.count { $0 & 1 != 0 }) * pageBytes, bytes)
                } else {
                    result.unknown += 1
                }
            }
        }
        return result
    }

    /// From the first byte to the last, so that all of it is in memory, as far as there is space.
    package func readAll() {
        var buffer = [UInt8](repeating: 0, count: 1 << 20)
        for path in paths { withFile(path) { file, _ in while read(file, &buffer, buffer.count) > 0 {} } }
    }

    /// drop_caches of proc(5): the whole machine's, for root. errno, 0 when done.
    package static func dropEverything() -> Int32 {
        sync()
        let file = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC)
        guard file >= 0 else { return errno }
        defer { close(file) }
        return write(file, "3", 1) == 1 ? 0 : errno
    }

    /// Returns the cached ranges of the files, the largest first: after a cold launch, what it read in (including read-ahead).
    package func cached() -> [PageIn] {
        var result: [PageIn] = []
        for path in paths {
            withFile(path) { file, bytes in
                let ranges = ranges(cachedPages(file, bytes) ?? [])
                if !ranges.isEmpty { result.append(PageIn(path: path, bytes: ranges.reduce(0) { $0 + $1.bytes }, ranges: ranges)) }
            }
        }
        return result.sorted { ($1.bytes, $0.path) < ($0.bytes, $1.path) }
    }

    /// A byte for each page of a file, whose lowest bit says if it is in the page cache. nil when the kernel does not report that: to
    /// those who neither own the file nor may write to it, mincore(2) says that all of it is.
    private func cachedPages(_ file: Int32, _ bytes: UInt64) -> [UInt8]? {
        var pages = [UInt8](repeating: 0, count: Int((bytes + pageBytes - 1) / pageBytes))
        if pages.isEmpty { return pages }
        guard let view = mmap(nil, Int(bytes), PROT_READ, MAP_SHARED, file, 0), view != MAP_FAILED else { return nil }
        defer { munmap(view, Int(bytes)) }
        let mayKnow = faccessat(AT_FDCWD, "/proc/self/fd/\(file)", W_OK, AT_EACCESS) == 0
        return mayKnow && mincore(view, Int(bytes), &pages) == 0 ? pages : nil
    }

    private func ranges(_ pages: [UInt8]) -> [Range] {
        var ranges: [Range] = []
        for (page, cached) in pages.enumerated() where cached & 1 != 0 {
            let offset = UInt64(page) * pageBytes
            if let last = ranges.last, last.offset + last.bytes == offset {
                ranges[ranges.count - 1].bytes += pageBytes
            } else {
                ranges.append(Range(offset: offset, bytes: pageBytes))
            }
        }
        return ranges
    }

    private func withFile(_ path: String, _ body: (Int32, UInt64) -> Void) {
        let file = open(path, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return }
        defer { close(file) }
        var info = stat()
        if fstat(file, &info) == 0 { body(file, UInt64(info.st_size)) }
    }
}
