// Results of searching a text (TextScan.swift), for the next process that has the same module; scan_cache.h has the layout. The file is
// untrusted input: whatever its bytes are, nothing outside of them is read, and the worst that they can do is to say of slots that the
// caller offers that they are used for calls alone.
import CSupport

/// Key of a search: the text that was searched, and the slots that were asked for.
struct ScanKey {
    let identity: FileIdentity
    let layout: UInt64
    let low: UInt64 // as in scan_module: an address in the file
    let slotCount: UInt32
}
extension ScanKey {
    /// nil: the module has too many slots.
    init?(_ identity: FileIdentity, _ image: Image, _ slots: CallOnlySlots) {
        if slots.count > UInt64(SCAN_MOST_SLOTS) { return nil }
        self.identity = identity
        let headers = image.programHeaderBytes
        layout = ScanFile.checksum(headers.baseAddress!, headers.count, ScanFile.seed)
        low = slots.low &- image.bias
        slotCount = UInt32(slots.count)
    }
}

/// Unique identity of a file: its build-id; where the linker made none, what the kernel says of the file.
struct FileIdentity {
    var words: (UInt64, UInt64, UInt64)
}
extension FileIdentity {
    /// nil: it has no build-id.
    init?(buildIDOf image: Image) {
        words = (0, 0, 0)
        let count = withUnsafeMutablePointer(to: &words) { image.copyBuildID($0) } // up to twenty bytes
        if count < 8 { return nil }
        words.2 |= UInt64(count) &<< 32
    }
    /// Device, inode, size and times.
    init(_ status: InlineArray<7, UInt64>) {
        var status = status
        let first = withUnsafePointer(to: &status) { ScanFile.checksum($0, 56, ScanFile.seed) }
        words = (first, withUnsafePointer(to: &status) { ScanFile.checksum($0, 56, first) }, 0)
    }
    @inline(__always) static func == (_ a: (UInt64, UInt64, UInt64), _ b: FileIdentity) -> Bool {
        a.0 == b.words.0 && a.1 == b.words.1 && a.2 == b.words.2
    }
}

struct ScanFile {
    private let start: UnsafeRawPointer
    private let byteCount: Int
    let count: Int
    let generation: UInt32
    static let headerBytes = MemoryLayout<scan_file>.size, rowBytes = MemoryLayout<scan_module>.size
    static let seed: UInt64 = 0x9e37_79b9_7f4a_7c15

    /// nil unless this agent wrote the file, and its header is whole. `start` is at a multiple of 8.
    init?(_ start: UnsafeRawPointer, _ byteCount: Int, by agent: FileIdentity) {
        if byteCount < ScanFile.headerBytes || byteCount > Int(SCAN_MOST_BYTES) { return nil }
        let header = start.assumingMemoryBound(to: scan_file.self)
        let count = Int(header.pointee.module_count)
        guard header.pointee.magic == UInt64(SCAN_MAGIC), header.pointee.version == UInt32(SCAN_VERSION),
            Int(header.pointee.byte_count) == byteCount, header.pointee.agent == agent, count <= Int(SCAN_MOST_MODULES),
            ScanFile.headerBytes &+ count &* ScanFile.rowBytes <= byteCount,
            header.pointee.checksum == ScanFile.checksum(start, ScanFile.headerBytes &- 8, ScanFile.seed)
        else { return nil }
        self.start = start
        self.byteCount = byteCount
        self.count = count
        generation = header.pointee.generation
    }

    @inline(__always) func row(_ n: Int) -> UnsafePointer<scan_module> {
        (start + ScanFile.headerBytes).assumingMemoryBound(to: scan_module.self) + n
    }
    /// The bits of a row, of a module in which there are some; `isWhole` first.
    func bits(_ row: UnsafePointer<scan_module>) -> UnsafePointer<UInt64>? {
        row.pointee.bits == 0 ? nil : (start + Int(row.pointee.bits)).assumingMemoryBound(to: UInt64.self)
    }
    static func wordCount(_ slotCount: UInt32) -> Int { (Int(slotCount) &+ 63) / 64 }

    /// Space for the row's bits, and the checksum of all.
    func isWhole(_ row: UnsafePointer<scan_module>) -> Bool {
        let first = Int(row.pointee.bits), words = ScanFile.wordCount(row.pointee.slot_count)
        if row.pointee.slot_count > UInt32(SCAN_MOST_SLOTS) { return false }
        if first != 0 && (first & 7 != 0 || first < ScanFile.headerBytes &+ count &* ScanFile.rowBytes || first &+ words &* 8 > byteCount) {
            return false
        }
        return row.pointee.checksum == ScanFile.checksum(of: row, bits(row))
    }

