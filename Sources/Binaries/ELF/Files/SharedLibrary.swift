// Facts that a shared library's file holds about it: its architecture, the libraries it needs, its notes.
import CElfutils

package struct SharedLibrary: Sendable {
    /// ELF's number of the architecture (e_machine).
    package var elfMachine: UInt16
    /// DT_NEEDED, in order.
    package private(set) var needed: [String] = []
    /// DT_SONAME; nil: it has none.
    package private(set) var soname: String?
    private var notes: [(owner: String, type: UInt32, bytes: [UInt8])] = []

    /// nil when the file is not there, or not an ELF file of 64 bits.
    package init?(path: String) {
        guard let file = ObjectFile(path: path) else { return nil }
        elfMachine = file.header.e_machine
        file.forEachSection { section, header in
            guard Int64(header.sh_type) == Int64(SHT_DYNAMIC), let data = elf_getdata(section, nil) else { return }
            var entry = GElf_Dyn()
            for index in 0..<Int32(clamping: UInt64(data.pointee.d_size) / 16) {
                guard gelf_getdyn(data, index, &entry) != nil, entry.d_tag != DT_NULL else { break }
                guard entry.d_tag == DT_NEEDED || entry.d_tag == DT_SONAME,
                    let name = elf_strptr(file.elf, Int(header.sh_link), Int(truncatingIfNeeded: entry.d_un.d_val))
                else { continue }
                if entry.d_tag == DT_NEEDED { needed.append(String(cString: name)) } else { soname = String(cString: name) }
            }
        }
        for segment in file.programHeaders where segment.kind == .note {
            guard
                let data = elf_getdata_rawchunk(
                    file.elf, Int64(truncatingIfNeeded: segment.offset), Int(truncatingIfNeeded: segment.fileByteCount), ELF_T_NHDR)
            else { continue }
            readNotes(data)
        }
    }

    private mutating func readNotes(_ data: UnsafeMutablePointer<Elf_Data>) {
        var offset = 0, note = GElf_Nhdr(), owner = 0, content = 0
        guard let bytes = data.pointee.d_buf.map({ UnsafeRawBufferPointer(start: $0, count: Int(data.pointee.d_size)) }) else { return }
        while true {
            offset = gelf_getnote(data, offset, &note, &owner, &content) // 0 at the end, and when one reaches outside
            if offset == 0 { return }
            let name = bytes[owner..<owner + Int(note.n_namesz)].prefix { $0 != 0 }
            notes.append((String(decoding: name, as: UTF8.self), note.n_type, Array(bytes[content..<content + Int(note.n_descsz)])))
        }
    }

    package func note(owner: String, type: UInt32) -> [UInt8]? { notes.first { $0.owner == owner && $0.type == type }?.bytes }
}
