// What `report` keeps of the calls: per function a cache line of sums and a row of duration counts. Self time is
// additive: a call adds its length to its own function and takes it from the function below, so that any part of a
// trace can be read alone and the parts added up.

/// Sums of one function. Ticks, all of them; wrapping, so that a damaged file cannot stop the reader.
struct FunctionSums: BitwiseCopyable {
    var calls: UInt64 = 0
    /// Calls whose length is known.
    var timed: UInt64 = 0
    /// Of outermost calls: a recursive function's time is counted once.
    var total: UInt64 = 0
    /// Of all calls.
    var sum: UInt64 = 0
    var selfTime: Int64 = 0
    var minimum: UInt64 = .max
    var maximum: UInt64 = 0
    /// Row of the duration counts, 0 before the first.
    var row: UInt32 = 0
    var isTail: Bool = false

    /// All but the row.
    mutating func add(_ other: FunctionSums) {
        calls &+= other.calls
        timed &+= other.timed
        total &+= other.total
        sum &+= other.sum
        selfTime &+= other.selfTime
        minimum = min(minimum, other.minimum)
        maximum = max(maximum, other.maximum)
    }
}

struct Accumulator: ~Copyable {
    private(set) var sums: PlainArray<FunctionSums>
    private(set) var durations = DurationCounts()
    /// By function id; 0 unknown.
    private var slots: PlainArray<UInt32>
    private let knownSlots: Int
    /// Ids that no record describes, in the order of their slots, which follow the known ones.
    private(set) var strangers: [UInt32] = []
    private var strangerSlots: [UInt32: UInt32] = [:]

    private(set) var calls: UInt64 = 0
    private(set) var orphans: UInt64 = 0
    private(set) var unwound: UInt64 = 0
    private(set) var migrations: UInt64 = 0
    private(set) var lost: UInt64 = 0
    private(set) var marks: UInt64 = 0
    private(set) var unknownWords: UInt64 = 0
    /// Calls that ended on another thread than they began on: the latter must not take them for still running.
    private(set) var migrated: Set<Migration> = []

    struct Migration: Hashable {
        var slot: UInt32
        var enter: UInt64
    }
    static var mostMigrations: Int { 1 << 16 }

    init(_ table: FunctionTable) {
        knownSlots = table.slotCount
        sums = PlainArray(repeating: FunctionSums(), count: table.slotCount)
        slots = PlainArray(repeating: 0, count: max(table.slotOfFunction.count, 1))
        for (id, slot) in table.slotOfFunction.enumerated() { slots[id] = slot }
        for slot in 1 ..< max(table.slotCount, 1) where table.rows[slot - 1].isTail { sums[slot].isTail = true }
    }

    /// A call of known length.
    @inline(__always)
    private mutating func time(_ duration: UInt64, _ slot: UInt32, parent: UInt32, isOutermost: Bool) {
        sums[Int(slot)].timed &+= 1
        sums[Int(slot)].total &+= isOutermost ? duration : 0
        sums[Int(slot)].sum &+= duration
        sums[Int(slot)].selfTime &+= Int64(truncatingIfNeeded: duration)
        sums[Int(slot)].minimum = min(sums[Int(slot)].minimum, duration)
        sums[Int(slot)].maximum = max(sums[Int(slot)].maximum, duration)
        sums[Int(parent)].selfTime &-= Int64(truncatingIfNeeded: duration) // slot 0, nobody, is never shown
        var row = sums[Int(slot)].row
        if _slowPath(row == 0) {
            row = durations.addRow()
            sums[Int(slot)].row = row
        }
        durations.record(duration, row: row)
    }

    @inline(never) private mutating func strangerSlot(_ function: UInt32) -> UInt32 {
        if let slot = strangerSlots[function] { return slot }
        let slot = UInt32(knownSlots + strangers.count)
        strangers.append(function)
        strangerSlots[function] = slot
        sums.append(FunctionSums())
        return slot
    }

