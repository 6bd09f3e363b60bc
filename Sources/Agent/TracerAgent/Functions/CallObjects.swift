// Functions that wait, or let another thread go on, and which of their arguments says for what: a lock, a condition, a descriptor, a
// thread, a word in memory. Their calls are recorded with it (docs/reference/format.md, Arguments). Also functions that make a
// descriptor (OpenedDescriptors.swift), or close one. A name alone is no function, as in HookPolicy.swift.
import CSupport
import CTraceLayout

enum CallObjects {
    private struct Group {
        let home: Home
        let argument: UInt8
        let isInt: Bool
        var opens: UInt8 = 0 // TRACE_OPENS_
        let names: StaticString // a bar after each

        var flags: UInt32 {
            UInt32(argument) &<< UInt32(TRACE_FUNCTION_ARGUMENT_SHIFT) | (isInt ? UInt32(TRACE_FUNCTION_ARGUMENT_IS_INT) : 0)
                | UInt32(opens) &<< UInt32(TRACE_FUNCTION_OPENS_SHIFT)
        }
    }
    private enum Home { case libc, dispatch, standardCPP, ring, any }

    private static let groups: InlineArray<_, Group> = [
        // For a wait for a condition, the condition: its thread's last lock says which mutex it gives up.
        Group(
            home: .libc, argument: 1, isInt: false,
            names: """
                pthread_mutex_lock|pthread_mutex_trylock|pthread_mutex_timedlock|pthread_mutex_clocklock|pthread_mutex_unlock|\
                __pthread_mutex_lock|__pthread_mutex_trylock|__pthread_mutex_unlock|\
                pthread_rwlock_rdlock|pthread_rwlock_tryrdlock|pthread_rwlock_timedrdlock|pthread_rwlock_clockrdlock|\
                pthread_rwlock_wrlock|pthread_rwlock_trywrlock|pthread_rwlock_timedwrlock|pthread_rwlock_clockwrlock|pthread_rwlock_unlock|\
                __pthread_rwlock_rdlock|__pthread_rwlock_wrlock|__pthread_rwlock_tryrdlock|__pthread_rwlock_trywrlock|\
                __pthread_rwlock_unlock|pthread_spin_lock|pthread_spin_trylock|pthread_spin_unlock|\
                pthread_cond_wait|pthread_cond_timedwait|pthread_cond_clockwait|pthread_cond_signal|pthread_cond_broadcast|\
                sem_wait|sem_timedwait|sem_clockwait|sem_trywait|sem_post|pthread_barrier_wait|pthread_once|__pthread_once|\
                pthread_join|pthread_tryjoin_np|pthread_timedjoin_np|pthread_clockjoin_np|\
                mtx_lock|mtx_trylock|mtx_timedlock|mtx_unlock|cnd_wait|cnd_timedwait|cnd_signal|cnd_broadcast|thrd_join|call_once|\
                flockfile|ftrylockfile|funlockfile|
                """),
        Group(
            home: .libc, argument: 1, isInt: true,
            names: """
                read|__read|__read_chk|write|__write|pread|pread64|__pread64|__pread_chk|__pread64_chk|pwrite|pwrite64|__pwrite64|\
                readv|writev|preadv|preadv64|preadv2|preadv64v2|pwritev|pwritev64|pwritev2|pwritev64v2|\
                recv|__recv_chk|recvfrom|__recvfrom_chk|recvmsg|recvmmsg|send|__send|sendto|sendmsg|sendmmsg|\
                connect|__connect|shutdown|close|__close|fsync|fdatasync|syncfs|sync_file_range|ftruncate|ftruncate64|\
                fallocate|fallocate64|posix_fallocate|posix_fallocate64|sendfile|sendfile64|splice|tee|vmsplice|copy_file_range|\
                epoll_wait|epoll_pwait|epoll_pwait2|eventfd_read|eventfd_write|flock|lockf|lockf64|fcntl|fcntl64|__fcntl|ioctl|tcdrain|\
                msgrcv|msgsnd|semop|semtimedop|mq_send|mq_timedsend|mq_receive|mq_timedreceive|\
                waitpid|__waitpid|wait4|
                """),
        Group(home: .libc, argument: 2, isInt: true, names: "waitid|"),
        Group(home: .libc, argument: 1, isInt: true, opens: UInt8(TRACE_OPENS_RESULT), names: "accept|accept4|"),
        Group(home: .libc, argument: 2, isInt: true, opens: UInt8(TRACE_OPENS_RESULT), names: "dup2|dup3|"),
        Group(
            home: .libc, argument: 0, isInt: false, opens: UInt8(TRACE_OPENS_RESULT),
            names: """
                open|open64|__open_2|__open64_2|openat|openat64|__openat_2|__openat64_2|creat|creat64|dup|socket|\
                epoll_create|epoll_create1|eventfd|timerfd_create|signalfd|inotify_init1|
                """),
        Group(home: .libc, argument: 0, isInt: false, opens: UInt8(TRACE_OPENS_FIRST_PAIR), names: "pipe|pipe2|"),
        Group(home: .libc, argument: 0, isInt: false, opens: UInt8(TRACE_OPENS_FOURTH_PAIR), names: "socketpair|"),
        Group(home: .libc, argument: 0, isInt: false, opens: UInt8(TRACE_OPENS_STREAM), names: "fopen|fopen64|fdopen|popen|"),
        Group(home: .libc, argument: 0, isInt: false, opens: UInt8(TRACE_OPENS_FOLDER), names: "opendir|fdopendir|"),
        Group(home: .libc, argument: 1, isInt: false, names: "fclose|pclose|closedir|"),
        Group(home: .libc, argument: 2, isInt: false, names: "syscall|"),
        Group(
            home: .dispatch, argument: 1, isInt: false,
            names: """
                dispatch_semaphore_wait|dispatch_semaphore_signal|dispatch_group_wait|dispatch_group_leave|dispatch_block_wait|\
                dispatch_sync|dispatch_sync_f|dispatch_barrier_sync|dispatch_barrier_sync_f|dispatch_async_and_wait|\
                dispatch_async_and_wait_f|dispatch_barrier_async_and_wait|dispatch_barrier_async_and_wait_f|dispatch_once|dispatch_once_f|
                """),
        Group(
            home: .standardCPP, argument: 1, isInt: false,
            names: """
                _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE|_ZNSt18condition_variable10notify_oneEv|\
                _ZNSt18condition_variable10notify_allEv|
                """),
        Group(home: .ring, argument: 1, isInt: true, names: "io_uring_enter|io_uring_enter2|"),
        Group(
            home: .any, argument: 1, isInt: false,
            names: """
                swift_once|__cxa_guard_acquire|__cxa_guard_release|__cxa_guard_abort|\
                g_once_init_enter|g_once_init_leave|g_once_init_enter_pointer|g_once_init_leave_pointer|
                """),
    ]

