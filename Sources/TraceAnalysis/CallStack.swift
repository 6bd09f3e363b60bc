// The open frames of a thread. Events push and pop them; whoever listens hears of calls, with the frame below each.
import CTraceLayout
import TraceFormat

/// A call that has not ended.
struct Frame: BitwiseCopyable {
    /// As the clock was read: with the function, the identity of the call.
    var enter: UInt64
    /// What the listener calls the function.
    var slot: UInt32
    var flags: UInt32 = 0
    /// The listener's own.
    var tag: UInt64 = 0

    static var nobody: Frame { Frame(enter: 0, slot: 0) }
}

enum Ending: UInt8 {
    case returned
    /// Left without returning: exception, longjmp, thread exit.
    case unwound
    /// Its end lies in a stretch of the trace that is missing: it ran at least so long.
    case lost
    /// Still running when the trace ends.
    case open
}

/// Hears of calls. `depth`: frames below. `parent`: the frame below, `Frame.nobody` without.
protocol CallSink: ~Copyable {
    mutating func slot(of function: UInt32) -> UInt32
    /// `isCall` false: the call was counted where it began, in a chunk or a process before.
    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool)
    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending)
    mutating func leaf(_ slot: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool)
    /// A call that began on another thread, at `start`, has returned on this one.
    mutating func migrated(_ slot: UInt32, from start: UInt64, to end: UInt64, depth: Int)
    mutating func orphan(_ slot: UInt32, at time: UInt64, depth: Int)
    mutating func lost(_ count: UInt64, at time: UInt64, depth: Int)
    mutating func mark(_ mark: UInt32, at time: UInt64, depth: Int)
    mutating func unknown()
}

struct CallStack<Sink: CallSink & ~Copyable>: ~Copyable {
    var sink: Sink
    private(set) var frames = PlainArray<Frame>()
    /// Open frames of each slot: recursion, and a quick no for exits that match nothing.
    private var active: PlainArray<UInt32>
    /// Frames beyond `deepest`, of which only the number is kept.
    private var beyond = 0
    private(set) var completes: UInt64 = 0
    private(set) var enters: UInt64 = 0
    private(set) var exits: UInt64 = 0

    private let deepest: Int

    /// - Parameters:
    ///   - slotCount: slots known from the start; more may come
    ///   - deepest: frames to keep, of 24 bytes each; a damaged file may pile up any number
    init(_ sink: consuming Sink, slotCount: Int, deepest: Int = 1 << 20) {
        self.sink = sink
        self.deepest = deepest
        active = PlainArray(repeating: 0, count: max(slotCount, 1))
    }

    @inline(__always) private func isActive(_ slot: UInt32) -> Bool {
        Int(slot) < active.count && active[Int(slot)] != 0
    }

    @inline(__always) private var top: Frame { frames.count == 0 ? .nobody : frames[frames.count &- 1] }

    private mutating func push(_ frame: Frame) {
        if Int(frame.slot) >= active.count { active.append(repeating: 0, count: Int(frame.slot) + 1 - active.count) }
        active[Int(frame.slot)] &+= 1
        frames.append(frame)
    }

    /// Closes the innermost frame. Precondition: there is one.
    @inline(__always) private mutating func pop(at time: UInt64, _ ending: Ending) {
        let frame = frames.removeLast()
        active[Int(frame.slot)] &-= 1
        sink.closed(frame, at: time, depth: frames.count, parent: top,
                    isOutermost: active[Int(frame.slot)] == 0, ending)
    }

    /// Closes a frame inside the stack.
    private mutating func close(at index: Int, at time: UInt64, _ ending: Ending) {
        let frame = frames.remove(at: index)
        active[Int(frame.slot)] &-= 1
        sink.closed(frame, at: time, depth: index, parent: index == 0 ? .nobody : frames[index - 1],
                    isOutermost: active[Int(frame.slot)] == 0, ending)
    }

    /// Index of the frame that was entered at these ticks. Frames lie in the order of their enter times, but for a few
    /// that a signal inverted: near the top it is looked for one by one, below by bisection and around.
    private func index(entered ticks56: UInt64, near time: UInt64) -> Int? {
        let ticks = completed(ticks56, near: Ticks(time)).raw
        let linear = max(frames.count - 256, 0)
        for index in stride(from: frames.count - 1, through: linear, by: -1) where frames[index].enter == ticks {
            return index
        }
        let low = bisect(linear) { frames[$0].enter < ticks }
        for index in max(low - 16, 0) ..< min(low + 16, linear) where frames[index].enter == ticks { return index }
        return nil
    }
}

extension CallStack: EventSink where Sink: ~Copyable {
    @inline(__always) mutating func complete(_ function: UInt32, from start: UInt64, to end: UInt64) {
        completes &+= 1
        let slot = sink.slot(of: function)
        sink.leaf(slot, from: start, to: end, depth: frames.count, parent: top, isOutermost: !isActive(slot))
    }

    @inline(__always) mutating func enter(_ function: UInt32, at time: UInt64, exactly enterTicks: UInt64) {
        enters &+= 1
        var frame = Frame(enter: enterTicks, slot: sink.slot(of: function))
        sink.opened(&frame, parent: top, at: time, depth: frames.count, isCall: true)
        if frames.count < deepest { push(frame) } else { beyond += 1 }
    }

