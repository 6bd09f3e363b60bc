// What was called until the program was ready: by module, inside each initializer, and what ran once.
import CTraceLayout
import TraceFormat

struct StartupCalls {
    struct FunctionTime {
        var function: UInt32
        var calls: UInt64
        var selfTicks: Int64
    }
    struct OnceRun {
        var end: Ticks
        /// The function that was running when it was called.
        var parent: UInt32?
    }
    struct Span {
        var function: UInt32
        var thread: UInt32
        var begin: Ticks
        var end: Ticks?
    }

    /// Calls of each module's functions.
    private(set) var callsOfModule: [UInt32: UInt64] = [:]
    /// Calls made inside, with those of nested ones. By number.
    private(set) var callsInInitializer: [UInt32: UInt64] = [:]
    /// By index in the trace's records; one that was not over when the program was ready is missing.
    private(set) var onceRuns: [Int: OnceRun] = [:]
    private(set) var spans: [Span] = []
    /// On the main thread between main and ready, the longest first.
    private(set) var functionsOfMain: [FunctionTime] = []
    private(set) var calls: UInt64 = 0

    /// - Parameters:
    ///   - end: nothing that begins later is of interest
    ///   - main: where main was called, nil when it was not
    init(_ trace: TraceFile, until end: Ticks, main: (ticks: Ticks, thread: UInt32)?) {
        let functions = trace.metadata.functions
        var byFunction = [UInt64](repeating: 0, count: Int(functions.keys.max() ?? 0) + 2)
        var reader = ChunkReader(trace)
        for chunks in trace.chunksOfThread {
            guard let thread = chunks.first?.thread else { continue }
            var sink = StartupSink(trace, thread: thread, until: end.raw, main: main?.thread == thread ? main?.ticks.raw : nil,
                                   counts: byFunction)
            byFunction = []
            sink = Self.read(chunks, &reader, sink, until: end.raw)
            byFunction = sink.counts
            for (number, count) in sink.callsInInitializers() { callsInInitializer[number] = count }
            onceRuns.merge(sink.onceRuns) { $1 }
            spans += sink.spans
            if main?.thread == thread {
                functionsOfMain = sink.selfTicks.map { FunctionTime(function: $0.key &- 1, calls: sink.mainCalls[$0.key] ?? 0, selfTicks: $0.value) }
                    .sorted { ($0.selfTicks, $1.function) > ($1.selfTicks, $0.function) }
            }
        }
        for (slot, count) in byFunction.enumerated() where count > 0 {
            calls &+= count
            if let module = functions[UInt32(slot) &- 1]?.module { callsOfModule[module, default: 0] &+= count }
        }
        spans.sort { $0.begin < $1.begin }
    }

    private static func read(_ chunks: [Chunk], _ reader: inout ChunkReader, _ sink: consuming StartupSink, until end: UInt64) -> StartupSink {
        var stack = CallStack(sink, slotCount: 0)
        var latest: UInt64 = 0
        var previous: Chunk?
        for listed in chunks where listed.opened.ticks <= end {
            guard let chunk = reader.settled(listed) else { continue }
            stack.begin(chunk, reader.storedFrames(chunk), after: previous, latest: latest, areCalls: true)
            previous = chunk
            latest = max(latest, reader.read(chunk, into: &stack))
        }
        stack.closeAll(at: end, .open)
        return stack.sink
    }
}

/// Of one thread. Slots are function ids plus one.
private struct StartupSink: CallSink {
    private let until: UInt64
    private let main: UInt64?
    var counts: [UInt64]
    private(set) var selfTicks: [UInt32: Int64] = [:]
    private(set) var mainCalls: [UInt32: UInt64] = [:]
    private(set) var spans: [StartupCalls.Span] = []
    private(set) var onceRuns: [Int: StartupCalls.OnceRun] = [:]

    private let thread: UInt32
    private let spanSlots: Set<UInt32>
    private let initializers: [Initializer]
    /// Begins and ends of the thread's initializers, in order, and the calls that began from each to the next.
    private var boundaries: [UInt64] = []
    private var callsBehind: [UInt64] = []

    /// Once-functions that found nothing done: their place in the records, in the order of time.
    private var onces: [(place: Int, ticks: UInt64, slot: UInt32)] = []
    private var nextOnce = 0
    private let onceSlots: Set<UInt32>
    private let guardSlots: Set<UInt32>
    private let releaseSlots: Set<UInt32>
    private var openGuards: [(place: Int, parent: UInt32)] = []

    static let mostSpans = 100_000

