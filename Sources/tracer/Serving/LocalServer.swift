// An HTTP/1.1 server (RFC 9112), for this machine only: it sends one file, or an answer to each request. Requests for another hostname are
// refused: otherwise a page of a site whose name resolves to 127.0.0.1 could read the trace.
import Dispatch
@preconcurrency import Glibc
import Presentation
import TraceAnalysis

final class LocalServer: Sendable {
    /// Answer to a GET.
    struct Answer: Sendable {
        var status = "200 OK"
        var type = "text/plain; charset=utf-8"
        var body: [UInt8] = []

        static let notFound = Answer(status: "404 Not Found")
        static let badRequest = Answer(status: "400 Bad Request")
    }

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
            let reason = errno == EADDRINUSE ? "it is in use: is another `tracer open` running?" : String(cString: strerror(errno))
            throw CommandFailure("cannot listen on port \(port) of 127.0.0.1: \(reason)")
        }
        self.port = UInt16(bigEndian: address.sin_port)
    }

    /// A path that cannot be guessed, since other users of this machine can connect, too.
    static func secretPath() -> String {
        "/" + (0..<2).map { _ in String(UInt64.random(in: 1 << 60...UInt64.max), radix: 16) }.joined() + "/"
    }

    /// Sends a file to the viewer of ui.perfetto.dev. Never returns.
    func serve(_ file: Int32, byteCount: UInt64, at path: String) -> Never {
        serve { connection, method, target in
            // To the viewer's own pages and to no others.
            let origin = "Access-Control-Allow-Origin: https://ui.perfetto.dev\r\nVary: Origin\r\n"
            switch method {
            case "OPTIONS":
                self.send(
                    connection, "204 No Content",
                    origin + "Access-Control-Allow-Methods: GET, HEAD\r\nAccess-Control-Allow-Private-Network: true\r\n")
            case "GET", "HEAD":
                guard target == path else { return self.send(connection, "404 Not Found", origin) }
                self.send(connection, "200 OK", origin + "Content-Type: application/octet-stream\r\nCache-Control: no-store\r\n", byteCount)
                if method == "GET" { self.sendAll(file, byteCount, to: connection) }
            default: self.send(connection, "405 Method Not Allowed", origin)
            }
        }
    }

    /// Answers each GET of a page and of what it asks for. No other site's page may read an answer, or show one. Never returns.
    func serve(_ answer: @escaping @Sendable (String) -> Answer) -> Never {
        serve { connection, method, target in
            guard method == "GET" else { return self.send(connection, "405 Method Not Allowed", "Allow: GET\r\n") }
            let answer = answer(target)
            self.send(
                connection, answer.status,
                "Content-Type: \(answer.type)\r\nCache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n"
                    + "Cross-Origin-Resource-Policy: same-origin\r\nContent-Security-Policy: default-src 'none'; script-src 'unsafe-inline'; "
                    + "style-src 'unsafe-inline'; connect-src 'self'; frame-ancestors 'none'\r\n", UInt64(answer.body.count))
            writeAll(answer.body, to: connection)
        }
    }

    private func serve(_ body: @escaping @Sendable (_ connection: Int32, _ method: String, _ target: String) -> Void) -> Never {
        signal(SIGPIPE, SIG_IGN)
        while true {
            let connection = accept(listener, nil, nil)
            guard connection >= 0 else {
                if errno == EMFILE || errno == ENFILE { usleep(100_000) } // until a connection has ended
                continue
            }
            // Browsers open connections that they use later or never. A queue of its own has a thread also while all CPUs read the trace.
            DispatchQueue(label: "connection").async {
                self.answer(connection, body)
                close(connection)
            }
        }
    }

    private func answer(_ connection: Int32, _ body: (Int32, String, String) -> Void) {
        var limit = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(connection, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        setsockopt(connection, SOL_SOCKET, SO_SNDTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        guard let request = readRequest(connection) else { return }
        let lines = request.split(separator: "\r\n", omittingEmptySubsequences: true)
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count == 3 else { return send(connection, "400 Bad Request") }
        let host = lines.dropFirst().first { $0.lowercased().hasPrefix("host:") }?.dropFirst(5).filter { $0 != " " }
        guard host == "127.0.0.1:\(port)" || host == "localhost:\(port)" else { return send(connection, "421 Misdirected Request") }
        body(connection, String(words[0]), String(words[1]))
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
            if request.suffix(got + 3).contains([13, 10, 13, 10] as [UInt8]) { return String(decoding: request, as: UTF8.self) }
        }
        return nil
    }

    private func send(_ connection: Int32, _ status: String, _ fields: String = "", _ byteCount: UInt64 = 0) {
        let head = "HTTP/1.1 \(status)\r\n\(fields)Content-Length: \(byteCount)\r\nConnection: close\r\n\r\n"
        writeAll(Array(head.utf8), to: connection)
    }

    private func sendAll(_ file: Int32, _ byteCount: UInt64, to connection: Int32) {
        var offset: off_t = 0
        while offset < off_t(byteCount) {
            let sent = sendfile(connection, file, &offset, min(Int(byteCount) - Int(offset), 1 << 20))
            if sent < 0, errno == EINTR { continue }
            guard sent > 0 else { return } // the client is gone: sendfile raises SIGPIPE, which `serve` ignores
        }
    }
}
