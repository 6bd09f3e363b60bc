// The calls for which conditions hold, added up by function or by a value: of an argument, of the result, or errno. What of a call lies in
// several parts of its thread, which are read alone, is put together at the end.
import Presentation
import TraceFormat

/// What `ChosenCalls` looks for in one trace.
struct CallChoice: Sendable {
    /// Calls have a row a value; nil: a row a function.
    let subject: CallSubject?
    let filter: CallFilter
    private let metadata: Metadata
    /// Indexed by row: its calls may be wanted.
    private let isCandidate: [Bool]
    /// In ticks: calls count that begin in it.
    let window: TimeWindow

    init(_ trace: TraceFile, _ table: FunctionNames, _ subject: CallSubject?, _ pattern: FunctionPattern?, _ conditions: [CallCondition]) {
        self.subject = subject
        metadata = trace.metadata
        window = trace.window
        let filter = CallFilter(conditions, table, trace.metadata)
        self.filter = filter
        var prototypes: [String: RecordedPrototype] = [:]
        for recorded in trace.metadata.recordedPrototypes { for name in recorded.prototype.names { prototypes[name] = recorded } }
        isCandidate =
            [false]
            + table.rows.enumerated().map { n, row in
                guard let prototype = prototypes[row.symbol], filter.mayHold(UInt32(n + 1)) else { return false }
                if let pattern, !pattern.matches(name: row.name, symbol: row.symbol, module: row.module) { return false }
                return subject.map { prototype.has($0) } ?? true
            }
    }

    @inline(__always) func isCandidate(_ row: UInt32) -> Bool { Int(row) < isCandidate.count && isCandidate[Int(row)] }

    /// The row that a call adds to, and its number if sums of the values say something; nil: the conditions do not hold.
    func group(_ row: UInt32, _ arguments: RecordedValues?, _ result: RecordedValues?) -> (group: CallGroup, number: Int128?)? {
        guard filter.holds(row, arguments, result) else { return nil }
        guard let subject else { return (CallGroup(row: row, key: nil), nil) }
        guard let values = subject.isOfArguments ? arguments : result, let prototype = metadata.prototype(values) else {
            // The row stays, since `settle` leaves out functions without any recorded value: they may be other modules' of that name.
            return (CallGroup(row: row, key: .unrecorded), nil)
        }
        switch subject {
        case .argument(let name):
            guard let value = prototype.argument(name, values, result) else {
                // Without a condition it is what the trace lacks, of a call that passed more than is kept.
                return (prototype.isAlwaysPassed(name) ? CallGroup(row: row, key: .unrecorded) : CallGroup(row: 0, key: .absent), nil)
            }
            return (CallGroup(row: 0, key: ValueKey(value)), prototype.isQuantity(subject) ? value.number(nil) : nil)
        case .result:
            guard let result = metadata.result(values) else { return (CallGroup(row: row, key: .unrecorded), nil) }
            let number = result.errno == nil && prototype.isQuantity(subject) ? result.value.number(nil) : nil
            return (CallGroup(row: 0, key: ValueKey(result.value, errno: result.errno)), number)
        case .errno:
            guard let result = metadata.result(values) else { return (CallGroup(row: row, key: .unrecorded), nil) }
            return (CallGroup(row: 0, key: prototype.errno(result).map { ValueKey($0) } ?? .noError), nil)
        }
    }
}

extension CallSubject {
    var isOfArguments: Bool { if case .argument = self { true } else { false } }
}

struct ChosenCalls: StreamSink, ~Copyable {
    static var wantsArguments: Bool { true }

    /// Rows of values that are kept; calls with other ones share a row.
    static let mostValues = 1 << 20

    private struct CallKey: Hashable {
        var thread: UInt32
        var frame: FrameKey
    }

    /// What is known of a call that may be wanted.
    private struct Call {
        var key: CallKey
        var began: UInt64
        /// Its beginning has been read, and counts.
        var isBegun = false
        var arguments: RecordedValues?, result: RecordedValues?
        /// nil: it has not been read.
        var end: UInt64?
        /// False: it ran at least until `end`.
        var isTimed = true
        /// Ticks of the calls made from it, which are not its own.
        var others: Int64 = 0
        /// Time of calls within it that count in these rows.
        var inner: [CallGroup: UInt64] = [:]
        /// Number of the innermost such call around it, and its identity.
        var outer: UInt64
        var outerKey: CallKey?

        mutating func merge(_ other: Call) {
            isBegun = isBegun || other.isBegun
            arguments = arguments ?? other.arguments
            if other.end != nil { (end, result, isTimed) = (other.end, other.result, other.isTimed) }
            others &+= other.others
            inner.merge(other.inner) { $0 &+ $1 }
            outerKey = outerKey ?? other.outerKey
        }
    }

