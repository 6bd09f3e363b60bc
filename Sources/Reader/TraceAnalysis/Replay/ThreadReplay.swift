// The call tree of a thread in the order of time, each call on one line with its duration. The duration is known only
// when the call ends, which may be millions of lines later, and memory is bounded. Lines are kept back as long as their
// calls end in the same chunk or the next; where others end, `CallEnds` finds out. It cannot when chunks do not store
// all open frames (a recursion thousands deep): then the thread is read twice. The first reading notes when the calls
// end that outlast half of `window` lines, the second keeps that many lines back.
import CTraceLayout
import Presentation
import TraceFormat

package struct ReplayLine {
    package enum Kind: Equatable, Sendable {
        case call
        /// Only the entry of the function is recorded.
        case entered
        /// An exit without an entry.
        case orphan
        /// It began on another thread and returned here.
        case migrated
        /// Chunks that were overwritten or are missing.
        case missing(UInt64)
    }
    package enum End: String, JSONChoice, Sendable { case returned, unwound, lost, open }

    package var kind: Kind
    package var start: Ticks
    package var depth: Int
    package var function: UInt32?
    /// 56 bits of the argument that it was recorded with (`Metadata.object`).
    package var object: UInt64?
    /// Its arguments and its result, where they are recorded.
    package var arguments: RecordedValues?
    package var result: RecordedValues?
    /// nil where `kind` has none.
    package var end: (time: Ticks, how: End)?
    /// It was running already when the part of the thread began that the file has.
    package var isInherited = false
}

extension TraceFile {
    package struct ThreadID: Sendable {
        package var index: UInt32
        package var tid: UInt32
        package var name: String
    }

    package var threads: [ThreadID] {
        chunksOfThread.compactMap { $0.last }.map { ThreadID(index: $0.thread, tid: $0.tid, name: threadName($0.thread)) }
    }

    /// Calls `body` with the lines of one thread until it returns false.
    /// - Parameters:
    ///   - end: when calls end that are still open
    ///   - window: lines to keep back at most
    ///   - deepest: how many levels of the tree, 0 all
    ///   - limit: at most this many lines will be asked for, 0 any number
    package func replay(
        thread: UInt32, until end: TraceEnd, deepest: Int, limit: Int, window: Int = 1 << 16,
        _ table: FunctionNames, _ body: @escaping (ReplayLine) throws -> Bool
    ) throws {
        guard let chunks = chunksOfThread.first(where: { $0.first?.thread == thread }) else { return }
        let atEnd = { end.end(of: thread) }
        var pass: ReplayPass
        if chunks.contains(where: { $0.isCut }) {
            pass = run(ReplayPass(table, deepest: deepest, window: window, body: nil), chunks, atEnd) { stack in
                limit > 0 && stack.sink.lineCount >= limit
                    && (0..<stack.frames.count).allSatisfy { stack.frames[$0].tag >= UInt64(limit) }
            }
            pass = ReplayPass(table, deepest: deepest, window: window, longCalls: pass.longCalls, body: body)
        } else {
            pass = ReplayPass(table, deepest: deepest, window: window, ends: CallEnds(self, chunks, atEnd: atEnd), body: body)
        }
        pass = run(pass, chunks, atEnd) { $0.sink.isDone }
        pass.finish()
        if let error = pass.error { throw error }
    }

    private func run(
        _ pass: consuming ReplayPass, _ chunks: [Chunk], _ atEnd: () -> CallEnds.End,
        until isDone: (borrowing CallStack<ReplayPass>) -> Bool
    ) -> ReplayPass {
        var reader = ChunkReader(self)
        var stack = CallStack(pass, rowCount: 0)
        var previous: Chunk?
        var latest: UInt64 = 0
        for (index, listed) in chunks.enumerated() {
            guard let chunk = reader.settled(listed) else { continue }
            let stored = reader.storedFrames(chunk)
            let missing = chunk.sequence &- (previous.map { $0.sequence &+ 1 } ?? 0)
            if missing > 0 { stack.sink.missing(missing, at: chunk.opened.ticks) }
            stack.sink.isInherited = true
            stack.begin(chunk, stored, after: previous, latest: latest, areCalls: true)
            stack.sink.isInherited = false
            stack.sink.chunkIndex = index // not before: frames of the chunk before are only now closed
            latest = max(latest, reader.read(chunk, into: &stack))
            previous = chunk
            stack.sink.chunkEnded()
            if isDone(stack) { return stack.sink }
        }
        if stack.frames.count > 0 {
            let end = atEnd()
            stack.closeAll(at: end.time, end.how)
        }
        return stack.sink
    }
}

/// One reading of a thread. Without `body` it collects `longCalls`, with it it reports the lines.
private struct ReplayPass: CallSink {
    typealias Key = CallEnds.Key
    struct Pending {
        var line: ReplayLine
        /// Key of a call that had not ended when the line was made.
        var key = Key(enter: 0, row: 0)

        var isKnown: Bool { line.kind != .call || line.end != nil }
    }
    let table: FunctionNames
    let deepest: Int
    let window: Int
    var longCalls: [Key: CallEnds.End]
    let ends: CallEnds?
    /// Index of the chunk being read.
    var chunkIndex = 0
    /// A chunk in which an end was looked for in vain: it is damaged, and to go on looking would take long.
    private var hopeless = -1
    let isFirst: Bool
    let body: ((ReplayLine) throws -> Bool)?
    var isInherited = false
    private(set) var error: (any Error)?
    private(set) var isDone = false
    /// Lines so far, in the stack's `tag` of each frame; .max for a frame that is too deep for a line.
    private(set) var lineCount = 0
    private var nextLeafObject: UInt64?
    private var nextValues: RecordedValues?
    private var lastResult: RecordedValues?
    private var pending: [Pending] = []
    private var head = 0