    init(_ trace: TraceFile, thread: UInt32, until: UInt64, main: UInt64?, counts: [UInt64]) {
        let records = trace.metadata.start, functions = trace.metadata.functions
        self.thread = thread
        self.until = until
        self.main = main
        self.counts = counts
        spanSlots = Set(functions.values.lazy.filter { $0.isSpan }.map { $0.id &+ 1 })
        initializers = records.initializers.filter { $0.thread == thread && !$0.isFinalizer && $0.begin.ticks.raw <= until }
        boundaries = Set(initializers.flatMap { [$0.begin.ticks.raw] + ($0.end.map { [$0.usage.ticks.raw] } ?? []) }).sorted()
        callsBehind = [UInt64](repeating: 0, count: boundaries.count)
        onces = records.onces.enumerated().filter { $0.element.thread == thread }
            .map { ($0.offset, $0.element.ticks.raw, $0.element.function &+ 1) }.sorted { $0.1 < $1.1 }
        onceSlots = Set(onces.map { $0.slot })
        func slots(_ names: Set<String>) -> Set<UInt32> {
            Set(functions.values.lazy.filter { names.contains($0.rawName) }.map { $0.id &+ 1 })
        }
        guardSlots = onceSlots.intersection(slots(["__cxa_guard_acquire"]))
        releaseSlots = guardSlots.isEmpty ? [] : slots(["__cxa_guard_release", "__cxa_guard_abort"])
    }

    mutating func slot(of function: UInt32) -> UInt32 { function &+ 1 }

    /// A call begins. Returns the place of the record that says it ran something once, plus one; 0 none.
    private mutating func begin(_ slot: UInt32, at time: UInt64) -> UInt64 {
        guard time <= until else { return 0 }
        if Int(slot) < counts.count { counts[Int(slot)] &+= 1 }
        if let last = boundaries.last, time <= last, let index = boundary(at: time) { callsBehind[index] &+= 1 }
        guard !onceSlots.isEmpty, onceSlots.contains(slot) else { return 0 }
        // A record stands in front of its call. One whose call was filtered out is passed over.
        while nextOnce < onces.count, onces[nextOnce].ticks <= time {
            let once = onces[nextOnce]
            if once.slot == slot, nextOnce + 1 == onces.count || onces[nextOnce + 1].ticks > time {
                nextOnce += 1
                return UInt64(once.place) + 1
            }
            nextOnce += 1
        }
        return 0
    }

    private mutating func end(_ slot: UInt32, _ start: UInt64, _ end: UInt64, _ parent: UInt32, once: UInt64, isOver: Bool) {
        if let main { // clipped to what lies between main and ready
            let from = max(start, main), to = min(end, until)
            if from < to {
                selfTicks[slot, default: 0] &+= Int64(to - from)
                if parent != 0 { selfTicks[parent, default: 0] &-= Int64(to - from) }
                if start >= main { mainCalls[slot, default: 0] &+= 1 }
            }
        }
        if once > 0 {
            if guardSlots.contains(slot) {
                openGuards.append((Int(once - 1), parent))
            } else if isOver, end <= until {
                onceRuns[Int(once - 1)] = .init(end: Ticks(end), parent: parent == 0 ? nil : parent &- 1)
            }
        }
        if !releaseSlots.isEmpty, releaseSlots.contains(slot), end <= until, let innermost = openGuards.popLast() {
            onceRuns[innermost.place] = .init(end: Ticks(end), parent: innermost.parent == 0 ? nil : innermost.parent &- 1)
        }
        if !spanSlots.isEmpty, spanSlots.contains(slot), spans.count < Self.mostSpans, start <= until {
            spans.append(.init(function: slot &- 1, thread: thread, begin: Ticks(start), end: isOver ? Ticks(end) : nil))
        }
    }

    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        frame.tag = begin(frame.slot, at: time)
    }

    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending) {
        end(frame.slot, frame.enter, time, parent.slot, once: frame.tag, isOver: ending != .open)
    }

    mutating func leaf(_ slot: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool) {
        let once = begin(slot, at: start)
        self.end(slot, start, end, parent.slot, once: once, isOver: true)
    }

    mutating func migrated(_ slot: UInt32, from start: UInt64, to end: UInt64, depth: Int) {}
    mutating func orphan(_ slot: UInt32, at time: UInt64, depth: Int) {}
    mutating func lost(_ count: UInt64, at time: UInt64, depth: Int) {}
    mutating func mark(_ mark: UInt32, at time: UInt64, depth: Int) {}
    mutating func unknown() {}

    /// Index of the last boundary that is not later.
    private func boundary(at time: UInt64) -> Int? {
        var low = 0, high = boundaries.count
        while low < high {
            let middle = (low + high) / 2
            if boundaries[middle] <= time { low = middle + 1 } else { high = middle }
        }
        return low == 0 ? nil : low - 1
    }

    func callsInInitializers() -> [(UInt32, UInt64)] {
        guard !boundaries.isEmpty else { return [] }
        var sums: [UInt64] = [0]
        for count in callsBehind { sums.append(sums.last! &+ count) }
        return initializers.compactMap { initializer in
            guard let from = boundary(at: initializer.begin.ticks.raw) else { return nil }
            let to = initializer.end.flatMap { boundary(at: $0.usage.ticks.raw) } ?? boundaries.count
            return (initializer.number, to > from ? sums[to] &- sums[from] : 0)
        }
    }
}