    private let choice: CallChoice
    private let scale: TimeScale
    private var rows: RowNumbers
    private(set) var calls: UInt64 = 0
    var migratedCalls = Migrations()

    private(set) var sums: [CallGroup: CallSums] = [:]
    private(set) var durations = DurationCounts()
    private(set) var numbers = NumberSums()
    /// Functions with recorded values, and their calls for which conditions could hold.
    private(set) var recordedRows: Set<UInt32> = []
    private(set) var asked: UInt64 = 0

    /// Open calls by their numbers. In a frame's tag: twice the number of the innermost one, plus one if it is the frame's own.
    private var open: [UInt64: Call] = [:]
    private var number: UInt64 = 0
    /// What the latest `add` has added to the other's numbers.
    private var added: UInt64 = 0
    /// Calls of which a part has been read.
    private var parts: [CallKey: Call] = [:]
    private var migratedResults: [FrameKey: RecordedValues] = [:]

    private var thread: UInt32 = 0
    private var arguments: RecordedValues?, result: RecordedValues?

    init(_ table: FunctionNames, _ choice: CallChoice, _ scale: TimeScale) {
        rows = RowNumbers(table)
        self.choice = choice
        self.scale = scale
    }

    // MARK: - Sums

    /// Adds up a call that is known as a whole. Returns its row and its length; nil: it does not count.
    private mutating func count(_ call: Call) -> (CallGroup, UInt64)? {
        let row = call.key.frame.row
        guard call.isBegun, let found = choice.group(row, call.arguments, call.result) else { return nil }
        if call.arguments != nil || call.result != nil { recordedRows.insert(row) }
        var group = found.group
        if group.row == 0, sums[group] == nil, sums.count >= Self.mostValues { group.key = .others }
        if let number = found.number { numbers.add(number) }
        let end = call.end ?? call.began, length = end > call.began ? end - call.began : 0
        var sum = sums[group] ?? CallSums()
        sum.calls &+= 1
        if call.end != nil {
            sum.total &+= length &- min(call.inner[group] ?? 0, length)
            sum.selfTime &+= Int64(truncatingIfNeeded: length) &- call.others
            if call.isTimed {
                sum.time(length)
                if group.key == nil {
                    if sum.durationRow == 0 { sum.durationRow = durations.addRow() }
                    durations.record(scale.nanoseconds(length).count, row: sum.durationRow)
                }
            }
        }
        sums[group] = sum
        return (group, length)
    }

    /// Tells the call around it what in it counts already.
    private static func tell(_ outer: inout Call, _ call: Call, _ counted: (group: CallGroup, length: UInt64)?) {
        for (group, ticks) in call.inner where group != counted?.group { outer.inner[group, default: 0] &+= ticks }
        if let counted { outer.inner[counted.group, default: 0] &+= counted.length }
    }

    private mutating func finish(_ call: Call) {
        asked &+= call.isBegun ? 1 : 0
        let counted = count(call)
        if call.outer != 0, open[call.outer] != nil { Self.tell(&open[call.outer]!, call, counted) }
    }

    private mutating func keep(_ call: Call) {
        var call = call
        call.outerKey = open[call.outer]?.key
        if parts[call.key] == nil { parts[call.key] = call } else { parts[call.key]!.merge(call) }
    }

    /// Adds up what lay in several parts, inner calls first. Nothing more may come.
    mutating func settle() {
        for (_, call) in open { keep(call) }
        open = [:]
        for key in parts.keys.sorted(by: { ($0.frame.enter, $0.thread) > ($1.frame.enter, $1.thread) }) {
            guard var call = parts.removeValue(forKey: key) else { continue }
            if call.end == nil, let end = migratedCalls.ends[key.frame] {
                (call.end, call.result) = (max(end, call.began), migratedResults[key.frame])
            }
            asked &+= call.isBegun ? 1 : 0
            let counted = count(call)
            if let outer = call.outerKey, parts[outer] != nil { Self.tell(&parts[outer]!, call, counted) }
        }
        // Functions without any recorded value may be other modules' of the same name.
        for (group, sum) in sums where group.row != 0 && group.key == .unrecorded {
            sums[group] = nil
            if recordedRows.contains(group.row) { sums[CallGroup(row: 0, key: .unrecorded), default: CallSums()].add(sum) }
        }
    }

    // MARK: - Calls

    mutating func begin(thread: UInt32) {
        self.thread = thread
        (arguments, result) = (nil, nil)
    }
    mutating func row(of function: UInt32) -> UInt32 { rows.row(of: function) }
    mutating func nextArguments(_ values: RecordedValues?) { arguments = values }
    mutating func nextResult(_ values: RecordedValues?) { result = values }

