// Decodes words into events with full times. All commands use this decoder; it is generic over the sink, so that the report's inner loop
// is one function without calls.
import CTraceLayout
import TraceFormat

/// Receives the events of one chunk in order. Times never go back within a chunk, except `enterTicks`, which are exact.
///
/// A sink implements only the methods that it needs; `enter` and `complete` are always among them.
protocol EventSink: ~Copyable {
    mutating func enter(_ function: UInt32, at time: UInt64, exactly enterTicks: UInt64)
    mutating func exit(_ function: UInt32, at time: UInt64)
    mutating func complete(_ function: UInt32, from start: UInt64, to end: UInt64)
    /// The frame that was entered at these ticks (low 56 bits), wherever it is in the stack, has returned.
    mutating func resumedExit(_ function: UInt32, entered ticks56: UInt64, at time: UInt64)
    mutating func unwound(_ count: Int, at time: UInt64)
    mutating func resumedUnwound(entered ticks56: UInt64, at time: UInt64)
    /// The frame that was entered at these ticks has returned on another thread.
    mutating func departed(entered ticks56: UInt64, at time: UInt64)
    /// The call of the next word, an enter or a complete call, returns to this address; 0: it is not known.
    mutating func site(_ address: UInt64)
    /// 56 bits of an argument of the call of the next word, an enter or a complete call (`Metadata.object` says what they mean). nil: a
    /// value that was passed for the next call is void.
    mutating func object(_ bits: UInt64?)
    /// The next call of the function stands for so many more, which are not recorded.
    mutating func sampled(_ function: UInt32, _ calls: UInt64)
    /// Seven bytes of values that `values` announces.
    mutating func data(_ payload: UInt64)
    /// nil: what was announced is void.
    mutating func values(_ announced: AnnouncedValues?)
    /// A control word of a kind that this reader does not know.
    mutating func unknown(_ word: UInt64)
    /// Every word that is not zero, before it is decoded.
    mutating func word(_ word: UInt64, at offset: UInt64)
    /// Times of the words that follow count from here.
    mutating func base(_ ticks: UInt64)
}

extension EventSink where Self: ~Copyable {
    @inline(__always) mutating func exit(_ function: UInt32, at time: UInt64) {}
    @inline(__always) mutating func resumedExit(_ function: UInt32, entered ticks56: UInt64, at time: UInt64) {}
    @inline(__always) mutating func unwound(_ count: Int, at time: UInt64) {}
    @inline(__always) mutating func resumedUnwound(entered ticks56: UInt64, at time: UInt64) {}
    @inline(__always) mutating func departed(entered ticks56: UInt64, at time: UInt64) {}
    @inline(__always) mutating func unknown(_ word: UInt64) {}
    @inline(__always) mutating func word(_ word: UInt64, at offset: UInt64) {}
    @inline(__always) mutating func base(_ ticks: UInt64) {}
    @inline(__always) mutating func site(_ address: UInt64) {}
    @inline(__always) mutating func object(_ bits: UInt64?) {}
    @inline(__always) mutating func sampled(_ function: UInt32, _ calls: UInt64) {}
    @inline(__always) mutating func data(_ payload: UInt64) {}
    @inline(__always) mutating func values(_ announced: AnnouncedValues?) {}
}

/// The state of decoding one chunk. Arithmetic wraps: whatever a damaged file holds, it yields some number.
struct EventDecoder {
    /// Ticks from which the times of words count: the opening of the chunk, then the base words.
    private(set) var base: UInt64
    /// Time of the latest event: no later event may be earlier. A signal that arrives between the clock and the store of an event can
    /// invert neighbours, also those of two chunks.
    private(set) var latest: UInt64
    private var resume: UInt64 = .max // low 56 bits of enter ticks, .max: none
    /// Corrects the times that the sink receives; `base` stays as in the file.
    private let correction: ClockCorrection?

    /// - Parameter floor: nothing in the chunk is earlier: the chunk before has that time
    init(opened ticks: UInt64, after floor: UInt64, _ correction: ClockCorrection? = nil) {
        base = ticks
        latest = floor
        self.correction = correction
    }

    @inline(__always) private func even(_ ticks: UInt64) -> UInt64 {
        _fastPath(correction == nil) ? ticks : stretched(ticks)
    }
    @inline(never) private func stretched(_ ticks: UInt64) -> UInt64 { correction.map { $0.even(ticks) } ?? ticks }

    /// Decodes `words`, the first of which lies at `offset` of the file. May be called for one piece after another.
    @inline(__always)
    mutating func decode<Layout: EventLayout, Sink: EventSink & ~Copyable>(
        _ words: UnsafeBufferPointer<UInt64>, of layout: Layout.Type, at offset: UInt64,
        into sink: inout Sink
    ) {
        for index in 0..<words.count {
            let event = EventWord<Layout>(word: UInt64(littleEndian: words[index]))
            if event.isEmpty {
                resume = .max // killed between the two words
                sink.site(0)
                sink.object(nil)
                sink.values(nil)
                continue
            }
            sink.word(event.word, at: offset &+ UInt64(index) &* 8)
            switch event.word & ((1 &<< UInt64(EVENT_KIND_BITS)) &- 1) {
            case UInt64(EVENT_COMPLETE):
                let exact = base &+ event.start
                let start = max(even(exact), latest)
                let end = max(even(exact &+ event.duration), start)
                latest = end
                sink.complete(event.function, from: start, to: end)
            case UInt64(EVENT_ENTER):
                let exact = even(base &+ event.time)
                latest = max(exact, latest)
                sink.enter(event.function, at: latest, exactly: exact)
            case UInt64(EVENT_EXIT):
                latest = max(even(base &+ event.time), latest)
                if _fastPath(resume == .max) {
                    sink.exit(event.function, at: latest)
                } else {
                    sink.resumedExit(event.function, entered: resume, at: latest)
                    resume = .max
                }
            default:
                control(event, into: &sink)
            }
        }
    }

    @inline(never)
    private mutating func control<Layout: EventLayout, Sink: EventSink & ~Copyable>(_ event: EventWord<Layout>, into sink: inout Sink) {
        switch event.controlKind {
        case .base:
            base = completed(event.payload, near: Ticks(base)).raw
            sink.base(even(base))
        case .resume:
            // Sinks complete it near the time of the next word.
            resume =
                correction == nil ? event.payload : Event.control(.resume, even(completed(event.payload, near: Ticks(base)).raw)).payload
        case .unwound:
            latest = max(even(base &+ event.controlTime), latest)
            if resume != .max, event.controlNumber == 1 {
                sink.resumedUnwound(entered: resume, at: latest)
            } else if resume != .max, event.controlNumber == 0 {
                sink.departed(entered: resume, at: latest)
            } else {
                sink.unwound(Int(event.controlNumber), at: latest)
            }
            resume = .max
        case .site:
            sink.site(event.payload)
        case .argument:
            sink.object(event.payload)
        case .sampled:
            sink.sampled(event.sampledFunction, event.sampledCalls)
        case .data:
            sink.data(event.payload)
        case .arguments:
            sink.values(
                AnnouncedValues(program: event.argumentsProgram, words: Int(event.argumentsWords), isResult: event.argumentsAreResult))
        case .values, .result:
            sink.values(
                AnnouncedValues(
                    program: event.valuesProgram, words: Int(event.valuesWords), tail: event.valuesTail,
                    isResult: event.controlKind == .result))
        case nil:
            sink.unknown(event.word)
        }
    }
}
