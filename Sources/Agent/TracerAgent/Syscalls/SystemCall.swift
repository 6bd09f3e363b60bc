// Raw system calls. The agent runs before libc and inside signal handlers, so it asks the kernel itself; errno of the
// traced program is never touched. A result in -4095 ... -1 is minus an errno (syscall(2)).
import CSupport

extension SystemCall {
    static let closeRange = 436
    static let currentDirectory = -100 // AT_FDCWD

    @inline(__always)
    static func call(
        _ number: Int, _ a: Int = 0, _ b: Int = 0, _ c: Int = 0, _ d: Int = 0, _ e: Int = 0,
        _ f: Int = 0
    ) -> Int {
        tracer_system_call(number, a, b, c, d, e, f)
    }
}

@inline(__always) func bits(_ pointer: UnsafeRawPointer?) -> Int { Int(bitPattern: pointer) }
@inline(__always) func failed(_ result: Int) -> Bool { result < 0 && result > -4096 }

/// The errno values that a user can do something about.
enum Failure {
    static let permitted = 1, noEntry = 2, noProcess = 3, interrupted = 4, again = 11, memory = 12, access = 13, exists = 17,
        notDirectory = 20, invalid = 22
    static let fileTable = 23, descriptors = 24
    static let tooBig = 27, space = 28, readOnly = 30, loop = 40, notSupported = 95, pipe = 32, quota = 122, noSystemCall = 38, address = 14
    static let cut = 4096 // our own: above every errno

    static func text(_ number: Int) -> StaticString {
        switch number {
        case noEntry: "no such directory"
        case access, permitted: "permission denied"
        case exists: "it exists and is not a trace of tracer's"
        case notDirectory: "part of the path is not a directory"
        case 21: "it is a directory"
        case fileTable, descriptors: "no file descriptors left"
        case tooBig: "file size limit reached"
        case space: "no space left on the device"
        case readOnly: "read-only file system"
        case loop: "it is a symbolic link"
        case quota: "disk quota exceeded"
        case cut, address: "the file was truncated, or its disk is full"
        case memory: "out of memory"
        case 36: "the name is too long"
        default: "the system call failed"
        }
    }
}

enum Memory {
    static let none = 0, execute = 4, readWrite = 3, readExecute = 5, readOnly = 1, readWriteExecute = 7

