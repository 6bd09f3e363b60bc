// Counters of the calls that a thread counts and does not record (tracer_pass_counted). Each thread has its own, so that no two threads add to one
// word, in a chunk of the file, so that they outlive whatever ends the process.
//
// Every such call is either recorded or adds 1 to one counter of its process, whatever a signal handler does in between, a fork included:
// - A trampoline adds in one step, and no sum of its own is stored later.
// - `passes` is positive only where there are counters. Whoever has none, or must not use them, records.
// - Counters stay at one address for the thread's life, in a forked child as well: a trampoline that a signal interrupted goes on with the
//   address that it has read. The child's first slow path puts memory of its own there, before any of its own code goes on; until then
//   PROCESS_ENABLED is 0, and each call is such a slow path.
import CSupport
import CTraceLayout

extension ThreadRecorder {
    /// Calls that pass between two that are recorded, on average: a number from 1 to twice that, so that no loop of the program keeps step.
    static let meanInterval: UInt64 = 1024
    /// With more living threads the others record: two mappings each, of which a process may have 65,530 (vm.max_map_count).
    private static let mostThreads = 4096
    private static var passedBytes: Int { max(Int(TRACE_PASSED_BYTES), Memory.pageBytes) }
    private static let countersOffset = MemoryLayout<trace_chunk_header>.size &+ MemoryLayout<trace_passed_record>.size
    private static let markBytes = Int(TRACE_PASSED_COUNTERS) &* MemoryLayout<UInt64>.size

    /// From now on the thread records its calls of counted functions.
    func stopCounting() { state.pointee.passes = Int64(PASSES_RECORDED) &- 1 }
    /// Its next call of one asks again for counters, or goes on with those that it has.
    func resumeCounting() {
        if state.pointee.passes < Int64(PASSES_RECORDED) && context.pointee.sharing == 0 { state.pointee.passes = 0 }
    }

    /// A call of the function, which is counted, is recorded next: it stands for those of this thread that were counted since the latest one.
    func sample(_ hook: UnsafeMutablePointer<function_hook>) {
        if context.pointee.sharing != 0 || !hasCounters() { return stopCounting() }
        let offset = Int(hook.pointee.counter)
        let mark = context.pointee.passed_marks! + offset / 8
        let counter = (state.pointee.counts! + offset).withMemoryRebound(to: UInt64.self, capacity: 1) { $0.pointee }
        let calls = min(counter &- mark.pointee, UInt64(UInt32.max))
        if writeSampled(hook.pointee.function, calls: calls) { mark.pointee &+= calls }
        // Knuth, TAOCP 2, 3.3.4, table 1
        context.pointee.random = context.pointee.random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
        context.pointee.interval = 1 &+ (context.pointee.random &>> 33) % (2 &* ThreadRecorder.meanInterval &- 1)
        state.pointee.passes = Int64(context.pointee.interval)
    }

    private func hasCounters() -> Bool {
        if let chunk = context.pointee.passed_chunk { return isInFile(chunk) || renewCounters() }
        let bytes = ThreadRecorder.passedBytes
        if ThreadContexts.count > ThreadRecorder.mostThreads || TraceSpace.wouldExceedLimit(bytes) { return false }
        guard let marks = Memory.pages(ThreadRecorder.markBytes) else { return false }
        guard let (chunk, _) = TraceSpace.map(bytes) else {
            Memory.release(marks, ThreadRecorder.markBytes)
            return false
        }
        fill(chunk)
        context.pointee.passed_chunk = chunk
        context.pointee.passed_marks = marks.assumingMemoryBound(to: UInt64.self)
        context.pointee.random = Clock.ticks() ^ UInt64(context.pointee.tid) &<< 32
        state.pointee.counts = (chunk + ThreadRecorder.countersOffset).assumingMemoryBound(to: UInt8.self)
        return true
    }

    /// Metadata with one record.
    private func fill(_ chunk: UnsafeMutableRawPointer) {
        let headerBytes = MemoryLayout<trace_chunk_header>.size
        let header = chunk.assumingMemoryBound(to: trace_chunk_header.self)
        header.pointee.kind = UInt16(TRACE_CHUNK_METADATA)
        header.pointee.byte_count = UInt32(ThreadRecorder.passedBytes)
        header.pointee.body_offset = UInt32(headerBytes)
        header.pointee.opened = Clock.sample()
        let record = (chunk + headerBytes).assumingMemoryBound(to: trace_passed_record.self)
        record.pointee.record.byte_count = UInt32(MemoryLayout<trace_passed_record>.size &+ ThreadRecorder.markBytes)
        record.pointee.thread = context.pointee.index
        record.pointee.count = UInt32(TRACE_PASSED_COUNTERS)
        record.pointee.record.type = UInt16(TRACE_RECORD_PASSED)
        tracer_store_release_32(&header.pointee.magic, UInt32(TRACE_CHUNK_MAGIC))
    }

    /// The thread has ended, or exists only in the parent of this child.
    static func releaseCounters(of context: ThreadContext) {
        guard let chunk = context.pointee.passed_chunk else { return }
        TraceSpace.unmap(chunk, passedBytes)
        Memory.release(context.pointee.passed_marks, markBytes)
    }

    /// In a child that fork has just made, whose file is there: so are counters, at the address of its parent's, where private memory is now
    /// (leaveMappings). False: there is no space for them just now.
    @discardableResult func renewCounters() -> Bool {
        guard let chunk = context.pointee.passed_chunk else { return false }
        let bytes = ThreadRecorder.passedBytes, offset = ThreadRecorder.countersOffset
        guard !TraceSpace.wouldExceedLimit(bytes), let (fresh, _) = TraceSpace.map(bytes) else { return false }
        // What an interrupted trampoline has counted meanwhile.
        (fresh + offset).copyMemory(from: chunk + offset, byteCount: ThreadRecorder.markBytes)
        context.pointee.passed_marks.update(repeating: 0, count: Int(TRACE_PASSED_COUNTERS))
        fill(fresh)
        tracer_mapping_remove(fresh)
        if !Memory.move(fresh, bytes, to: UInt64(bits(chunk))) {
            Memory.release(fresh, bytes)
            return false
        }
        tracer_mapping_add(chunk, UInt64(bytes))
        return true
    }
    /// False: the memory at the counters' address is private.
    private func isInFile(_ chunk: UnsafeMutableRawPointer) -> Bool {
        chunk.assumingMemoryBound(to: trace_chunk_header.self).pointee.magic == UInt32(TRACE_CHUNK_MAGIC)
    }
}
