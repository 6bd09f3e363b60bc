// JSON as bytes, for exports whose events are millions.
import Presentation
import TraceFormat

/// A string with its quotes.
func quoted(_ text: String) -> String { JSON.string(text).text(lines: 0) }

extension ByteWriter {
    /// Nanoseconds as microseconds with three decimals. Precondition: 24 bytes are reserved.
    @inline(__always) mutating func storeMicroseconds(_ nanoseconds: Int64) {
        if _slowPath(nanoseconds < 0) { store(UInt8(ascii: "-")) }
        let magnitude = nanoseconds.magnitude
        storeDecimal(magnitude / 1000)
        store(UInt8(ascii: "."))
        storeDecimal(magnitude % 1000, width: 3)
    }
}

/// Text that a format has for each function, put together once.
struct FunctionTexts {
    private var texts: [[UInt8]] = []
    private let make: (UInt32) -> String

    init(_ make: @escaping (UInt32) -> String) { self.make = make }

    subscript(function: UInt32) -> [UInt8] {
        @inline(__always) mutating get {
            if _fastPath(Int(function) < texts.count && !texts[Int(function)].isEmpty) { return texts[Int(function)] }
            return add(function)
        }
    }

    @inline(never) private mutating func add(_ function: UInt32) -> [UInt8] {
        while texts.count <= Int(function) { texts.append([]) }
        texts[Int(function)] = Array(make(function).utf8)
        return texts[Int(function)]
    }
}
