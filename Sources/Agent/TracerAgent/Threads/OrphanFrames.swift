// Open frames on other stacks whose thread has ended: another thread may go on with the coroutine, or nobody ever will. They move to a
// context that is no thread's, so that all that the thread had is given back. ThreadRecorder.lock is held.
import CSupport

extension ThreadRecorder {
    nonisolated(unsafe) private static var orphanState = thread_state()
    /// Above this number, 8 MB, none is waited for any longer.
    private static let mostOrphans: UInt64 = 65536

    /// nil: no thread has left any.
    static var orphans: ThreadContext? { orphanState.context }

    private static func makeOrphans() -> ThreadContext? {
        if let context = orphans { return context }
        guard let pages = Memory.pages(Int(CONTEXT_BYTES)) else { return nil }
        let context = pages.assumingMemoryBound(to: thread_context.self)
        context.pointee.copies_stack = 1
        context.pointee.session = session
        context.pointee.state = withUnsafeMutablePointer(to: &orphanState) { $0 }
        orphanState.context = context
        if ThreadRecorder(context.pointee.state).setLists(1 << UInt32(MOST_LIST_BITS)) { return context }
        Memory.release(pages, Int(CONTEXT_BYTES))
        orphanState.context = nil
        return nil
    }

    /// False: another thread has one of them, or of the orphans, in its hands.
    static func adoptFrames(of context: ThreadContext) -> Bool {
        if context.pointee.visitors != 0 { return false }
        if !hasAlternate(context) { return true }
        guard let adopting = makeOrphans() else { return true } // their ends are lost
        if adopting.pointee.visitors != 0 { return false }
        let adopter = ThreadRecorder(adopting.pointee.state), dead = ThreadRecorder(context.pointee.state, context)
        adopter.collectEnded()
        if adopting.pointee.alternate_count >= mostOrphans { adopter.forEachOpen { adopter.giveBack($0) } }
        // Two frames at one address of one stack are a call and its tail calls, of one thread: an older one was left.
        dead.forEachOpen { adopter.forget(at: $0.pointee.stack_pointer) }
        dead.forEachOpen { adopter.adopt($0) }
        return true
    }
    @inline(never) private func forEachOpen(_ body: (Frame) -> Void) { forEachAlternate { if !$0.isFilling && !$0.isLost { body($0) } } }
    @inline(never) private func forget(at stackPointer: UInt64) {
        var next = list(of: stackPointer).pointee
        while let frame = next {
            next = frame.pointee.older
            if frame.pointee.stack_pointer == stackPointer { giveBack(frame) }
        }
    }
    @inline(never) private func adopt(_ frame: Frame) {
        guard let copy = takeRecord() else { return }
        copy.pointee = frame.pointee
        copy.pointee.owner = context
        copy.pointee.use = UInt32(USE_OPEN)
        copy.pointee.on_signal_stack = 0
        if copy.isWritten { copy.setElsewhere() }
        let list = list(of: copy.pointee.stack_pointer)
        copy.pointee.older = list.pointee
        list.pointee = copy
        context.pointee.alternate_count &+= 1
    }
}
