// Frames that were left: closed because the thread runs above them on the same stack. Nearly always a longjmp or an
// exception left them for good. But a program may copy a part of its stack away, run something else in its place, and
// copy it back (greenlet, and with it gevent; stacklets; continuations of language runtimes): then such a frame
// returns after all, through the record that rbx holds. So the record is taken out of the chain and kept, with its
// return address, until many more have been left after it; another one takes its place. The first that does return
// says what this thread is doing. From then on its frames are treated like those of an unknown stack: each has a
// record of its own until it returns itself, which is right in any order, and slower.
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
    /// 2 MB for each thread that leaves so many.
    private static let mostKept: UInt64 = 16384

    /// Takes a closed frame out of the chain. Its record keeps what a return needs.
    func leave(_ frame: Frame) {
        let below = frame.pointee.below!
        frame.setLeft()
        if let fresh = recordInstead() {
            fresh.pointee.level = frame.pointee.level
            fresh.pointee.last = frame.pointee.last
            fresh.pointee.below = below
            fresh.pointee.above = frame.pointee.above
            if let above = frame.pointee.above { above.pointee.below = fresh }
            below.pointee.above = fresh
        } else {
            below.pointee.above = nil // no memory: the chain ends here, and calls pass until there is some
        }
        frame.pointee.newer = nil
        if let newest = unit.pointee.newest_left { newest.pointee.newer = frame } else { unit.pointee.oldest_left = frame }
        unit.pointee.newest_left = frame
        unit.pointee.left_count &+= 1
    }

    private func recordInstead() -> Frame? {
        while unit.pointee.left_count > ThreadRecorder.mostKept && unit.pointee.copies_stack == 0 {
            let oldest = unit.pointee.oldest_left!
            unit.pointee.oldest_left = oldest.pointee.newer
            unit.pointee.left_count &-= 1
            // A trampoline that a signal interrupted may have had it in its hands, and has used it since: forget it.
            if !oldest.isLeft { continue }
            oldest.pointee.slot = nil
            oldest.pointee.place = 0
            return oldest
        }
        if unit.pointee.spare == nil {
            // Few at a time: many threads leave one frame and no more.
            guard let (start, count) = newBatch(agent.pageBytes) else { return nil }
            for n in 0..<count {
                let frame = (start + n &* Int(FRAME_BYTES)).assumingMemoryBound(to: frame_record.self)
                frame.pointee.newer = unit.pointee.spare
                unit.pointee.spare = frame
            }
        }
        let frame = unit.pointee.spare!
        unit.pointee.spare = frame.pointee.newer
        return frame
    }

    /// A frame that was left returns. The file has its end already.
    func returnFromLeft() {
        unit.pointee.copies_stack = 1
        ThreadRecorder.distrustStack(of: unit)
    }

    /// No address is on the thread's own stack any more: every frame gets a record apart.
    static func distrustStack(of unit: UnsafeMutablePointer<thread_unit>) {
        unit.pointee.stack_low = .max
        unit.pointee.stack_high = .max
        unit.pointee.state.pointee.low = .max
    }

    /// False for a record whose place in the chain another one has taken while a signal handler ran.
    func isInChain(_ frame: Frame) -> Bool {
        var place = top
        while place != base {
            if place == frame { return true }
            place = place.pointee.below
        }
        return false
    }
}
