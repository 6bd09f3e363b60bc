// One event is one 64-bit word; CTraceLayout declares the bits. Pure arithmetic: the agent (Embedded Swift) and the
// reader compile this same file, and every function here may run in a signal handler.
import CTraceLayout

/// A reading of the recording clock. Not nanoseconds: the file's clock samples convert it.
public struct Ticks: Equatable, Comparable, Sendable {
    public var raw: UInt64
    @inlinable public init(_ raw: UInt64) { self.raw = raw }
    @inlinable public static func < (a: Ticks, b: Ticks) -> Bool { a.raw < b.raw }
}

public enum EventKind: UInt8, Sendable {
    case control = 0, enter = 1, exit = 2, complete = 3
}

/// Kinds of control word, each with its payload.
public enum ControlKind: UInt8, Sendable {
    /// The low 56 bits of the base, in ticks, for the words that follow.
    case base = 1
    /// The low 56 bits of the enter time of the frame that the next word closes.
    case resume = 2
    /// Time since the base (`Event.timeReach`), and above it a count: that many innermost frames were left.
    case unwound = 3
    /// The address that the call of the next word, an enter or a complete call, returns to; 0 unknown.
    case site = 4
    /// The low 56 bits of an argument of the call of the next word, an enter or a complete call: its object.
    case argument = 5
    /// The next call of this function on this thread stands for others: the function (`EventWord.sampledFunction`), and above it how many of
    /// its calls the thread has counted and not recorded since the one before it that had such a word.
    case sampled = 6
    /// Seven bytes of the values that the next VALUES, RESULT or ARGUMENTS word says of. Its lowest byte alone shows what it is, so no value
    /// looks like an event, wherever a process is killed.
    case data = 7
    /// What older agents wrote: the DATA words before it are the values of the arguments of the call of the next enter or complete call, or of the
    /// result of the next exit.
    case arguments = 8
    /// The DATA words before it, and its own last bytes, are the values of the arguments of the call of the next enter or complete call
    /// (`EventWord.values`).
    case values = 9
    /// Likewise of the result of the call of the next exit or complete call. Before an enter it says nothing: space for the result, or the
    /// process was killed as the call returned.
    case result = 10
}

/// How the bits of an event are shared out; from these two the rest follows.
public protocol EventLayout: Sendable {
    static var functionBits: UInt64 { get }
    /// Width in bits of a complete call's start, which is in ticks since the base.
    static var startBits: UInt64 { get }
}
/// Layout of the files that this version writes.
public enum CurrentEventLayout: EventLayout {
    @inlinable public static var functionBits: UInt64 { UInt64(EVENT_FUNCTION_BITS) }
    @inlinable public static var startBits: UInt64 { UInt64(EVENT_START_BITS) }
}
/// Layout of files of version 1.
public enum FirstEventLayout: EventLayout {
    @inlinable public static var functionBits: UInt64 { UInt64(EVENT_1_FUNCTION_BITS) }
    @inlinable public static var startBits: UInt64 { UInt64(EVENT_1_START_BITS) }
}
public typealias Event = EventWord<CurrentEventLayout>

/// Content of a chunk's word. Zero means that nothing was written there.
/// Times are ticks since the base in force: the chunk's opening, then the latest control word that says another.
public struct EventWord<Layout: EventLayout>: Equatable, Sendable {
    public var word: UInt64
    @inlinable public init(word: UInt64) { self.word = word }

    @inlinable static var payloadMask: UInt64 { (1 &<< UInt64(CONTROL_PAYLOAD_BITS)) &- 1 }
    @inlinable static var timeMask: UInt64 { timeReach &- 1 }
    @inlinable static var timeShift: UInt64 { UInt64(EVENT_KIND_BITS) &+ Layout.functionBits }
    @inlinable static var timeBits: UInt64 { 64 &- timeShift }
    @inlinable static var durationShift: UInt64 { timeShift &+ Layout.startBits }

    /// How far after the base an enter or complete call may begin, and any other event may be.
    @inlinable public static var startReach: UInt64 { 1 &<< Layout.startBits }
    /// Function ids lie below.
    @inlinable public static var functionReach: UInt32 { 1 &<< UInt32(truncatingIfNeeded: Layout.functionBits) }
    @inlinable public static var timeReach: UInt64 { 1 &<< timeBits }
    @inlinable public static var durationReach: UInt64 { 1 &<< (64 &- durationShift) }

    @inlinable public static func head(_ kind: EventKind, _ function: UInt32) -> UInt64 {
        UInt64(kind.rawValue) | UInt64(function) &<< UInt64(EVENT_FUNCTION_SHIFT)
    }
    /// The time is below `timeReach`.
    @inlinable public static func enter(_ function: UInt32, after time: UInt64) -> EventWord {
        EventWord(word: head(.enter, function) | time &<< timeShift)
    }
    @inlinable public static func exit(_ function: UInt32, after time: UInt64) -> EventWord {
        EventWord(word: head(.exit, function) | time &<< timeShift)
    }
    /// nil when the start or the length does not fit: the call then is an enter and an exit.
    @inlinable public static func complete(_ function: UInt32, after start: UInt64, duration: UInt64) -> EventWord? {
        guard start < startReach && duration < durationReach else { return nil }
        return EventWord(
            word: head(.complete, function) | start &<< timeShift
                | duration &<< durationShift)
    }
    @inlinable public static func control(_ kind: ControlKind, _ payload: UInt64) -> EventWord {
        EventWord(word: UInt64(kind.rawValue) &<< UInt64(CONTROL_KIND_SHIFT) | payload &<< UInt64(CONTROL_PAYLOAD_SHIFT))
    }
    /// `count` innermost frames were left without returning. At most 2^14 - 1 a word.
    @inlinable public static func unwound(_ count: UInt32, after time: UInt64) -> EventWord {
        control(.unwound, time & timeMask | UInt64(count) &<< timeBits)
    }

