// The bounds of a thread's own stack. Only inside them does "a lower stack pointer was left behind" prove that a frame
// is dead; where they are not known every frame is one on another stack (AlternateStacks.swift), which is right and slower.
import CSupport

enum ThreadStack {
    static let unknown: (low: UInt64, high: UInt64) = (.max, .max)

    /// One thread of the kernel may have several thread blocks in turn (ThreadContexts.swift): the main stack is that of the first.
    nonisolated(unsafe) private static var hasMain = false

    static func bounds() -> (low: UInt64, high: UInt64) {
        if hasMain || SystemCall.call(SystemCall.gettid) != Int(Process.pid) { return blockOfThread() }
        hasMain = true
        return main()
    }

    /// From main's arguments down to the soft limit: the kernel maps nothing in between (mm/util.c, mmap_base). It went by the limit at
    /// exec, which a program that runs may have raised since, but kept at least 128 MB.
    private static func main() -> (UInt64, UInt64) {
        let most: UInt64 = Process.wasRunning ? 128 << 20 : 1 << 30
        let size = min(max(ResourceLimit.soft(ResourceLimit.stackBytes, unknown: 0), 128 << 10), most)
        return (Process.mainStackHigh &- size, Process.mainStackHigh)
    }

    /// glibc puts struct pthread on top of the thread's stack, and in it `stackblock, stackblock_size, guardsize`
    /// (nptl/descr.h). Their offset is not part of the ABI, so they are recognized: three words of which the first two
    /// span both the stack pointer and the thread control block (struct pthread), and end just above it. The block is at least 2304 bytes.
    /// It stands at the thread pointer where thread-local variables lie below that (x86_64), and just below the thread
    /// pointer where they lie above it (aarch64): then they end where the block ends.
    private static func blockOfThread() -> (UInt64, UInt64) {
        let thread = tracer_thread_pointer()
        let first = thread &+ UInt64(bitPattern: Architecture.threadControlBlock)
        let words = UnsafePointer<UInt64>(bitPattern: UInt(first))!
        for n in 0..<(2048 / 8 &- 2) {
            let start = words[n], size = words[n &+ 1], guardSize = words[n &+ 2]
            if start & 4095 == 0 || start & 15 == 0, size >= 16384, size < 1 << 40, start < thread,
                start &+ size > thread, start &+ size &- thread < Architecture.mostAboveThread, guardSize < size, guardSize & 4095 == 0
            {
                return (start &+ guardSize, thread)
            }
        }
        return unknown
    }
}