    /// The row of this module and these slots, if there is one and it is whole.
    func find(_ key: ScanKey) -> UnsafePointer<scan_module>? {
        var low = 0, high = count
        while low < high {
            let middle = (low &+ high) / 2
            if row(middle).pointee.identity.0 < key.identity.words.0 { low = middle &+ 1 } else { high = middle }
        }
        while low < count && row(low).pointee.identity.0 == key.identity.words.0 {
            let row = row(low)
            if row.pointee.identity == key.identity && row.pointee.layout == key.layout && row.pointee.low == key.low
                && row.pointee.slot_count == key.slotCount
            {
                return isWhole(row) ? row : nil
            }
            low &+= 1
        }
        return nil
    }

    /// Checksum against damage by a full disk, a crash or a broken block, not against an attacker. By words.
    static func checksum(_ bytes: UnsafeRawPointer, _ byteCount: Int, _ first: UInt64) -> UInt64 {
        var sum = first ^ UInt64(byteCount), n = 0
        while n &+ 8 <= byteCount {
            let product = (sum ^ bytes.loadUnaligned(fromByteOffset: n, as: UInt64.self)) &* 0xff51_afd7_ed55_8ccd
            sum = product ^ product &>> 32
            n &+= 8
        }
        return sum
    }
    static func checksum(of row: UnsafePointer<scan_module>, _ bits: UnsafePointer<UInt64>?) -> UInt64 {
        var copy = row.pointee
        copy.bits = 0 // the offset of the bits is not the module's
        copy.checksum = bits == nil ? 0 : 1
        let own = withUnsafePointer(to: &copy) { checksum($0, rowBytes, seed) }
        return bits == nil ? own : checksum(bits!, wordCount(copy.slot_count) &* 8, own)
    }
}

extension CallOnlySlots {
    /// Marks slots as `scan` would, from what was found before: only slots that have been added.
    func recall(_ row: UnsafePointer<scan_module>, _ bits: UnsafePointer<UInt64>?) {
        guard let bits else { return }
        for word in 0..<ScanFile.wordCount(row.pointee.slot_count) {
            var left = bits[word]
            while left != 0 {
                let n = word &* 64 &+ left.trailingZeroBitCount
                left &= left &- 1
                if n < Int(count) && states[n] & CallOnlySlots.candidate != 0 { states[n] |= CallOnlySlots.called }
            }
        }
    }
}

/// A file under construction: rows first, their bits after the space for all of them.
struct ScanFileBuilder {
    private let buffer: UnsafeMutableRawPointer
    private(set) var count = 0
    private var bitBytes = 0
    private static let bitsStart = ScanFile.headerBytes &+ Int(SCAN_MOST_MODULES) &* ScanFile.rowBytes
    static let bufferBytes = Int(SCAN_MOST_BYTES) &+ bitsStart

    /// `buffer`: `bufferBytes`, zeroed.
    init(_ buffer: UnsafeMutableRawPointer) { self.buffer = buffer }

    @inline(__always) private func row(_ n: Int) -> UnsafeMutablePointer<scan_module> {
        (buffer + ScanFile.headerBytes).assumingMemoryBound(to: scan_module.self) + n
    }
    /// Returns where this many bytes of bits would go; nil if the file would have too many bytes or modules.
    private func space(_ byteCount: Int) -> UnsafeMutablePointer<UInt64>? {
        let total = ScanFile.headerBytes &+ (count &+ 1) &* ScanFile.rowBytes &+ bitBytes &+ byteCount
        return count == Int(SCAN_MOST_MODULES) || total > Int(SCAN_MOST_BYTES)
            ? nil : (buffer + ScanFileBuilder.bitsStart + bitBytes).assumingMemoryBound(to: UInt64.self)
    }
    private func has(_ other: UnsafePointer<scan_module>) -> Bool {
        for n in 0..<count {
            let own = row(n)
            if own.pointee.identity.0 == other.pointee.identity.0 && own.pointee.identity.1 == other.pointee.identity.1
                && own.pointee.identity.2 == other.pointee.identity.2 && own.pointee.layout == other.pointee.layout
                && own.pointee.low == other.pointee.low && own.pointee.slot_count == other.pointee.slot_count
            {
                return true
            }
        }
        return false
    }

