// Names of code that a compiler made while the program ran, as many leave them in /tmp/perf-PID.map for perf(1): a line for each
// function, START SIZE NAME, both numbers hexadecimal (tools/perf/Documentation/jit-interface.txt). Later lines replace earlier ones.
import Glibc

package enum PerfMap {
    private static let mostBytes = 256 << 20

    /// In the order of the lines; none where the process has left no such file.
    static func code(of pid: pid_t, directory: String = "/tmp") -> [MadeCode.Code] {
        guard let file = CompilerFile("\(directory)/perf-\(pid).map") else { return [] }
        return code(file.bytes(at: 0, min(file.byteCount, mostBytes)))
    }

    package static func code(_ bytes: [UInt8]) -> [MadeCode.Code] {
        bytes.split(separator: UInt8(ascii: "\n")).compactMap { line in
            let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 2)
            guard fields.count == 3, let start = number(fields[0]), let size = number(fields[1]), size > 0, start <= .max - size
            else { return nil }
            return MadeCode.Code(start: start, end: start + size, name: String(decoding: fields[2], as: UTF8.self))
        }
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
        let text = String(decoding: digits, as: UTF8.self)
        return UInt64(text.hasPrefix("0x") ? String(text.dropFirst(2)) : text, radix: 16)
    }
}
