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
    private var slots: FunctionSlots
    private var migrated = Migrations()

    private(set) var calls: UInt64 = 0
    private(set) var orphans: UInt64 = 0
    private(set) var unwound: UInt64 = 0
    private(set) var migrations: UInt64 = 0
    private(set) var lost: UInt64 = 0
    private(set) var marks: UInt64 = 0
    private(set) var unknownWords: UInt64 = 0

    init(_ table: FunctionTable) {
        slots = FunctionSlots(table)
        sums = PlainArray(repeating: FunctionSums(), count: table.slotCount)
        for slot in 1 ..< max(table.slotCount, 1) where table.rows[slot - 1].isTail { sums[slot].isTail = true }
    }

    var strangers: [UInt32] { slots.strangers }

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
        let slot = slots.strangerSlot(function)
        if Int(slot) >= sums.count { sums.append(repeating: FunctionSums(), count: Int(slot) + 1 - sums.count) }
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
    private mutating func translate(_ slot: UInt32, from other: borrowing Accumulator) -> UInt32 {
        other.slots.stranger(slot).map { strangerSlot($0) } ?? slot
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
        var union = migrated
        union.formUnion(other.migrated) { translate($0, from: other) }
        migrated = union
    }
}

extension Accumulator: CallSink {
    @inline(__always) mutating func slot(of function: UInt32) -> UInt32 {
        let slot = slots.known(function)
        return _fastPath(slot != 0) ? slot : strangerSlot(function)
    }

    @inline(__always) mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        guard isCall else { return }
        calls &+= 1
        sums[Int(frame.slot)].calls &+= 1
    }

    @inline(__always) mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame,
                                           isOutermost: Bool, _ ending: Ending) {
        let duration = time > frame.enter ? time &- frame.enter : 0
        if ending == .unwound { unwound &+= 1 }
        if _fastPath(ending != .lost) {
            self.time(duration, frame.slot, parent: parent.slot, isOutermost: isOutermost)
        } else {
            // It ran at least so long; as one call's length it would be wrong.
            if isOutermost { sums[Int(frame.slot)].total &+= duration }
            sums[Int(frame.slot)].selfTime &+= Int64(truncatingIfNeeded: duration)
            sums[Int(parent.slot)].selfTime &-= Int64(truncatingIfNeeded: duration)
        }
    }

    @inline(__always) mutating func leaf(_ slot: UInt32, from start: UInt64, to end: UInt64, depth: Int,
                                         parent: Frame, isOutermost: Bool) {
        calls &+= 1
        sums[Int(slot)].calls &+= 1
        if _slowPath(sums[Int(slot)].isTail) { return }
        time(end &- start, slot, parent: parent.slot, isOutermost: isOutermost)
    }

    mutating func migrated(_ slot: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        migrations &+= 1
        migrated.insert(slot, enter: start)
        time(end &- start, slot, parent: 0, isOutermost: true)
    }

    mutating func orphan(_ slot: UInt32, at time: UInt64, depth: Int) { orphans &+= 1 }
    mutating func lost(_ count: UInt64, at time: UInt64, depth: Int) { lost &+= count }
    mutating func mark(_ mark: UInt32, at time: UInt64, depth: Int) { marks &+= 1 }
    mutating func unknown() { unknownWords &+= 1 }
}

extension Accumulator: StreamSink {
    mutating func begin(thread: UInt32) {}

    mutating func translate(_ frame: Frame, from other: borrowing Accumulator) -> Frame {
        var frame = frame
        frame.slot = translate(frame.slot, from: other)
        return frame
    }

    func hasMigrated(_ frame: Frame) -> Bool { migrated.contains(frame.slot, enter: frame.enter) }
}