    /// Zeroed private pages, or nil.
    static func pages(_ byteCount: Int) -> UnsafeMutableRawPointer? {
        let result = SystemCall.call(SystemCall.mmap, 0, byteCount, readWrite, Mapping.pages, -1, 0)
        return failed(result) ? nil : UnsafeMutableRawPointer(bitPattern: result)
    }
    /// The same at this very address; nil also where something is mapped already.
    @inline(never) static func pages(at address: UInt64, _ byteCount: Int, _ protection: Int = readWrite) -> UInt64? {
        let flags = Mapping.pages | Mapping.fixedNoReplace
        let result = SystemCall.call(SystemCall.mmap, Int(bitPattern: UInt(address)), byteCount, protection, flags, -1, 0)
        if failed(result) { return nil }
        if UInt64(result) == address { return address }
        release(UnsafeMutableRawPointer(bitPattern: result), byteCount) // before Linux 4.17 a mere hint
        return nil
    }
    /// Puts zeroed private pages in the place of others. False when the kernel refuses; nothing has changed then.
    @discardableResult static func replace(_ address: UnsafeMutableRawPointer, _ byteCount: Int) -> Bool {
        !failed(SystemCall.call(SystemCall.mmap, bits(address), byteCount, readWrite, Mapping.pages | Mapping.fixed, -1, 0))
    }
    /// True when the word there may be read: a futex's value is compared before anything is waited for, and then not for long
    /// (kernel/futex/waitwake.c, futex_wait_setup). Valgrind, too, knows this call.
    static func isReadable(_ address: UInt64) -> Bool {
        var noTime: (Int, Int) = (0, 0)
        return withUnsafePointer(to: &noTime) {
            SystemCall.call(SystemCall.futex, Int(bitPattern: UInt(address)), Futex.wait | Futex.isPrivate, 0, bits($0)) != -Failure.address
        }
    }
    /// Waits for so many nanoseconds: for a change of a word that nobody reports.
    static func pause(_ nanoseconds: Int) {
        var word: UInt32 = 0, time = Timespec(seconds: 0, nanoseconds: nanoseconds)
        withUnsafePointer(to: &time) { time in
            withUnsafeMutablePointer(to: &word) {
                _ = SystemCall.call(SystemCall.futex, bits($0), Futex.wait | Futex.isPrivate, 0, bits(time))
            }
        }
    }
    /// Copies a word that may not be there any more. Returns 8, or minus an errno: EFAULT where nothing is mapped.
    static func copyWord(from address: UInt64, to word: inout UInt64) -> Int {
        withUnsafeMutablePointer(to: &word) { copy(from: address, to: $0, 8) }
    }
    /// Copies bytes that may not be there any more; the kernel reads no memory of a device (mm/gup.c, check_vma_flags). Returns how many could
    /// be read from the first on, or minus an errno: EFAULT if none could.
    @inline(never) static func copy(from address: UInt64, to buffer: UnsafeMutableRawPointer, _ byteCount: Int) -> Int {
        var local = (UInt64(UInt(bitPattern: buffer)), UInt64(byteCount)), remote = (address, UInt64(byteCount)) // struct iovec
        return withUnsafePointer(to: &local) { local in
            withUnsafePointer(to: &remote) { remote in
                SystemCall.call(SystemCall.process_vm_readv, Int(Process.pid), bits(local), 1, bits(remote), 1, 0)
            }
        }
    }
    /// Adds nothing to the word there: 0 or more when it may be written to, -EFAULT when not. FUTEX_WAKE_OP with FUTEX_OP_ADD 0
    /// (futex(2)) writes to its second word before anything else; nobody waits for the first one, which is ours.
    static func tryWriting(_ address: UInt64) -> Int {
        var own: UInt32 = 0
        return withUnsafePointer(to: &own) {
            SystemCall.call(
                SystemCall.futex, bits($0), Futex.wakeOperation | Futex.isPrivate, 0, 0, Int(bitPattern: UInt(address)), 1 &<< 28)
        }
    }
    /// MADV_POPULATE_WRITE (Linux 5.14): all page faults at once. An old kernel refuses, and they come one by one.
    /// 0, or minus an errno: EFAULT where a touch would have raised SIGBUS.
    @discardableResult
    static func populate(_ address: UnsafeMutableRawPointer, _ byteCount: Int) -> Int {
        SystemCall.call(SystemCall.madvise, bits(address), byteCount, Advice.populateWrite)
    }
    /// MADV_POPULATE_READ (Linux 5.14), likewise for reading: 0, or minus an errno.
    static func fetch(_ address: UnsafeMutableRawPointer, _ byteCount: Int) -> Int {
        SystemCall.call(SystemCall.madvise, bits(address), byteCount, Advice.populateRead)
    }
    /// False: some of these pages are locked (mlock(2)), of which MADV_COLD says EINVAL (mm/madvise.c, can_madv_lru_vma), or this kernel
    /// does not know that.
    static func isSurelyNotLocked(_ address: UInt64, _ byteCount: Int) -> Bool {
        SystemCall.call(SystemCall.madvise, Int(bitPattern: UInt(address)), byteCount, Advice.cold) == 0
    }
    /// Returns true if the bytes are equal, which are whole words, both aligned.
    static func isSame(_ one: UnsafeRawPointer, _ other: UnsafeRawPointer, _ byteCount: Int) -> Bool {
        func word(_ bytes: UnsafeRawPointer, _ offset: Int) -> UInt64 { bytes.load(fromByteOffset: offset, as: UInt64.self) }
        var offset = 0
        while offset &+ 32 <= byteCount {
            let first = word(one, offset) ^ word(other, offset), second = word(one, offset &+ 8) ^ word(other, offset &+ 8)
            let third = word(one, offset &+ 16) ^ word(other, offset &+ 16), fourth = word(one, offset &+ 24) ^ word(other, offset &+ 24)
            if first | second | third | fourth != 0 { return false }
            offset = offset &+ 32
        }
        while offset < byteCount {
            if word(one, offset) != word(other, offset) { return false }
            offset = offset &+ 8
        }
        return true
    }
    /// MADV_HUGEPAGE, where the kernel is asked for it (transparent_hugepage/enabled: madvise): two megabytes by one page fault.
    static func preferLargePages(_ address: UnsafeMutableRawPointer, _ byteCount: Int) {
        if byteCount >= 1 &<< 22 { _ = SystemCall.call(SystemCall.madvise, bits(address), byteCount, Advice.hugePage) }
    }
    /// Nothing where there is nothing: at address 0 the program may have memory.
    static func release(_ address: UnsafeMutableRawPointer?, _ byteCount: Int) {
        if address == nil { return }
        _ = SystemCall.call(SystemCall.munmap, bits(address), byteCount)
    }
    /// Whole pages around the range. False when the kernel refuses.
    @discardableResult
    static func protect(_ address: UInt64, _ byteCount: UInt64, _ protection: Int) -> Bool {
        let page = UInt64(Memory.pageBytes)
        let low = address & ~(page &- 1)
        let high = (address &+ byteCount &+ page &- 1) & ~(page &- 1)
        return SystemCall.call(SystemCall.mprotect, Int(bitPattern: UInt(low)), Int(high &- low), protection) == 0
    }
    /// In the place of whatever is there. False when the kernel refuses; nothing has changed then.
    static func move(_ pages: UnsafeMutableRawPointer, _ byteCount: Int, to address: UInt64) -> Bool {
        !failed(
            SystemCall.call(
                SystemCall.mremap, bits(pages), byteCount, byteCount, Mapping.mayMoveTo, Int(bitPattern: UInt(address))))
    }
    /// Puts memory of the process's own with the same content in the place of a file's. False: there is none.
    static func makePrivate(_ address: UnsafeMutableRawPointer, _ byteCount: Int) -> Bool {
        guard let copy = pages(byteCount) else { return false }
        copy.copyMemory(from: address, byteCount: byteCount)
        if move(copy, byteCount, to: UInt64(UInt(bitPattern: address))) { return true }
        release(copy, byteCount)
        return false
    }
    /// Makes what was written here code. On aarch64 the fetching of instructions must be synchronized. No other core can have
    /// fetched what stood here before: these pages were not executable then, or, at start, there was no other thread.
    static func protectCode(_ address: UInt64, _ byteCount: UInt64) -> Bool {
        tracer_code_written(address, address &+ byteCount)
        return protect(address, byteCount, readExecute)
    }
    /// The whole pages that hold `byteCount` bytes.
    static func wholePages(_ byteCount: Int) -> Int { (byteCount &+ Memory.pageBytes &- 1) & ~(Memory.pageBytes &- 1) }
}

