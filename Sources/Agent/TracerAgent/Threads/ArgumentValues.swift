// The values of a call's arguments, or its result, as bytes: operation by operation of its program (arguments_layout.h), where the
// trampolines leave it to the slow path (call_values.c). They are read on the agent's stack with signals blocked.
import CSupport
import CTraceLayout

struct ArgumentValues {
    static let capacity = Int(ARGUMENTS_MOST_WORDS) * Int(ARGUMENTS_DATA_BYTES) + Int(VALUE_TAIL)
    /// Least that a string takes: the address of one.
    private static let leastOfText = 2 + 8

    /// False where a filter of system calls was inherited, which might end the process for the call that copies.
    nonisolated(unsafe) private static var mayCopy = false

    static func begin(mayCopy: Bool) {
        self.mayCopy = mayCopy
        becomeChild()
    }
    /// Also in a forked child, which has a number of its own.
    static func becomeChild() { tracer_set_copied_process(mayCopy ? Process.pid : 0) }

    private static func least(_ operation: arguments_operation) -> Int {
        operation.kind > UInt8(ARGUMENTS_RESULT) || operation.kind == UInt8(ARGUMENTS_STRING) ? leastOfText : Int(operation.bytes)
    }

    private let start: UnsafeMutablePointer<UInt8>
    private(set) var count = 0
    /// What the next value may take `count` to.
    private var limit = Self.capacity

    /// `buffer` has `capacity` bytes.
    private init(_ buffer: UnsafeMutablePointer<UInt8>) { start = buffer }

    /// Calls `body` with the words that a call's values are in.
    static func read(_ program: UInt16, _ spills: Spills, _ body: (ArgumentValues) -> Void) {
        withBuffer {
            var values = ArgumentValues($0)
            // Strings leave space for what comes after them: all values are there, and what fills the last word is none.
            for operation in ArgumentPlan.operations(of: program) { values.limit &-= least(operation) }
            for operation in ArgumentPlan.operations(of: program) {
                values.limit &+= least(operation)
                if operation.kind == UInt8(ARGUMENTS_STRINGS) {
                    values.appendStrings(at: spills.argument(Int(operation.source)), spills.stackPointer)
                } else if ArgumentPlan.isText(operation) {
                    values.append(TextPlace(operation, spills), spills.stackPointer)
                } else {
                    values.append(spills.argument(Int(operation.source)), Int(operation.bytes))
                }
            }
            body(values)
        }
    }
    /// The call has just returned: nothing has changed errno since.
    @inline(never) static func readResult(
        _ program: UInt16, of frame: Frame, _ context: UnsafeMutablePointer<thread_context>, _ body: (ArgumentValues) -> Void
    ) {
        let spills = Spills(frame.pointee.stack_pointer)
        guard let operation = ArgumentPlan.result(program) else { return }
        withBuffer {
            var values = ArgumentValues($0)
            let result = operation.source == UInt8(ARGUMENTS_FROM_VECTOR) ? spills.vector(0) : spills.result
            if ArgumentPlan.isText(operation) {
                values.append(TextPlace(operation, spills), spills.stackPointer)
            } else {
                values.append(result, Int(operation.bytes))
            }
            if hasFailed(result, operation) { values.append(UInt64(errno), 4) }
            var index = 0
            for other in ArgumentPlan.operations(of: program) {
                if other.length == UInt8(ARGUMENTS_LENGTH_RESULT) {
                    let unused = UInt64(64 &- Int(operation.bytes) &* 8), count = Int64(bitPattern: result &<< unused) &>> Int64(unused)
                    let address = frame.pointee.owner == nil || frame.pointee.owner == context ? recorded(index, program, frame) : nil
                    values.append(
                        address != nil && count >= 0 ? .counted(at: address!, count: UInt64(count)) : .unreadable(at: address ?? 0),
                        spills.stackPointer)
                    break
                }
                index &+= 1
            }
            body(values)
        }
    }

