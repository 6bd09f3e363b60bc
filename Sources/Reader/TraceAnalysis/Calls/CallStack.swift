// The open frames of a thread. Events push and pop them; the sink receives calls, each with the frame below it.
import CTraceLayout
import TraceFormat

/// A call that has not ended.
package struct Frame: BitwiseCopyable {
    /// As the clock was read: with the function, the identity of the call.
    var enter: UInt64
    /// From when on it has a share of the time that this reading gives to calls: `began`, or the beginning of the part of the thread that
    /// is read alone.
    var since: UInt64
    /// The sink's row for the function.
    var row: UInt32
    /// Ticks from `enter` to the word before the call's own, or to its caller's beginning: a signal came between clock and word, and what
    /// was recorded in between is not part of the call. At most what 32 bits hold.
    var late: UInt32 = 0
    /// For use by the sink alone.
    var tag: UInt64 = 0
    /// The address that it returns to, for sinks that want it; 0 unknown.
    var site: UInt64 = 0
    /// The argument that was recorded with the call, 56 bits (`Metadata.object`), for sinks that want it; nil without one, and for a
    /// call that began in a missing chunk.
    var object: UInt64? {
        get { objectWord == 0 ? nil : objectWord >> UInt64(CONTROL_PAYLOAD_SHIFT) }
        set { objectWord = newValue.map { $0 << UInt64(CONTROL_PAYLOAD_SHIFT) | 1 } ?? 0 }
    }
    private var objectWord: UInt64 = 0

    init(enter: UInt64, row: UInt32, site: UInt64 = 0, object: UInt64? = nil) {
        self.enter = enter
        since = enter
        self.row = row
        self.site = site
        self.object = object
    }
    static var nobody: Frame { Frame(enter: 0, row: 0) }
    /// From when on its length counts. Frames lie in the order of these times.
    @inline(__always) var began: UInt64 { enter &+ UInt64(late) }
    var key: FrameKey { FrameKey(enter: enter, row: row) }
}

/// The identity of a call on its thread.
struct FrameKey: Hashable {
    var enter: UInt64
    var row: UInt32
}

package enum Ending: UInt8, Sendable {
    case returned
    /// Left without returning: exception, longjmp, thread exit.
    case unwound
    /// Its end lies in a stretch of the trace that is missing: it ran at least so long.
    case lost
    /// Still running when the trace ends.
    case open
    /// Only a part of the call lies in the window of time: it began before or ends after.
    case part
    /// Returned on another thread, where `migrated` reports it and its length.
    case elsewhere
}

/// The part of a call that it has in common with the call above it, which is still open when this one ends.
///
/// At each moment one call has the time as its own: the innermost that is open, in the order of their beginnings. So what two calls have
/// in common is the upper one's, and no time counts twice, however coroutines take turns.
package struct Overlap {
    /// From the beginning of the call above, or of the window, to the end of this one.
    var length: UInt64
    var end: UInt64
    /// When this call began, or the window.
    var began: UInt64
    /// Ticks from `began` until another call of the same function began. nil: this call was made inside one, or none is open any more.
    var outermost: UInt64?
    /// The same, counted from when on each has a share of the time (`Frame.since`).
    var outermostHere: UInt64?
}