    /// Adds what a search has just found.
    mutating func add(_ key: ScanKey, _ slots: CallOnlySlots) {
        let bytes = ScanFile.wordCount(key.slotCount) &* 8
        guard let bits = space(bytes) else { return }
        var any = false
        for n in 0..<Int(slots.count) where slots.isCallOnly(slots.low &+ UInt64(n) &* 8) {
            bits[n / 64] |= 1 &<< UInt64(n & 63)
            any = true
        }
        let row = row(count)
        row.pointee.identity = key.identity.words
        row.pointee.layout = key.layout
        row.pointee.low = key.low
        row.pointee.slot_count = key.slotCount
        row.pointee.bits = any ? UInt32(ScanFileBuilder.bitsStart &+ bitBytes) : 0
        if any { bitBytes &+= bytes }
        count &+= 1
    }

    /// Adds the rows that only another file has; if not all of them fit, the youngest.
    mutating func add(_ old: ScanFile) {
        var age = UInt64(UInt32.max) &+ 1 // rows of this generation and later ones are in
        while true {
            var next: UInt64? // generation of the youngest remaining row
            for n in 0..<old.count {
                let generation = UInt64(old.row(n).pointee.generation)
                if generation < age && generation >= next ?? 0 { next = generation }
            }
            guard let next else { return }
            for n in 0..<old.count where UInt64(old.row(n).pointee.generation) == next {
                let row = old.row(n)
                if !old.isWhole(row) || has(row) { continue }
                if !add(row, old.bits(row)) { return }
            }
            age = next
        }
    }
    private mutating func add(_ other: UnsafePointer<scan_module>, _ otherBits: UnsafePointer<UInt64>?) -> Bool {
        let words = otherBits == nil ? 0 : ScanFile.wordCount(other.pointee.slot_count)
        guard let bits = space(words &* 8) else { return false }
        let row = row(count)
        row.pointee = other.pointee
        row.pointee.bits = otherBits == nil ? 0 : UInt32(ScanFileBuilder.bitsStart &+ bitBytes)
        for n in 0..<words { bits[n] = otherBits![n] }
        bitBytes &+= words &* 8
        count &+= 1
        return true
    }

    /// Completes the file, at the beginning of the buffer. The rows that were added as found get the generation.
    mutating func finish(by agent: FileIdentity, generation: UInt32) -> Int {
        sort()
        let bitsOffset = ScanFile.headerBytes &+ count &* ScanFile.rowBytes
        for n in 0..<count {
            let row = row(n)
            if row.pointee.generation == 0 { row.pointee.generation = generation }
            let bits = row.pointee.bits == 0 ? nil : UnsafePointer((buffer + Int(row.pointee.bits)).assumingMemoryBound(to: UInt64.self))
            row.pointee.checksum = ScanFile.checksum(of: row, bits)
            if bits != nil { row.pointee.bits = row.pointee.bits &- UInt32(ScanFileBuilder.bitsStart &- bitsOffset) }
        }
        (buffer + bitsOffset).copyMemory(from: buffer + ScanFileBuilder.bitsStart, byteCount: bitBytes)
        let header = buffer.assumingMemoryBound(to: scan_file.self)
        header.pointee.magic = UInt64(SCAN_MAGIC)
        header.pointee.version = UInt32(SCAN_VERSION)
        header.pointee.byte_count = UInt32(bitsOffset &+ bitBytes)
        header.pointee.agent = agent.words
        header.pointee.module_count = UInt32(count)
        header.pointee.generation = generation
        header.pointee.checksum = ScanFile.checksum(buffer, ScanFile.headerBytes &- 8, ScanFile.seed)
        return bitsOffset &+ bitBytes
    }
    /// Sorts the rows by the first word of the identity. They come in runs that are sorted already (Shell's method; Ciura's distances).
    private func sort() {
        let gaps: InlineArray<7, Int> = [301, 132, 57, 23, 10, 4, 1]
        for k in 0..<7 {
            let gap = gaps[k]
            var n = gap
            while n < count {
                let moved = row(n).pointee
                var index = n
                while index >= gap && row(index &- gap).pointee.identity.0 > moved.identity.0 {
                    row(index).pointee = row(index &- gap).pointee
                    index &-= gap
                }
                row(index).pointee = moved
                n &+= 1
            }
        }
    }
}
