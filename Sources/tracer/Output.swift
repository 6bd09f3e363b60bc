// Standard output: buffered, quiet when its reader has gone.
import Glibc
import TraceAnalysis

struct Output {
    private var buffer: [UInt8] = []
    let style: TextStyle

    init() {
        buffer.reserveCapacity(1 << 16)
        // https://no-color.org: present and not empty
        let refusesColour = getenv("NO_COLOR").map { $0.pointee != 0 } ?? false
        let isDumb = getenv("TERM").map { String(cString: $0) == "dumb" } ?? false
        style = TextStyle(isColoured: isatty(STDOUT_FILENO) == 1 && !refusesColour && !isDumb)
    }

    mutating func line(_ text: String) throws {
        buffer += text.utf8
        buffer.append(UInt8(ascii: "\n"))
        if buffer.count >= 1 << 16 { try flush() }
    }

    /// A line that `body` puts together at the end of the buffer.
    mutating func line(_ body: (inout [UInt8]) -> Void) throws {
        body(&buffer)
        buffer.append(UInt8(ascii: "\n"))
        if buffer.count >= 1 << 16 { try flush() }
    }

    mutating func write(_ text: String) throws {
        buffer += text.utf8
        if buffer.count >= 1 << 16 { try flush() }
    }

    mutating func flush() throws {
        var done = 0
        while done < buffer.count {
            let written = buffer[done...].withUnsafeBytes { Glibc.write(STDOUT_FILENO, $0.baseAddress!, $0.count) }
            if written < 0, errno == EINTR { continue }
            if written < 0, errno == EPIPE { throw CommandFailure(message: "", status: 128 + SIGPIPE) }
            guard written > 0 else {
                throw CommandFailure(message: "cannot write the output: \(String(cString: strerror(errno)))")
            }
            done += written
        }
        buffer.removeAll(keepingCapacity: true)
    }
}