/// Receives calls, and their parts in a window of time. `depth`: frames below. `parent`: the frame below, `Frame.nobody` without.
///
/// A sink implements only the methods that it needs; `row(of:)` is always one of them.
package protocol CallSink: ~Copyable {
    mutating func row(of function: UInt32) -> UInt32
    /// `isCall` false: the call was counted where it began, in a chunk or a process before, or began before the window.
    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool)
    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending)
    mutating func leaf(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool)
    /// The call that is closed next lies below others that stay open (coroutines).
    mutating func interleaved(_ frame: Frame, _ overlap: Overlap, depth: Int, parent: Frame)
    /// A call that began on another thread, at `start`, has returned on this one.
    mutating func migrated(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int)
    mutating func orphan(_ row: UInt32, at time: UInt64, depth: Int)
    /// Between these moments the call was the innermost that is known, while chunks are missing: it is not known what it did.
    mutating func unseen(_ frame: Frame, depth: Int, from begin: UInt64, to end: UInt64)
    mutating func unknown()
    /// True if the sink needs the call sites of frames and leaves.
    static var wantsSites: Bool { get }
    /// Takes the call site of the leaf that is reported next.
    mutating func leafSite(_ address: UInt64)
    /// True if the sink needs the objects of frames and leaves.
    static var wantsObjects: Bool { get }
    /// Takes the object of the leaf that is reported next, as in `Frame.object`.
    mutating func leafObject(_ bits: UInt64?)
    /// True if the sink needs the recorded arguments of frames and leaves, and the results of frames: a leaf with a result is a frame.
    static var wantsArguments: Bool { get }
    /// Takes the arguments of the frame or leaf that is reported next; nil: none are recorded.
    mutating func nextArguments(_ values: RecordedValues?)
    /// Takes the result of the frame that is closed next; nil: none is recorded, or what was passed before is void.
    mutating func nextResult(_ values: RecordedValues?)
    /// The next call of this row is recorded as one of many: so many more were counted alone.
    mutating func sampled(_ row: UInt32, _ calls: UInt64)
    /// Calls of the thread begun last that were counted alone, and for which no recorded one stands.
    mutating func counted(_ row: UInt32, _ calls: UInt64)
}

extension CallSink where Self: ~Copyable {
    @inline(__always) package mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {}
    @inline(__always) package mutating func closed(
        _ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending
    ) {}
    @inline(__always) package mutating func leaf(
        _ row: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool
    ) {}
    package mutating func interleaved(_ frame: Frame, _ overlap: Overlap, depth: Int, parent: Frame) {}
    package mutating func migrated(_ row: UInt32, from start: UInt64, to end: UInt64, depth: Int) {}
    package mutating func orphan(_ row: UInt32, at time: UInt64, depth: Int) {}
    package mutating func unseen(_ frame: Frame, depth: Int, from begin: UInt64, to end: UInt64) {}
    package mutating func unknown() {}
    package static var wantsSites: Bool { false }
    @inline(__always) package mutating func leafSite(_ address: UInt64) {}
    package static var wantsObjects: Bool { false }
    @inline(__always) package mutating func leafObject(_ bits: UInt64?) {}
    package static var wantsArguments: Bool { false }
    @inline(__always) package mutating func nextArguments(_ values: RecordedValues?) {}
    @inline(__always) package mutating func nextResult(_ values: RecordedValues?) {}
    package mutating func sampled(_ row: UInt32, _ calls: UInt64) {}
    package mutating func counted(_ row: UInt32, _ calls: UInt64) {}
}

/// A sink of a reading that goes on later: of a trace that grows.
package protocol ContinuedSink: CallSink, ~Copyable {
    /// The reading ends at `time`, and the call goes on in the next one, where its time is counted from then on.
    mutating func continued(_ frame: Frame, until time: UInt64, depth: Int, parent: Frame, isOutermost: Bool)
}

/// The open calls of a thread between two readings of it.
struct SuspendedCalls {
    /// Outermost first.
    private(set) var frames: [Frame] = []
    fileprivate var beyond = 0, hidden = 0, hiddenIndex = -1
    /// Next bound of the window; nil: nothing has been read.
    fileprivate var bound: Int?

    init() {}
    fileprivate init(_ frames: [Frame], beyond: Int, hidden: Int, hiddenIndex: Int, bound: Int) {
        self.frames = frames
        (self.beyond, self.hidden, self.hiddenIndex) = (beyond, hidden, hiddenIndex)
        self.bound = bound
    }
}

/// Open calls of a thread that a reader keeps. A program with more has more than 8 GB of the agent's records.
package let deepestStack = 1 << 26

