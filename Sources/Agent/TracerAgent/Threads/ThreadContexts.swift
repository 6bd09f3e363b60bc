// The contexts of all threads: those that live, and those that have ended and were not found yet. Each is in a list, and in a table
// by what a later thread may have of it: its thread block. So a new thread costs the same among thousands. Its number says nothing: one
// thread of the kernel may have several blocks in turn (ARCH_SET_FS of arch_prctl(2)), and all are in use.
// ThreadRecorder.lock is held.
import CSupport

typealias ThreadContext = UnsafeMutablePointer<thread_context>

enum ThreadContexts {
    nonisolated(unsafe) private(set) static var first: ThreadContext?
    nonisolated(unsafe) private(set) static var count = 0
    /// Whom `forFew` asks next.
    nonisolated(unsafe) private static var turn: ThreadContext?
    /// First of each chain. nil: no memory, and they are found in turn alone.
    nonisolated(unsafe) private static var chains: UnsafeMutablePointer<ThreadContext?>?
    private static let chainCount = 1024

    private static func chain(block: UnsafeMutablePointer<thread_state>) -> UnsafeMutablePointer<ThreadContext?>? {
        guard let chains else { return nil }
        let hash = UInt64(UInt(bitPattern: block)) &* 0x9e37_79b9_7f4a_7c15 // 2^64 over the golden ratio
        return chains + Int(truncatingIfNeeded: hash &>> 54)
    }

    static func add(_ context: ThreadContext) {
        if chains == nil {
            chains = Memory.pages(chainCount &* MemoryLayout<ThreadContext?>.stride)?.assumingMemoryBound(to: ThreadContext?.self)
        }
        context.pointee.previous = nil
        context.pointee.next = first
        first?.pointee.previous = context
        first = context
        count &+= 1
        guard let byBlock = chain(block: context.pointee.state) else { return }
        context.pointee.same_block = byBlock.pointee
        byBlock.pointee = context
    }

    static func remove(_ context: ThreadContext) {
        count &-= 1
        if turn == context { turn = context.pointee.next }
        if let previous = context.pointee.previous { previous.pointee.next = context.pointee.next } else { first = context.pointee.next }
        context.pointee.next?.pointee.previous = context.pointee.previous
        guard var pointer = chain(block: context.pointee.state) else { return }
        while let other = pointer.pointee, other != context { pointer = tracer_same_block(other) }
        if pointer.pointee == context { pointer.pointee = context.pointee.same_block }
    }

    static func removeAll() {
        first = nil
        turn = nil
        count = 0
        if let chains { for n in 0..<chainCount { chains[n] = nil } }
    }

    /// `body` may remove the one that it is given.
    @inline(__always) static func forEach(block: UnsafeMutablePointer<thread_state>, _ body: (ThreadContext) -> Void) {
        var next = chain(block: block)?.pointee
        while let context = next {
            next = context.pointee.same_block
            if context.pointee.state == block { body(context) }
        }
    }
    /// `body` may remove the one that it is given.
    static func forAll(_ body: (ThreadContext) -> Void) {
        var next = first
        while let context = next {
            next = context.pointee.next
            body(context)
        }
    }
    /// The next `most`, in turn.
    @inline(__always) static func forFew(_ most: Int, _ body: (ThreadContext) -> Void) {
        if turn == nil { turn = first }
        for _ in 0..<most {
            guard let context = turn else { return }
            turn = context.pointee.next
            body(context)
        }
    }
}
