/// Why `tracer record` does not start a program: one line, what is wrong and what to do instead.
package struct Refusal: Error, Equatable, Sendable {
    package var message: String
    /// 2 usage, 126 cannot be executed (or not be traced), 127 not found.
    package var status: Int32

    package static func usage(_ message: String) -> Refusal { Refusal(message: message, status: 2) }
    package static func cannotRun(_ message: String) -> Refusal { Refusal(message: message, status: 126) }
    package static func notFound(_ message: String) -> Refusal { Refusal(message: message, status: 127) }
}
