// The values of a call's arguments, or its result, as bytes: operation by operation of its program (arguments_layout.h). They are read on
// the agent's stack with signals blocked. No pointer of the program is followed by an instruction of the agent: the kernel copies what it
// points to, or says that it cannot (process_vm_readv), whatever other threads unmap meanwhile and whatever the program does with SIGSEGV.
import CSupport
import CTraceLayout

struct ArgumentValues {
    static let capacity = Int(ARGUMENTS_MOST_WORDS) * Int(ARGUMENTS_DATA_BYTES)
    /// Most that one value takes: a string, or the address of one.
    private static let most = 2 + Int(ARGUMENTS_STRING_BYTES) + 1

    /// False where a filter of system calls was inherited, which might end the process for the call that copies.
    nonisolated(unsafe) static var mayCopy = true

    private let start: UnsafeMutablePointer<UInt8>
    private(set) var count = 0

    /// `buffer` has `capacity` bytes.
    private init(_ buffer: UnsafeMutablePointer<UInt8>) { start = buffer }

    /// Calls `body` with the words that a call's values are in.
    static func read(_ program: UInt16, _ spills: Spills, _ body: (ArgumentValues) -> Void) {
        withBuffer {
            var values = ArgumentValues($0)
            for operation in ArgumentPlan.operations(of: program) {
                if values.count > capacity &- most { break }
                let source = spills.argument(Int(operation.source))
                if operation.kind == UInt8(ARGUMENTS_STRING) {
                    values.appendString(at: source)
                } else {
                    values.append(source, Int(operation.bytes))
                }
            }
            body(values)
        }
    }
    /// The call has just returned: nothing has changed errno since.
    static func readResult(_ program: UInt16, _ spills: Spills, _ body: (ArgumentValues) -> Void) {
        guard let operation = ArgumentPlan.result(program) else { return }
        withBuffer {
            var values = ArgumentValues($0)
            let result = spills.result
            values.append(result, Int(operation.bytes))
            if hasFailed(result, operation) { values.append(UInt64(errno), 4) }
            body(values)
        }
    }

    private static func withBuffer(_ body: (UnsafeMutablePointer<UInt8>) -> Void) {
        var buffer = InlineArray<1792, UInt8>(repeating: 0) // `capacity`, and up to a word
        var span = buffer.mutableSpan
        span.withUnsafeMutableBufferPointer { body($0.baseAddress!) }
    }
    private static func hasFailed(_ result: UInt64, _ operation: arguments_operation) -> Bool {
        let unused = UInt64(64 &- Int(operation.bytes) &* 8), value = result &<< unused
        switch Int(operation.failure) {
        case Int(ARGUMENTS_FAILS_MINUS_ONE): return value == UInt64.max &<< unused
        case Int(ARGUMENTS_FAILS_ZERO): return value == 0
        default: return false
        }
    }
    private static var errno: UInt32 {
        let distance = tracer_get_errno_distance()
        return distance == 0 ? 0 : UnsafePointer<UInt32>(bitPattern: UInt(tracer_thread_pointer() &+ distance))?.pointee ?? 0
    }

    private mutating func append(_ value: UInt64, _ bytes: Int) {
        for n in 0..<bytes { start[count &+ n] = UInt8(truncatingIfNeeded: value &>> UInt64(n &* 8)) }
        count &+= bytes
    }

    /// A char *, page by page: what comes after its end may lie in a page that is not to be touched.
    private mutating func appendString(at address: UInt64) {
        let most = Int(ARGUMENTS_STRING_BYTES), head = count, text = start + (count &+ 2), page = UInt64(Memory.pageBytes)
        var length = 0, how = ARGUMENTS_TEXT_CUT
        count &+= 2
        reading: while length <= most { // one more byte shows whether a string of this length ends there
            let from = address &+ UInt64(length), wanted = min(most &+ 1 &- length, Int(page &- from & (page &- 1)))
            let found = address == 0 || !Self.mayCopy ? -Failure.address : Memory.copy(from: from, to: text + length, wanted)
            for n in 0..<max(found, 0) where text[length &+ n] == 0 {
                length &+= n
                how = ARGUMENTS_TEXT_WHOLE
                break reading
            }
            if found < wanted {
                length &+= max(found, 0)
                how = length == 0 ? ARGUMENTS_TEXT_UNREAD : ARGUMENTS_TEXT_BROKEN
                break
            }
            length &+= found
        }
        length = min(length, most)
        count &+= length
        if length == 0 && how == ARGUMENTS_TEXT_UNREAD { append(address, 8) }
        let word = UInt16(truncatingIfNeeded: length) | UInt16(truncatingIfNeeded: how) &<< UInt16(ARGUMENTS_TEXT_SHIFT)
        start[head] = UInt8(truncatingIfNeeded: word)
        start[head &+ 1] = UInt8(truncatingIfNeeded: word &>> 8)
    }

    // MARK: - Words

    var wordCount: Int { (count &+ Int(ARGUMENTS_DATA_BYTES) &- 1) / Int(ARGUMENTS_DATA_BYTES) }
    func word(_ n: Int) -> Event {
        let first = n &* Int(ARGUMENTS_DATA_BYTES), bytes = min(count &- first, Int(ARGUMENTS_DATA_BYTES))
        var payload: UInt64 = 0
        for k in 0..<bytes { payload |= UInt64(start[first &+ k]) &<< UInt64(k &* 8) }
        return .control(.data, payload)
    }
}
