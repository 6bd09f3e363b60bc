// Protocol buffers as they lie in a file: https://protobuf.dev/programming-guides/encoding. Messages that are written
// once; the inner loop of the Perfetto export stores its bytes itself.

struct ProtobufMessage {
    private(set) var bytes: [UInt8] = []

    init() {}
    init(_ body: (inout ProtobufMessage) -> Void) { body(&self) }

    private mutating func varint(_ value: UInt64) {
        var rest = value
        while rest > 127 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    mutating func add(_ field: Int, _ value: UInt64) {
        varint(UInt64(field) << 3)
        varint(value)
    }

    mutating func add(_ field: Int, fixed value: UInt64) {
        varint(UInt64(field) << 3 | 1)
        withUnsafeBytes(of: value.littleEndian) { bytes += $0 }
    }

    mutating func add(_ field: Int, _ content: [UInt8]) {
        varint(UInt64(field) << 3 | 2)
        varint(UInt64(content.count))
        bytes += content
    }

    mutating func add(_ field: Int, _ text: String) { add(field, Array(text.utf8)) }
    mutating func add(_ field: Int, _ body: (inout ProtobufMessage) -> Void) { add(field, ProtobufMessage(body).bytes) }

    /// Hands over what is written so far, if it is much: memory does not grow with the number of messages.
    mutating func flush(to write: ([UInt8]) throws -> Void) rethrows {
        guard bytes.count >= 1 << 20 else { return }
        try write(bytes)
        bytes = []
    }

    /// A packed repeated field of varints.
    mutating func add(_ field: Int, packed values: [UInt64]) {
        var content = ProtobufMessage()
        for value in values { content.varint(value) }
        add(field, content.bytes)
    }
}
