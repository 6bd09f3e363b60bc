// The calls of candidates for suppression in one chunk of one thread, by their true lengths: those of one word, those that called
// something, took long, or were left. Of a call that began in an earlier chunk nothing is known here; there are few, and they have in
// them what the agent took to write that chunk.
import CSupport
import CTraceLayout

struct HotCalls {
    private struct Open: BitwiseCopyable {
        var function: UInt32 = 0
        var depth: UInt32 = .max
        var ticks: UInt64 = 0
    }
    private struct Long: BitwiseCopyable {
        var function: UInt32 = 0
        var start: UInt64 = 0
        var end: UInt64 = 0
    }
    private static let deepest = 64, mostPreemptions = 8

    /// The innermost open calls, by depth modulo `deepest`.
    private var open = InlineArray<64, Open>(repeating: Open())
    private var depth: UInt32 = 0
    /// What a thread was preempted in is not the length of the call. As many as it was preempted, the longest ones, are left out.
    private var longest = InlineArray<8, Long>(repeating: Long())
    private var longestCount = 0
    private let preemptions: Int
    private let hasWaited: Bool

    /// - Parameters:
    ///   - preemptions: how often the thread was preempted while it filled the chunk
    ///   - hasWaited: whether it has given up its CPU otherwise
    init(preemptions: UInt32, hasWaited: Bool) {
        self.preemptions = min(Int(preemptions), Self.mostPreemptions)
        self.hasWaited = hasWaited
    }

    static func words(of chunk: UnsafePointer<trace_chunk_header>) -> UnsafePointer<UInt64> {
        (UnsafeRawPointer(chunk) + Int(chunk.pointee.body_offset)).assumingMemoryBound(to: UInt64.self)
    }

    mutating func add(_ chunk: UnsafePointer<trace_chunk_header>, until limit: UnsafePointer<UInt64>) {
        var base = chunk.pointee.opened.ticks, resumed: UInt64?, word = Self.words(of: chunk)
        while word < limit {
            let event = Event(word: word.pointee)
            word += 1
            switch event.kind {
            case .complete:
                if HotFunctions.isMeasured(event.function) { HotFunctions.add(event.function, ticks: event.duration, isSeveral: false) }
            case .enter:
                open[Int(depth) % Self.deepest] = Open(function: event.function, depth: depth, ticks: base &+ event.time)
                depth &+= 1
            case .exit:
                if let ticks = resumed { // on another stack: it need not be the innermost
                    end(event.function, from: ticks, to: base &+ event.time)
                    forget(ticks)
                } else {
                    end(innermost: event.function, at: base &+ event.time)
                }
                resumed = nil
            case .control:
                switch event.controlKind {
                case .base: base = completed(event.payload, near: Ticks(base)).raw
                case .resume: resumed = completed(event.payload, near: Ticks(base)).raw
                case .unwound:
                    if let ticks = resumed {
                        if let function = forget(ticks) { end(function, from: ticks, to: base &+ event.controlTime) }
                    } else {
                        for _ in 0..<event.controlNumber { end(innermost: nil, at: base &+ event.controlTime) }
                    }
                    resumed = nil
                default: break
                }
            }
        }
        finish()
    }

    /// nil: whatever its function is, it was left.
    private mutating func end(innermost function: UInt32?, at ticks: UInt64) {
        while depth > 0 {
            depth &-= 1
            let call = open[Int(depth) % Self.deepest]
            if call.depth != depth { return } // one of very many, or forgotten …
            open[Int(depth) % Self.deepest].depth = .max
            if call.function == 0 { continue } // … or ended out of order
            if let function, function != call.function {
                depth = 0
                return
            }
            return end(call.function, from: call.ticks, to: ticks)
        }
    }
    /// The open call that began then is not the innermost any more. Returns its function.
    @discardableResult
    private mutating func forget(_ ticks: UInt64) -> UInt32? {
        for back in 1...UInt32(Self.deepest) {
            if back > depth { return nil }
            let index = Int(depth &- back) % Self.deepest
            if open[index].depth != depth &- back || open[index].ticks != ticks || open[index].function == 0 { continue }
            let function = open[index].function
            open[index].function = 0
            return function
        }
        return nil
    }

    private mutating func end(_ function: UInt32, from start: UInt64, to end: UInt64) {
        if end < start || !HotFunctions.isMeasured(function) { return }
        if end &- start < Event.durationReach {
            HotFunctions.add(function, ticks: end &- start, isSeveral: true)
        } else {
            addLong(Long(function: function, start: start, end: end))
        }
    }

    private mutating func addLong(_ call: Long) {
        // One preemption makes all calls long that are open then.
        for n in 0..<longestCount where longest[n].start >= call.start && longest[n].end <= call.end {
            longest[n] = call
            return
        }
        if longestCount < preemptions {
            longest[longestCount] = call
            longestCount &+= 1
            return
        }
        if longestCount == 0 { return count(call) }
        var shortest = 0
        for n in 1..<longestCount where length(longest[n]) < length(longest[shortest]) { shortest = n }
        if length(longest[shortest]) >= length(call) { return count(call) }
        count(longest[shortest])
        longest[shortest] = call
    }
    private func length(_ call: Long) -> UInt64 { call.end &- call.start }

    private var waited = InlineArray<8, UInt32>(repeating: 0)
    private var waitedCount = 0
    private mutating func count(_ call: Long) {
        HotFunctions.add(call.function, ticks: length(call), isSeveral: true)
        if hasWaited && waitedCount < 8 {
            waited[waitedCount] = call.function
            waitedCount &+= 1
        }
    }
    private func finish() { for n in 0..<waitedCount { HotFunctions.keep(waited[n]) } }
}

/// How often the calling thread was taken off its CPU: preempted, and waiting.
enum ThreadSwitches {
    static func count() -> (preemptions: UInt32, waits: UInt32) {
        var usage = InlineArray<18, UInt64>(repeating: 0) // struct rusage: ru_nvcsw and ru_nivcsw are its words 16 and 17
        var span = usage.mutableSpan
        return span.withUnsafeMutableBufferPointer {
            _ = SystemCall.call(SystemCall.getrusage, 1, bits($0.baseAddress)) // RUSAGE_THREAD
            return (UInt32(truncatingIfNeeded: $0[17]), UInt32(truncatingIfNeeded: $0[16]))
        }
    }
}
