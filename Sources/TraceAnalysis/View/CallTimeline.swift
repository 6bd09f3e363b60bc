// The calls of a thread in the order of time, as much of them as a page can hold: the long ones each by itself; of the
// short ones how much of each little stretch of time they fill. What is long is found while reading: whenever there are too
// many, the limit doubles and those below it become short.
import CTraceLayout
import TraceFormat

struct CallTimeline {
    struct Slice {
        var start: UInt64, length: UInt64
        var slot: UInt32
        var depth: UInt32
    }
    /// A stretch at one depth, and the share of it, 0 … 1, that short calls fill.
    struct Density {
        var start: UInt64, length: UInt64
        var depth: UInt32
        var share: Double
    }

    /// In the order of their start. Ticks since the origin.
    let slices: [Slice]
    let densities: [Density]
    let calls: UInt64
    /// Depths that have something.
    let levels: Int
    /// Calls deeper than can be shown.
    let deeper: UInt64

    static let mostLevels = 48

    /// - Parameter most: slices to keep
    init(_ trace: TraceFile, _ chunks: [Chunk], from origin: UInt64, until end: UInt64, most: Int) {
        var reader = ChunkReader(trace)
        var stack = CallStack(LaneSink(from: origin, until: end, most: most), slotCount: 0)
        var latest: UInt64 = 0, previous: Chunk?
        for listed in chunks {
            guard let chunk = reader.settled(listed) else { continue }
            stack.begin(chunk, reader.storedFrames(chunk), after: previous, latest: latest, areCalls: true)
            previous = chunk
            latest = max(latest, reader.read(chunk, into: &stack))
        }
        stack.closeAll(at: end, .open)
        slices = stack.sink.slices.sorted { ($0.start, $1.length) < ($1.start, $0.length) }
        densities = stack.sink.densities
        calls = stack.sink.calls
        levels = stack.sink.levels
        deeper = stack.sink.deeper
    }
}

/// Slots are function ids plus one.
private struct LaneSink: CallSink {
    private let from: UInt64, until: UInt64
    private let most: Int
    private(set) var slices: [CallTimeline.Slice] = []
    private(set) var calls: UInt64 = 0
    private(set) var levels = 0
    private(set) var deeper: UInt64 = 0
    /// Shorter calls are short. Ticks.
    private var limit: UInt64
    /// Ticks that short calls fill, by depth and stretch.
    private var filled: [UInt64]
    private static let stretches = 4096
    private let stretch: UInt64

    init(from: UInt64, until: UInt64, most: Int) {
        let range = until > from ? min(until - from, 1 << 62) : 0 // a damaged file may say anything
        (self.from, self.until, self.most) = (from, from + range, most)
        limit = max(range / 200_000, 1)
        stretch = max((range + UInt64(Self.stretches) - 1) / UInt64(Self.stretches), 1)
        filled = [UInt64](repeating: 0, count: Self.stretches * CallTimeline.mostLevels)
    }

    private mutating func add(_ slot: UInt32, _ start: UInt64, _ end: UInt64, _ depth: Int) {
        let start = max(start, from), end = min(end, until)
        guard end >= start, start <= until else { return }
        guard depth < CallTimeline.mostLevels else {
            deeper &+= 1
            return
        }
        levels = max(levels, depth + 1)
        let slice = CallTimeline.Slice(start: start - from, length: end - start, slot: slot, depth: UInt32(depth))
        guard slice.length >= limit else { return fill(slice) }
        slices.append(slice)
        while slices.count > most {
            limit *= 2
            var kept: [CallTimeline.Slice] = []
            kept.reserveCapacity(most)
            for slice in slices { if slice.length >= limit { kept.append(slice) } else { fill(slice) } }
            slices = kept
        }
    }

    private mutating func fill(_ slice: CallTimeline.Slice) {
        // Over the stretches that it touches: at most a few, since it is short.
        var at = slice.start, left = slice.length
        while true {
            let place = min(at / stretch, UInt64(Self.stretches - 1))
            let part = min(left, (place + 1) * stretch - at)
            filled[Int(slice.depth) * Self.stretches + Int(place)] &+= part
            left -= part
            at += part
            if left == 0 || part == 0 { return }
        }
    }

    /// Neighbours that are filled alike are one.
    var densities: [CallTimeline.Density] {
        var result: [CallTimeline.Density] = []
        for depth in 0 ..< CallTimeline.mostLevels {
            var open: (start: Int, level: Int)?
            func level(_ place: Int) -> Int {
                guard place < Self.stretches else { return 0 }
                let share = Double(filled[depth * Self.stretches + place]) / Double(stretch)
                return share <= 0 ? 0 : max(1, Int(min(share * 10, 10).rounded()))
            }
            for place in 0 ... Self.stretches {
                let now = level(place)
                if let known = open, known.level != now {
                    result.append(.init(start: UInt64(known.start) * stretch, length: UInt64(place - known.start) * stretch, depth: UInt32(depth), share: Double(known.level) / 10))
                    open = nil
                }
                if open == nil, now > 0 { open = (place, now) }
            }
        }
        return result
    }

    mutating func slot(of function: UInt32) -> UInt32 { function &+ 1 }
    mutating func opened(_ frame: inout Frame, parent: Frame, at time: UInt64, depth: Int, isCall: Bool) {
        if isCall { calls &+= 1 }
    }
    mutating func closed(_ frame: Frame, at time: UInt64, depth: Int, parent: Frame, isOutermost: Bool, _ ending: Ending) {
        add(frame.slot, frame.enter, time, depth)
    }
    mutating func leaf(_ slot: UInt32, from start: UInt64, to end: UInt64, depth: Int, parent: Frame, isOutermost: Bool) {
        calls &+= 1
        add(slot, start, end, depth)
    }
    mutating func migrated(_ slot: UInt32, from start: UInt64, to end: UInt64, depth: Int) {}
    mutating func orphan(_ slot: UInt32, at time: UInt64, depth: Int) {}
    mutating func lost(_ count: UInt64, at time: UInt64, depth: Int) {}
    mutating func mark(_ mark: UInt32, at time: UInt64, depth: Int) {}
    mutating func unknown() {}
}
