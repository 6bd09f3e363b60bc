// Standard output: buffered, quiet when its reader has gone.
import ArgumentParser
import Glibc
import Presentation
import TraceAnalysis

final class Output {
    enum Colour: String, CaseIterable { case auto, always, never }

    private var buffer: [UInt8] = []
    private var pager: Pager?
    private var mayPage: Bool
    let style: TextStyle
    /// Columns of the terminal, nil where lines may be of any length.
    let width: Int?
    private let descriptor: Int32

    /// - Parameter descriptor: standard output, or standard error where that belongs to a program that was run
    init(_ descriptor: Int32 = STDOUT_FILENO, colour: Colour = .auto, mayPage: Bool = false) {
        self.descriptor = descriptor
        buffer.reserveCapacity(1 << 16)
        let isTerminal = isatty(descriptor) == 1
        // https://no-color.org: present and not empty
        let refusesColour = getenv("NO_COLOR").map { $0.pointee != 0 } ?? false
        let isDumb = getenv("TERM").map { String(cString: $0) == "dumb" } ?? false
        style = TextStyle(isColoured: colour == .always || colour == .auto && isTerminal && !refusesColour && !isDumb)
        self.mayPage = mayPage && isTerminal && !isDumb
        var size = winsize()
        width = isTerminal && ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col >= 40 ? Int(size.ws_col) : nil
    }

    func line(_ text: String) throws {
        buffer.append(line: text)
        if buffer.count >= 1 << 16 { try flush() }
    }

    /// A line that `body` puts together at the end of the buffer.
    func line(_ body: (inout [UInt8]) -> Void) throws {
        body(&buffer)
        buffer.append(UInt8(ascii: "\n"))
        if buffer.count >= 1 << 16 { try flush() }
    }

    func write(_ text: String) throws {
        buffer.append(text)
        if buffer.count >= 1 << 16 { try flush() }
    }

    func lines(_ texts: some Sequence<String>) throws { for text in texts { try line(text) } }

    /// Writes an answer and nothing else: as JSON, the rows of its list `csv` as CSV, or what `text` writes.
    func show<Answer: Presentation.Record>(
        _ answer: @autoclosure () -> Answer, json: Bool, csv rows: String? = nil, _ text: (Output) throws -> Void
    ) throws {
        if json {
            try line(answer().json.text())
        } else if let rows {
            try lines(CSV.lines(answer(), of: rows))
        } else {
            try text(self)
        }
        try finish()
    }

    /// Writes a text and nothing else to standard output.
    static func write(_ text: String) throws {
        let output = Output()
        try output.write(text)
        try output.flush()
    }

    func flush() throws {
        if mayPage, pager == nil {
            pager = Pager()
            mayPage = pager != nil
        }
        let error = writeAll(buffer, to: pager?.descriptor ?? descriptor)
        if error == EPIPE, pager != nil {
            finishPager()
            throw ExitCode.success // its reader has seen enough
        }
        if error == EPIPE { throw ExitCode(128 + SIGPIPE) }
        if error != 0 { throw CommandFailure("cannot write the output: \(systemReason(error))") }
        buffer.removeAll(keepingCapacity: true)
    }

    /// Writes what is left, and waits for the pager.
    func finish() throws {
        try flush()
        finishPager()
    }

    private func finishPager() {
        pager?.finish()
        pager = nil
        mayPage = false
    }
}