    private func key(_ frame: FrameKey) -> CallKey { CallKey(thread: thread, frame: frame) }
    private func isWanted(at time: UInt64) -> Bool { choice.window.isWhole || choice.window.touches(time, time) }

    /// Time of a call that is not its caller's own.
    private mutating func take(_ ticks: UInt64, from parent: Frame) {
        if parent.tag & 1 == 1 { open[parent.tag >> 1]?.others &+= Int64(truncatingIfNeeded: ticks) }
    }

    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        if isCall { calls &+= 1 }
        let values = arguments.take()
        frame.tag = parent.tag & ~1
        guard choice.isCandidate(frame.row) else { return }
        number += 1
        open[number] = Call(
            key: key(frame.key), began: frame.began, isBegun: isCall && isWanted(at: frame.began), arguments: isCall ? values : nil,
            outer: parent.tag >> 1
        )
        frame.tag = number << 1 | 1
    }

    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending) {
        let values = result.take()
        take(time > frame.since ? time - frame.since : 0, from: parent)
        guard frame.tag & 1 == 1, var call = open.removeValue(forKey: frame.tag >> 1) else { return }
        if ending != .elsewhere {
            (call.end, call.isTimed) = (max(time, call.began), ending != .lost && ending != .part)
            if ending == .returned { call.result = values }
        }
        // Another part has the beginning of the call, or another thread its end, otherwise.
        if call.isBegun, call.end != nil { finish(call) } else { keep(call) }
    }

    mutating func leaf(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool) {
        calls &+= 1
        let values = arguments.take()
        take(end &- start, from: parent)
        guard _slowPath(choice.isCandidate(row)), isWanted(at: start) else { return }
        finish(
            Call(
                key: key(FrameKey(enter: start, row: row)), began: start, isBegun: true, arguments: values, end: end,
                outer: parent.tag >> 1))
    }

    mutating func interleaved(_ frame: Frame, _ overlap: Overlap, depth: Int, parent: Frame) {
        take(overlap.length, from: frame)
        if parent.tag & 1 == 1 { open[parent.tag >> 1]?.others &-= Int64(truncatingIfNeeded: overlap.length) }
    }
    mutating func unseen(_ frame: Frame, depth: Int, from begin: UInt64, to end: UInt64) { take(end &- begin, from: frame) }

    mutating func migrated(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        if let values = result.take() { migratedResults[FrameKey(enter: start, row: row)] = values }
        migratedCalls.insert(row, enter: start, end: end)
    }

    mutating func counted(_ row: UInt32, _ calls: UInt64) {
        self.calls &+= calls
        guard choice.isCandidate(row), choice.window.isWhole, choice.filter.conditions.isEmpty else { return }
        let group = CallGroup(row: row, key: choice.subject == nil ? nil : .unrecorded)
        sums[group, default: CallSums()].calls &+= calls
    }

    // MARK: - Parts of a trace

    mutating func carried(_ frame: Frame, until time: UInt64, depth: Int, parent: Frame) {
        take(time > frame.since ? time - frame.since : 0, from: parent)
    }
    mutating func endPart() {
        // Calls of other threads wait for these threads' ends.
        for (number, call) in open where call.key.thread == thread {
            keep(call)
            open[number] = nil
        }
    }

    mutating func translate(_ row: UInt32, from other: borrowing ChosenCalls) -> UInt32 { rows.translate(row, from: other.rows) }
    mutating func translate(_ frame: Frame, from other: borrowing ChosenCalls) -> Frame {
        var frame = frame
        frame.row = translate(frame.row, from: other)
        if frame.tag != 0 { frame.tag += added << 1 }
        return frame
    }

    mutating func add(_ other: borrowing ChosenCalls) {
        calls &+= other.calls
        asked &+= other.asked
        recordedRows.formUnion(other.recordedRows)
        numbers.add(other.numbers)
        for (group, theirs) in other.sums {
            // All candidates have rows that are known.
            let isNew = group.row == 0 && sums[group] == nil && sums.count >= Self.mostValues
            let own = isNew ? CallGroup(row: 0, key: .others) : group
            var sum = sums[own] ?? CallSums()
            sum.add(theirs)
            durations.add(other.durations, row: theirs.durationRow, to: &sum.durationRow)
            sums[own] = sum
        }
        for (key, part) in other.parts { if parts[key] == nil { parts[key] = part } else { parts[key]!.merge(part) } }
        added = number
        number += other.number
        for (n, call) in other.open {
            var call = call
            if call.outer != 0 { call.outer += added }
            open[n + added] = call
        }
        migratedResults.merge(other.migratedResults) { $1 }
        addMigratedCalls(of: other)
    }
}
