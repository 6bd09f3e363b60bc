// Memory for future threads, made for several at a time: a process may have 65,530 mappings (vm.max_map_count), and to the kernel a
// stack with its context is one, and the page that a fork wipes another. Some of both are made side by side. A few contexts are ready
// for the trampolines to take; a thread that finds none maps one for itself (trampoline.S, slow_call), and gets its page here.
// ThreadRecorder.lock is held.
import CSupport

enum ContextPool {
    private struct Free {
        var context: ThreadContext
        var position: UnsafeMutablePointer<write_position>
    }
    /// Capacity for `mostFree`, of which `freeCount` are there.
    nonisolated(unsafe) private static var free: UnsafeMutablePointer<Free>?
    nonisolated(unsafe) private static var freeCount = 0
    private static let mostFree = 65536
    nonisolated(unsafe) private static var latestCount = 1
    /// Less than two megabytes, which the kernel would take for one large page.
    private static let mostCount = 30
    nonisolated(unsafe) private static var pages = 0
    nonisolated(unsafe) private static var pageCount = 0

    private static let contextBytes = Int(CONTEXT_STACK_BYTES) &+ Int(CONTEXT_BYTES)

    /// The next thread finds one, unless there is no memory.
    static func refill() {
        if tracer_ready_context(0)!.pointee == 0 && freeCount == 0 { makeMore() }
        var n: Int32 = 0
        while n < READY_CONTEXTS && freeCount > 0 {
            let entry = tracer_ready_context(n)!
            if entry.pointee == 0 { makeReady(entry) }
            n &+= 1
        }
    }
    @inline(never) private static func makeReady(_ entry: UnsafeMutablePointer<UInt64>) {
        freeCount &-= 1
        let next = free![freeCount]
        next.context.pointee.position = next.position
        tracer_store_release_64(entry, UInt64(UInt(bitPattern: next.context)))
    }
    private static func makeMore() {
        let count = min(2 &* latestCount, mostCount)
        guard let buffer = Memory.pages(count &* contextBytes) else { return }
        latestCount = count
        for n in 0..<count {
            let context = buffer + (n &* contextBytes &+ Int(CONTEXT_STACK_BYTES))
            guard let position = position() else { return } // the rest is no memory yet
            keep(context.assumingMemoryBound(to: thread_context.self), position)
        }
    }
    /// A page that a fork wipes (ForkWatch.swift). nil: no memory.
    @inline(never) static func position() -> UnsafeMutablePointer<write_position>? {
        if pageCount == 0 {
            pages = bits(wipedPages(2 &* mostCount))
            if pages == 0 { return nil }
            pageCount = 2 &* mostCount
        }
        pageCount &-= 1
        return UnsafeMutablePointer(bitPattern: pages &+ pageCount &* Memory.pageBytes)
    }
    /// The position of threads for which there was no memory: nothing is recorded any more. Their contexts are mapped one by one.
    static var noPosition: UnsafeMutablePointer<write_position> { withUnsafeMutablePointer(to: &nobody) { $0 } }
    nonisolated(unsafe) private static var nobody = write_position()

    static func wipedPages(_ count: Int) -> UnsafeMutableRawPointer? {
        guard let pages = Memory.pages(count &* Memory.pageBytes) else { return nil }
        if SystemCall.call(SystemCall.madvise, bits(pages), count &* Memory.pageBytes, Advice.wipeOnFork) == 0 { return pages }
        Memory.release(pages, count &* Memory.pageBytes)
        return nil
    }

    @inline(never) private static func keep(_ context: ThreadContext, _ position: UnsafeMutablePointer<write_position>) {
        if free == nil { free = Memory.pages(mostFree &* MemoryLayout<Free>.stride)?.assumingMemoryBound(to: Free.self) }
        if free == nil || freeCount == mostFree { return }
        free![freeCount] = Free(context: context, position: position)
        freeCount &+= 1
    }

    /// Takes back the context of a thread that has ended. The memory is the system's again, the addresses wait for the next thread.
    static func give(_ context: ThreadContext) {
        let position = context.pointee.position!
        if position == noPosition { return Memory.release(UnsafeMutableRawPointer(context) - Int(CONTEXT_STACK_BYTES), contextBytes) }
        clear(bits(position), Memory.pageBytes)
        clear(bits(context) &- Int(CONTEXT_STACK_BYTES), contextBytes)
        keep(context, position)
    }
    /// Locked pages stay (mlockall(2); madvise(2), EINVAL).
    @inline(never) private static func clear(_ start: Int, _ byteCount: Int) {
        if SystemCall.call(SystemCall.madvise, start, byteCount, Advice.dontNeed) != 0 {
            UnsafeMutableRawPointer(bitPattern: start)!.initializeMemory(as: UInt8.self, repeating: 0, count: byteCount)
        }
    }
}
