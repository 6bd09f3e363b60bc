// Children that run in the memory of their parent, and with the thread block of the thread that made them: of vfork, and of
// clone with CLONE_VM and without CLONE_SETTLS. All that the agent knows of a thread is the parent's. Nothing of such a child is
// recorded, and nothing that happens to it (limits, another root, a filter for system calls) is the parent's.
//
// While the parent waits (CLONE_VFORK) the child has the thread's context to itself. The thread is in alternate-stack mode, so that
// each call asks Swift, and Swift asks the kernel whose it is. A child of vfork returns first: from its return on, `child`
// is the thread's top, by which the trampolines know it without a system call; so it is from the moment that such a child
// confines itself. The return address of these calls has a label, as that of any call: with the parent's return all is as it
// was.
//
// A child that runs at the same time may use nothing of the thread's context: the trampolines ask the kernel, before they go on
// to Swift, as long as one of them may live.
import CSupport

enum MemorySharing {
    case suspended(returnsTwice: Bool, isByNumber: Bool)
    case concurrent(isByNumber: Bool)
}

extension ThreadRecorder {
    private var child: Frame { tracer_child(context)! }
    /// The trampolines pass everything: a child of vfork runs.
    var isPassing: Bool { state.pointee.top == child }

    /// True if the running thread is not the one of this context. For a child that runs at the same time Swift is not even called.
    var isOther: Bool {
        context.pointee.sharing == UInt32(SHARING_SUSPENDED) && SystemCall.call(SystemCall.gettid) != Int(context.pointee.tid)
            || context.pointee.session != ThreadRecorder.session // a child of vfork that nobody has seen being made (renew)
    }

    // MARK: - Begin

    /// The call is about to be made. A frame with the label that it returns to, or nil: it is jumped to.
    func beginSharing(
        _ sharing: MemorySharing, _ hook: UnsafeMutablePointer<function_hook>, _ spills: Spills,
        isCounted: Bool
    ) -> Frame? {
        let site = spills.site // not that of the caller's caller
        endTailCaller(spills)
        if tracer_process_page().pointee.enabled != 0 && isCounted {
            leaveAlternateModeIfPossible()
            if top.pointee.last == 0 { writeInstant(hook.pointee.function, from: site) } else { countBeyondDepth() }
        }
        var isByNumber = false
        var kind = ThreadRecorder.waits
        switch sharing {
        case .suspended(let returnsTwice, let byNumber):
            isByNumber = byNumber
            if returnsTwice { kind = ThreadRecorder.returnsTwice }
            share(UInt32(SHARING_SUSPENDED))
        case .concurrent(let byNumber):
            isByNumber = byNumber
            kind = ThreadRecorder.goesOn
            pollChildren()
            context.pointee.unknown_children &+= 1
            suspendFaultHandler(until: nil) // nobody could put it back for this child
            share(UInt32(SHARING_CONCURRENT))
        }
        // libc's `syscall` returns by the stack, where a child that has no other leaves what it wants.
        guard !isByNumber, let label = ReturnLabels.label(of: spills.returnAddress) else { return nil }
        dropAbandonedSharing(at: spills.stackPointer)
        guard let frame = FramePool.take() else { return nil }
        frame.pointee.label = label
        frame.pointee.stack_pointer = spills.stackPointer
        frame.pointee.function = hook
        frame.pointee.tails = kind
        frame.pointee.older = context.pointee.sharing_calls
        context.pointee.sharing_calls = frame
        return frame
    }
    /// Kinds of such a call, kept in FRAME_TAILS, which it does not need.
    private static let waits: UInt32 = 0, returnsTwice: UInt32 = 1, goesOn: UInt32 = 2

