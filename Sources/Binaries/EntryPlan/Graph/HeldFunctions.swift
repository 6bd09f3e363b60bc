// Functions that may be called without an instruction which names them: whose address lies in data, that others may be bound to, that
// the loader calls.
import ELF

enum HeldFunctions {
    static func all(_ file: CodeFile, _ code: ModuleCode, _ list: FunctionList) -> Set<UInt64> {
        var held: Set<UInt64> = [file.entry]
        StoredAddresses.forEach(file, code) { target, _ in held.insert(target) }
        file.forEachExport { held.insert($0) }
        for entry in file.dynamicEntries where entry.tag == 12 || entry.tag == 13 { held.insert(entry.value) } // DT_INIT, DT_FINI
        if file.sections.contains(where: { $0.name.hasPrefix("swift5_") }) { insertRelative(file, list, &held) }
        return held
    }

    /// Swift's metadata holds distances from where they stand. So do tables of frames, which hold every function.
    private static func insertRelative(_ file: CodeFile, _ list: FunctionList, _ held: inout Set<UInt64>) {
        let starts = Set(list.entries.lazy.map { $0.address })
        for section in file.sections where section.flags & 2 != 0 && section.flags & 4 == 0 && !isOfFrames(section.name) { // allocated, no code
            let bytes = file.bytes(of: section)
            for offset in stride(from: 0, to: bytes.count - 3, by: 4) {
                guard let distance = bytes.load(offset, as: Int32.self), distance != 0 else { continue }
                let target = section.address &+ UInt64(offset) &+ UInt64(bitPattern: Int64(distance))
                if starts.contains(target) { held.insert(target) }
            }
        }
    }

    private static func isOfFrames(_ name: String) -> Bool { [".eh_frame", ".eh_frame_hdr", ".gcc_except_table"].contains(name) }
}
