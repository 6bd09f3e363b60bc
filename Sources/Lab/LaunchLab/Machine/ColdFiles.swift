// Cold starts without root: evicts exactly the files that the program maps and opens from the page cache, and checks that
// they are gone. Pages that other processes have mapped stay, and are reported.
import CLaunch
import ELF
import Glibc

package struct ColdFiles: Sendable {
    package struct Drop: Sendable {
        /// Number of regular files, and of those whose cached pages could not be counted.
        package var files = 0, unknown = 0
        package var bytes: UInt64 = 0
        /// Still cached after the drop: in use by another process.
        package var kept: UInt64 = 0
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
        for path in paths where !path.hasPrefix("/proc/") && !path.hasPrefix("/sys/") && !path.hasPrefix("/dev/") {
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
                var pages: UInt64 = 0
                let cached = launch_cached_pages(file, bytes, &pages, nil)
                result.files += 1
                result.bytes += bytes
                if cached < 0 { result.unknown += 1 } else { result.kept += min(UInt64(cached) * pageBytes, bytes) }
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
                var pages: UInt64 = 0
                var map = [UInt8](repeating: 0, count: Int((bytes + pageBytes - 1) / pageBytes))
                guard launch_cached_pages(file, bytes, &pages, &map) > 0 else { return }
                result.append(PageIn(path: path, bytes: 0, ranges: ranges(map)))
                result[result.count - 1].bytes = result[result.count - 1].ranges.reduce(0) { $0 + $1.bytes }
            }
        }
        return result.sorted { ($1.bytes, $0.path) < ($0.bytes, $1.path) }
    }

    private func ranges(_ map: [UInt8]) -> [Range] {
        var ranges: [Range] = []
        for (page, cached) in map.enumerated() where cached != 0 {
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
