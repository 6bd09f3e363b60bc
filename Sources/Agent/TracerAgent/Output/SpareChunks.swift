// Chunks for threads that fill theirs. Where `tracer record` takes over full chunks, a thread whose chunk is full says where it is to be, and
// goes on in another one, which lies in the file and is mapped already: it makes no system call and waits for nobody. The recorder copies
// the full chunk there, clears it, and it is free again (ChunkCollector.swift). Until then it is a closed chunk like any other, and
// afterwards its copy is: whoever is killed, no event is lost or told twice (trace_chunk_header.sequence).
//
// Threads take the first that is free, so that few are used and stay in the cache. The recorder makes some ahead; when none is free the
// thread makes one more, and when there are `most`, it writes its chunk itself, as it does without a recorder.
import CSupport
import CTraceLayout

enum SpareChunks {
    /// Address at which each is mapped; 0: nowhere.
    nonisolated(unsafe) private static var addresses = InlineArray<128, Int>(repeating: 0)
    /// None from this one on has been mapped.
    nonisolated(unsafe) private static var count: UInt64 = 0
    /// In a forked child, until it has let go of its parent's, whose states it must not change.
    nonisolated(unsafe) private static var areParents = false

    /// No more than a quarter of a file of limited size.
    private static var most: Int {
        let all = min(Int(TRACE_SPARES), addresses.count)
        return Limits.fileBytes == 0 ? all : min(all, Int(Limits.fileBytes) / ChunkSize.largest / 4)
    }
    private static func spare(_ n: Int) -> UnsafeMutablePointer<trace_spare> {
        (UnsafeMutableRawPointer(TraceOutput.header) + Int(TRACE_SPARES_OFFSET)).assumingMemoryBound(to: trace_spare.self) + n
    }

    /// An empty chunk of the largest size. nil: the thread must write its own.
    static func take() -> (address: UnsafeMutableRawPointer, offset: UInt64)? {
        if tracer_load_acquire(&TraceOutput.header.pointee.collected) == 0 { return nil }
        let known = knownCount
        for n in 0..<known where tracer_exchange(&spare(n).pointee.state, UInt32(TRACE_SPARE_FREE), UInt32(TRACE_SPARE_TAKEN)) != 0 {
            if addresses[n] != 0 || mapAllocated(n) { return (UnsafeMutableRawPointer(bitPattern: addresses[n])!, spare(n).pointee.offset) }
            tracer_store_release_32(&spare(n).pointee.state, UInt32(TRACE_SPARE_FREE))
            break
        }
        for n in 0..<min(known &+ 1, most)
        where tracer_exchange(&spare(n).pointee.state, UInt32(TRACE_SPARE_NONE), UInt32(TRACE_SPARE_TAKEN)) != 0 {
            guard Limits.isRing || !TraceSpace.wouldExceedLimit(ChunkSize.largest), let (address, offset) = Ring.map(ChunkSize.largest)
            else {
                tracer_store_release_32(&spare(n).pointee.state, UInt32(TRACE_SPARE_NONE))
                return nil
            }
            spare(n).pointee.offset = offset
            spare(n).pointee.byte_count = UInt32(ChunkSize.largest)
            setAddress(n, address)
            return (address, offset)
        }
        return nil
    }
    /// As many have been made, by the process or by the recorder, which makes some ahead.
    private static var knownCount: Int {
        var n = 0
        while n < most && (spare(n).pointee.byte_count != 0 || tracer_load_acquire_32(&spare(n).pointee.state) != 0) { n &+= 1 }
        return n
    }
    /// One that the recorder has made and nobody has used.
    private static func mapAllocated(_ n: Int) -> Bool {
        let begun = Clock.ticks()
        defer { TraceOutput.noteWait(since: begun) }
        guard spare(n).pointee.byte_count == UInt32(ChunkSize.largest),
            let address = TraceSpace.mapAllocated(spare(n).pointee.offset, ChunkSize.largest)
        else { return false }
        setAddress(n, address)
        return true
    }
    private static func setAddress(_ n: Int, _ address: UnsafeMutableRawPointer) {
        addresses[n] = bits(address)
        tracer_atomic_max(&count, UInt64(n &+ 1))
    }