    init(
        _ table: FunctionNames, deepest: Int, window: Int, longCalls: [Key: CallEnds.End] = [:], ends: CallEnds? = nil,
        body: ((ReplayLine) throws -> Bool)?
    ) {
        self.table = table
        self.deepest = deepest == 0 ? .max : deepest
        self.window = window
        self.longCalls = longCalls
        self.ends = ends
        isFirst = body == nil
        self.body = body
    }

    private mutating func add(_ line: ReplayLine, _ key: Key = Key(enter: 0, row: 0)) {
        lineCount += 1
        guard !isFirst, !isDone else { return }
        pending.append(Pending(line: line, key: key))
        report(keeping: window)
    }

    /// Reports lines from the front: those that are complete, and whatever is beyond `keeping`.
    private mutating func report(keeping: Int) {
        while !isDone, head < pending.count {
            if !pending[head].isKnown { complete() }
            if !pending[head].isKnown {
                if pending.count - head <= keeping { break }
                if let ends, hopeless != chunkIndex {
                    ends.lookAhead(pending[head].key, within: chunkIndex, unknownKeys())
                    complete()
                    if !pending[head].isKnown { hopeless = chunkIndex }
                }
            }
            do {
                if try body?(pending[head].line) != true { isDone = true }
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

    /// Completes the line in front if its end has been looked up.
    private mutating func complete() {
        guard let end = ends?.take(pending[head].key) else { return }
        pending[head].line.end = (Ticks(max(end.time, pending[head].line.start.raw)), Self.end(end.how))
        pending[head].line.result = end.result
    }

    private func unknownKeys() -> Set<Key> {
        var keys: Set<Key> = []
        for index in head..<pending.count where !pending[index].isKnown { keys.insert(pending[index].key) }
        return keys
    }

    /// Reports what can be reported between two chunks.
    mutating func chunkEnded() {
        guard let ends, !isFirst else { return }
        var keys: Set<Key>?
        while true {
            report(keeping: window)
            guard !isDone, head < pending.count else { return }
            let wanted = keys ?? unknownKeys()
            keys = wanted
            guard ends.lookAhead(pending[head].key, after: chunkIndex, wanted) else { return }
            complete()
            if !pending[head].isKnown { return }
        }
    }

    mutating func finish() { report(keeping: 0) }

    mutating func row(of function: UInt32) -> UInt32 { function &+ 1 } // 0 is nobody

    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        let arguments = nextValues.take()
        guard depth < deepest else {
            frame.tag = .max
            return
        }
        frame.tag = UInt64(lineCount)
        let key = Key(enter: frame.enter, row: frame.row)
        let known = isFirst || longCalls.isEmpty ? nil : longCalls[key]
        add(
            ReplayLine(
                kind: .call, start: Ticks(time), depth: depth, function: key.row &- 1, object: frame.object,
                arguments: isInherited ? nil : arguments, result: known?.result, end: known.map { (Ticks($0.time), Self.end($0.how)) },
                isInherited: isInherited), key)
    }

    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending) {
        let result = ending == .returned ? lastResult.take() : nil
        guard frame.tag != .max else { return }
        let age = lineCount - Int(frame.tag)
        if isFirst {
            // Half the window: both readings need not agree to the line, the file may be growing.
            if age > window / 2 { longCalls[Key(enter: frame.enter, row: frame.row)] = .init(time: time, how: ending, result: result) }
        } else {
            let index = pending.count - age
            if index >= head, index < pending.count, pending[index].line.end == nil {
                pending[index].line.end = (Ticks(time), Self.end(ending))
                pending[index].line.result = result
                _ = ends?.take(pending[index].key)
                if index == head { report(keeping: window) }
            }
        }
    }

    private static func end(_ ending: Ending) -> ReplayLine.End {
        switch ending {
        case .returned, .elsewhere: .returned
        case .unwound: .unwound
        case .lost: .lost
        case .open: .open
        case .part: .lost // not without a window
        }
    }

    static var wantsArguments: Bool { true }
    mutating func nextArguments(_ values: RecordedValues?) { nextValues = values }
    mutating func nextResult(_ values: RecordedValues?) { lastResult = values }

    static var wantsObjects: Bool { true }
    mutating func leafObject(_ bits: UInt64?) { nextLeafObject = bits }

    mutating func leaf(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool) {
        let arguments = nextValues.take()
        guard depth < deepest else { return }
        let isEntryOnly = table.isEntryOnly(row &- 1)
        add(
            ReplayLine(
                kind: isEntryOnly ? .entered : .call, start: Ticks(start), depth: depth, function: row &- 1,
                object: nextLeafObject, arguments: arguments, end: isEntryOnly ? nil : (Ticks(end), .returned)))
    }

    mutating func migrated(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int) {
        guard depth < deepest else { return }
        add(
            ReplayLine(
                kind: .migrated, start: Ticks(start), depth: depth, function: row &- 1,
                end: (Ticks(end), .returned)))
    }

    mutating func orphan(_ row: UInt32, at time: UInt64, depth: Int) {
        guard depth < deepest else { return }
        add(ReplayLine(kind: .orphan, start: Ticks(time), depth: depth, function: row &- 1))
    }

    mutating func missing(_ count: UInt64, at time: UInt64) {
        add(ReplayLine(kind: .missing(count), start: Ticks(time), depth: 0))
    }
}