    /// Open addressing, by the names' hashes: the group, and where in its names it begins, from 1 on; 0: none.
    nonisolated(unsafe) private static var table = InlineArray<512, UInt16>(repeating: 0)
    private static let indexBits = 12
    private static let bar: UInt8 = 0x7c

    /// `body` hears the hash of each name.
    static func begin(_ body: (UInt32) -> Void) {
        forEachName { hash, entry in
            body(hash)
            var bucket = Int(hash & 511)
            while table[bucket] != 0 { bucket = (bucket &+ 1) & 511 }
            table[bucket] = entry
        }
    }
    static func forEachHash(_ body: (UInt32) -> Void) { forEachName { hash, _ in body(hash) } }
    private static func forEachName(_ body: (UInt32, UInt16) -> Void) {
        for group in 0..<groups.count {
            let text = groups[group].names.utf8Start, count = groups[group].names.utf8CodeUnitCount
            var start = 0, hash = emptyHash
            for index in 0..<count {
                if text[index] != bar {
                    hash = hash &* 33 &+ UInt32(text[index])
                    continue
                }
                body(hash, UInt16(group &<< indexBits | start &+ 1))
                start = index &+ 1
                hash = emptyHash
            }
        }
    }
    private static let emptyHash: UInt32 = 5381 // gnuHash

    /// Returns the flags for the object of a function's calls, for its record, by its name. 0: they have none.
    static func flags(of name: Name, in owner: UnsafePointer<Image>) -> UInt32 {
        var bucket = Int(name.gnuHash & 511)
        while table[bucket] != 0 {
            let group = Int(table[bucket]) &>> indexBits, index = Int(table[bucket]) & (1 &<< indexBits &- 1) &- 1
            if isEqual(name, groups[group].names.utf8Start + index) {
                return isHome(groups[group].home, owner) ? groups[group].flags : 0
            }
            bucket = (bucket &+ 1) & 511
        }
        return 0
    }
    private static func isEqual(_ name: Name, _ listed: CText) -> Bool {
        for n in 0..<name.byteCount where name.text[n] != listed[n] { return false }
        return listed[name.byteCount] == bar
    }
    private static func isHome(_ home: Home, _ owner: UnsafePointer<Image>) -> Bool {
        switch home {
        case .libc: FunctionHome.isLibc(owner) || FunctionHome.isOne(of: "librt.", "librt.", owner)
        case .dispatch: FunctionHome.isOne(of: "libdispatch.", "libdispatch.", owner)
        case .standardCPP: FunctionHome.isOne(of: "libstdc++.", "libstdc++.", owner)
        case .ring: FunctionHome.isOne(of: "liburing.", "liburing-", owner)
        case .any: true
        }
    }
    static var ofFirstArgument: UInt32 { 1 &<< UInt32(TRACE_FUNCTION_ARGUMENT_SHIFT) }
    /// The flags of a function whose returns nobody sees.
    static func withoutOpening(_ flags: UInt32) -> UInt32 {
        argument(flags) == 0 ? 0 : flags & (1 &<< UInt32(TRACE_FUNCTION_OPENS_SHIFT) &- 1)
    }
    /// Returns how calls make descriptors by these flags, TRACE_OPENS_; 0: not.
    static func opens(_ flags: UInt32) -> UInt8 { UInt8(truncatingIfNeeded: flags &>> UInt32(TRACE_FUNCTION_OPENS_SHIFT)) }
    /// Returns the number of the argument that these flags say.
    static func argument(_ flags: UInt32) -> UInt8 {
        UInt8(flags &>> UInt32(TRACE_FUNCTION_ARGUMENT_SHIFT) & (1 &<< UInt32(TRACE_FUNCTION_ARGUMENT_BITS) &- 1))
    }
}
