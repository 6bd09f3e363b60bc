// Frames on other stacks that nobody returns to: an exception or longjmp has left them. They end when that is known, as unwound.
//
// - An exception is thrown and caught on one stack: what lies between the call that threw it and the one that has caught it was left.
// - longjmp and setcontext within a stack whose bounds are known leave what lies below their target.
// - On such a stack a call proves that what lies below it was left, and makecontext that all was.
// - A frame returns by the label in its return slot. If another word is there, or no memory, nothing will return by it.
//
// Nothing else proves it: a lower address may be on another stack. What was ended and returns all the same shows that the program copies
// its stacks (CopiedStacks.swift).
import CSupport

extension ThreadRecorder {
    private var mayLook: Bool { isAlternateOpen && context.pointee.busy == 0 && context.pointee.copies_stack == 0 }
    /// More steps than this are too many for one call.
    private static let mostSteps: UInt64 = 4096

    /// Ends the open frames of this thread whose stack pointers are in the range, which is on one stack, innermost first.
    private func endLeft(_ range: Range<UInt64>, _ now: UInt64) { forEachOpen(in: range) { end($0, now) } }

    /// The same of those from `low` up to a call at `stackPointer`, which returns to `address`. Another frame at that stack pointer was
    /// left, too, unless it has no slot of its own there.
    private func endLeft(from low: UInt64, by stackPointer: UInt64, returningTo address: UInt64) {
        if !mayLook { return }
        let now = Clock.ticks()
        endLeft(low..<stackPointer, now)
        forEachOpen(in: stackPointer..<stackPointer &+ 1) {
            if !ThreadRecorder.mayShare($0, returningTo: address) { end($0, now) }
        }
    }
    @inline(never) private func end(_ frame: Frame, _ now: UInt64) {
        writeUnwound(frame, now)
        closeAlternate(frame)
    }
    @inline(never) private func forEachOpen(in range: Range<UInt64>, _ body: (Frame) -> Void) {
        if !mayLook || range.isEmpty { return }
        let first = range.lowerBound &>> 4, last = (range.upperBound &- 1) &>> 4
        if context.pointee.unsorted != nil || last &- first > max(context.pointee.alternate_count, ThreadRecorder.mostSteps) {
            return forEachAlternate { if isSettled($0, in: range) { body($0) } }
        }
        var group = first
        while group <= last {
            var next = list(of: group &<< 4).pointee
            while let frame = next {
                next = frame.pointee.older
                if isSettled(frame, in: range) { body(frame) }
            }
            group &+= 1
        }
    }
    @inline(never) private func isSettled(_ frame: Frame, in range: Range<UInt64>) -> Bool {
        range.contains(frame.pointee.stack_pointer) && frame.isInUse && !frame.isFilling && !frame.isClosing
    }

    // MARK: - Exceptions

    /// A call has begun that raises an exception, or lets one go on. 0: the one that was caught last.
    func throwing(_ exception: UInt64, _ frame: Frame, isFirst: Bool) {
        if frame.pointee.owner == nil { return }
        tracer_throws(context)[Int(truncatingIfNeeded: context.pointee.throw_count % UInt64(THROWS))] = throwing_call(
            frame: frame, enter_ticks: frame.pointee.enter_ticks, exception: exception == 0 ? context.pointee.caught : exception,
            is_first: isFirst ? 1 : 0)
        context.pointee.throw_count &+= 1
    }

    /// __cxa_begin_catch is called: the exception has left everything down to the call that raised it.
    func caught(_ exception: UInt64, at stackPointer: UInt64, returningTo address: UInt64) {
        context.pointee.caught = exception
        if !mayLook || isOwnStack(stackPointer) { return }
        if let stack = KnownStacks.bounds(of: stackPointer) {
            return endLeft(from: stack.lowerBound, by: stackPointer, returningTo: address)
        }
        guard let first = raising(exception, below: stackPointer) else { return }
        let range = first.pointee.stack_pointer..<stackPointer
        // Nothing was called there after it, but for destructors, which have returned.
        var isWhole = true
        forEachOpen(in: range) {
            if $0.pointee.enter_ticks > first.pointee.enter_ticks && !isThrowing($0) { isWhole = false }
        }
        if isWhole { endLeft(from: range.lowerBound, by: stackPointer, returningTo: address) }
    }
    /// The call that has raised this exception: the latest.
    private func raising(_ exception: UInt64, below stackPointer: UInt64) -> Frame? {
        var n = context.pointee.throw_count
        let oldest = n &- min(n, UInt64(THROWS))
        while n > oldest {
            n &-= 1
            let call = tracer_throws(context)! + Int(truncatingIfNeeded: n % UInt64(THROWS))
            if call.pointee.exception == exception && call.pointee.is_first != 0 && isOpen(call) {
                return call.pointee.frame.pointee.stack_pointer < stackPointer ? call.pointee.frame : nil
            }
        }
        return nil
    }
    private func isThrowing(_ frame: Frame) -> Bool {
        var call = tracer_throws(context)!
        let end = call + Int(THROWS)
        while call < end {
            if call.pointee.frame == frame && isOpen(call) { return true }
            call += 1
        }
        return false
    }
    @inline(never) private func isOpen(_ call: UnsafeMutablePointer<throwing_call>) -> Bool {
        guard let frame = call.pointee.frame else { return false }
        return frame.isInUse && frame.pointee.owner == context && frame.pointee.enter_ticks == call.pointee.enter_ticks
    }

