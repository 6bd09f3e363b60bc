// Functions that wait, with what they wait for, and functions that wake waiters: by their names in the C library and its kin.

package struct WaitingFunction: Equatable, Sendable {
    /// Effect of a call on the object that was recorded with it.
    enum Act: UInt8 {
        case acquires
        /// It may come back without: the time was over, or it was only tried.
        case mayAcquire
        case releases
        /// Lets go of a lock that it has not recorded, until it returns.
        case suspends
        case signals
        /// It waits itself, or lets others go on: futex(2) by `syscall`, of which the trace has the word, not what was to be done with it.
        /// Calls without a word are other system calls.
        case waitsOrSignals
        /// It waits for the object, and who has it is not recorded.
        case waits
        /// The first to call it runs something, for whose end the others wait.
        case runs
    }
    /// A queue: the id of one, or of semaphores (sysvipc(7)).
    enum Object: UInt8 { case address, descriptor, process, queue }
    /// Direction of the bytes: a thread that takes (reads) them waits for one that gives (writes) them, and vice versa.
    enum Flow: UInt8 {
        case takes, gives
        var opposite: Flow { self == .takes ? .gives : .takes }
    }

    /// nil: it does not wait.
    package var kind: WaitKind?
    var act: Act?
    var object = Object.address
    /// It may return because the time is over.
    var isTimed = false
    /// Several threads may have the object at a time.
    var isShared = false
    /// It takes descriptors of any kind.
    var isOfAnyDescriptor = false
    /// It is futex(2), and says on which word alone.
    var isFutexCall = false
    /// It waits by a function that is `isFutexCall`, and says what for.
    var waitsByFutexCall = false
    /// Direction of a call on pipes or sockets; nil: neither, or both.
    var flow: Flow?
}

