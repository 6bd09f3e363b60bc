// The object that a call waited for or released: one of its arguments (docs/reference/format.md, Arguments).
import CTraceLayout
import Presentation

package enum CallObject: Hashable, Sendable {
    /// Address of a lock, a condition or a word in memory; also of a thread or a queue, where an address identifies it.
    case address(UInt64)
    /// A descriptor, a process, an id.
    case number(Int32)

    package var text: String {
        switch self {
        case .address(let address): "0x" + String(address, radix: 16)
        case .number(let number): String(number)
        }
    }
}

extension CallObject: JSONValue {
    package static var form: JSONForm { .signed }
    package var json: JSON {
        switch self {
        case .address(let address): .unsigned(address)
        case .number(let number): .signed(Int64(number))
        }
    }

    static var meaning: String { "what the call waits for or releases: an address, or a descriptor or id; missing where none is recorded" }
}

/// The argument of a function's calls that is in the trace.
package struct ObjectArgument: Sendable {
    /// From 1 on.
    package var number: Int
    package var isInt: Bool

    /// nil: none is.
    init?(flags: UInt32) {
        number = Int(flags >> UInt32(TRACE_FUNCTION_ARGUMENT_SHIFT) & (1 << UInt32(TRACE_FUNCTION_ARGUMENT_BITS) - 1))
        isInt = flags & UInt32(TRACE_FUNCTION_ARGUMENT_IS_INT) != 0
        if number == 0 { return nil }
    }
}

extension Metadata {
    /// Returns the meaning of the bits of an ARGUMENT word before a call of this function.
    package func object(_ bits: UInt64, of function: UInt32) -> CallObject {
        functions[function]?.object?.isInt == true ? .number(Int32(truncatingIfNeeded: bits)) : .address(bits)
    }
}