package struct CallStack<Sink: CallSink & ~Copyable>: ~Copyable {
    package var sink: Sink
    package private(set) var frames = PlainArray<Frame>()
    /// Number of open frames of each row: shows recursion, and exits that match no frame.
    private var active: OpenCounts
    /// Open calls above all of `frames`, of which only the number is known: those beyond `deepest`, or hidden ones that are the innermost
    /// now. While there are any, no exit closes a frame.
    private var beyond = 0
    /// Open calls that no chunk read so far stores, since a ring has overwritten where they began, and the index in `frames` of the frame
    /// above them; -1 without.
    private var hidden = 0
    private var hiddenIndex = -1
    /// Calls beyond `deepest`: they are counted, and how long they took is not known.
    package private(set) var tooDeep: UInt64 = 0
    /// Site and object of the next call, from the words before it.
    private var nextSite: UInt64 = 0
    private var nextObject: UInt64?
    /// Arguments or the result, from the words before; only for sinks that want them.
    private var nextValues = ArgumentWords()
    private(set) var completes: UInt64 = 0
    private(set) var enters: UInt64 = 0
    private(set) var exits: UInt64 = 0

    private let deepest: Int

    // The window: outside of it frames are pushed and popped, and the sink is not called.
    private var bounds: [UInt64]
    /// Index in `bounds` of the next one. Odd while a moment of the window is being read, for which the sink is called.
    private(set) var nextBound = 0
    /// Its ticks, .max after the last.
    private var boundTicks: UInt64 = 0
    private(set) var isInside = false
    /// What happens before is inside: `boundTicks` in a moment of the window, 0 outside. One comparison for most words.
    private var insideUntil: UInt64 = 0
    /// Ticks at which the current moment began.
    private var since: UInt64 = 0
    /// Ticks at which the part of the thread began that is read alone.
    private var partBegin: UInt64 = 0

    /// - Parameters:
    ///   - rowCount: rows known from the start; more may come
    ///   - deepest: frames to keep, of 48 bytes each; a damaged file may pile up any number
    package init(_ sink: consuming Sink, rowCount: Int, deepest: Int = deepestStack, window: TimeWindow = .whole) {
        self.sink = sink
        self.deepest = deepest
        active = OpenCounts(rowCount: rowCount)
        bounds = window.bounds
        seek(0)
    }

    @inline(__always) private func isActive(_ row: UInt32) -> Bool {
        active[row] != 0
    }

    @inline(__always) private var top: Frame { frames.count == 0 ? .nobody : frames[frames.count &- 1] }

    private mutating func push(_ frame: Frame) {
        active.add(frame.row)
        frames.append(frame)
    }

    /// Closes the innermost frame. Precondition: there is one.
    @inline(__always) private mutating func pop(at time: UInt64, _ ending: Ending) {
        let frame = frames.removeLast()
        active.remove(frame.row)
        if _slowPath(frames.count == hiddenIndex) { reachHidden() }
        closed(frame, at: time, depth: frames.count, parent: top, ending)
    }

    /// The innermost open calls are those that are hidden.
    @inline(never) private mutating func reachHidden() {
        beyond = hidden
        forgetHidden()
    }
    private mutating func forgetHidden() { (hidden, hiddenIndex) = (0, -1) }
    private mutating func hide(_ count: Int, below index: Int) { (hidden, hiddenIndex) = count > 0 ? (count, index) : (0, -1) }

    /// The frame has been taken from the stack.
    @inline(__always) private mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, _ ending: Ending) {
        guard isInside else { return }
        var part = frame, ending = ending
        if _slowPath(frame.began < since) {
            (part.enter, part.late) = (since, 0)
            part.since = max(part.since, since)
            ending = .part
        }
        sink.closed(part, at: time, depth: depth, parent: parent, isOutermost: active[frame.row] == 0, ending)
    }

    /// The same where calls seldom end: the sink's `closed` is inlined into `exit`, and once more here.
    @inline(never) private mutating func popSeldom(at time: UInt64, _ ending: Ending) { pop(at: time, ending) }

    /// Closes a frame inside the stack.
    /// - Parameter isCounted: whether its time until another call of its function began counts here
    private mutating func close(at index: Int, at time: UInt64, _ ending: Ending, isCounted: Bool = true) {
        let frame = frames.remove(at: index), parent = index == 0 ? .nobody : frames[index - 1]
        active.remove(frame.row)
        if index < hiddenIndex { hiddenIndex -= 1 }
        if frames.count == hiddenIndex { reachHidden() }
        if isInside, index < frames.count {
            var overlap = overlap(frame, below: index, until: time)
            if !isCounted { (overlap.outermost, overlap.outermostHere) = (nil, nil) }
            sink.interleaved(frame, overlap, depth: index, parent: parent)
        }
        closed(frame, at: time, depth: index, parent: parent, ending)
    }

    /// A frame that was taken out of the stack, where the frame at `index` lay above it, has been open until `time`.
    private func overlap(_ frame: Frame, below index: Int, until time: UInt64) -> Overlap {
        let start = max(frame.since, since), end = max(time, start)
        func begin(of above: Int) -> UInt64 { min(max(frames[above].since, start), end) }
        let began = max(frame.began, since)
        var overlap = Overlap(length: end &- begin(of: index), end: end, began: began, outermost: nil)
        guard isActive(frame.row), !(0..<index).reversed().contains(where: { frames[$0].row == frame.row }) else { return overlap }
        let next = (index..<frames.count).first { frames[$0].row == frame.row }
        overlap.outermost = next.map { min(max(frames[$0].began, began), end) &- began }
        overlap.outermostHere = next.map { begin(of: $0) &- start }
        return overlap
    }

    /// Closes calls that have returned on other threads; `moment` says when.
    mutating func closeDeparted(_ moment: (Frame) -> UInt64?) {
        for index in (0..<frames.count).reversed() { if let time = moment(frames[index]) { close(at: index, at: time, .elsewhere) } }
    }

    /// Index of the frame that was entered at these ticks; of several, which a coarse clock gives one moment, the innermost one of this
    /// function. Frames lie in the order of their enter times, but for a few that a signal inverted: near the top it is looked for one by
    /// one, below by bisection and around.
    private func index(entered ticks56: UInt64, near time: UInt64, row: UInt32? = nil) -> Int? {
        let ticks = completed(ticks56, near: Ticks(time)).raw
        func isIt(_ index: Int) -> Bool { frames[index].enter == ticks && frames[index].row == row ?? frames[index].row }
        let linear = max(frames.count - 256, 0)
        for index in stride(from: frames.count - 1, through: linear, by: -1) where isIt(index) { return index }
        let low = bisect(linear) { frames[$0].enter < ticks }
        for index in (max(low - 16, 0)..<min(low + 16, linear)).reversed() where isIt(index) { return index }
        return nil
    }
}

