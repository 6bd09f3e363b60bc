// The beginning and the end of calls that the trampolines do not handle by themselves.
import CSupport
import CTraceLayout

extension Spills {
    /// Address that the function returns to in the end.
    var caller: UInt64 { ReturnLabels.returnAddress(returnAddress) }
    /// Call site; 0 for a tail call.
    var site: UInt64 { ReturnLabels.contains(returnAddress) ? 0 : returnAddress }
    /// The word with the object of the function's call, 0 if it has none. As the trampolines determine it (OBJECT_OF, IF_OBJECT).
    @inline(never) func object(_ function: UnsafeMutablePointer<function_hook>) -> UInt64 {
        let isPatched = function.pointee.kind == UInt8(KIND_PATCHED_ARGUMENTS) && function.pointee.counter != 0
        let number = isPatched ? ArgumentPlan.object(of: function.pointee.counter) : function.pointee.argument & ~UInt8(FUNCTION_HAS_VALUES)
        if number == 0 { return 0 }
        if function.pointee.kind == UInt8(KIND_NUMBER) && UInt32(truncatingIfNeeded: firstArgument) != UInt32(SystemCall.futex) {
            return 0
        }
        return Event.control(.argument, number == 2 ? secondArgument : firstArgument).word
    }
}

extension ThreadRecorder {
    /// Opens a frame. nil: the call passes, with the return address that it came with, as it must where `entry` is the id of
    /// its entry alone.
    func enter(_ hook: UnsafeMutablePointer<function_hook>, _ spills: Spills, entry: UInt32?) -> Frame? {
        let program = ArgumentPlan.program(of: hook)
        if !CallConditions.keep(program, spills) {
            countUnwanted()
            return nil
        }
        let trigger = tracer_function_trigger(hook.pointee.function)
        if trigger != 0 { tracer_watched_called(hook.pointee.function, trigger, context.pointee.index, context.pointee.tid) }
        let stackPointer = spills.stackPointer, isOwn = isOwnStack(stackPointer) && !isInsideSignalStack(stackPointer)
        let isTailCall = ReturnLabels.contains(spills.returnAddress)
        guard
            var label = isTailCall
                ? ReturnLabels.label(containing: spills.returnAddress)
                : entry != nil ? nil : ReturnLabels.label(of: spills.returnAddress, hook.pointee.isPatched ? .ofPatched : .slot)
        else {
            writeInstant(entry ?? hook.pointee.function, from: spills.site, of: spills.object(hook))
            return nil
        }
        if isOwn {
            dropAbandonedSignalFrames()
            leaveAlternateModeIfPossible()
            // A record that has only just been taken has no stack pointer: alive, for all that is known.
            unwind {
                $0.pointee.stack_pointer > stackPointer
                    || $0.pointee.stack_pointer == stackPointer && (isTailCall || ThreadRecorder.mayShare($0, label))
                    || $0.isJustTaken
            }
        } else if ThreadRecorder.chainsFrames {
            endLeft(by: stackPointer, returningTo: isTailCall ? nil : spills.returnAddress)
        }
        if !isOwn, !isTailCall, let old = openFrame(at: stackPointer, label) {
            // Two calls from one call site at one stack pointer: the older one is dead, unless stacks are copied.
            endLeft(by: stackPointer, returningTo: spills.returnAddress)
            if context.pointee.copies_stack == 0 {
                writeUnwound(old, Clock.ticks())
                closeAlternate(old)
            } else {
                guard let another = ReturnLabels.another(of: label, { openFrame(at: stackPointer, $0) != nil }) else {
                    writeInstant(hook.pointee.function, from: spills.site, of: spills.object(hook))
                    return nil
                }
                label = another
            }
        }
        var tails: UInt32 = 0
        if isTailCall {
            tails = 1
            if let caller = isOwn ? ownFrame(at: stackPointer, label) : openFrame(at: stackPointer, label) {
                if caller.isTailCall { tails = caller.pointee.tails &+ 1 }
                if tails >= UInt32(TAIL_LIMIT) { return replace(caller, hook, spills) }
                if !isOwn { caller.pointee.label |= UInt64(LABEL_WATCHED) } // its return is that of both
            }
        }
        guard let frame = isOwn ? push(stackPointer, tails: tails) : pushAlternate(stackPointer, tails: tails) else { return nil }
        let mayTrigger = trigger != 0 && CallConditions.trigger(program, spills)
        let isWatched = hook.pointee.kind == UInt8(KIND_LOAD) || mayTrigger
        frame.pointee.label = label | (isTailCall ? UInt64(LABEL_TAIL) : 0) | (isWatched ? UInt64(LABEL_WATCHED) : 0)
        frame.pointee.function = hook
        if ArgumentPlan.isTested(program, .trigger, ofResult: false) { frame.setMayTrigger(mayTrigger) }
        frame.pointee.argument = spills.object(hook)
        begin(frame, program, spills)
        if isOwn { top = frame } else { openAlternate(frame) }
        return frame
    }

