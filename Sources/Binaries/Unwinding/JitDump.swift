// Names of code that a compiler made while the program ran, as some leave them in a file jit-PID.dump, which they map so that perf(1)
// hears of it (tools/perf/Documentation/jitdump-specification.txt): a header, then records, each with its length, in the order of time.
import Glibc

package enum JitDump {
    private enum Kind { static let load: UInt32 = 0, move: UInt32 = 1 }
    private static let magic: UInt32 = 0x4a69_5444, version: UInt32 = 1
    private static let headerBytes = 40, recordBytes = 16, loadBytes = 40, moveBytes = 48
    private static let mostRecords = 1 << 20, longestName = 4096

    static func isOne(path: String, of pid: pid_t) -> Bool { path.hasSuffix("/jit-\(pid).dump") }

    /// In the order of the records; none where the file cannot be read or is none.
    static func code(path: String) -> [MadeCode.Code] {
        CompilerFile(path).map { file in code(byteCount: file.byteCount) { file.bytes(at: $0, $1) } } ?? []
    }

    /// - Parameter read: offset, count: this many bytes, or what there is of them
    package static func code(byteCount: Int, _ read: (Int, Int) -> [UInt8]) -> [MadeCode.Code] {
        let header = Fields(read(0, headerBytes))
        guard header.bytes.count == headerBytes, header.half(0) == magic, header.half(4) == version else { return [] }
        var made: [MadeCode.Code] = [], names: [UInt64: String] = [:], offset = max(Int(header.half(8)), headerBytes)
        for _ in 0..<mostRecords where offset <= byteCount - recordBytes {
            let fields = Fields(read(offset, recordBytes + max(loadBytes, moveBytes) + longestName)), length = Int(fields.half(4))
            guard fields.bytes.count >= recordBytes, length >= recordBytes else { break }
            let there = min(length, fields.bytes.count)
            switch fields.half(0) {
            // pid, tid; vma; address; size; index; name, NUL, code
            case Kind.load where there > recordBytes + loadBytes:
                let name = String(decoding: fields.bytes[(recordBytes + loadBytes)..<there].prefix { $0 != 0 }, as: UTF8.self)
                names[fields.word(48)] = name
                add(address: fields.word(32), size: fields.word(40), name, to: &made)
            // pid, tid; vma; old address; new address; size; index
            case Kind.move where there >= recordBytes + moveBytes:
                if let name = names[fields.word(56)] { add(address: fields.word(40), size: fields.word(48), name, to: &made) }
            default: break
            }
            offset += length
        }
        return made
    }

    private static func add(address: UInt64, size: UInt64, _ name: String, to made: inout [MadeCode.Code]) {
        guard size > 0, address <= .max - size else { return }
        made.append(MadeCode.Code(start: address, end: address + size, name: name))
    }

    /// Numbers in this machine's byte order. `half` returns 0 after the end; callers of `word` have checked the count.
    private struct Fields {
        let bytes: [UInt8]
        init(_ bytes: [UInt8]) { self.bytes = bytes }
        func half(_ offset: Int) -> UInt32 {
            offset + 4 <= bytes.count ? bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt32.self) } : 0
        }
        func word(_ offset: Int) -> UInt64 { bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: UInt64.self) } }
    }
}
