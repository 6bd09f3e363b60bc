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

    /// A process whose end the thread waited for.
    struct Child: Equatable, Sendable {
        var name: String
        var pid: UInt32
        /// From its end until the thread ran.
        var late: Nanoseconds
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
    /// Of a run (EndedChildren.swift).
    var child: Child?
}