    /// Two open frames at one stack pointer of the thread's own stack. On x86_64 each has a return slot there. On aarch64 the return
    /// address comes in a register, and a function that keeps it in another one (LLVM's outliner: `mov x15, x30; bl …;
    /// mov x30, x15`) has no slot. Then what it calls returns into that function. After a jump out of it, by longjmp or an
    /// exception, calls return into its caller: which is the same function when it calls itself, but then it has a slot.
    private static func mayShare(_ frame: Frame, _ label: UInt64) -> Bool {
        frame.label != label && mayShare(frame, returningTo: ReturnLabels.returnAddress(label))
    }
    static func mayShare(_ frame: Frame, returningTo address: UInt64) -> Bool {
        if !Architecture.returnsInRegister || frame.isFilling { return false }
        return tracer_function_contains(frame.function, address)
            && !tracer_function_contains(frame.function, ReturnLabels.returnAddress(frame.label))
    }

    /// An endless row of tail calls: each ends the one before, in its record.
    private func replace(_ frame: Frame, _ hook: UnsafeMutablePointer<function_hook>, _ spills: Spills) -> Frame {
        ensureSlack()
        end(frame, Clock.ticks(), frame.pointee.owner != nil)
        frame.pointee.function = hook
        frame.pointee.argument = spills.object(hook)
        frame.pointee.label &= ~UInt64(LABEL_LOST | LABEL_RESULT)
        frame.setUnwritten()
        begin(frame, ArgumentPlan.program(of: hook), spills)
        return frame
    }

    /// A function that must see its real caller was reached by a tail call: the function that made it has ended.
    func endTailCaller(_ spills: Spills) {
        if !ReturnLabels.contains(spills.returnAddress) { return }
        let caller = spills.caller
        returned(to: ReturnLabels.label(containing: spills.returnAddress), at: spills.stackPointer, Clock.ticks())
        spills.setReturnAddress(caller)
    }

    // MARK: - Return

    /// Ends the frame of a call that has returned to its label, and the frames of tail calls that it made.
    func returned(to label: UInt64, at stackPointer: UInt64, _ now: UInt64) {
        var isKnown = false
        if isOwnStack(stackPointer) || context.pointee.copies_stack != 0 {
            while let frame = ownFrame(at: stackPointer, label) {
                let isTailCall = frame.isTailCall
                isKnown = true
                exit(frame, now)
                if !isTailCall { return }
            }
        }
        if context.pointee.sharing_calls != nil && returnedSharing(label, stackPointer) { return }
        if tracer_returned_apart(state, label, stackPointer, now) { return }
        while let frame = openFrame(at: stackPointer, label) ?? migratedFrame(at: stackPointer, label) {
            let isTailCall = frame.isTailCall
            isKnown = true
            exit(frame, now)
            if !isTailCall { return }
        }
        if !isKnown { // it was thought to be dead
            KnownStacks.distrust(stackPointer)
            distrustStack()
        }
    }

    /// The newest open frame of this call on the thread's own stack.
    private func ownFrame(at stackPointer: UInt64, _ label: UInt64) -> Frame? {
        var frame = top
        while frame != base {
            if frame.pointee.stack_pointer == stackPointer && frame.label == label && frame.pointee.event != nil { return frame }
            if frame.pointee.stack_pointer > stackPointer && !frame.isFilling { return nil }
            frame = frame.pointee.below
        }
        return nil
    }

    func exit(_ frame: Frame, _ now: UInt64) {
        let kind = frame.pointee.function.pointee.kind
        if kind == UInt8(KIND_LOAD) { tracer_load_returned(state, frame, now) }
        if kind > UInt8(KIND_OPENS) && kind < UInt8(KIND_ARGUMENTS) && frame.isWatched { tracer_opened(frame, context.pointee.index, now) }
        let wasAlternate = frame.pointee.owner != nil
        // While the frame still counts as open: a chunk that is opened now must say so.
        if frame.pointee.event == nil { frame.setElsewhere() }
        ensureSlack()
        let isInOrder = !wasAlternate && context.pointee.copies_stack == 0
        if isInOrder { unwind { $0 == frame } }
        end(
            frame, now, !isInOrder,
            program: frame.pointee.label & UInt64(LABEL_RESULT) == 0 ? 0 : ArgumentPlan.program(of: frame.pointee.function))
        noteEnd(frame, now, hasReturned: true)
        if wasAlternate {
            closeAlternate(frame, at: now)
        } else if top == frame {
            top = frame.pointee.below
            frame.giveUp()
        } else {
            takeOut(frame)
        }
        leaveAlternateModeIfPossible()
    }
    /// The end of the frame, which may be one that somebody waits for, is in the file.
    @inline(__always) func noteEnd(_ frame: Frame, _ now: UInt64, hasReturned: Bool = false) {
        if frame.isWatched && mayTrigger(frame, hasReturned) { tracer_watched_ended(frame, context.pointee.index, now) }
    }
    private func mayTrigger(_ frame: Frame, _ hasReturned: Bool) -> Bool {
        let program = ArgumentPlan.program(of: frame.pointee.function)
        if ArgumentPlan.isTested(program, .trigger, ofResult: false) && !frame.mayTrigger { return false }
        if !ArgumentPlan.isTested(program, .trigger, ofResult: true) { return true }
        return hasReturned && CallConditions.trigger(program, Spills(frame.pointee.stack_pointer), hasReturned: true)
    }
    /// `program`: what reads the result of the call, which has just returned; 0: that is not recorded.
    private func end(_ frame: Frame, _ now: UInt64, _ isAlternate: Bool, program: UInt16 = 0) {
        if !frame.isLost && !takeBack(frame, now, resultOf: program) { writeExit(frame, now, isAlternate, program) }
    }
}
