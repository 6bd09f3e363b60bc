// Names of code that a compiler made while the program ran, as many leave them in /tmp/perf-PID.map for perf(1): a line for each
// function, START SIZE NAME, both numbers hexadecimal (tools/perf/Documentation/jit-interface.txt). Later lines replace earlier ones.
import Glibc
import Symbols

package struct PerfMap: Sendable {
    package struct Code: Sendable, Hashable {
        package var start, end: UInt64
        package var name: String
    }
    /// By address, disjoint.
    package let code: [Code]

    private static let mostBytes = 256 << 20

    /// nil: the process has left none.
    package init?(pid: pid_t, directory: String = "/tmp") {
        let path = "\(directory)/perf-\(pid).map"
        // Anybody may put a file there: a FIFO is not waited for, another user's is not believed.
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else { return nil }
        let room = min(Int(status.st_size), Self.mostBytes)
        let bytes = [UInt8](unsafeUninitializedCapacity: room) { bytes, used in
            while used < room {
                let got = Glibc.read(descriptor, bytes.baseAddress! + used, room - used)
                if got <= 0 { break }
                used += got
            }
        }
        self.init(bytes)
    }

    init(_ bytes: [UInt8]) {
        var found: [(code: Code, line: Int)] = []
        for (number, line) in bytes.split(separator: UInt8(ascii: "\n")).enumerated() {
            let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 2)
            guard fields.count == 3, let start = Self.number(fields[0]), let size = Self.number(fields[1]), size > 0,
                start <= .max - size
            else { continue }
            let name = String(decoding: fields[2], as: UTF8.self)
            found.append((Code(start: start, end: start + size, name: name), number))
        }
        // What was compiled where other code had been is there now: of two that overlap the later line holds.
        var kept: [Code] = []
        found.sort { ($0.code.start, $1.line) < ($1.code.start, $0.line) }
        var last = -1
        for (code, line) in found {
            if let previous = kept.last, code.start < previous.end {
                if line < last { continue }
                kept[kept.count - 1].end = code.start
            }
            kept.append(code)
            last = line
        }
        code = kept
    }

    private static func number(_ digits: ArraySlice<UInt8>) -> UInt64? {
        let text = String(decoding: digits, as: UTF8.self)
        return UInt64(text.hasPrefix("0x") ? String(text.dropFirst(2)) : text, radix: 16)
    }

    /// Those that hold one of these addresses of samples, from the second of a stack on where a call returns to.
    func code(holding addresses: Set<UInt64>) -> [Code] {
        Set(addresses.compactMap { code(at: $0) ?? code(at: $0 &- 1) }).sorted { $0.start < $1.start }
    }

    package func code(at address: UInt64) -> Code? {
        let index = bisect(code.count) { code[$0].end <= address }
        return index < code.count && code[index].start <= address ? code[index] : nil
    }
}
