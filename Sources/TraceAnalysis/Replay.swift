// The call tree of a thread in the order of time, each call on one line with its duration. The duration is known only
// when the call ends, which may be millions of lines later, and memory is bounded: so the thread is read twice. The
// first reading notes when the few calls end that outlast `window` lines; the second keeps that many lines back.
import CTraceLayout
import TraceFormat

public struct ReplayLine {
    public enum Kind: Equatable, Sendable {
        case call
        /// Only the entry of the function is recorded.
        case entered
        /// An exit without an entry.
        case orphan
        /// It began on another thread and returned here.
        case migrated
        /// Events that could not be written; chunks that were overwritten or are missing.
        case lost(UInt64), missing(UInt64)
        case mark(UInt32)
    }
    public enum End: Sendable { case returned, unwound, lost, open }

    public var kind: Kind
    public var start: Ticks
    public var depth: Int
    public var function: UInt32?
    /// nil where `kind` has none.
    public var end: (time: Ticks, how: End)?
    /// It was running already when the part of the thread began that the file has.
    public var isInherited = false
}

extension TraceFile {
    public struct ThreadID: Sendable {
        public var index: UInt32
        public var tid: UInt32
        public var name: String
    }

    public var threads: [ThreadID] {
        chunksOfThread.compactMap { $0.last }.map { ThreadID(index: $0.thread, tid: $0.tid, name: threadName($0.thread)) }
    }

    /// Calls `body` with the lines of one thread until it returns false.
    /// - Parameters:
    ///   - end: until when calls that are still open ran
    ///   - deepest: how many levels of the tree, 0 all
    ///   - limit: no more than so many lines will be asked for, 0 any number
    public func replay(thread: UInt32, until end: Ticks, deepest: Int, limit: Int, window: Int = 1 << 16,
                       _ table: FunctionTable, _ body: @escaping (ReplayLine) throws -> Bool) throws {
        guard let chunks = chunksOfThread.first(where: { $0.first?.thread == thread }) else { return }
        let end = min(metadata.threads[thread]?.ended ?? end, end)
        let ending: Ending = metadata.threads[thread]?.ended == nil ? .open : .unwound
        var first = ReplayPass(table, deepest: deepest, window: window, longCalls: nil, body: nil)
        first = run(first, chunks, end, ending) { stack in
            limit > 0 && stack.sink.lineCount >= limit
                && (0 ..< stack.frames.count).allSatisfy { stack.frames[$0].tag >= UInt64(limit) }
        }
        var second = ReplayPass(table, deepest: deepest, window: window, longCalls: first.longCalls, body: body)
        second = run(second, chunks, end, ending) { $0.sink.isDone }
        second.finish()
        if let error = second.error { throw error }
    }

    private func run(_ pass: consuming ReplayPass, _ chunks: [Chunk], _ end: Ticks, _ ending: Ending,
                     until isDone: (borrowing CallStack<ReplayPass>) -> Bool) -> ReplayPass {
        var reader = ChunkReader(file)
        var stack = CallStack(pass, slotCount: 0)
        var previous: Chunk?
        var latest: UInt64 = 0
        for chunk in chunks {
            let stored = reader.storedFrames(chunk)
            let missing = chunk.sequence &- (previous.map { $0.sequence &+ 1 } ?? 0)
            if missing > 0 { stack.sink.missing(missing, at: chunk.opened.ticks) }
            stack.sink.isInherited = true
            stack.adopt(stored, bottom: previous == nil ? 0 : chunk.openFrames - chunk.storedFrames, latest: latest, areCalls: true)
            stack.sink.isInherited = false
            latest = max(latest, reader.read(chunk, into: &stack))
            previous = chunk
            if isDone(stack) { return stack.sink }
        }
        stack.closeAll(at: end.raw, ending)
        return stack.sink
    }
}

/// One reading of a thread. Without `body` it collects `longCalls`, with it it tells the lines.
private struct ReplayPass: CallSink {
    struct Key: Hashable {
        var enter: UInt64
        var slot: UInt32
    }
    let table: FunctionTable
    let deepest: Int
    let window: Int
    var longCalls: [Key: (time: UInt64, how: Ending)]
    let isFirst: Bool
    let body: ((ReplayLine) throws -> Bool)?
    var isInherited = false
    private(set) var error: (any Error)?
    private(set) var isDone = false
    /// Lines so far, in the stack's `tag` of each frame; .max for a frame that is too deep for a line.
    private(set) var lineCount = 0
    private var pending: [ReplayLine] = []
    private var head = 0

