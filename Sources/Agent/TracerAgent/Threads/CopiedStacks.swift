// A thread that copies its stacks (StackCopying.swift).
import CSupport

extension ThreadRecorder {
    /// No address is on the thread's own stack any more: every frame gets a record apart.
    func distrustStack() {
        context.pointee.copies_stack = 1
        context.pointee.stack_low = .max
        context.pointee.stack_high = .max
        state.pointee.low = .max
    }

    /// A frame from before ends out of turn: its record leaves the chain, for good.
    func takeOut(_ frame: Frame) {
        frame.giveUp()
        frame.pointee.below.pointee.above = frame.pointee.above
        if let above = frame.pointee.above { above.pointee.below = frame.pointee.below }
    }
}
