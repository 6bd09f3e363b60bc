// Kinds of waits: reasons for which a thread is off-CPU.

package enum WaitKind: String, Sendable, CaseIterable, BitwiseCopyable {
    /// Another thread holds something: a mutex, a rwlock, a file lock, a once that is being done.
    case lock
    /// Somebody is to say something: a condition variable, a semaphore, a barrier, a group.
    case condition
    /// A descriptor of which nothing says that it is a file: a pipe, a socket, a terminal, several of them.
    case pipe
    /// A file, or a page of one.
    case disk
    case sleep
    /// Another process.
    case child
    /// The end of a thread.
    case join
    /// It could have gone on, and others had the CPUs.
    case processor
    case other
}
