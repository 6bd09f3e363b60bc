// Functions that may be called without an instruction which names them: whose address lies in data, that others may be bound to, that
// the loader calls.
import ELF
import TraceFormat

/// The same addresses, with those of instructions in an executable that is not moved, in order.
struct HeldAddresses {
    private let sorted: [UInt64]

    init(_ file: CodeFile, _ code: ModuleCode, _ list: FunctionList) {
        var held = HeldFunctions.all(file, code, list)
        if code.isFixed { Self.insertConstants(code, list, &held) }
        sorted = held.sorted()
    }

    func contains(_ address: UInt64) -> Bool { containsAny(in: address..<address + 1) }

    func containsAny(in range: Range<UInt64>) -> Bool {
        let next = bisect(sorted.count) { sorted[$0] < range.lowerBound }
        return next < sorted.count && sorted[next] < range.upperBound
    }

    /// `mov $function, %register`: any four bytes of code that are the address of one.
    private static func insertConstants(_ code: ModuleCode, _ list: FunctionList, _ held: inout Set<UInt64>) {
        let starts = TextBits(code.text)
        defer { starts.free() }
        for entry in list.entries { starts.insert(entry.address) }
        for entry in list.entries {
            let bytes = code.code(at: entry.address), count = min(bytes.count, Int(clamping: entry.end - entry.address))
            for offset in 0..<max(count - 3, 0) {
                let value = UInt64(bytes.loadUnaligned(fromByteOffset: offset, as: UInt32.self))
                if starts.contains(value) { held.insert(value) }
            }
        }
    }
}

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