extension CallStack: EventSink where Sink: ~Copyable {
    @inline(__always) mutating func site(_ address: UInt64) { if Sink.wantsSites { nextSite = address } }
    @inline(__always) private mutating func takeSite() -> UInt64 {
        guard Sink.wantsSites else { return 0 }
        defer { nextSite = 0 }
        return nextSite
    }

    @inline(__always) mutating func object(_ bits: UInt64?) { if Sink.wantsObjects { nextObject = bits } }
    @inline(__always) private mutating func takeObject() -> UInt64? {
        guard Sink.wantsObjects else { return nil }
        defer { nextObject = nil }
        return nextObject
    }

    @inline(__always) mutating func data(_ payload: UInt64) { if Sink.wantsArguments { nextValues.add(payload) } }
    @inline(__always) mutating func values(_ announced: AnnouncedValues?) {
        guard Sink.wantsArguments else { return }
        if let announced { nextValues.announce(announced) } else { nextValues.clear() }
    }
    @inline(__always) private mutating func passArguments() { if Sink.wantsArguments { sink.nextArguments(nextValues.take().call) } }
    @inline(__always) private mutating func passResult() { if Sink.wantsArguments { sink.nextResult(nextValues.take().result) } }

    @inline(__always) mutating func complete(_ function: UInt32, from start: UInt64, to end: UInt64) {
        let row = sink.row(of: function), site = takeSite(), object = takeObject()
        if Sink.wantsArguments {
            let values = nextValues.take()
            sink.nextArguments(values.call)
            if let result = values.result {
                return returned(Frame(enter: start, row: row, site: site, object: object), at: end, result)
            }
        }
        guard _fastPath(end < insideUntil) else {
            return crossing(Frame(enter: start, row: row, site: site, object: object), to: end)
        }
        completes &+= 1
        sink.leafSite(site)
        sink.leafObject(object)
        sink.leaf(row, from: start, to: end, depth: frames.count, parent: top, isOutermost: !isActive(row))
    }

