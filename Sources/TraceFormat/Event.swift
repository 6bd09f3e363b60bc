// One event is one 64-bit word; CTraceLayout declares the bits. Pure arithmetic: the agent (Embedded Swift) and the
// reader compile this same file, and every function here may run in a signal handler.
import CTraceLayout

/// A reading of the recording clock. Not nanoseconds: the file's clock samples convert it.
public struct Ticks: Equatable, Comparable, Sendable {
    public var raw: UInt64
    @inlinable public init(_ raw: UInt64) { self.raw = raw }
    @inlinable public static func < (a: Ticks, b: Ticks) -> Bool { a.raw < b.raw }
    /// The stretch of 2^23 ticks that this moment falls in; a complete call stores its start relative to it.
    @inlinable public var epoch: UInt64 { raw &>> UInt64(EVENT_EPOCH_BITS) }
}

public enum EventKind: UInt8, Sendable {
    case control = 0, enter = 1, exit = 2, complete = 3
}

public enum ControlKind: UInt8, Sendable {
    case epoch = 1, resume = 2, unwound = 3, lost = 4, mark = 5
}

/// What a slot of a chunk holds. Zero means that nothing was written there.
public struct Event: Equatable, Sendable {
    public var word: UInt64
    @inlinable public init(word: UInt64) { self.word = word }

    @inlinable static var timeMask: UInt64 { (1 &<< UInt64(EVENT_TIME_BITS)) &- 1 }
    @inlinable static var durationMask: UInt64 { (1 &<< UInt64(EVENT_DURATION_BITS)) &- 1 }
    @inlinable static var epochMask: UInt64 { (1 &<< UInt64(EVENT_EPOCH_BITS)) &- 1 }
    @inlinable static var payloadMask: UInt64 { (1 &<< UInt64(CONTROL_SHIFT)) &- 1 }

    @inlinable static func head(_ kind: EventKind, _ function: UInt32) -> UInt64 {
        (UInt64(kind.rawValue) &<< UInt64(EVENT_KIND_SHIFT)) | (UInt64(function) &<< UInt64(EVENT_FUNCTION_SHIFT))
    }
    @inlinable public static func enter(_ function: UInt32, at ticks: Ticks) -> Event {
        Event(word: head(.enter, function) | (ticks.raw & timeMask))
    }
    @inlinable public static func exit(_ function: UInt32, at ticks: Ticks) -> Event {
        Event(word: head(.exit, function) | (ticks.raw & timeMask))
    }
    /// nil when the call is too long for one word: it then stays an enter and an exit.
    @inlinable public static func complete(_ function: UInt32, from start: Ticks, duration: UInt64) -> Event? {
        guard duration <= durationMask else { return nil }
        let time = ((start.raw & epochMask) &<< UInt64(EVENT_DURATION_BITS)) | duration
        return Event(word: head(.complete, function) | time)
    }
    @inlinable public static func control(_ kind: ControlKind, _ payload: UInt64) -> Event {
        Event(word: (UInt64(kind.rawValue) &<< UInt64(CONTROL_SHIFT)) | (payload & payloadMask))
    }
    /// `count` innermost frames were left without returning. At most 2^14 - 1 a word.
    @inlinable public static func unwound(_ count: UInt32, at ticks: Ticks) -> Event {
        control(.unwound, (UInt64(count) &<< UInt64(EVENT_TIME_BITS)) | (ticks.raw & timeMask))
    }

    @inlinable public var isEmpty: Bool { word == 0 }
    @inlinable public var kind: EventKind { EventKind(rawValue: UInt8(word &>> UInt64(EVENT_KIND_SHIFT)))! }
    /// Meaningless in a control word.
    @inlinable public var function: UInt32 {
        UInt32((word &>> UInt64(EVENT_FUNCTION_SHIFT)) & ((1 &<< UInt64(EVENT_FUNCTION_BITS)) &- 1))
    }
    /// Low 42 bits of the time of an enter, exit, unwound or mark.
    @inlinable public var timeBits: UInt64 { word & Event.timeMask }
    /// Start of a complete call within the epoch in force.
    @inlinable public var startInEpoch: UInt64 {
        (word &>> UInt64(EVENT_DURATION_BITS)) & Event.epochMask
    }
    @inlinable public var duration: UInt64 { word & Event.durationMask }
    /// nil for a kind that a newer writer may know and this reader does not.
    @inlinable public var controlKind: ControlKind? {
        ControlKind(rawValue: UInt8((word &>> UInt64(CONTROL_SHIFT)) & 0x3f))
    }
    @inlinable public var payload: UInt64 { word & Event.payloadMask }
    @inlinable public var unwoundCount: UInt32 { UInt32(payload &>> UInt64(EVENT_TIME_BITS)) }
}

/// Completes the 42 time bits of an event: the moment nearest to `reference` that ends in them.
@inlinable public func unwrap(_ bits: UInt64, near reference: Ticks) -> Ticks {
    let shift = UInt64(64 - EVENT_TIME_BITS)
    let difference = Int64(bitPattern: (bits &- reference.raw) &<< shift) &>> Int64(shift)
    return Ticks(reference.raw &+ UInt64(bitPattern: difference))
}
