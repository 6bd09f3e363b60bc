/// Why `tracer record` does not start a program: one line, what is wrong and what to do instead.
public struct Refusal: Error, Equatable, Sendable {
    public var message: String
    /// 2 usage, 126 cannot be executed (or not be traced), 127 not found.
    public var status: Int32

    public init(_ message: String, status: Int32) {
        self.message = message
        self.status = status
    }
    package static func usage(_ message: String) -> Refusal { Refusal(message, status: 2) }
    package static func cannotRun(_ message: String) -> Refusal { Refusal(message, status: 126) }
    package static func notFound(_ message: String) -> Refusal { Refusal(message, status: 127) }
}