    @inline(__always) mutating func exit(_ function: UInt32, at time: UInt64) {
        exits &+= 1
        let slot = sink.slot(of: function)
        if beyond == 0, frames.count > 0, top.slot == slot {
            pop(at: time, .returned)
        } else {
            mismatched(slot, at: time)
        }
    }

    @inline(never) private mutating func mismatched(_ slot: UInt32, at time: UInt64) {
        if beyond > 0 {
            beyond -= 1
        } else if isActive(slot) {
            while top.slot != slot { pop(at: time, .unwound) }
            pop(at: time, .returned)
        } else {
            sink.orphan(slot, at: time, depth: frames.count)
        }
    }

    mutating func resumedExit(_ function: UInt32, entered ticks56: UInt64, at time: UInt64) {
        exits &+= 1
        let slot = sink.slot(of: function)
        if isActive(slot), let index = index(entered: ticks56, near: time), frames[index].slot == slot {
            close(at: index, at: time, .returned)
        } else {
            sink.migrated(slot, from: min(completed(ticks56, near: Ticks(time)).raw, time), to: time, depth: frames.count)
        }
    }

    mutating func unwound(_ count: Int, at time: UInt64) {
        let hidden = min(count, beyond)
        beyond -= hidden
        for _ in 0 ..< min(count - hidden, frames.count) { pop(at: time, .unwound) }
    }

    mutating func resumedUnwound(entered ticks56: UInt64, at time: UInt64) {
        if let index = index(entered: ticks56, near: time) { close(at: index, at: time, .unwound) }
    }

    mutating func lost(_ count: UInt64, at time: UInt64) { sink.lost(count, at: time, depth: frames.count) }
    mutating func mark(_ mark: UInt32, at time: UInt64) { sink.mark(mark, at: time, depth: frames.count) }
    mutating func unknown(_ event: Event) { sink.unknown() }
}

// Where a chunk begins.
extension CallStack where Sink: ~Copyable {
    /// Begins a chunk of a thread behind another one, or the first that is known. `stored`: its own list.
    mutating func begin(_ chunk: Chunk, _ stored: [trace_open_frame], after previous: Chunk?, latest: UInt64, areCalls: Bool) {
        if chunk.isUnsettled, let previous, previous.sequence &+ 1 == chunk.sequence { return } // its words know better
        adopt(stored, bottom: previous == nil ? 0 : chunk.openFrames - chunk.storedFrames, latest: latest, areCalls: areCalls)
    }

    /// Takes up the frames that a chunk stores. `bottom`: how many outer ones it does not store. Frames that are known
    /// already go on; those that are not there any more ended unseen, at `latest` at the earliest; others are new, and
    /// calls of this thread if `areCalls`.
    mutating func adopt(_ stored: [trace_open_frame], bottom: Int, latest: UInt64, areCalls: Bool) {
        let kept = min(bottom, frames.count)
        if isSame(stored, from: kept) { return }
        beyond = 0
        var known: [FrameKey: Frame] = [:]
        let wanted = Set(stored.map { FrameKey(enter: $0.enter_ticks, slot: sink.slot(of: $0.function)) })
        while frames.count > kept {
            let frame = frames[frames.count - 1]
            let key = FrameKey(enter: frame.enter, slot: frame.slot)
            if wanted.contains(key) {
                known[key] = frames.removeLast()
                active[Int(frame.slot)] &-= 1
            } else {
                pop(at: max(latest, frame.enter), .lost)
            }
        }
        for open in stored where frames.count < deepest {
            let slot = sink.slot(of: open.function)
            if let frame = known.removeValue(forKey: FrameKey(enter: open.enter_ticks, slot: slot)) {
                push(frame)
            } else {
                var frame = Frame(enter: open.enter_ticks, slot: slot)
                sink.opened(&frame, parent: top, at: open.enter_ticks, depth: frames.count, isCall: areCalls)
                push(frame)
            }
        }
    }

    private mutating func isSame(_ stored: [trace_open_frame], from kept: Int) -> Bool {
        guard beyond == 0, frames.count == kept + stored.count else { return false }
        for (index, open) in stored.enumerated() {
            let frame = frames[kept + index]
            if frame.enter != open.enter_ticks || frame.slot != sink.slot(of: open.function) { return false }
        }
        return true
    }

    /// Ends every frame at `time`, innermost first.
    mutating func closeAll(at time: UInt64, _ ending: Ending) {
        beyond = 0
        while frames.count > 0 { pop(at: max(time, frames[frames.count - 1].enter), ending) }
    }

    /// Puts frames back without a word. Precondition: none is open.
    mutating func restore(_ frames: [Frame]) {
        for frame in frames { push(frame) }
    }

    /// Forgets every frame without a word: the next chunk of the thread is read by somebody else, who has them stored.
    mutating func abandon() {
        while frames.count > 0 { active[Int(frames.removeLast().slot)] &-= 1 }
        beyond = 0
    }
}

extension CallStack where Sink: StreamSink & ~Copyable {
    mutating func add(_ other: borrowing CallStack<Sink>) {
        sink.add(other.sink)
        completes &+= other.completes
        enters &+= other.enters
        exits &+= other.exits
    }
}

private struct FrameKey: Hashable {
    var enter: UInt64
    var slot: UInt32
}
