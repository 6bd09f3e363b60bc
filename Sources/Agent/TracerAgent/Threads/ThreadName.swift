// The name that a program gives to another of its threads.
import CSupport

extension ThreadRecorder {
    /// pthread_setname_np(thread, name): a pthread_t is the address of the thread's control block. On x86_64 that is its
    /// thread pointer; on aarch64 the thread pointer follows it (glibc and musl alike, 2 KB and less), and the next
    /// thread's is at least a stack away.
    static func rename(thread: UInt64, name: UInt64) {
        guard let name = CText(bitPattern: UInt(name)) else { return }
        let distance = UInt64(UInt(bitPattern: tracer_thread_state())) &- tracer_thread_pointer()
        withContexts { context in
            let pointer = UInt64(UInt(bitPattern: context.pointee.state)) &- distance
            guard pointer &- thread <= Architecture.mostBelowThread, let chunk = context.pointee.chunk else { return }
            let target = UnsafeMutableRawPointer(tracer_thread_name(chunk)!)
            var n = 0
            while n < 15 && name[n] != 0 {
                target.storeBytes(of: name[n], toByteOffset: n, as: UInt8.self)
                n &+= 1
            }
            target.storeBytes(of: 0, toByteOffset: n, as: UInt8.self)
        }
    }
}
