// A time in which a thread had no CPU, with the reason.
import Presentation
import TraceFormat

package struct Wait: Sendable {
    package struct Holder: BitwiseCopyable, Sendable {
        /// Index among the process's threads.
        package var thread: Int
        /// When it got what the other waits for.
        package var since: UInt64
        /// When it let go of that; .max: it has not.
        var until: UInt64
        /// The call by which it did.
        var act: OpenCall
        /// Innermost call that it was in as the other began to wait, or as it took the object if that was later. Calls that wait, lock
        /// or signal are skipped.
        package var inside = OpenCall()
        /// Number of the load that the thread made, if it is the loader's lock.
        package var load: UInt32?
    }
    package struct Waker: BitwiseCopyable, Sendable {
        package var thread: Int
        /// The call that let the thread go on; no row: the thread ended.
        package var act: OpenCall
        package var at: UInt64
        /// From then until the thread ran; nil unknown.
        package var late: UInt64?
    }

    /// A thread of another process that let this one go on.
    package struct OtherProcess: Equatable, Sendable {
        package var name: String
        package var pid: UInt32
        package var tid: UInt32
        /// Start of its trace, CLOCK_MONOTONIC in nanoseconds; and the thread's index there, nil if it made no recorded call.
        var begun: UInt64
        var thread: UInt32?
        /// The call by which it did, and what that was made in; nil: the process ended.
        package var function: String?
        package var caller: String?
        /// From the beginning of that until the thread ran.
        package var late: Nanoseconds
    }

    /// Who could have written, or read, what it waited for.
    package struct Peer: Equatable, Sendable {
        var name: String
        package var pid: UInt32
        var descriptor: Int32

        package init(name: String, pid: UInt32, descriptor: Int32) {
            self.name = name
            self.pid = pid
            self.descriptor = descriptor
        }
    }

    /// Index among the process's threads.
    package var thread: Int
    /// Left the CPU, and had it again. Of several stretches in one call the first's begin and the last's end.
    package var begin: UInt64
    package var end: UInt64
    /// Off-CPU in between.
    package var duration: UInt64
    /// How many stretches that is.
    package var count = 1
    package var kind: WaitKind
    /// The call that it waited in.
    package var call: OpenCall
    /// In place of `call`, which does not say it: the call that says on which word of memory; or `call` with the word that the kernel
    /// had.
    var futex: OpenCall?
    /// Text for what it waited for; nil unknown.
    package var object: String?
    /// True if `object` is what the descriptor is open on, not its number.
    var isOpenOn = false
    /// The system call it was found in, where no recorded call shows it.
    package var systemCall: String?
    package var holder: Holder?
    /// How often others took the lock in that time.
    var handovers = 0
    package var waker: Waker?
    /// In place of a waker, where the run knows more than the process (RunWakers.swift).
    package var otherProcess: OtherProcess?
    /// Peers of what it waited for, where no waker is known.
    package var peers: [Peer] = []
    /// The thread waited for work, and nobody for the thread (IdleWaits.swift).
    package internal(set) var isIdle = false
}

extension Wait {
    /// The call that says for which object it waited.
    var act: OpenCall { futex ?? call }

    package init(thread: Int, begin: UInt64, end: UInt64, duration: UInt64, kind: WaitKind, call: OpenCall) {
        self.init(thread: thread, begin: begin, end: end, duration: duration, count: 1, kind: kind, call: call)
    }
}

extension Wait.OtherProcess {
    /// A process that ended.
    package init(name: String, pid: UInt32, tid: UInt32, begun: UInt64, thread: UInt32?, late: Nanoseconds) {
        self.init(name: name, pid: pid, tid: tid, begun: begun, thread: thread, function: nil, late: late)
    }
}