    /// The pointer that an operation read when the call began, out of the words before the call's event: the registers have changed since. nil: they
    /// are in another chunk.
    private static func recorded(_ index: Int, _ program: UInt16, _ frame: Frame) -> UInt64? {
        guard let end = frame.written else { return nil }
        let first = end - Int(frame.pointee.words / 8), byteCount = (end - first) &* Int(ARGUMENTS_DATA_BYTES)
        func number(at offset: Int, _ count: Int) -> UInt64? {
            if offset &+ count > byteCount { return nil }
            var number: UInt64 = 0
            for n in 0..<count {
                let place = offset &+ n, event = Event(word: first[place / Int(ARGUMENTS_DATA_BYTES)])
                let bytes = event.controlKind == .data ? event.payload : UInt64(event.valuesTail)
                number |= (bytes &>> UInt64(place % Int(ARGUMENTS_DATA_BYTES) &* 8) & 0xff) &<< UInt64(n &* 8)
            }
            return number
        }
        var offset = 0
        for n in 0..<index {
            let operation = ArgumentPlan.operation(n, of: program)
            if operation.kind == UInt8(ARGUMENTS_STRINGS) { return nil } // nobody has wanted both
            guard ArgumentPlan.isText(operation) else {
                offset &+= Int(operation.bytes)
                continue
            }
            guard let head = number(at: offset, 2) else { return nil }
            let isUnread = head &>> UInt64(ARGUMENTS_TEXT_SHIFT) == UInt64(ARGUMENTS_TEXT_UNREAD)
            offset &+= 2 &+ (isUnread ? 8 : Int(head & (1 &<< UInt64(ARGUMENTS_TEXT_SHIFT) &- 1)))
        }
        return number(at: offset, 8)
    }

    /// Calls `body` with the bytes of the string that an operation reads, how many they are, and ARGUMENTS_TEXT_: where nothing could be read, with
    /// its address.
    static func withText(_ operation: arguments_operation, _ spills: Spills, _ body: (CText, Int, UInt32) -> Void) {
        withBuffer {
            var values = ArgumentValues($0)
            values.append(TextPlace(operation, spills), spills.stackPointer)
            let head = UInt32($0[0]) | UInt32($0[1]) &<< 8
            body($0 + 2, Int(head & (1 &<< UInt32(ARGUMENTS_TEXT_SHIFT) &- 1)), head &>> UInt32(ARGUMENTS_TEXT_SHIFT))
        }
    }

    private static func withBuffer(_ body: (UnsafeMutablePointer<UInt8>) -> Void) {
        var buffer = InlineArray<1792, UInt8>(repeating: 0) // `capacity`, and up to a word
        var span = buffer.mutableSpan
        span.withUnsafeMutableBufferPointer { body($0.baseAddress!) }
    }
    static func hasFailed(_ result: UInt64, _ operation: arguments_operation) -> Bool {
        let unused = UInt64(64 &- Int(operation.bytes) &* 8), value = result &<< unused
        switch Int(operation.failure) {
        case Int(ARGUMENTS_FAILS_MINUS_ONE): return value == UInt64.max &<< unused
        case Int(ARGUMENTS_FAILS_ZERO): return value == 0
        default: return false
        }
    }
    /// The calling thread's, as the program has it.
    static var errno: UInt32 {
        let distance = tracer_get_errno_distance()
        return distance == 0 ? 0 : UnsafePointer<UInt32>(bitPattern: UInt(tracer_thread_pointer() &+ distance))?.pointee ?? 0
    }

    private mutating func append(_ value: UInt64, _ bytes: Int) {
        for n in 0..<bytes { start[count &+ n] = UInt8(truncatingIfNeeded: value &>> UInt64(n &* 8)) }
        count &+= bytes
    }

