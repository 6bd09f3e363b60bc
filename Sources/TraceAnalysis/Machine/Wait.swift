// A time in which a thread had no processor, with the reason.
import Presentation
import TraceFormat

struct Wait: Sendable {
    struct Holder: BitwiseCopyable, Sendable {
        /// Index among the process's threads.
        var thread: Int
        /// When it got what the other waits for.
        var since: UInt64
        /// When it let go of that; .max: it has not.
        var until: UInt64
        /// The call by which it did.
        var act: OpenCall
        /// What it was in as the other began to wait, but for calls that wait themselves.
        var inside = OpenCall()
    }
    struct Waker: BitwiseCopyable, Sendable {
        var thread: Int
        /// The call that let the thread go on; no row: the thread ended.
        var act: OpenCall
        var at: UInt64
        /// From then until the thread ran; nil unknown.
        var late: UInt64?
    }

    /// A thread of another process that let this one go on.
    struct Outsider: Equatable, Sendable {
        var name: String
        var pid: UInt32
        var tid: UInt32
        /// Of which trace of the run: when that begins, CLOCK_MONOTONIC; and the thread there, nil where it made no call.
        var begun: UInt64
        var thread: UInt32?
        /// The call by which it did, and what that was made in; nil: the process ended.
        var function: String?
        var caller: String?
        /// From the beginning of that until the thread ran.
        var late: Nanoseconds
    }

    /// Who could have written, or read, what it waited for.
    struct OtherEnd: Equatable, Sendable {
        var name: String
        var pid: UInt32
        var descriptor: Int32
    }

    /// Index among the process's threads.
    var thread: Int
    /// Left the processor, and had it again. Of several stretches in one call the first's begin and the last's end.
    var begin: UInt64
    var end: UInt64
    /// Off the processor in between.
    var duration: UInt64
    /// How many stretches that is.
    var count = 1
    var kind: WaitKind
    /// That it waited in.
    var call: OpenCall
    /// What it waited for; nil unknown.
    var object: String?
    /// That is what its descriptor is open on, and not the number.
    var isOpenOn = false
    /// The system call it was found in, where no traced call tells.
    var systemCall: String?
    var holder: Holder?
    /// How often others took the lock in that time.
    var handovers = 0
    var waker: Waker?
    /// In place of a waker, where the run knows more than the process (RunWakers.swift).
    var outsider: Outsider?
    /// Where nobody is known to have woken it.
    var otherEnds: [OtherEnd] = []
}
