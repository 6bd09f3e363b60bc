// A program may start a thousand threads a second for a day. In ring mode the records of threads are bounded too: of
// those that have ended the last `most` are kept, and both records of an older one are written over by later ones.
import CSupport
import CTraceLayout

enum ThreadRecords {
    private static let most = 4096
    private struct Ended: BitwiseCopyable {
        var begin: UnsafeMutableRawPointer
        var end: UnsafeMutableRawPointer
    }
    nonisolated(unsafe) private static var ended = Table<Ended>()
    nonisolated(unsafe) private static var oldest = 0 // once there are `most`
    /// Records that say nothing any more: the first `spareCount`.
    nonisolated(unsafe) private static var spares = Table<UnsafeMutableRawPointer>()
    nonisolated(unsafe) private static var spareCount = 0
    nonisolated(unsafe) private static var lock = Lock()

    /// In a forked child: another thread of the parent may have held the lock.
    static func becomeChild() {
        lock = Lock()
        forget()
    }
    /// Another file begins: the records belong to the old one.
    static func forget() {
        lock.lock()
        defer { lock.unlock() }
        ended.removeAll()
        oldest = 0
        spareCount = 0
    }

    /// Writes the record of a thread that begins; called by the thread itself.
    static func begin(_ context: UnsafeMutablePointer<thread_context>) {
        let fixed = trace_thread_pointer_record(
            begin: trace_thread_begin_record(thread: record(of: context), cpu_ns: Clock.ofThread()), pointer: tracer_thread_pointer())
        lock.lock()
        defer { lock.unlock() }
        if spareCount > 0 {
            spareCount &-= 1
            let record = spares[spareCount]
            context.pointee.begin_record = record
            blank(record)
            record.storeBytes(of: fixed.begin.cpu_ns, toByteOffset: MemoryLayout<trace_thread_record>.size, as: UInt64.self)
            record.storeBytes(of: fixed.pointer, toByteOffset: MemoryLayout<trace_thread_begin_record>.size, as: UInt64.self)
            overwrite(record, Int(TRACE_RECORD_THREAD), fixed.begin.thread)
        } else {
            context.pointee.begin_record = MetadataWriter.append(Int(TRACE_RECORD_THREAD), 0, fixed)
        }
    }

    static func end(_ context: UnsafeMutablePointer<thread_context>) {
        let fixed = record(of: context)
        lock.lock()
        defer { lock.unlock() }
        guard Limits.isRing, let begin = context.pointee.begin_record else {
            MetadataWriter.append(Int(TRACE_RECORD_THREAD_END), 0, fixed)
            return
        }
        if ended.count < most {
            if let end = MetadataWriter.append(Int(TRACE_RECORD_THREAD_END), 0, fixed) { _ = ended.append(Ended(begin: begin, end: end)) }
            return
        }
        let old = ended[oldest]
        ended[oldest].begin = begin
        oldest = (oldest &+ 1) % most
        blank(old.begin)
        if spareCount < spares.count {
            spares[spareCount] = old.begin
            spareCount &+= 1
        } else if spares.append(old.begin) {
            spareCount &+= 1
        }
        overwrite(old.end, Int(TRACE_RECORD_THREAD_END), fixed)
    }

    private static func record(of context: UnsafeMutablePointer<thread_context>) -> trace_thread_record {
        trace_thread_record(record: trace_record(), thread: context.pointee.index, tid: context.pointee.tid, ticks: Clock.ticks())
    }

    private static func blank(_ record: UnsafeMutableRawPointer) {
        tracer_store_release_16(&record.assumingMemoryBound(to: trace_record.self).pointee.type, UInt16(TRACE_RECORD_REPLACED))
    }
    /// Meanwhile it is blank: a process that is killed here leaves no record that is half of each.
    private static func overwrite(_ record: UnsafeMutableRawPointer, _ type: Int, _ fixed: trace_thread_record) {
        blank(record)
        record.storeBytes(of: fixed.thread, toByteOffset: 8, as: UInt32.self)
        record.storeBytes(of: fixed.tid, toByteOffset: 12, as: UInt32.self)
        record.storeBytes(of: fixed.ticks, toByteOffset: 16, as: UInt64.self)
        tracer_store_release_16(&record.assumingMemoryBound(to: trace_record.self).pointee.type, UInt16(type))
    }
}
