// A program may copy a part of its stack away, run something else in its place, and copy it back (greenlet, and with it gevent;
// stacklets; continuations of language runtimes). Then a frame that lies below the stack pointer, and for all that anyone can
// see was left for good, returns after all. Where it returns to is in its label; only its event has ended, as unwound. The
// first such return says what this thread is doing: from then on its frames are treated like those of an unknown stack, each
// with a record apart until it returns itself, which is right in any order, and slower.
import CSupport

/// Modules that are known to do this: every thread is treated so from the moment that one is there.
enum StackCopying {
    nonisolated(unsafe) private(set) static var isExpected = false
    private static let prefixes: InlineArray<_, StaticString> = [
        "_greenlet.", // Python's greenlet, under gevent and eventlet
    ]

    static func note(module path: CText) {
        let name = baseName(path)
        for n in 0..<prefixes.count where rest(of: name, after: prefixes[n]) != nil {
            isExpected = true
            ThreadRecorder.withUnits { ThreadRecorder.distrustStack(of: $0) }
        }
    }
}

extension ThreadRecorder {
    /// No address is on the thread's own stack any more: every frame gets a record apart.
    static func distrustStack(of unit: UnsafeMutablePointer<thread_unit>) {
        unit.pointee.copies_stack = 1
        unit.pointee.stack_low = .max
        unit.pointee.stack_high = .max
        unit.pointee.state.pointee.low = .max
    }

    /// A frame from before ends out of turn: its record leaves the chain, for good.
    func takeOut(_ frame: Frame) {
        frame.pointee.slot = nil
        frame.pointee.below.pointee.above = frame.pointee.above
        if let above = frame.pointee.above { above.pointee.below = frame.pointee.below }
    }
}