    /// A string: what can be read of it.
    private mutating func append(_ place: TextPlace, _ stackPointer: UInt64) {
        let most = min(Int(ARGUMENTS_STRING_BYTES), limit &- count &- 2), head = count, text = start + (count &+ 2)
        var length = 0, how = ARGUMENTS_TEXT_WHOLE, source: UInt64 = 0, isBeyond = false
        count &+= 2
        switch place {
        case .ended(let address):
            // One more byte shows whether a string of this length ends there.
            length = Int(tracer_copy_string(text, address, UInt32(most &+ 1), stackPointer))
            source = address
            how = ARGUMENTS_TEXT_CUT
            if length > 0 && text[length &- 1] == 0 {
                length &-= 1
                how = ARGUMENTS_TEXT_WHOLE
            } else if length <= most {
                how = length == 0 ? ARGUMENTS_TEXT_UNREAD : ARGUMENTS_TEXT_BROKEN
            }
        case .counted(let address, let wanted):
            let readable = Int(min(wanted, UInt64(most)))
            length = readable == 0 ? 0 : Int(tracer_copy_bytes(text, address, UInt32(readable), stackPointer))
            source = address
            if length < readable {
                how = length == 0 ? ARGUMENTS_TEXT_UNREAD : ARGUMENTS_TEXT_BROKEN
            } else if wanted > UInt64(most) {
                how = ARGUMENTS_TEXT_CUT
            }
        case .words(let first, let second, let wanted):
            append(first, 8)
            append(second, 8)
            count &-= 16
            length = wanted
        case .unreadable(let address):
            source = address
            isBeyond = true
            how = ARGUMENTS_TEXT_UNREAD
        }
        length = min(length, most)
        count &+= length
        if how == ARGUMENTS_TEXT_UNREAD { append(source, 8) }
        if isBeyond { length = Int(ARGUMENTS_TEXT_BEYOND) }
        setHead(head, length, how)
    }
    private func setHead(_ head: Int, _ length: Int, _ how: Int) {
        let word = UInt16(truncatingIfNeeded: length) | UInt16(truncatingIfNeeded: how) &<< UInt16(ARGUMENTS_TEXT_SHIFT)
        start[head] = UInt8(truncatingIfNeeded: word)
        start[head &+ 1] = UInt8(truncatingIfNeeded: word &>> 8)
    }

    /// A char *[]: what can be read of it, as far as there is space.
    private mutating func appendStrings(at address: UInt64, _ stackPointer: UInt64) {
        let head = count
        count &+= 2
        var number = 0, how = ARGUMENTS_TEXT_CUT
        while number < Int(ARGUMENTS_MOST_STRINGS) && limit &- count >= Self.leastOfText {
            var string: UInt64 = 0
            let found = withUnsafeMutablePointer(to: &string) {
                let bytes = UnsafeMutableRawPointer($0).assumingMemoryBound(to: UInt8.self)
                return tracer_copy_bytes(bytes, address &+ UInt64(number &* 8), 8, stackPointer)
            }
            if found != 8 || string == 0 {
                how = found == 8 ? ARGUMENTS_TEXT_WHOLE : number == 0 ? ARGUMENTS_TEXT_UNREAD : ARGUMENTS_TEXT_BROKEN
                break
            }
            append(.ended(at: string), stackPointer)
            number &+= 1
        }
        if how == ARGUMENTS_TEXT_UNREAD { append(address, 8) }
        setHead(head, number, how)
    }

    // MARK: - Words

    /// DATA words of so many bytes of values; the last ones are in the word after them.
    static func wordCount(of bytes: Int) -> Int {
        (bytes &+ Int(ARGUMENTS_DATA_BYTES) &- 1 &- Int(VALUE_TAIL)) / Int(ARGUMENTS_DATA_BYTES)
    }
    var wordCount: Int { Self.wordCount(of: count) }
    func word(_ n: Int) -> Event { .control(.data, bytes(of: n)) }
    /// What the DATA words do not have.
    var tail: UInt32 { UInt32(truncatingIfNeeded: bytes(of: wordCount)) }
    @inline(never) private func bytes(of word: Int) -> UInt64 {
        let first = word &* Int(ARGUMENTS_DATA_BYTES)
        var payload: UInt64 = 0
        for k in 0..<max(0, min(count &- first, Int(ARGUMENTS_DATA_BYTES))) { payload |= UInt64(start[first &+ k]) &<< UInt64(k &* 8) }
        return payload
    }
}
