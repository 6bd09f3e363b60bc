// Separate debug files, which hold the symbols and the DWARF of stripped files:
// https://sourceware.org/gdb/current/onlinedocs/gdb.html/Separate-Debug-Files.html
// Nothing is fetched from the network.
import CElfutils

package struct DebugFiles {
    /// As in `gdb -iex 'show debug-file-directory'`.
    private let directories: [String]

    package init(directories: [String]) { self.directories = directories }

    /// The separate debug file of `file`, nil when there is none that belongs to it.
    package func debugFile(of file: ObjectFile) -> ObjectFile? {
        let id = file.buildID
        if id.count > 1 {
            let digits = id.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }
            let name = "/.build-id/" + digits[0] + "/" + digits[1...].joined() + ".debug"
            for directory in directories {
                if let found = ObjectFile(path: directory + name), found.buildID == id { return found }
            }
        }
        guard let name = linkedName(file), let slash = file.path.lastIndex(of: "/") else { return nil }
        let folder = String(file.path[..<slash])
        for path in [folder + "/" + name, folder + "/.debug/" + name] + directories.map({ $0 + folder + "/" + name }) {
            // Files older than build-ids have a checksum of the debug file instead; those are not trusted here.
            if path != file.path, !id.isEmpty, let found = ObjectFile(path: path), found.buildID == id { return found }
        }
        return nil
    }

    /// .gnu_debuglink: a file name without a directory.
    private func linkedName(_ file: ObjectFile) -> String? {
        var checksum: GElf_Word = 0
        guard let name = dwelf_elf_gnu_debuglink(file.elf, &checksum) else { return nil }
        let text = String(cString: name)
        return text.isEmpty || text.contains("/") || text == ".." ? nil : text
    }
}