    /// No thread writes to the closed chunk any more. False: it is none of these.
    static func give(_ chunk: UnsafeMutableRawPointer) -> Bool {
        guard let n = index(of: chunk) else { return false }
        if areParents {
            leave(n)
            return true
        }
        let header = chunk.assumingMemoryBound(to: trace_chunk_header.self)
        let bytes = Limits.isRing ? ChunkSize.largest : Memory.wholePages(Int(header.pointee.used_bytes))
        let spare = spare(n)
        if !Limits.isRing && TraceSpace.wouldExceedLimit(bytes) { // it stays where it is, and the others are used up
            leave(n)
            tracer_store_release_32(&spare.pointee.state, UInt32(TRACE_SPARE_NONE))
            return true
        }
        let thread = header.pointee.thread // once it is full, the recorder clears it
        guard let destination = Ring.offset(bytes) else { return true }
        spare.pointee.destination = destination
        tracer_store_release_32(&spare.pointee.state, UInt32(TRACE_SPARE_FULL))
        Ring.give(destination, UInt64(bytes), of: thread) // takeBack finds it from here on
        return true
    }

    /// A ring writes over that place next. What waits to be copied there is older than all that is in the ring: it is given up. False: the
    /// recorder is copying it.
    static func takeBack(for place: UInt64) -> Bool {
        for n in 0..<Int(count) {
            let spare = spare(n), state = tracer_load_acquire_32(&spare.pointee.state)
            if state < UInt32(TRACE_SPARE_FULL) || spare.pointee.destination != place { continue }
            if tracer_exchange(&spare.pointee.state, UInt32(TRACE_SPARE_FULL), UInt32(TRACE_SPARE_TAKEN)) == 0 {
                if tracer_load_acquire_32(&spare.pointee.state) == UInt32(TRACE_SPARE_COPIED) { return false }
                continue
            }
            if spare.pointee.destination != place { // it was copied, and filled again
                tracer_store_release_32(&spare.pointee.state, UInt32(TRACE_SPARE_FULL))
                continue
            }
            TraceSpace.clearChunk(UnsafeMutableRawPointer(bitPattern: addresses[n])!, ChunkSize.largest)
            tracer_store_release_32(&spare.pointee.state, UInt32(TRACE_SPARE_FREE))
        }
        return true
    }

    /// An interrupted trampoline may still write to the chunk: it stays mapped, and where it is.
    static func forget(_ chunk: UnsafeMutableRawPointer) {
        guard let n = index(of: chunk) else { return }
        addresses[n] = 0
        tracer_store_release_32(&spare(n).pointee.state, UInt32(TRACE_SPARE_NONE))
    }

    private static func index(of chunk: UnsafeMutableRawPointer) -> Int? {
        for n in 0..<Int(count) where addresses[n] == bits(chunk) { return n }
        return nil
    }
    @inline(never) private static func leave(_ n: Int) {
        TraceSpace.unmap(UnsafeMutableRawPointer(bitPattern: addresses[n])!, ChunkSize.largest)
        addresses[n] = 0
    }

    /// Nothing of the file stays mapped. Those that threads have are in their contexts. `isQuiet`: no thread is just taking one.
    static func leaveFile(isQuiet: Bool) {
        for n in 0..<Int(count) where addresses[n] != 0 && tracer_load_acquire_32(&spare(n).pointee.state) != UInt32(TRACE_SPARE_TAKEN) {
            if isQuiet {
                leave(n)
                continue
            }
            let address = UnsafeMutableRawPointer(bitPattern: addresses[n])!
            tracer_mapping_remove(address)
            Memory.replace(address, ChunkSize.largest)
        }
    }
    /// Another file begins. What threads have of the old one is theirs alone.
    static func forgetAll() {
        for n in 0..<Int(count) { addresses[n] = 0 }
        count = 0
    }

    /// In a forked child, before it gives up the chunks of its parent's threads, and afterwards. `own`: that of the thread that is left, which
    /// is given up otherwise.
    static func leaveParents() { areParents = true }
    static func becomeChild(besides own: UnsafeMutableRawPointer?) {
        for n in 0..<Int(count) where addresses[n] != 0 && addresses[n] != bits(own) { leave(n) }
        for n in 0..<Int(count) { addresses[n] = 0 }
        count = 0
        areParents = false
    }
}