    init(_ table: FunctionTable, deepest: Int, window: Int, longCalls: [Key: (time: UInt64, how: Ending)]?,
         body: ((ReplayLine) throws -> Bool)?) {
        self.table = table
        self.deepest = deepest == 0 ? .max : deepest
        self.window = window
        self.longCalls = longCalls ?? [:]
        isFirst = body == nil
        self.body = body
    }

    private mutating func add(_ line: ReplayLine) {
        lineCount += 1
        guard !isFirst, !isDone else { return }
        pending.append(line)
        tell(keeping: window)
    }

    /// Tells lines from the front: those that are complete, and whatever is beyond `keeping`.
    private mutating func tell(keeping: Int) {
        while !isDone, head < pending.count, isKnown(pending[head]) || pending.count - head > keeping {
            do {
                if try body?(pending[head]) != true { isDone = true }
            } catch {
                self.error = error
                isDone = true
            }
            head += 1
        }
        if head > window {
            pending.removeFirst(head)
            head = 0
        }
    }

    private func isKnown(_ line: ReplayLine) -> Bool { line.kind != .call || line.end != nil }

    mutating func finish() { tell(keeping: 0) }

    mutating func slot(of function: UInt32) -> UInt32 { function &+ 1 } // 0 is nobody

    mutating func opened(_ frame: inout Frame, at time: UInt64, depth: Int, isCall: Bool) {
        guard depth < deepest else {
            frame.tag = .max
            return
        }
        frame.tag = UInt64(lineCount)
        let known = isFirst ? nil : longCalls[Key(enter: frame.enter, slot: frame.slot)]
        let slot = frame.slot
        add(ReplayLine(kind: .call, start: Ticks(time), depth: depth, function: slot &- 1,
                       end: known.map { (Ticks($0.time), Self.end($0.how)) }, isInherited: isInherited))
    }

    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: UInt32, isOutermost: Bool, _ ending: Ending) {
        guard frame.tag != .max else { return }
        let age = lineCount - Int(frame.tag)
        if isFirst {
            // Half the window: both readings need not agree to the line, the file may be growing.
            if age > window / 2 { longCalls[Key(enter: frame.enter, slot: frame.slot)] = (time, ending) }
        } else {
            let index = pending.count - age
            if index >= head, index < pending.count, pending[index].end == nil {
                pending[index].end = (Ticks(time), Self.end(ending))
                if index == head { tell(keeping: window) }
            }
        }
    }

    private static func end(_ ending: Ending) -> ReplayLine.End {
        switch ending {
        case .returned: .returned
        case .unwound: .unwound
        case .lost: .lost
        case .open: .open
        }
    }

    mutating func leaf(_ slot: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: UInt32, isOutermost: Bool) {
        guard depth < deepest else { return }
        let isTail = table.isTail(slot &- 1)
        add(ReplayLine(kind: isTail ? .entered : .call, start: Ticks(start), depth: depth, function: slot &- 1,
                       end: isTail ? nil : (Ticks(end), .returned)))
    }

    mutating func migrated(_ slot: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        guard depth < deepest else { return }
        add(ReplayLine(kind: .migrated, start: Ticks(start), depth: depth, function: slot &- 1,
                       end: (Ticks(end), .returned)))
    }

    mutating func orphan(_ slot: UInt32, at time: UInt64, depth: Int) {
        guard depth < deepest else { return }
        add(ReplayLine(kind: .orphan, start: Ticks(time), depth: depth, function: slot &- 1))
    }

    mutating func lost(_ count: UInt64, at time: UInt64, depth: Int) {
        add(ReplayLine(kind: .lost(count), start: Ticks(time), depth: min(depth, deepest)))
    }

    mutating func missing(_ count: UInt64, at time: UInt64) {
        add(ReplayLine(kind: .missing(count), start: Ticks(time), depth: 0))
    }

    mutating func mark(_ mark: UInt32, at time: UInt64, depth: Int) {
        guard depth <= deepest else { return }
        add(ReplayLine(kind: .mark(mark), start: Ticks(time), depth: depth))
    }

    mutating func unknown() {}
}