    // MARK: - Jumps

    /// longjmp or setcontext was called at `stackPointer`, and goes on at `target`.
    func jumped(from stackPointer: UInt64, to target: UInt64) {
        if target <= stackPointer || context.pointee.copies_stack != 0 { return }
        if isOwnStack(stackPointer) {
            if !isOwnStack(target) || isInsideSignalStack(stackPointer) { return }
            unwind { $0.pointee.stack_pointer >= target || $0.isJustTaken }
        } else if let stack = KnownStacks.bounds(of: stackPointer), stack.contains(target) {
            endLeft(stack.lowerBound..<target, Clock.ticks())
        }
    }

    // MARK: - Calls

    /// A call is made at `stackPointer`, on another stack. `address`: it returns there; nil: a tail call, by the frame at the same stack
    /// pointer.
    func endLeft(by stackPointer: UInt64, returningTo address: UInt64?) {
        if !mayLook { return }
        if ThreadRecorder.chainsFrames { return endChained(by: stackPointer, returningTo: address) }
        guard let address, let stack = KnownStacks.bounds(of: stackPointer) else { return }
        endLeft(from: stack.lowerBound, by: stackPointer, returningTo: address)
    }

    /// makecontext: another function begins on this stack, and nothing of what was there returns. Innermost frames alone are no sign of
    /// others further out, which its first page has.
    func beginStack(_ low: UInt64, _ high: UInt64) {
        if KnownStacks.add(low, high) || !mayLook { return }
        let first = max(low, high &- min(4096, high))
        let before = context.pointee.alternate_count, now = Clock.ticks()
        endLeft(first..<high, now)
        if context.pointee.alternate_count != before { endLeft(low..<first, now) }
    }

    // MARK: - Return slots

    /// Many frames are open: those whose return slots hold something else were left. Who copies stacks copies their slots, too.
    func lookForLeft() {
        if Architecture.returnsInRegister || !mayLook || context.pointee.alternate_count < max(context.pointee.look_at, 256) { return }
        let now = Clock.ticks()
        var isPermitted = true
        forEachAlternate { frame in
            if !isPermitted || frame.isFilling || frame.isClosing || frame.isInstrumented || frame.pointee.on_signal_stack != 0 { return }
            var word: UInt64 = 0
            let result = Memory.copyWord(from: frame.pointee.stack_pointer &+ UInt64(RETURN_SLOT), to: &word)
            // A trampoline that a signal has interrupted may have put the return address back.
            let isThere = ReturnLabels.label(containing: word) == frame.label || word == ReturnLabels.returnAddress(frame.label)
            if result == -Failure.address || result == 8 && !isThere {
                end(frame, now)
            } else if result != 8 {
                isPermitted = false
            }
        }
        context.pointee.look_at = isPermitted ? context.pointee.alternate_count &* 2 : .max
    }

    // MARK: - Levels, and what every call may prove

    /// All calls on other stacks take the slow path, so that the frames of each can be kept in a chain.
    static var chainsFrames: Bool { Limits.maximumDepth != 0 || Limits.hasTimeFilter }

    /// Number of frames that are open on the stack, a call at `stackPointer` included.
    func level(at stackPointer: UInt64) -> UInt32 {
        var level: UInt32 = 0
        KnownStacks.with(stackPointer) { stack in
            var frame = stack.pointee.innermost
            while let inner = frame, inner.pointee.stack_pointer < stackPointer { frame = inner.pointee.below }
            level = (frame?.pointee.level ?? 0) &+ 1
        }
        if level > 0 { return level }
        // The mapping stands in for the stack: it may hold several, whose frames then count together.
        if let mapping = ProcessMaps.mapping(around: stackPointer) {
            KnownStacks.add(mapping.lowerBound, mapping.upperBound, isMapping: true)
        }
        return 1
    }

    func chain(_ frame: Frame) {
        if !ThreadRecorder.chainsFrames { return }
        KnownStacks.with(frame.pointee.stack_pointer) { stack in
            frame.pointee.below = stack.pointee.innermost
            stack.pointee.innermost = frame
        }
    }
    func unchain(_ frame: Frame) {
        if !ThreadRecorder.chainsFrames { return }
        KnownStacks.with(frame.pointee.stack_pointer) { stack in
            if stack.pointee.innermost == frame {
                stack.pointee.innermost = frame.pointee.below
                return
            }
            var next = stack.pointee.innermost
            while let above = next {
                next = above.pointee.below
                if next == frame {
                    above.pointee.below = frame.pointee.below
                    return
                }
            }
        }
    }
    private func endChained(by stackPointer: UInt64, returningTo address: UInt64?) {
        var now: UInt64 = 0
        while true {
            var dead: Frame?
            KnownStacks.with(stackPointer) { stack in
                guard !stack.pointee.isMapping, let frame = stack.pointee.innermost else { return }
                if frame.pointee.stack_pointer > stackPointer { return }
                if frame.pointee.stack_pointer == stackPointer {
                    guard let address, !ThreadRecorder.mayShare(frame, returningTo: address) else { return }
                }
                dead = frame
                stack.pointee.innermost = frame.pointee.below
            }
            guard let frame = dead else { return }
            // Another thread's frame, on which the coroutine ran before: its record is that thread's.
            if frame.pointee.owner != context || !frame.isInUse || frame.isFilling || frame.isClosing { continue }
            if now == 0 { now = Clock.ticks() }
            end(frame, now)
        }
    }
}
