// A temporary directory and the files that tests build in it.
import CTraceLayout
import Glibc

final class Scratch {
    let path: String

    init() {
        var template = Array("/tmp/recorder-tests-XXXXXX".utf8CString)
        path = String(cString: mkdtemp(&template)!)
    }

    deinit {
        for name in names { unlink(path + "/" + name) }
        for name in names { if let slash = name.lastIndex(of: "/") { rmdir(path + "/" + name[..<slash]) } }
        rmdir(path)
    }

    private var names: [String] = []

    @discardableResult
    func write(_ name: String, _ bytes: [UInt8], mode: mode_t = 0o755) -> String {
        let file = open(path + "/" + name, O_CREAT | O_TRUNC | O_RDWR, mode)
        precondition(file >= 0)
        precondition(bytes.isEmpty || Glibc.write(file, bytes, bytes.count) == bytes.count)
        fchmod(file, mode)
        close(file)
        names.append(name)
        return path + "/" + name
    }

    @discardableResult
    func write(_ name: String, _ text: String, mode: mode_t = 0o755) -> String { write(name, Array(text.utf8), mode: mode) }
}

/// A trace without events.
func emptyTrace(_ change: (inout trace_file_header) -> Void) -> [UInt8] {
    var header = trace_file_header()
    withUnsafeMutableBytes(of: &header.magic) { $0.copyBytes(from: [0x54, 0x52, 0x41, 0x43, 0x45, 0x52, 0x1a, 0x0a]) }
    header.version = UInt32(TRACE_VERSION)
    change(&header)
    return withUnsafeBytes(of: header) { Array($0) } + [UInt8](repeating: 0, count: 4096 - MemoryLayout<trace_file_header>.size)
}

func byteCount(_ file: Int32) -> Int {
    var info = stat()
    return fstat(file, &info) == 0 ? info.st_size : -1
}

/// A 64-bit ELF file with at most a PT_INTERP.
func elf(elfMachine: UInt16 = 62, type: UInt16 = 3, loader: String? = "/lib64/ld-linux-x86-64.so.2") -> [UInt8] {
    func little(_ value: UInt64, _ bytes: Int) -> [UInt8] { (0..<bytes).map { UInt8(truncatingIfNeeded: value >> (8 * UInt64($0))) } }
    let name: [UInt8] = loader.map { Array($0.utf8) + [0 as UInt8] } ?? []
    var bytes: [UInt8] = [0x7f, 0x45, 0x4c, 0x46, 2, 1, 1, 0] + [UInt8](repeating: 0, count: 8)
    bytes += little(UInt64(type), 2) + little(UInt64(elfMachine), 2) + little(1, 4) + little(0, 8)
    bytes += little(64, 8) + little(0, 8) + little(0, 4) // program headers right after, no sections
    bytes += little(64, 2) + little(56, 2) + little(1, 2) + little(0, 6)
    bytes += little(loader == nil ? 1 : 3, 4) + little(4, 4) + little(120, 8) + little(0, 16)
    bytes += little(UInt64(name.count), 8) + little(UInt64(name.count), 8) + little(1, 8)
    return bytes + name
}
