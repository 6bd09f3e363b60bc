// Records for calls that are off the thread's chain: of what the loader and libc call (Initializers.swift), of calls whose child
// runs in this memory (SharedMemory.swift). Linked by `older`.
import CSupport

enum FramePool {
    nonisolated(unsafe) private static var free: Frame?
    nonisolated(unsafe) private static var lock = Lock()
    private static let batchBytes = 4096

    /// In a forked child: another thread of the parent may have held it.
    static func becomeChild() { lock = Lock() }

    static func take() -> Frame? {
        lock.lock()
        defer { lock.unlock() }
        if free == nil {
            guard let pages = Memory.pages(batchBytes) else { return nil }
            for n in 0..<(batchBytes / Int(FRAME_BYTES)) {
                let frame = (pages + n &* Int(FRAME_BYTES)).assumingMemoryBound(to: frame_record.self)
                frame.pointee.older = free
                free = frame
            }
        }
        let frame = free!
        free = frame.pointee.older
        return frame
    }
    static func giveBack(_ frame: Frame) {
        lock.lock()
        frame.pointee.older = free
        free = frame
        lock.unlock()
    }
}