    /// A leaf whose result is recorded: a frame that is opened and closed.
    @inline(never) private mutating func returned(_ frame: Frame, at end: UInt64, _ result: RecordedValues) {
        var frame = frame
        let start = frame.enter
        if _slowPath(start >= boundTicks) { advance(to: start) }
        if isInside {
            completes &+= 1
            sink.opened(&frame, parent: top, at: start, depth: frames.count, isCall: true)
        }
        push(frame)
        if _slowPath(end >= boundTicks) { advance(before: end) }
        sink.nextResult(result)
        pop(at: end, .returned)
    }

    /// A leaf that does not lie within a moment, or not as a whole.
    @inline(never) private mutating func crossing(_ frame: Frame, to end: UInt64) {
        let start = frame.enter, row = frame.row
        advance(to: start)
        if isInside { completes &+= 1 }
        if end <= boundTicks {
            guard isInside else { return }
            sink.leafSite(frame.site)
            sink.leafObject(frame.object)
            return sink.leaf(row, from: start, to: end, depth: frames.count, parent: top, isOutermost: !isActive(row))
        }
        var frame = frame
        if isInside { sink.opened(&frame, parent: top, at: start, depth: frames.count, isCall: true) }
        push(frame)
        advance(before: end)
        pop(at: end, .returned)
    }

    @inline(__always) package mutating func enter(_ function: UInt32, at time: UInt64, exactly enterTicks: UInt64) {
        if _slowPath(time >= insideUntil) { advance(to: time) }
        var frame = Frame(enter: enterTicks, row: sink.row(of: function), site: takeSite(), object: takeObject())
        passArguments()
        frame.since = time
        if _slowPath(enterTicks < time) { frame.late = UInt32(clamping: time &- enterTicks) }
        if _fastPath(isInside) {
            enters &+= 1
            sink.opened(&frame, parent: top, at: time, depth: frames.count, isCall: true)
        }
        if _fastPath(beyond == 0 && frames.count < deepest) { push(frame) } else { pushAbove(frame) }
    }

    @inline(never) private mutating func pushAbove(_ frame: Frame) {
        if frames.count < deepest { // above hidden calls
            hide(beyond, below: frames.count)
            beyond = 0
            push(frame)
        } else {
            beyond += 1
            if isInside { tooDeep &+= 1 }
        }
    }

    @inline(__always) package mutating func exit(_ function: UInt32, at time: UInt64) {
        let row = sink.row(of: function)
        passResult()
        if _fastPath(time < insideUntil && beyond == 0), frames.count > 0, top.row == row {
            exits &+= 1
            pop(at: time, .returned)
        } else {
            exitSeldom(row, at: time)
        }
    }

    @inline(never) private mutating func exitSeldom(_ row: UInt32, at time: UInt64) {
        advance(before: time)
        if isInside { exits &+= 1 }
        if beyond == 0, frames.count > 0, top.row == row {
            popSeldom(at: time, .returned)
        } else {
            mismatched(row, at: time)
        }
    }

    @inline(never) private mutating func mismatched(_ row: UInt32, at time: UInt64) {
        if beyond > 0 {
            beyond -= 1
            if isInside, frames.count < deepest { sink.orphan(row, at: time, depth: frames.count) }
        } else if isActive(row) {
            while beyond == 0, top.row != row { popSeldom(at: time, .unwound) }
            if beyond > 0 { return mismatched(row, at: time) }
            popSeldom(at: time, .returned)
        } else if isInside {
            sink.orphan(row, at: time, depth: frames.count)
        }
    }

    mutating func resumedExit(_ function: UInt32, entered ticks56: UInt64, at time: UInt64) {
        advance(before: time)
        if isInside { exits &+= 1 }
        let row = sink.row(of: function)
        passResult()
        if isActive(row), let index = index(entered: ticks56, near: time, row: row) {
            close(at: index, at: time, .returned)
        } else {
            guard isInside else { return }
            sink.migrated(row, from: min(max(completed(ticks56, near: Ticks(time)).raw, since), time), to: time, depth: frames.count)
        }
    }