    /// `calls` is at most 2^32 - 1; what is above is left for the end.
    @inlinable public static func sampled(_ function: UInt32, calls: UInt64) -> EventWord {
        control(.sampled, UInt64(function) | min(calls, 1 &<< 32 &- 1) &<< UInt64(EVENT_FUNCTION_BITS))
    }

    /// `words` DATA words come before it, and `tail` is what follows their bytes.
    /// - Parameter program: up to ARGUMENTS_MOST_FUNCTIONS
    @inlinable public static func values(_ program: UInt32, words: UInt32, tail: UInt32, isResult: Bool) -> EventWord {
        control(
            isResult ? .result : .values,
            UInt64(program) | UInt64(words) &<< UInt64(CONTROL_VALUES_COUNT_SHIFT) | UInt64(tail) &<< UInt64(CONTROL_VALUES_TAIL_SHIFT))
    }

    @inlinable public var isEmpty: Bool { word == 0 }
    @inlinable public var kind: EventKind { EventKind(rawValue: UInt8(word & 3))! }
    /// Meaningless in a control word.
    @inlinable public var function: UInt32 {
        UInt32(truncatingIfNeeded: word &>> UInt64(EVENT_FUNCTION_SHIFT)) & (EventWord.functionReach &- 1)
    }
    /// Ticks from the base to an enter or exit.
    @inlinable public var time: UInt64 { word &>> EventWord.timeShift }
    /// Ticks from the base to the start of a complete call.
    @inlinable public var start: UInt64 { word &>> EventWord.timeShift & (EventWord.startReach &- 1) }
    @inlinable public var duration: UInt64 { word &>> EventWord.durationShift }
    /// nil for a kind that a newer writer may know and this reader does not.
    @inlinable public var controlKind: ControlKind? {
        ControlKind(rawValue: UInt8(truncatingIfNeeded: word &>> UInt64(CONTROL_KIND_SHIFT)) & 0x3f)
    }
    @inlinable public var payload: UInt64 { word &>> UInt64(CONTROL_PAYLOAD_SHIFT) }
    @inlinable public var sampledFunction: UInt32 { UInt32(truncatingIfNeeded: payload & (1 &<< UInt64(EVENT_FUNCTION_BITS) &- 1)) }
    @inlinable public var sampledCalls: UInt64 { payload &>> UInt64(EVENT_FUNCTION_BITS) }
    /// The program of a VALUES or RESULT word …
    @inlinable public var valuesProgram: UInt32 { UInt32(truncatingIfNeeded: payload & (1 &<< UInt64(CONTROL_VALUES_COUNT_SHIFT) &- 1)) }
    /// … how many DATA words it has …
    @inlinable public var valuesWords: UInt8 { UInt8(truncatingIfNeeded: payload &>> UInt64(CONTROL_VALUES_COUNT_SHIFT)) }
    /// … and its own four bytes.
    @inlinable public var valuesTail: UInt32 { UInt32(truncatingIfNeeded: payload &>> UInt64(CONTROL_VALUES_TAIL_SHIFT)) }
    /// The program of an ARGUMENTS word.
    @inlinable public var argumentsProgram: UInt32 {
        UInt32(truncatingIfNeeded: payload & (1 &<< UInt64(CONTROL_ARGUMENTS_COUNT_SHIFT) &- 1))
    }
    @inlinable public var argumentsWords: UInt8 { UInt8(truncatingIfNeeded: payload &>> UInt64(CONTROL_ARGUMENTS_COUNT_SHIFT)) }
    @inlinable public var argumentsAreResult: Bool { payload &>> UInt64(CONTROL_ARGUMENTS_RESULT_SHIFT) & 1 != 0 }
    /// Ticks from the base to an unwound word …
    @inlinable public var controlTime: UInt64 { payload & EventWord.timeMask }
    /// … and the number of frames that were left.
    @inlinable public var controlNumber: UInt32 { UInt32(truncatingIfNeeded: payload &>> EventWord.timeBits) }
}

/// Completes the 56 bits of a control payload that is a moment: the one nearest to `reference` that ends in them.
@inlinable public func completed(_ bits: UInt64, near reference: Ticks) -> Ticks {
    let shift = UInt64(64 - CONTROL_PAYLOAD_BITS)
    let difference = Int64(bitPattern: (bits &- reference.raw) &<< shift) &>> Int64(shift)
    return Ticks(reference.raw &+ UInt64(bitPattern: difference))
}
