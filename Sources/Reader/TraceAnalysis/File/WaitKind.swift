// Kinds of waits: reasons for which a thread is off-CPU.

package enum WaitKind: String, Sendable, CaseIterable, BitwiseCopyable {
    /// Another thread holds something: a mutex, a rwlock, a file lock, a once that is being done.
    case lock
    /// Somebody is to say something: a condition variable, a semaphore, a barrier, a group.
    case condition
    /// A pipe, with a name or without, or a message queue.
    case pipe
    case socket
    case terminal
    /// Several descriptors at once (`poll`, `epoll_wait`), or one by which something is reported: an eventfd, a signalfd, an inotify.
    case event
    /// A timerfd.
    case timer
    /// A file, or a page of one.
    case disk
    case sleep
    /// Another process.
    case child
    /// The end of a thread.
    case join
    /// It could have gone on, and others had the CPUs.
    case processor
    /// Nothing says what for; or a descriptor of which nothing says what it refers to.
    case other

    /// It may be what a descriptor refers to.
    var isOfDescriptors: Bool {
        switch self {
        case .pipe, .socket, .terminal, .event, .timer, .disk, .other: true
        case .lock, .condition, .sleep, .child, .join, .processor: false
        }
    }

    /// - Parameters:
    ///   - object: what a descriptor refers to, as the kernel names it (proc(5), fd)
    ///   - isPipe: where it has a path, it is known to be a pipe's
    init(of object: String, isPipe: Bool) {
        func isIn(_ folders: String...) -> Bool { folders.contains { object.hasPrefix($0) } }
        if isIn("pipe:[") || isPipe && isIn("/") {
            self = .pipe
        } else if isIn("socket:[") {
            self = .socket
        } else if isIn("anon_inode:[timerfd]") {
            self = .timer
        } else if isIn("anon_inode:") {
            self = .event
        } else if isIn("/dev/pts/", "/dev/tty", "/dev/console", "/dev/ptmx") {
            self = .terminal
        } else {
            // A file; but what is there of a device, a memfd or the kernel's own files is on no disk.
            self = isIn("/") && (isIn("/dev/shm/") || !isIn("/dev/", "/proc/", "/sys/", "/memfd:")) ? .disk : .other
        }
    }
}
