// Function ids as the sums of a reading number them: 0 is nobody, then the rows of the function table, then ids that no
// record describes, in the order in which this reading met them.

struct FunctionSlots: ~Copyable {
    /// By function id; 0 unknown.
    private var slots: PlainArray<UInt32>
    let knownCount: Int
    /// In the order of their slots, which follow the known ones.
    private(set) var strangers: [UInt32] = []
    private var strangerSlots: [UInt32: UInt32] = [:]

    init(_ table: FunctionTable) {
        knownCount = table.slotCount
        slots = PlainArray(repeating: 0, count: max(table.slotOfFunction.count, 1))
        for (id, slot) in table.slotOfFunction.enumerated() { slots[id] = slot }
    }

    /// 0 when the function table does not have it.
    @inline(__always) func known(_ function: UInt32) -> UInt32 {
        _fastPath(Int(function) < slots.count) ? slots[Int(function)] : 0
    }

    @inline(never) mutating func strangerSlot(_ function: UInt32) -> UInt32 {
        if let slot = strangerSlots[function] { return slot }
        let slot = UInt32(knownCount + strangers.count)
        strangers.append(function)
        strangerSlots[function] = slot
        return slot
    }

    /// The id behind a slot that the table does not have; nil for one that it has, whose number is the same in every
    /// reading.
    func stranger(_ slot: UInt32) -> UInt32? {
        Int(slot) < knownCount ? nil : strangers[Int(slot) - knownCount]
    }
}

/// Calls that ended on another thread than they began on: the latter must not take them for still running.
struct Migrations {
    private struct Call: Hashable {
        var slot: UInt32
        var enter: UInt64
    }
    private var calls: Set<Call> = []
    private static let most = 1 << 16

    mutating func insert(_ slot: UInt32, enter: UInt64) {
        if calls.count < Self.most { calls.insert(Call(slot: slot, enter: enter)) }
    }

    func contains(_ slot: UInt32, enter: UInt64) -> Bool {
        !calls.isEmpty && calls.contains(Call(slot: slot, enter: enter))
    }

    mutating func formUnion(_ other: Migrations, translate: (UInt32) -> UInt32) {
        for call in other.calls { insert(translate(call.slot), enter: call.enter) }
    }
}
