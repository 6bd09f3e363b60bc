// Addresses of code that lie in data: tables of jumps, and pointers of every kind. A compiler's table of jumps either has
// addresses, which the loader relocates, or distances from its own beginning, which some instruction takes.
import ELF

enum StoredAddresses {
    /// Calls `body` with each address of this module that the loader will write, or that a fixed executable has already.
    /// `isResolver`: IRELATIVE.
    static func forEach(_ file: CodeFile, _ code: ModuleCode, _ body: (_ target: UInt64, _ isResolver: Bool) -> Void) {
        let relative: UInt32 = code.architecture == .x86 ? 8 : 1027, resolved: UInt32 = code.architecture == .x86 ? 37 : 1032
        var tables: [UInt64: UInt64] = [:] // DT_… to its value
        for entry in file.dynamicEntries { tables[entry.tag] = entry.value }
        // DT_RELA and DT_RELASZ; DT_JMPREL and DT_PLTRELSZ; where a static executable has no dynamic section, its sections say.
        var ranges: [(UInt64, UInt64)] = [(7, 8), (23, 2)].compactMap { start, count in
            tables[start].flatMap { address in tables[count].map { (address, $0) } }
        }
        if tables.isEmpty { ranges = file.sections.filter { $0.type == 4 && $0.flags & 2 != 0 }.map { ($0.address, UInt64($0.byteCount)) } }
        for (address, count) in ranges {
            let bytes = code.content(at: address)
            for index in 0..<min(bytes.count, Int(clamping: count)) / 24 {
                guard let info = bytes.load(index * 24 + 8, as: UInt64.self), let addend = bytes.load(index * 24 + 16, as: UInt64.self)
                else { break }
                let type = UInt32(truncatingIfNeeded: info)
                if type == relative || type == resolved { body(addend, type == resolved) }
            }
        }
        if let address = tables[36], let count = tables[35] { packed(address, count, code) { body($0, false) } } // DT_RELR, DT_RELRSZ
        guard code.isFixed else { return }
        for segment in code.dataSegments {
            let bytes = code.content(at: segment.address)
            var offset = Int(segment.address & 7 == 0 ? 0 : 8 - segment.address & 7)
            while let value = bytes.load(offset, as: UInt64.self) {
                if code.text.contains(value) { body(value, false) }
                offset += 8
            }
        }
    }

    /// Relative relocations as bits (ELF gABI, "Relative relocation table").
    private static func packed(_ address: UInt64, _ count: UInt64, _ code: ModuleCode, _ body: (UInt64) -> Void) {
        let bytes = code.content(at: address)
        var next: UInt64 = 0
        func word(_ at: UInt64) { if let value = code.content(at: at).load(0, as: UInt64.self) { body(value) } }
        for index in 0..<min(bytes.count, Int(clamping: count)) / 8 {
            guard let entry = bytes.load(index * 8, as: UInt64.self) else { return }
            if entry & 1 == 0 {
                word(entry)
                next = entry &+ 8
            } else {
                for bit in 0..<63 where entry >> UInt64(bit + 1) & 1 != 0 { word(next &+ UInt64(bit) &* 8) }
                next = next &+ 63 &* 8
            }
        }
    }

    /// Tables of distances: at each of `bases` (sorted, once each) as far as its numbers of 32 bits lead into code.
    static func forEachDistance(from bases: [UInt64], _ code: ModuleCode, _ body: (UInt64) -> Void) {
        for (index, base) in bases.enumerated() {
            let bytes = code.content(at: base)
            let most = index + 1 < bases.count ? Int(clamping: bases[index + 1] - base) : bytes.count
            var offset = 0
            while offset + 4 <= most, let distance = bytes.load(offset, as: Int32.self) {
                let target = base &+ UInt64(bitPattern: Int64(distance))
                guard code.text.contains(target) else { break }
                body(target)
                offset += 4
            }
        }
    }
}