struct Timespec { var seconds = 0, nanoseconds = 0 }

enum Clock {
    /// The recording clock: TRACE_CLOCK_….
    nonisolated(unsafe) static var source: UInt32 = 0
    /// Frequency of the recording clock; 0 unknown.
    nonisolated(unsafe) static var ticksPerSecond: UInt64 = 0

    static func nanoseconds(_ clock: Int) -> UInt64 {
        var time = Timespec()
        _ = withUnsafeMutablePointer(to: &time) {
            SystemCall.call(SystemCall.clock_gettime, clock, bits($0))
        }
        return UInt64(time.seconds) &* 1_000_000_000 &+ UInt64(time.nanoseconds)
    }
    static func monotonic() -> UInt64 { nanoseconds(ClockNumber.monotonic) }
    static func realtime() -> UInt64 { nanoseconds(ClockNumber.realtime) }
    /// CPU time of the calling thread, in nanoseconds.
    static func ofThread() -> UInt64 { nanoseconds(ClockNumber.thread) }

    /// The recording clock.
    @inline(__always) static func ticks() -> UInt64 {
        source == UInt32(TRACE_CLOCK_MONOTONIC) ? monotonic() : tracer_cycles()
    }
    /// Returns the number of ticks of the recording clock in a time, at least 1. Where the CPU does not say how long a tick is, it is
    /// measured for 1 ms, good to a few parts in ten thousand.
    static func ticks(in nanoseconds: UInt64) -> UInt64 {
        var perSecond = ticksPerSecond
        if perSecond == 0 {
            let first = sample()
            while monotonic() &- first.monotonic_ns < 1_000_000 {}
            let last = sample()
            perSecond = (last.ticks &- first.ticks) &* 1_000_000_000 / (last.monotonic_ns &- first.monotonic_ns)
        }
        let count: UInt64 = nanoseconds / 1_000_000 &* (perSecond / 1000) &+ nanoseconds % 1_000_000 &* (perSecond / 1000) / 1_000_000
        return max(count, 1)
    }
    /// Both clocks at one moment: the cheapest of three readings is the least disturbed one.
    static func sample() -> trace_clock_sample { measuredSample().sample }
    /// And how many ticks lie between the reading before the other clock's and the one after it.
    static func measuredSample() -> (sample: trace_clock_sample, width: UInt64) {
        var best = trace_clock_sample(ticks: 0, monotonic_ns: 0)
        var width = UInt64.max
        for _ in 0..<3 {
            let before = ticks()
            let time = monotonic()
            let after = ticks()
            if after &- before < width {
                width = after &- before
                best = trace_clock_sample(ticks: before &+ width / 2, monotonic_ns: time)
            }
        }
        return (best, width)
    }
}