    package mutating func unwound(_ count: Int, at time: UInt64) {
        if Sink.wantsArguments { sink.nextResult(nil) }
        advance(before: time)
        var left = count
        while left > 0, beyond > 0 || frames.count > 0 {
            if beyond > 0 {
                let passed = min(left, beyond)
                beyond -= passed
                left -= passed
            } else {
                popSeldom(at: time, .unwound)
                left -= 1
            }
        }
    }

    mutating func resumedUnwound(entered ticks56: UInt64, at time: UInt64) {
        advance(before: time)
        if let index = index(entered: ticks56, near: time) { close(at: index, at: time, .unwound) }
    }

    mutating func departed(entered ticks56: UInt64, at time: UInt64) {
        advance(before: time)
        if let index = index(entered: ticks56, near: time) { close(at: index, at: time, .elsewhere) }
    }

    mutating func sampled(_ function: UInt32, _ calls: UInt64) { sink.sampled(sink.row(of: function), calls) }

    mutating func unknown(_ word: UInt64) { sink.unknown() }
}

// The beginning of a chunk.
extension CallStack where Sink: ~Copyable {
    /// Begins a chunk of a thread after another one, or the first that is known. `stored`: its own list; `sites` of its frames, or none.
    mutating func begin(
        _ chunk: Chunk, _ stored: [trace_open_frame], sites: [UInt64] = [], after previous: Chunk?, latest: UInt64, areCalls: Bool
    ) {
        nextSite = 0
        nextObject = nil
        if Sink.wantsArguments {
            nextValues.clear()
            sink.nextArguments(nil) // a call outside the window had them
        }
        if chunk.isUnsettled, let previous, previous.sequence &+ 1 == chunk.sequence { return } // the previous chunk's events supersede it
        let isNext = previous.map { $0.sequence &+ 1 == chunk.sequence } ?? false
        let new = adopt(
            stored, sites: sites, bottom: chunk.openFrames - chunk.storedFrames, isNext: isNext, latest: latest, areCalls: areCalls)
        guard areCalls, isInside, chunk.sequence > 0 else { return }
        if isNext {
            for index in new { noteUnseen(index, from: 0, to: chunk.opened.ticks) }
        } else {
            let new = Set(new)
            for index in 0..<frames.count { noteUnseen(index, from: new.contains(index) ? 0 : latest, to: chunk.opened.ticks) }
        }
    }

    /// Between these moments nothing is known of the frame, or of all: what was called from it then, and so the time of its own.
    private mutating func noteUnseen(_ index: Int, from begin: UInt64, to end: UInt64) {
        let from = max(frames[index].began, begin, since), until = index + 1 < frames.count ? min(frames[index + 1].began, end) : end
        if until > from { sink.unseen(frames[index], depth: index, from: from, to: until) }
    }

    /// Takes over the frames that a chunk stores. `bottom`: number of outer frames that it does not store. Frames that are known already
    /// stay open; known frames that it does not have ended unseen, at `latest` at the earliest; other frames are new, and calls of this
    /// thread if `areCalls`. Outer frames that nobody knows are hidden. `isNext`: no chunk is missing before this one. Returns the indices
    /// of new frames.
    @discardableResult mutating func adopt(
        _ stored: [trace_open_frame], sites: [UInt64] = [], bottom: Int, isNext: Bool = true, latest: UInt64, areCalls: Bool
    ) -> [Int] {
        if beyond == 0, hidden == 0, bottom <= frames.count, isSame(stored, from: bottom) { return [] }
        let outer = outerFrames(bottom, below: stored, isNext: isNext), kept = outer.kept
        defer { // in its place, whatever is closed and opened in between
            hide(outer.hidden, below: outer.index)
            beyond = max(bottom + stored.count - outer.hidden - frames.count, 0)
            if frames.count == hiddenIndex { reachHidden() }
        }
        let fitting = min(stored.count, deepest - kept)
        if isSame(stored.prefix(fitting), from: kept) { return [] }
        var new: [Int] = []
        var known: [FrameKey: Frame] = [:]
        let wanted = Set(stored.map { FrameKey(enter: $0.enter_ticks, row: sink.row(of: $0.function)) })
        forgetHidden()
        while frames.count > kept {
            let frame = frames[frames.count - 1]
            if wanted.contains(frame.key) {
                known[frame.key] = frames.removeLast()
                active.remove(frame.row)
            } else {
                popSeldom(at: max(latest, frame.began), .lost)
            }
        }
        for (index, open) in stored.prefix(fitting).enumerated() {
            let row = sink.row(of: open.function)
            if let frame = known.removeValue(forKey: FrameKey(enter: open.enter_ticks, row: row)) {
                push(frame)
            } else {
                var frame = Frame(enter: open.enter_ticks, row: row, site: index < sites.count ? sites[index] : 0)
                if top.began > frame.enter { frame.late = UInt32(clamping: top.began &- frame.enter) }
                frame.since = max(frame.began, partBegin)
                advance(to: frame.began)
                if isInside {
                    let at = max(frame.began, since)
                    sink.opened(&frame, parent: top, at: at, depth: frames.count, isCall: areCalls && frame.began >= since)
                }
                new.append(frames.count)
                push(frame)
            }
        }
        return new
    }