    /// Moves what one slot holds to another.
    mutating func merge(_ slot: Int, into other: Int) {
        let moved = sums[slot]
        sums[other].add(moved)
        sums[slot] = FunctionSums()
        guard moved.row != 0 else { return }
        if sums[other].row == 0 {
            sums[other].row = moved.row
        } else {
            durations.merge(moved.row, into: sums[other].row)
        }
    }

    /// The slot here of a slot of `other`.
    mutating func translate(_ slot: UInt32, from other: borrowing Accumulator) -> UInt32 {
        Int(slot) < knownSlots ? slot : strangerSlot(other.strangers[Int(slot) - knownSlots])
    }

    mutating func add(_ other: borrowing Accumulator) {
        for index in 1 ..< max(other.sums.count, 1) {
            let theirs = other.sums[index]
            if theirs.calls == 0, theirs.timed == 0, theirs.total == 0, theirs.selfTime == 0 { continue }
            let slot = Int(translate(UInt32(index), from: other))
            sums[slot].add(theirs)
            guard theirs.row != 0 else { continue }
            if sums[slot].row == 0 { sums[slot].row = durations.addRow() }
            durations.add(other.durations, row: theirs.row, to: sums[slot].row)
        }
        calls &+= other.calls
        orphans &+= other.orphans
        unwound &+= other.unwound
        migrations &+= other.migrations
        lost &+= other.lost
        marks &+= other.marks
        unknownWords &+= other.unknownWords
        for migration in other.migrated where migrated.count < Self.mostMigrations {
            migrated.insert(Migration(slot: translate(migration.slot, from: other), enter: migration.enter))
        }
    }
}

extension Accumulator: CallSink {
    @inline(__always) mutating func slot(of function: UInt32) -> UInt32 {
        if _fastPath(Int(function) < slots.count) {
            let slot = slots[Int(function)]
            if _fastPath(slot != 0) { return slot }
        }
        return strangerSlot(function)
    }

    @inline(__always) mutating func opened(_ frame: inout Frame, at time: UInt64, depth: Int, isCall: Bool) {
        guard isCall else { return }
        calls &+= 1
        sums[Int(frame.slot)].calls &+= 1
    }

    @inline(__always) mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: UInt32,
                                           isOutermost: Bool, _ ending: Ending) {
        let duration = time > frame.enter ? time &- frame.enter : 0
        if ending == .unwound { unwound &+= 1 }
        if _fastPath(ending != .lost) {
            self.time(duration, frame.slot, parent: parent, isOutermost: isOutermost)
        } else {
            // It ran at least so long; as one call's length it would be wrong.
            if isOutermost { sums[Int(frame.slot)].total &+= duration }
            sums[Int(frame.slot)].selfTime &+= Int64(truncatingIfNeeded: duration)
            sums[Int(parent)].selfTime &-= Int64(truncatingIfNeeded: duration)
        }
    }

    @inline(__always) mutating func leaf(_ slot: UInt32, from start: UInt64, to end: UInt64, depth: Int,
                                         parent: UInt32, isOutermost: Bool) {
        calls &+= 1
        sums[Int(slot)].calls &+= 1
        if _slowPath(sums[Int(slot)].isTail) { return }
        time(end &- start, slot, parent: parent, isOutermost: isOutermost)
    }

    mutating func migrated(_ slot: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        migrations &+= 1
        if migrated.count < Self.mostMigrations { migrated.insert(Migration(slot: slot, enter: start)) }
        time(end &- start, slot, parent: 0, isOutermost: true)
    }

    mutating func orphan(_ slot: UInt32, at time: UInt64, depth: Int) { orphans &+= 1 }
    mutating func lost(_ count: UInt64, at time: UInt64, depth: Int) { lost &+= count }
    mutating func mark(_ mark: UInt32, at time: UInt64, depth: Int) { marks &+= 1 }
    mutating func unknown() { unknownWords &+= 1 }
}
