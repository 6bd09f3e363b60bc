// HTTP/1.1 (RFC 9112) for one file, on this machine only. Requests that name another host are refused: a page of a
// stranger that has its own name resolve to 127.0.0.1 would otherwise read the trace.
import Dispatch
@preconcurrency import Glibc
import TraceAnalysis

final class LocalServer: Sendable {
    private let listener: Int32
    let port: UInt16
    private static let longestRequest = 16 << 10

    /// - Parameter port: 0 for any that is free
    init(port: UInt16) throws {
        listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var one: Int32 = 1
        setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, socklen_t(MemoryLayout<Int32>.size))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var length = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = listener
        let isBound = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
                bind(listener, address, length) == 0 && listen(listener, 16) == 0 && getsockname(listener, address, &length) == 0
            }
        }
        guard isBound else {
            let reason = errno == EADDRINUSE ? "another program has it: is another `tracer open` running?" : String(cString: strerror(errno))
            throw CommandFailure(message: "cannot listen on port \(port) of 127.0.0.1: \(reason)")
        }
        self.port = UInt16(bigEndian: address.sin_port)
    }

    /// Never returns.
    func serve(_ file: Int32, byteCount: UInt64, at path: String) -> Never {
        signal(SIGPIPE, SIG_IGN)
        while true {
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else {
                if errno == EMFILE || errno == ENFILE { usleep(100_000) } // until a connection has ended
                continue
            }
            // Browsers open connections that they use later or never.
            DispatchQueue.global().async {
                self.answer(connection, file, byteCount, path)
                close(connection)
            }
        }
    }

    private func answer(_ connection: Int32, _ file: Int32, _ byteCount: UInt64, _ path: String) {
        var limit = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        guard let request = readRequest(connection) else { return }
        let lines = request.split(separator: "\r\n", omittingEmptySubsequences: true)
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count == 3 else { return send(connection, "400 Bad Request") }
        let host = lines.dropFirst().first { $0.lowercased().hasPrefix("host:") }?.dropFirst(5).filter { $0 != " " }
        guard host == "127.0.0.1:\(port)" || host == "localhost:\(port)" else { return send(connection, "421 Misdirected Request") }
        switch words[0] {
        case "OPTIONS": send(connection, "204 No Content", "Access-Control-Allow-Methods: GET, HEAD\r\nAccess-Control-Allow-Private-Network: true\r\n")
        case "GET", "HEAD":
            guard words[1] == path else { return send(connection, "404 Not Found") }
            send(connection, "200 OK", "Content-Type: application/octet-stream\r\nCache-Control: no-store\r\n", byteCount)
            if words[0] == "GET" { sendAll(file, byteCount, to: connection) }
        default: send(connection, "405 Method Not Allowed")
        }
    }

    /// Up to the empty line; nil when it does not come.
    private func readRequest(_ connection: Int32) -> String? {
        var request: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 4096)
        while request.count < Self.longestRequest {
            let got = recv(connection, &buffer, buffer.count, 0)
            if got < 0, errno == EINTR { continue }
            guard got > 0 else { return nil }
            request += buffer[..<got]
            if request.suffix(got + 3).windowsContain([13, 10, 13, 10]) { return String(decoding: request, as: UTF8.self) }
        }
        return nil
    }

    private func send(_ connection: Int32, _ status: String, _ fields: String = "", _ byteCount: UInt64 = 0) {
        // To the viewer's own pages and to no others.
        let head = "HTTP/1.1 \(status)\r\nAccess-Control-Allow-Origin: https://ui.perfetto.dev\r\nVary: Origin\r\n\(fields)"
            + "Content-Length: \(byteCount)\r\nConnection: close\r\n\r\n"
        var rest = Array(head.utf8)[...]
        while !rest.isEmpty {
            let sent = rest.withUnsafeBytes { Glibc.send(connection, $0.baseAddress!, $0.count, Int32(MSG_NOSIGNAL)) }
            if sent < 0, errno == EINTR { continue }
            guard sent > 0 else { return }
            rest = rest.dropFirst(sent)
        }
    }

    private func sendAll(_ file: Int32, _ byteCount: UInt64, to connection: Int32) {
        var offset: off_t = 0
        while offset < off_t(byteCount) {
            let sent = sendfile(connection, file, &offset, min(Int(byteCount) - Int(offset), 1 << 20))
            if sent < 0, errno == EINTR { continue }
            guard sent > 0 else { return } // gone: sendfile raises SIGPIPE, which `serve` ignores
        }
    }
}

extension ArraySlice<UInt8> {
    fileprivate func windowsContain(_ pattern: [UInt8]) -> Bool {
        guard count >= pattern.count else { return false }
        return (startIndex ... endIndex - pattern.count).contains { self[$0...].starts(with: pattern) }
    }
}