    /// Returns how many of the `bottom` outer frames, which a chunk does not store, are the outermost of `frames`, how many are hidden, and
    /// the index of the frame above those. Where chunks are missing before it, nobody knows which have ended: those that are older than all stored
    /// frames have not, as far as there are as many.
    private mutating func outerFrames(_ bottom: Int, below stored: [trace_open_frame], isNext: Bool) -> (kept: Int, hidden: Int, index: Int)
    {
        if beyond > 0, frames.count < deepest { // hidden calls are the innermost
            hide(beyond, below: frames.count)
            beyond = 0
        }
        let index = max(hiddenIndex, 0)
        if isNext, frames.count + hidden + beyond == bottom + stored.count {
            if bottom >= index + hidden { return (min(bottom - hidden, frames.count), hidden, index) }
            let kept = min(bottom, index)
            return (kept, bottom - kept, kept)
        }
        var older = frames.count
        if let oldest = stored.first {
            older = bisect(frames.count) { frames[$0].enter < oldest.enter_ticks }
            let row = sink.row(of: oldest.function)
            while older < frames.count, frames[older].enter == oldest.enter_ticks, frames[older].row != row { older += 1 }
        }
        if hidden > 0, older > index {
            if bottom == older + hidden { return (older, hidden, index) }
            older = index // there is one place for hidden calls: frames above it are given up
        }
        let kept = min(older, bottom)
        return (kept, bottom - kept, kept)
    }

    private mutating func isSame(_ stored: some Collection<trace_open_frame>, from kept: Int) -> Bool {
        guard frames.count == kept + stored.count else { return false }
        for (index, open) in stored.enumerated() {
            let frame = frames[kept + index]
            if frame.enter != open.enter_ticks || frame.row != sink.row(of: open.function) { return false }
        }
        return true
    }

    /// Begins a part of a thread that is read alone. Precondition: no frame is open.
    mutating func beginPart(at ticks: UInt64) { partBegin = ticks }

    /// Ends every frame at `time`, innermost first.
    mutating func closeAll(at time: UInt64, _ ending: Ending) {
        beyond = 0
        forgetHidden()
        advance(before: time)
        while frames.count > 0 { popSeldom(at: max(time, frames[frames.count - 1].began), ending) }
    }

    /// Puts frames back, without a call of the sink. Precondition: none is open.
    mutating func restore(_ frames: [Frame]) {
        for frame in frames { push(frame) }
    }

    /// Forgets all frames, without a call of the sink: another worker reads the thread's next chunk, which stores them.
    mutating func abandon() {
        while frames.count > 0 { active.remove(frames.removeLast().row) }
        beyond = 0
        forgetHidden()
    }
}

// The window.
extension CallStack where Sink: ~Copyable {
    /// Precondition: no frame is open.
    mutating func setWindow(_ window: TimeWindow) {
        bounds = window.bounds
        seek(0)
    }

    /// Begins to read after these ticks. Precondition: no frame is open.
    mutating func seek(_ ticks: UInt64) { resume(bisect(bounds.count) { bounds[$0] <= ticks }) }

    /// Continues where a reading was when `nextBound` had this value. Precondition: no frame is open, or all are as they were.
    mutating func resume(_ bound: Int) {
        nextBound = bound
        boundTicks = bound < bounds.count ? bounds[bound] : .max
        isInside = bound % 2 == 1
        insideUntil = isInside ? boundTicks : 0
        since = isInside ? bounds[bound - 1] : 0
    }

