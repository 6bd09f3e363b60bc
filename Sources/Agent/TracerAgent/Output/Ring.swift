// Ranges in the file for copies of full chunks and for the threads' own chunks. In full mode they follow the last one, until the size
// limit; in ring mode, once that is reached, they lie over the oldest copy or over what a thread that has ended left. The file is
// therefore as long as the limit says, and longer only while the chunks of living threads alone need more.
//
// A ring that keeps a time (Limits.keptTicks) writes over what is older than that, whether the limit is reached or not, so it is
// as long as the time needs. Where the limit is reached first, the thread with the most chunks loses its oldest: the last seconds of a thread that
// records little stay, however much others record.
import CSupport
import CTraceLayout

enum Ring {
    /// A chunk that may be written over.
    private struct Place: BitwiseCopyable {
        var offset: UInt64
        /// When the thread gave it up.
        var ticks: UInt64
        var thread: UInt32
        var unused: UInt32 = 0
    }
    /// All of chunkBytes: `queued` of them from `oldest` on, and round.
    nonisolated(unsafe) private static var places = Table<Place>()
    nonisolated(unsafe) private static var oldest = 0
    nonisolated(unsafe) private static var queued = 0
    nonisolated(unsafe) private static var lock = Lock()

    static var chunkBytes: Int { ChunkSize.ofRing(Limits.fileBytes) }

    /// In a forked child: another thread of the parent may have held the lock.
    static func becomeChild() {
        lock = Lock()
        forget()
    }
    /// Another file begins.
    static func forget() {
        lock.lock()
        defer { lock.unlock() }
        places.removeAll()
        oldest = 0
        queued = 0
    }

    /// Returns the offset for a copy of a chunk. nil: recording has stopped. Nobody else gets it before it is given: until it is known what is to be
    /// written there, others may fill the whole ring while this thread has no CPU.
    static func offset(_ byteCount: Int) -> UInt64? {
        if !Limits.isRing {
            if TraceSpace.wouldExceedLimit(byteCount) {
                TraceOutput.stop(TRACE_STOP_LIMIT, 0)
                return nil
            }
            return TraceSpace.reserve(byteCount)
        }
        lock.lock()
        defer { lock.unlock() }
        return takeOldest(byteCount)?.offset ?? TraceSpace.reserve(byteCount)
    }

    /// A place for a thread's own chunk, to be given back when the thread has ended. nil: take a new one.
    private static func take(_ byteCount: Int) -> Place? {
        if !Limits.isRing { return nil }
        lock.lock()
        defer { lock.unlock() }
        return takeOldest(byteCount)
    }

    /// A range for a thread's chunk, mapped and cleared: an old one of the ring, or a new one. nil: recording has stopped, or it cannot be had
    /// now. The thread has waited for it.
    static func map(_ byteCount: Int) -> (address: UnsafeMutableRawPointer, offset: UInt64)? {
        let begun = Clock.ticks()
        defer { TraceOutput.noteWait(since: begun) }
        let old = take(byteCount)
        if let chunk = TraceSpace.map(byteCount, over: old?.offset) { return chunk }
        if let old { giveBack(old) }
        return nil
    }

    /// No thread writes to the chunk there any more. It is the youngest of those that may be written over.
    static func give(_ offset: UInt64, _ byteCount: UInt64, of thread: UInt32) {
        if !Limits.isRing || byteCount != UInt64(chunkBytes) { return }
        lock.lock()
        append(Place(offset: offset, ticks: Clock.ticks(), thread: thread))
        lock.unlock()
    }

    /// Takes back a place that could not be mapped: it is the oldest again.
    private static func giveBack(_ place: Place) {
        lock.lock()
        if queued == places.count {
            append(place)
        } else {
            oldest = oldest == 0 ? places.count &- 1 : oldest &- 1
            places[oldest] = place
            queued &+= 1
        }
        lock.unlock()
    }

    private static func takeOldest(_ byteCount: Int) -> Place? {
        if byteCount != chunkBytes || queued == 0 { return nil }
        let isOver = Limits.keptTicks != 0 && Clock.ticks() &- places[oldest].ticks > Limits.keptTicks
        if !isOver {
            if !TraceSpace.wouldExceedLimit(byteCount) { return nil }
            if Limits.keptTicks != 0, let place = takeOfLargest() { return place }
        }
        var skipped: Place? // the recorder is copying to it: it stays the oldest, and the next one is taken
        for n in 0..<queued {
            let index = index(n), place = places[index]
            if let skipped { places[index] = skipped }
            if SpareChunks.takeBack(for: place.offset) {
                oldest = self.index(1)
                queued &-= 1
                return place
            }
            skipped = place
        }
        if let skipped { places[oldest] = skipped } // all go round by one
        return nil
    }

    /// The oldest place of the thread that has most, but for those that the recorder is copying to. nil: it is copying to all of them. Threads share
    /// a count where there are very many.
    private static func takeOfLargest() -> Place? {
        var counts = InlineArray<256, UInt32>(repeating: 0)
        var largest = 0
        for n in 0..<queued {
            let thread = Int(places[index(n)].thread & 255)
            counts[thread] &+= 1
            if counts[thread] > counts[largest] { largest = thread }
        }
        for n in 0..<queued {
            let place = places[index(n)]
            if Int(place.thread & 255) != largest || !SpareChunks.takeBack(for: place.offset) { continue }
            putFirst(n)
            oldest = index(1)
            queued &-= 1
            return place
        }
        return nil
    }
    /// Puts this place before all others, which move up.
    private static func putFirst(_ number: Int) {
        let place = places[index(number)]
        var n = number
        while n > 0 {
            places[index(n)] = places[index(n &- 1)]
            n &-= 1
        }
        places[oldest] = place
    }

    private static func append(_ place: Place) {
        if queued == places.count {
            // Full: the new element goes before the oldest one, which moves up with all after it.
            guard places.append(place) else { return } // no memory: the place is lost to the ring
            var n = places.count &- 1
            while n > oldest {
                places[n] = places[n &- 1]
                n &-= 1
            }
            places[oldest] = place
            oldest = oldest &+ 1 == places.count ? 0 : oldest &+ 1
            queued &+= 1
            return
        }
        places[index(queued)] = place
        queued &+= 1
    }
    /// The n-th element from the oldest on has this index.
    private static func index(_ n: Int) -> Int {
        let index = oldest &+ n
        return index < places.count ? index : index &- places.count
    }
}