extension WaitingFunction {
    private static let known: [String: WaitingFunction] = {
        var known: [String: WaitingFunction] = [:]
        func add(_ names: String, _ function: WaitingFunction) {
            for name in names.split(whereSeparator: { $0.isWhitespace }) { known[String(name)] = function }
        }
        add("pthread_mutex_lock pthread_rwlock_wrlock pthread_spin_lock mtx_lock flockfile", .init(kind: .lock, act: .acquires))
        add("pthread_rwlock_rdlock", .init(kind: .lock, act: .acquires, isShared: true))
        add(
            "pthread_mutex_timedlock pthread_mutex_clocklock pthread_rwlock_timedwrlock pthread_rwlock_clockwrlock mtx_timedlock",
            .init(kind: .lock, act: .mayAcquire, isTimed: true))
        add("pthread_rwlock_timedrdlock pthread_rwlock_clockrdlock", .init(kind: .lock, act: .mayAcquire, isTimed: true, isShared: true))
        add(
            "pthread_mutex_trylock pthread_rwlock_trywrlock pthread_spin_trylock mtx_trylock ftrylockfile", .init(act: .mayAcquire))
        add("pthread_rwlock_tryrdlock sem_trywait", .init(act: .mayAcquire, isShared: true))
        add(
            "pthread_mutex_unlock pthread_rwlock_unlock pthread_spin_unlock mtx_unlock funlockfile sem_post dispatch_semaphore_signal",
            .init(act: .releases))
        // Anybody may post a semaphore: it is no lock, though it may be used as one.
        add("sem_wait", .init(kind: .condition, act: .mayAcquire, isShared: true))
        add("sem_timedwait sem_clockwait dispatch_semaphore_wait", .init(kind: .condition, act: .mayAcquire, isTimed: true, isShared: true))
        add("pthread_cond_wait cnd_wait _ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE", .init(kind: .condition, act: .suspends))
        add("pthread_cond_timedwait pthread_cond_clockwait cnd_timedwait", .init(kind: .condition, act: .suspends, isTimed: true))
        add(
            """
            pthread_cond_signal pthread_cond_broadcast cnd_signal cnd_broadcast _ZNSt18condition_variable10notify_oneEv
            _ZNSt18condition_variable10notify_allEv
            """, .init(act: .signals))
        add("pthread_barrier_wait", .init(kind: .condition))
        add("semop semtimedop", .init(kind: .condition, object: .queue))
        add("pthread_once call_once", .init(kind: .lock, act: .runs))
        add("swift_once dispatch_once dispatch_once_f", .init(kind: .lock, act: .runs, waitsByFutexCall: true))
        add("dispatch_sync dispatch_sync_f", .init(kind: .lock))
        // Who initializes the variable releases the guard.
        add("__cxa_guard_acquire g_once_init_enter g_once_init_enter_pointer", .init(kind: .lock, act: .mayAcquire, waitsByFutexCall: true))
        add("__cxa_guard_release __cxa_guard_abort g_once_init_leave g_once_init_leave_pointer", .init(act: .releases))
        // The agent records an argument of futex(2) alone.
        add("syscall", .init(kind: .lock, act: .waitsOrSignals, isTimed: true, isFutexCall: true))
        // GLib's glib/gthread-posix.c, Qt's src/corelib/thread/qmutex_linux.cpp and qsemaphore.cpp.
        add("g_mutex_lock _ZN6QMutex4lockEv _ZN11QBasicMutex12lockInternalEv", .init(kind: .lock, waitsByFutexCall: true))
        add(
            "_ZN6QMutex7tryLockEi _ZN11QBasicMutex12lockInternalEi _ZN11QBasicMutex12lockInternalE14QDeadlineTimer",
            .init(kind: .lock, isTimed: true, waitsByFutexCall: true))
        add(
            "dispatch_group_wait g_cond_wait g_async_queue_pop g_async_queue_pop_unlocked _ZN10QSemaphore7acquireEi",
            .init(kind: .condition, waitsByFutexCall: true))
        add(
            """
            g_cond_wait_until g_async_queue_timeout_pop g_async_queue_timeout_pop_unlocked _ZN10QSemaphore10tryAcquireEii
            _ZN10QSemaphore10tryAcquireEi14QDeadlineTimer
            """, .init(kind: .condition, isTimed: true, waitsByFutexCall: true))
        add("flock lockf", .init(kind: .lock, object: .descriptor))
        add("pthread_join pthread_timedjoin_np pthread_clockjoin_np thrd_join _ZNSt6thread4joinEv", .init(kind: .join))
        add("nanosleep clock_nanosleep usleep sleep thrd_sleep", .init(kind: .sleep))
        add("wait wait3 wait4 waitpid waitid vfork system posix_spawn posix_spawnp pclose", .init(kind: .child, object: .process))
        add("read readv", .init(kind: .other, object: .descriptor, isOfAnyDescriptor: true, flow: .takes))
        add("write writev", .init(kind: .other, object: .descriptor, isOfAnyDescriptor: true, flow: .gives))
        add("fstat splice tee", .init(kind: .other, object: .descriptor, isOfAnyDescriptor: true))
        add("recv recvfrom recvmsg recvmmsg", .init(kind: .socket, object: .descriptor, flow: .takes))
        add("send sendto sendmsg sendmmsg", .init(kind: .socket, object: .descriptor, flow: .gives))
        add("accept accept4 connect", .init(kind: .socket, object: .descriptor))
        add("poll ppoll select pselect", .init(kind: .event))
        add("epoll_wait epoll_pwait epoll_pwait2", .init(kind: .event, object: .descriptor))
        add("eventfd_read", .init(kind: .event, object: .descriptor, flow: .takes))
        add("msgrcv msgsnd", .init(kind: .pipe, object: .queue))
        add("mq_receive mq_send mq_timedreceive mq_timedsend", .init(kind: .pipe, object: .descriptor))
        add("sendfile vmsplice eventfd_write", .init(object: .descriptor, flow: .gives))
        add(
            """
            pread pwrite preadv pwritev preadv2 pwritev2 fsync fdatasync syncfs sync_file_range ftruncate fallocate posix_fallocate
            getdents copy_file_range readahead
            """, .init(kind: .disk, object: .descriptor))
        add(
            """
            sync msync open openat creat fopen freopen opendir readdir stat lstat statx fstatat newfstatat access faccessat rename renameat
            renameat2 unlink unlinkat mkdir rmdir link symlink truncate
            """, .init(kind: .disk))
        return known
    }()