    /// A signal handler has jumped out of them.
    private func dropAbandonedSharing(at stackPointer: UInt64) {
        if !isOwnStack(stackPointer) { return }
        while let frame = context.pointee.sharing_calls, isOwnStack(frame.pointee.stack_pointer),
            frame.pointee.stack_pointer <= stackPointer
        {
            context.pointee.sharing_calls = frame.pointee.older
            FramePool.giveBack(frame)
        }
    }
    private func share(_ how: UInt32) {
        context.pointee.sharing = max(context.pointee.sharing, how)
        stopCounting() // the child would count into its parent's
        updateChanging()
        enterAlternateMode()
    }

    // MARK: - In the child

    /// It confines itself: from now on the trampolines must know it without a system call.
    func pass() {
        child.pointee.last = UInt32(LAST_CHILD)
        if !isPassing { child.pointee.below = state.pointee.top }
        state.pointee.top = child
    }
    func endPassing() {
        if isPassing { state.pointee.top = child.pointee.below }
    }

    // MARK: - End

    /// False when it is no such call that has returned.
    func returnedSharing(_ label: UInt64, _ stackPointer: UInt64) -> Bool {
        var newer: Frame?
        var next = context.pointee.sharing_calls
        while let frame = next, frame.pointee.stack_pointer != stackPointer || frame.label != label {
            newer = frame
            next = frame.pointee.older
        }
        guard let frame = next else { return false }
        let result = Spills(stackPointer).result
        if result == 0 && frame.pointee.tails == ThreadRecorder.returnsTwice
            && SystemCall.call(SystemCall.gettid) != Int(context.pointee.tid)
        {
            MappingFaults.restoreInChild()
            pass()
            return true
        }
        if let newer { newer.pointee.older = frame.pointee.older } else { context.pointee.sharing_calls = frame.pointee.older }
        if frame.pointee.tails == ThreadRecorder.goesOn {
            resumeFaultHandler()
            note(child: result)
        } else if context.pointee.sharing == UInt32(SHARING_SUSPENDED) {
            endSharing()
        }
        FramePool.giveBack(frame)
        return true
    }
    /// A call of the thread itself while one of its children may live. It does not wait any more, unless it is a signal handler's,
    /// before the system call; or that child may have ended.
    func checkSharing(_ stackPointer: UInt64) {
        if context.pointee.sharing == UInt32(SHARING_SUSPENDED) {
            dropAbandonedSharing(at: stackPointer)
            if context.pointee.sharing_calls == nil { endSharing() }
            return
        }
        context.pointee.looks &+= 1
        if context.pointee.looks & 31 == 0 { pollChildren() }
    }
    func endSharing() {
        context.pointee.sharing = 0
        resumeCounting()
        updateChanging()
        leaveAlternateModeIfPossible()
    }

    private func note(child result: UInt64) {
        context.pointee.unknown_children &-= 1
        let number = Int64(bitPattern: result)
        if number > 0 {
            var index = 0
            while index < Int(CHILDREN) && tracer_children(context)[index] != 0 { index &+= 1 }
            if index == Int(CHILDREN) {
                context.pointee.unknown_children &+= 1
                return
            }
            tracer_children(context)[index] = UInt32(truncatingIfNeeded: result)
        }
        pollChildren()
    }
    private func pollChildren() {
        if context.pointee.sharing != UInt32(SHARING_CONCURRENT) { return }
        var isAny = context.pointee.unknown_children != 0
        for n in 0..<Int(CHILDREN) where tracer_children(context)[n] != 0 {
            if SystemCall.call(SystemCall.kill, Int(tracer_children(context)[n]), 0) == -Failure.noProcess {
                tracer_children(context)[n] = 0
            } else {
                isAny = true
            }
        }
        if !isAny { endSharing() }
    }

    /// In a child with a copy of the memory. Calls that return in it find their records.
    func forgetSharing() {
        endPassing()
        context.pointee.sharing = 0
        context.pointee.unknown_children = 0
        for n in 0..<Int(CHILDREN) { tracer_children(context)[n] = 0 }
    }
}
