// /proc/PID/maps, see proc(5).
import ELF
import Glibc

package struct ProcessMaps: Sequence {
    package struct Map {
        package var start, end, offset, inode: UInt64
        package var isExecutable: Bool
        /// As the kernel names the file, and as it is called here (ProcessView.swift). Empty: of no file.
        package var name, path: String
    }
    private var maps: [Map] = []

    /// Without any when there is no such process.
    package init(pid: pid_t) {
        guard let file = fopen("/proc/\(pid)/maps", "re") else { return }
        defer { fclose(file) }
        let view = ProcessView(of: pid)
        var line: UnsafeMutablePointer<CChar>?, capacity = 0
        defer { free(line) }
        while getline(&line, &capacity, file) > 0, let line {
            // address-end rwxp offset device inode   path
            let fields = String(cString: line).dropLast().split(separator: " ", maxSplits: 5)
            guard fields.count >= 5, let offset = UInt64(fields[2], radix: 16) else { continue }
            let ends = fields[0].split(separator: "-").compactMap { UInt64($0, radix: 16) }
            guard ends.count == 2, ends[0] < ends[1] else { continue }
            let name = fields.count > 5 ? String(fields[5].drop { $0 == " " }) : ""
            maps.append(
                Map(
                    start: ends[0], end: ends[1], offset: offset, inode: UInt64(fields[4]) ?? 0,
                    isExecutable: fields[1].utf8.dropFirst(2).first == UInt8(ascii: "x"),
                    name: name, path: view.path(of: name)))
        }
    }

    package func makeIterator() -> Array<Map>.Iterator { maps.makeIterator() }
}