    /// - Parameter name: as in the file, or of a system call. Other names of the same function are known too: __read, open64, __poll_chk.
    init?(_ name: String) {
        guard let known = Self.spellings(name).lazy.compactMap({ Self.known[$0] }).first else { return nil }
        self = known
    }

    /// The name, and the one that it is another name of: libc's aliases, and its variants of other offsets (lfs64(7)) or with checks.
    static func spellings(_ name: String) -> [String] {
        var rest = name[...]
        if rest.hasPrefix("__libc_") { rest = rest.dropFirst(7) } else if rest.hasPrefix("__") { rest = rest.dropFirst(2) }
        if rest.hasSuffix("_chk") { rest = rest.dropLast(4) }
        if rest.hasSuffix("64") { rest = rest.dropLast(2) }
        return [name, String(rest)]
    }

    /// Returns the text for a descriptor, a process or an address; nil if it was not recorded or is no valid number.
    func text(_ argument: UInt64) -> String? {
        guard argument != noArgument else { return nil }
        switch object {
        case .address: return argument < Self.firstAddress ? nil : "0x" + String(argument, radix: 16)
        // 56 bits of an int.
        case .descriptor: return Int32(truncatingIfNeeded: argument) < 0 ? nil : "descriptor \(Int32(truncatingIfNeeded: argument))"
        case .process: return Int32(truncatingIfNeeded: argument) <= 0 ? nil : "process \(Int32(truncatingIfNeeded: argument))"
        case .queue: return "id \(Int32(truncatingIfNeeded: argument))"
        }
    }

    /// vm.mmap_min_addr; a function that no other module calls may have lost its first argument (LLVM's dead argument elimination).
    private static let firstAddress: UInt64 = 4096

    /// A descriptor as the trace has it, in 56 bits, or the kernel in 64: an int.
    static func descriptor(_ argument: UInt64) -> UInt64 { UInt64(UInt32(truncatingIfNeeded: argument)) }
    static func descriptor(_ number: Int32) -> UInt64 { UInt64(UInt32(bitPattern: number)) }

    /// Returns one entry per row. A program's own function of such a name is unrelated, but Rust's library is linked into each program.
    package static func all(_ table: FunctionNames, of program: String) -> [WaitingFunction?] {
        [nil]
            + table.rows.map { row in
                let symbol = row.symbol.isEmpty ? row.name : row.symbol
                return (row.module == program ? nil : WaitingFunction(symbol)) ?? WaitingFunction(ofRust: symbol, row.name)
            }
    }

