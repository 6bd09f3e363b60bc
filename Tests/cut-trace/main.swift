// cut-trace TRACE FROM TO [RANDOM]: reads TRACE cut at every byte from TO down to FROM, then at RANDOM offsets of the whole.
// Each piece must give its good part (never more calls than a longer piece) and a warning, or the error that says that
// it is too short. Ends with status 1 when one does not.
import CTraceLayout
import Glibc
import TraceAnalysis

let arguments = CommandLine.arguments
guard arguments.count >= 4, let from = UInt64(arguments[2]), let to = UInt64(arguments[3]) else {
    print("usage: cut-trace TRACE FROM TO [RANDOM]")
    exit(2)
}
let random = arguments.count > 4 ? Int(arguments[4]) ?? 0 : 0

func readWhole(_ path: String) -> [UInt8] {
    guard let file = fopen(path, "r") else {
        perror(path)
        exit(2)
    }
    defer { fclose(file) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while case let count = fread(&buffer, 1, buffer.count, file), count > 0 { bytes += buffer[..<count] }
    return bytes
}

let bytes = readWhole(arguments[1])
let piece = "/tmp/cut-trace.\(getpid()).trace"
let file = open(piece, O_RDWR | O_CREAT | O_TRUNC, 0o600)
func write(_ length: UInt64) {
    ftruncate(file, 0)
    var done = 0
    bytes.withUnsafeBytes {
        while done < Int(length) { done += pwrite(file, $0.baseAddress! + done, Int(length) - done, off_t(done)) }
    }
}
nonisolated(unsafe) var failures = 0, pieces = 0

/// Calls in the piece; nil when it is no trace any more.
func read(_ length: UInt64) -> UInt64? {
    pieces += 1
    do {
        let trace = try TraceFile(path: piece)
        let summary = Summary(trace, workers: 1)
        if trace.warnings.isEmpty && length < bytes.count {
            print("cut at \(length): nothing is said of it")
            failures += 1
        }
        return summary.calls
    } catch {
        if length >= UInt64(MemoryLayout<trace_file_header>.size) {
            print("cut at \(length): \(error)")
            failures += 1
        }
        return nil
    }
}

write(UInt64(bytes.count))
guard let whole = read(UInt64(bytes.count)) else { exit(1) }
let first = min(to, UInt64(bytes.count))
write(first)
var most = whole
for length in stride(from: Int(first), through: Int(from), by: -1) {
    ftruncate(file, off_t(length))
    guard let calls = read(UInt64(length)) else { continue }
    if calls > most {
        print("cut at \(length): \(calls) calls, a longer piece has \(most)")
        failures += 1
    }
    most = calls
}
for _ in 0..<random {
    let length = UInt64.random(in: 0..<UInt64(bytes.count))
    write(length)
    if let calls = read(length), calls > whole {
        print("cut at \(length): \(calls) calls, the whole has \(whole)")
        failures += 1
    }
}
unlink(piece)
print("\(pieces) pieces of \(bytes.count) bytes with \(whole) calls; \(failures) wrong")
exit(failures == 0 ? 0 : 1)