    /// Crosses the bounds up to `time`, inclusive: what begins at `time` lies in the moment that begins there.
    mutating func advance(to time: UInt64) {
        while nextBound < bounds.count, boundTicks <= time { cross() }
    }

    /// Crosses the bounds before `time`: what ends at `time` lies in the moment that ends there.
    mutating func advance(before time: UInt64) {
        while nextBound < bounds.count, boundTicks < time { cross() }
    }

    /// Begins or ends a moment, and in it each frame that is open.
    private mutating func cross() {
        let at = boundTicks
        if isInside {
            for index in stride(from: frames.count - 1, through: 0, by: -1) {
                let frame = frames[index]
                active.remove(frame.row)
                closed(frame, at: max(at, frame.began), depth: index, parent: index == 0 ? .nobody : frames[index - 1], .part)
            }
            for index in 0..<frames.count { active.add(frames[index].row) }
            return resume(nextBound + 1)
        }
        resume(nextBound + 1)
        for index in 0..<frames.count {
            var frame = frames[index]
            sink.opened(&frame, parent: index == 0 ? .nobody : frames[index - 1], at: at, depth: index, isCall: false)
            frames[index] = frame
        }
    }
}

extension CallStack where Sink: ContinuedSink & ~Copyable {
    /// Goes on with a thread's calls. Precondition: no frame is open.
    mutating func resume(_ calls: SuspendedCalls) {
        restore(calls.frames)
        (beyond, hidden, hiddenIndex) = (calls.beyond, calls.hidden, calls.hiddenIndex)
        nextSite = 0
        nextObject = nil
        if let bound = calls.bound { resume(bound) } else { seek(0) }
    }

    /// A chunk begins, after one that has been read, and stores all its open frames: others have returned on other threads, and their time
    /// is counted there (`CallSink.migrated`), as where the chunk is read alone.
    mutating func leaveAll(but stored: [trace_open_frame], at time: UInt64) {
        guard beyond == 0, hidden == 0, frames.count != stored.count || !isSame(stored, from: 0) else { return }
        let wanted = Set(stored.map { FrameKey(enter: $0.enter_ticks, row: sink.row(of: $0.function)) })
        for index in (0..<frames.count).reversed() where !wanted.contains(frames[index].key) {
            close(at: index, at: max(time, frames[index].began), .elsewhere, isCounted: false)
        }
    }

    /// Takes the thread's open calls from the stack, until the next `resume`.
    /// - Parameter time: a reading ends there; nil: it goes on, and the sink is not told
    mutating func suspend(at time: UInt64?) -> SuspendedCalls {
        // What is read next may be from before `time`, and from before a bound that lies before it: the next event crosses that again.
        let bound = nextBound
        if let time { advance(to: time) }
        var all = [Frame](repeating: .nobody, count: frames.count)
        for index in (0..<frames.count).reversed() {
            var frame = frames.removeLast()
            active.remove(frame.row)
            if let time {
                frame.since = max(frame.since, since)
                if isInside {
                    let until = max(time, frame.since)
                    sink.continued(frame, until: until, depth: index, parent: top, isOutermost: active[frame.row] == 0)
                }
                frame.since = max(frame.since, time)
            }
            all[index] = frame
        }
        defer {
            beyond = 0
            forgetHidden()
        }
        return SuspendedCalls(all, beyond: beyond, hidden: hidden, hiddenIndex: hiddenIndex, bound: bound)
    }
}

extension CallStack where Sink: StreamSink & ~Copyable {
    /// The frames go on in another part of the thread.
    mutating func carry(until time: UInt64) {
        guard isInside else { return }
        for index in 0..<frames.count {
            var frame = frames[index]
            frame.since = max(frame.since, since)
            sink.carried(frame, until: max(time, frame.since), depth: index, parent: index == 0 ? .nobody : frames[index - 1])
        }
    }

    mutating func add(_ other: borrowing CallStack<Sink>) {
        sink.add(other.sink)
        completes &+= other.completes
        enters &+= other.enters
        exits &+= other.exits
        tooDeep &+= other.tooDeep
    }
}