    /// Functions of Rust's library and of the crate `parking_lot` that wait by futex(2), or wake. Where the plan has marked them
    /// (RustWaits.swift), their first argument is recorded.
    private static let knownOfRust: [String: WaitingFunction] = {
        var known: [String: WaitingFunction] = [:]
        func add(_ names: String, _ function: WaitingFunction) {
            for name in names.split(whereSeparator: { $0.isWhitespace }) { known[String(name)] = function }
        }
        add(
            """
            Mutex::lock_contended RwLock::read_contended RwLock::write_contended RawMutex::lock_slow RawRwLock::lock_shared_slow
            RawRwLock::lock_exclusive_slow
            """, .init(kind: .lock, act: .waits, waitsByFutexCall: true))
        add("Once::call", .init(kind: .lock, act: .runs, waitsByFutexCall: true))
        add("Once::wait", .init(kind: .lock, waitsByFutexCall: true))
        add("Condvar::wait", .init(kind: .condition, act: .suspends, waitsByFutexCall: true))
        add(
            "Condvar::wait_timeout Condvar::wait_until_internal",
            .init(kind: .condition, act: .suspends, isTimed: true, waitsByFutexCall: true))
        add("Barrier::wait", .init(kind: .condition, waitsByFutexCall: true))
        add("Thread::park Parker::park thread::park functions::park", .init(kind: .condition, act: .waits, waitsByFutexCall: true))
        add(
            "Thread::park_timeout Parker::park_timeout thread::park_timeout functions::park_timeout",
            .init(kind: .condition, act: .waits, isTimed: true, waitsByFutexCall: true))
        add("futex::futex_wait", .init(kind: .lock, act: .waits, isTimed: true, isFutexCall: true))
        add(
            """
            Mutex::wake RwLock::wake_writer_or_readers Condvar::notify_one Condvar::notify_all futex::futex_wake futex::futex_wake_all
            RawMutex::unlock_slow RawRwLock::unlock_shared_slow RawRwLock::unlock_exclusive_slow Condvar::notify_one_slow
            Condvar::notify_all_slow
            """, .init(act: .signals))
        return known
    }()
    /// - Parameter name: `std::sys::sync::mutex::futex::Mutex::lock_contended`; in the new mangling
    ///   `<std::sys::sync::mutex::futex::Mutex>::lock_contended`
    private init?(ofRust symbol: String, _ name: String) {
        guard symbol.hasPrefix("_R") || symbol.hasPrefix("_ZN"), !name.contains("(") else { return nil }
        let path = name.filter { $0 != "<" && $0 != ">" }
        guard path.hasPrefix("std::") || path.hasPrefix("parking_lot") else { return nil }
        let parts = path.split(separator: ":").suffix(2)
        guard parts.count == 2, let known = Self.knownOfRust[parts.joined(separator: "::")] else { return nil }
        self = known
    }

    /// Returns the library part of each row's function.
    static func parts(_ table: FunctionNames, _ functions: [WaitingFunction?]) -> [LibraryPart] {
        [.none]
            + table.rows.enumerated().map { index, row in
                guard libraries.contains(where: { row.module.hasPrefix($0) }) else { return .none }
                if let kind = functions[index + 1]?.kind { return .call(kind) }
                return inner.contains { row.symbol.hasPrefix($0) } ? .inner : .none
            }
    }
    private static let libraries = ["libc.so.", "libpthread.so.", "libdispatch.so"]
    /// Name prefixes of functions by which these libraries wait and that nobody else calls: glibc's nptl, Dispatch's shims/lock.c.
    private static let inner = ["__lll_", "__futex_", "futex_", "do_futex_", "__new_sem_", "__pthread_", "_dispatch_"]
}

/// Role of a function in a library whose calls are known to wait, where the library's own functions are recorded as well.
enum LibraryPart: Equatable, Sendable {
    /// Not of such a library, or called by others too: by an initializer within `pthread_once`, by a signal handler.
    case none
    /// It says nothing of what for: `__lll_lock_wait`.
    case inner
    case call(WaitKind)

    /// True if the caller shows what this call waits for: the library's `waitpid` waits in `wait4`, its `sleep` in `nanosleep`. But an
    /// `epoll_wait` within `select` was made by a signal handler.
    func isSaid(by caller: LibraryPart) -> Bool {
        switch self {
        case .none: false
        case .inner: true
        case .call(let kind): self == caller && (kind == .child || kind == .sleep || kind == .join)
        }
    }
}

extension RunSummary {
    /// Functions to leave out of another recording, without those that `waits` needs; nil: none, or the times are not all of the run's.
    package var exclusionAdvice: ExclusionAdvice? { exclusionAdvice { WaitingFunction($0) != nil } }
}
