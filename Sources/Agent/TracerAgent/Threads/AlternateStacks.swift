// Frames on a stack that is not the thread's own: a signal stack, a coroutine, a stack that is copied away and back.
// Below-or-above proves nothing between two stacks, and such frames end in any order. So each has a record apart, and
// while one is open the thread is in alternate-stack mode: a record that is no frame's is its top, and the end of every call names its
// frame (RESUME). The trampolines do that by themselves (CSupport/*/trampoline.S, from "Frames on other stacks are open"): they take
// records from
// `ready` and put them back. While they do, `busy` is set, and a signal handler's calls come here and leave `ready` alone.
import CSupport
import CTraceLayout

extension ThreadRecorder {
    func enterAlternateMode() {
        if isInAlternateMode { return }
        context.pointee.top = state.pointee.top
        state.pointee.top = alternateMode
        state.pointee.low = .max
    }
    func leaveAlternateModeIfPossible() {
        collectEnded()
        if isAlternateOpen || context.pointee.busy != 0 || context.pointee.sharing != 0 { return }
        // A trampoline that was interrupted before it stored the top may have done so since, over that record.
        if isInAlternateMode { state.pointee.top = context.pointee.top }
        restoreLow()
    }
    /// The fast path again, if nothing speaks against it.
    func restoreLow() {
        let isFast =
            tracer_process_page().pointee.enabled != 0 && !isInAlternateMode
            && context.pointee.is_changing & ~UInt32(CHANGING_COUNTED) == 0
        state.pointee.low = isFast ? context.pointee.stack_low : .max
    }

    /// While it changes what SIGBUS does, the next call of the thread looks (MappingFaults.swift).
    func setChanging(_ isChanging: Bool) {
        context.pointee.is_changing = isChanging ? UInt32(CHANGING_ACTION) : 0
        updateChanging()
    }
    func updateChanging() {
        context.pointee.is_changing &= UInt32(CHANGING_ACTION | CHANGING_DEPARTED)
        if context.pointee.sharing != 0 { context.pointee.is_changing |= UInt32(CHANGING_SHARED) }
        if Limits.maximumDepth != 0 { context.pointee.is_changing |= UInt32(CHANGING_COUNTED) }
        // Calls that need no record ask the top whether there is one above.
        alternateMode.pointee.above = context.pointee.is_changing != 0 ? nil : base
    }

    // MARK: - Begin and end of a frame

    /// A record for a frame on a stack that is not the thread's own. nil: not recorded.
    func pushAlternate(_ stackPointer: UInt64, tails: UInt32) -> Frame? {
        let level = Limits.maximumDepth == 0 ? 0 : level(at: stackPointer)
        if level > Limits.maximumDepth {
            countBeyondDepth()
            return nil
        }
        guard prepareLists(), let frame = takeRecord() else {
            TraceOutput.drop()
            return nil
        }
        frame.pointee.level = level
        frame.pointee.stack_pointer = stackPointer
        frame.pointee.tails = tails
        frame.pointee.on_signal_stack = isOnSignalStack(stackPointer) ? 1 : 0
        return frame
    }
    /// Its enter is written, or held back.
    func openAlternate(_ frame: Frame) {
        enterAlternateMode()
        let list = context.pointee.busy != 0 ? tracer_unsorted(context)! : list(of: frame.pointee.stack_pointer)
        frame.pointee.older = list.pointee
        list.pointee = frame
        frame.pointee.use = UInt32(USE_OPEN)
        context.pointee.alternate_count &+= 1
        context.pointee.patience = PATIENCE
        context.pointee.signal_frames &+= UInt64(frame.pointee.on_signal_stack)
        chain(frame)
    }
    /// It stays in its list, and its thread takes it back when it comes by, when a coroutine has moved to another thread or a
    /// trampoline was interrupted that is changing the lists.
    @inline(never) func closeAlternate(_ frame: Frame, at now: UInt64 = 0) {
        let owner = frame.pointee.owner!, isWritten = frame.isWritten
        unchain(frame)
        frame.pointee.event = nil
        if owner == context && context.pointee.busy == 0 { return giveBack(frame) }
        frame.pointee.departed = owner != context && isWritten ? now : 0
        frame.pointee.use = UInt32(USE_ENDED)
        ThreadRecorder.endedLock.lock()
        frame.pointee.next_ended = owner.pointee.ended
        owner.pointee.ended = frame
        if frame.pointee.departed != 0 { tracer_atomic_or_32(tracer_changing(owner), UInt32(CHANGING_DEPARTED)) }
        ThreadRecorder.endedLock.unlock()
        if owner != context { // the owner may be gone from here on
            tracer_fence()
            _ = tracer_atomic_add(&owner.pointee.visitors, .max)
        }
    }

    nonisolated(unsafe) private static var endedLock = Lock()
    /// In a forked child: another thread of the parent may have held it.
    static func resetEnded() { endedLock = Lock() }

    @inline(never) func collectEnded() {
        if context.pointee.ended == nil || context.pointee.busy != 0 { return }
        ThreadRecorder.endedLock.lock()
        var next = context.pointee.ended
        context.pointee.ended = nil
        tracer_atomic_and_32(tracer_changing(context), ~UInt32(CHANGING_DEPARTED))
        ThreadRecorder.endedLock.unlock()
        while let frame = next {
            next = frame.pointee.next_ended
            if frame.pointee.departed != 0 && context != ThreadRecorder.orphans { writeDeparted(frame) }
            frame.pointee.departed = 0
            giveBack(frame)
        }
    }
    /// Returns true if frames of a thread that has ended are still open elsewhere.
    static func hasAlternate(_ context: ThreadContext) -> Bool { openCount(context) > 0 }
    private static func openCount(_ context: ThreadContext) -> Int {
        var count = Int(context.pointee.alternate_count)
        if context.pointee.ended == nil { return count }
        endedLock.lock()
        var next = context.pointee.ended
        while let frame = next {
            count &-= 1
            next = frame.pointee.next_ended
        }
        endedLock.unlock()
        return count
    }

    // MARK: - Lists of open frames, by stack pointer

    static func listBytes(_ context: ThreadContext) -> Int { Int(context.pointee.list_mask &+ 1) &* 8 }

    private func prepareLists() -> Bool {
        if context.pointee.lists == nil { setLists(1 << UInt32(LIST_BITS)) }
        return context.pointee.lists != nil
    }
    /// Makes as many lists as cost least: a return looks through half of one, and each new chunk looks at the newest frames of all. With eight
    /// times as many, both are cheaper together from this number of frames on. But not while a trampoline has one of them in its hands.
    private func growLists() {
        let mask = context.pointee.list_mask, count = UInt64(mask) &+ 1
        if context.pointee.busy != 0 || context.pointee.alternate_count < count &* count / 128 || count >= 1 << UInt64(MOST_LIST_BITS) {
            return
        }
        // Who looks for a frame that has moved to another thread holds it.
        ThreadRecorder.lock.lock()
        defer { ThreadRecorder.lock.unlock() }
        guard let old = context.pointee.lists, setLists((mask &+ 1) &* 8) else { return }
        for n in 0...Int(mask) {
            // The newest come first: turned, and turned back.
            var next = old[n], turned: Frame?
            while let frame = next {
                next = frame.pointee.older
                frame.pointee.older = turned
                turned = frame
            }
            while let frame = turned {
                turned = frame.pointee.older
                let list = list(of: frame.pointee.stack_pointer)
                frame.pointee.older = list.pointee
                list.pointee = frame
            }
        }
        Memory.release(old, Int(mask &+ 1) &* 8)
    }
    @discardableResult func setLists(_ count: UInt32) -> Bool {
        guard let buffer = Memory.pages(Int(count) &* 8) else { return false }
        context.pointee.lists = buffer.assumingMemoryBound(to: Frame?.self)
        context.pointee.list_mask = count &- 1
        return true
    }
    func list(of stackPointer: UInt64) -> UnsafeMutablePointer<Frame?> { ThreadRecorder.list(context, stackPointer) }
    private static func list(_ context: ThreadContext, _ stackPointer: UInt64) -> UnsafeMutablePointer<Frame?> {
        let hash = (UInt32(truncatingIfNeeded: stackPointer &>> 4) &* UInt32(LIST_HASH)) &>> UInt32(32 &- MOST_LIST_BITS)
        return context.pointee.lists + Int(hash & context.pointee.list_mask)
    }

    /// The newest open frame with this label at this stack pointer, of a stack that is not the thread's own.
    func openFrame(at stackPointer: UInt64, _ label: UInt64) -> Frame? { ThreadRecorder.openFrame(of: context, at: stackPointer, label) }

    private static func openFrame(of context: ThreadContext, at stackPointer: UInt64, _ label: UInt64) -> Frame? {
        if context.pointee.lists == nil || context.pointee.alternate_count == 0 { return nil }
        return search(list(context, stackPointer), stackPointer, label) ?? search(tracer_unsorted(context), stackPointer, label)
    }
    private static func search(_ list: UnsafeMutablePointer<Frame?>, _ stackPointer: UInt64, _ label: UInt64) -> Frame? {
        var next = list.pointee
        var most = mostAlternate // for another thread's list, which may be changing: free records come next then
        while let frame = next, most > 0 {
            if frame.pointee.stack_pointer == stackPointer && frame.label == label && frame.isInUse { return frame }
            next = frame.pointee.older
            most &-= 1
        }
        return nil
    }
    /// The same of a coroutine that has moved here from another thread. Its own frames rest; those before them in the list may
    /// just be taken out of it, which ends the search too early: then once more. Until it is closed, which it must be, its owner stays.
    @inline(never) func migratedFrame(at stackPointer: UInt64, _ label: UInt64) -> Frame? {
        for _ in 0..<16 {
            var found: Frame?
            ThreadRecorder.withContexts { other in
                if found != nil || other == context { return }
                found = ThreadRecorder.openFrame(of: other, at: stackPointer, label)
                if found != nil { _ = tracer_atomic_add(&other.pointee.visitors, 1) }
            }
            if let found { return found }
        }
        return nil
    }

    private func takeOutOfList(_ frame: Frame) {
        for n in 0..<2 {
            var link = n == 0 ? list(of: frame.pointee.stack_pointer) : tracer_unsorted(context)!
            while let other = link.pointee {
                if other == frame {
                    link.pointee = frame.pointee.older
                    return
                }
                link = tracer_older(other)
            }
        }
    }

    // MARK: - Records

    /// Limit of frames: of those that were left some may not be known to be dead. 128 MB of them are enough.
    private static let mostAlternate: UInt64 = 1 << 20
    /// The trampolines know neither depth nor filter here, and a handler must not take what the one that it interrupts
    /// has in its hands.
    private var takesReady: Bool { context.pointee.busy == 0 && Limits.maximumDepth == 0 && !Limits.hasTimeFilter }

    @inline(never) func takeRecord() -> Frame? {
        if takesReady {
            if context.pointee.ready == nil { lookForLeft() }
            if context.pointee.ready == nil { addRecords(to: &context.pointee.ready) }
            guard let frame = context.pointee.ready else { return nil }
            context.pointee.ready = frame.pointee.older
            return frame
        }
        if context.pointee.free_alternate == nil { lookForLeft() }
        if context.pointee.free_alternate == nil { addRecords(to: &context.pointee.free_alternate) }
        guard let frame = context.pointee.free_alternate else { return nil }
        context.pointee.free_alternate = frame.pointee.older
        return frame
    }
    /// Few at first: most threads have a frame or two on a signal stack and no more.
    private func addRecords(to list: inout Frame?) {
        if context.pointee.alternate_count > ThreadRecorder.mostAlternate { return }
        growLists()
        let byteCount = context.pointee.alternate_batches == nil ? Memory.pageBytes : ThreadRecorder.batchBytes
        guard let (start, count) = ThreadRecorder.newBatch(byteCount, &context.pointee.alternate_batches) else { return }
        for n in 0..<count {
            let frame = (start + n &* Int(FRAME_BYTES)).assumingMemoryBound(to: frame_record.self)
            frame.pointee.owner = context
            frame.pointee.older = list
            list = frame
        }
    }
    @inline(never) func giveBack(_ frame: Frame) {
        takeOutOfList(frame)
        frame.pointee.use = 0
        context.pointee.alternate_count &-= 1
        context.pointee.signal_frames &-= UInt64(frame.pointee.on_signal_stack)
        frame.pointee.on_signal_stack = 0
        if takesReady {
            frame.pointee.older = context.pointee.ready
            context.pointee.ready = frame
        } else {
            frame.pointee.older = context.pointee.free_alternate
            context.pointee.free_alternate = frame
        }
    }
    /// All of them, those of abandoned stacks too. For each chunk that would be too much: see `forEachYoung`.
    @inline(__always) func forEachAlternate(_ body: (Frame) -> Void) {
        var next = context.pointee.alternate_batches
        while let batch = next {
            next = batch.pointee.next
            let start = UnsafeMutableRawPointer(batch)
            for n in 1..<(Int(batch.pointee.byte_count) / Int(FRAME_BYTES)) {
                let frame = (start + n &* Int(FRAME_BYTES)).assumingMemoryBound(to: frame_record.self)
                if frame.isInUse { body(frame) }
            }
        }
    }

    // MARK: - What a chunk wants to know

    /// True if the lists show the frames that were opened since the chunk was, and those that are being filled. A list has its newest
    /// frame first; before the chunk all were marked as elsewhere. This does not hold while a trampoline is changing the lists or may still
    /// write into an earlier chunk: then all are looked at.
    private var knowsYoung: Bool {
        context.pointee.busy == 0 && context.pointee.spent_count == 0 && context.pointee.lists != nil
    }
    private var listCount: Int { Int(context.pointee.list_mask) &+ 1 }
    /// The newest frame of a list; after the last comes the list of unsorted frames.
    private func newest(_ list: Int) -> Frame? { list == listCount ? context.pointee.unsorted : context.pointee.lists[list] }
    @inline(__always) private func forEachYoung(_ body: (Frame) -> Void) {
        for n in 0...listCount {
            var next = newest(n)
            while let frame = next, !frame.isElsewhere {
                next = frame.pointee.older
                if frame.isInUse { body(frame) }
            }
        }
    }

    /// True if a trampoline that a signal interrupted may have words of such a frame reserved in the chunk.
    var isAlternatePending: Bool {
        if !isAlternateOpen { return false }
        var isAny = false
        if knowsYoung { // an end is written while the lists are being changed
            forEachYoung { if $0.isFilling || $0.isClosing { isAny = true } }
            return isAny
        }
        forEachAlternate { frame in
            if frame.isFilling
                ? frame.pointee.use == UInt32(USE_OPEN)
                : frame.isClosing && frame.pointee.use != UInt32(USE_CLOSING_SPENT)
            {
                isAny = true
            }
        }
        return isAny
    }
    /// Returns the outermost of the frames on other stacks that `isWanted` admits and whose stack pointer is in the range.
    func instrumentedFrame(_ range: Range<UInt64>, _ isWanted: (Frame) -> Bool) -> Frame? {
        var found: Frame?
        forEachAlternate { frame in
            if range.contains(frame.pointee.stack_pointer) && isWanted(frame)
                && found.map({ $0.pointee.stack_pointer < frame.pointee.stack_pointer }) ?? true
            {
                found = frame
            }
        }
        return found
    }
    /// Their enters are in a chunk that is no longer written. If words of an interrupted trampoline are reserved in it, it
    /// is left alone, and these words do not matter to the next one.
    func markAlternateElsewhere() {
        let knowsYoung = knowsYoung
        context.pointee.spent_count = 0
        if !isAlternateOpen { return }
        if knowsYoung { forEachYoung { markElsewhere($0) } } else { forEachAlternate { markElsewhere($0) } }
    }
    private func markElsewhere(_ frame: Frame) {
        if frame.isFilling {
            frame.pointee.use = UInt32(USE_FILLING_SPENT)
            context.pointee.spent_count &+= 1
        } else if frame.isClosing {
            frame.pointee.use = UInt32(USE_CLOSING_SPENT)
            context.pointee.spent_count &+= 1
        } else if frame.isWritten {
            frame.setElsewhere()
        }
    }
    func moveAlternateEvents(_ distance: Int, from start: Int, _ byteCount: Int) {
        if !isAlternateOpen { return }
        if knowsYoung {
            forEachYoung { $0.moveEvent(distance, from: start, byteCount) }
        } else {
            forEachAlternate { $0.moveEvent(distance, from: start, byteCount) }
        }
    }
    func settleAlternate() {
        if isAlternateOpen { forEachAlternate { settle($0) } }
    }
    /// Returns the number of frames whose enter is in the file.
    func countAlternate() -> Int {
        if !isAlternateOpen { return 0 }
        var count = 0
        if knowsYoung {
            count = ThreadRecorder.openCount(context)
            forEachYoung { if !$0.isWritten { count &-= 1 } }
            return max(count, 0)
        }
        forEachAlternate { if $0.isWritten { count &+= 1 } }
        return count
    }
    /// The newest of them, oldest first. How many.
    func storeAlternate(_ list: UnsafeMutablePointer<trace_open_frame>, atMost most: Int) -> Int {
        if !isAlternateOpen || most == 0 { return 0 }
        var heap = OpenFrameHeap(list: list)
        if knowsYoung {
            // The newest of each list first: then few others are newer than all that there is space for.
            for n in 0...listCount {
                if let frame = newest(n), frame.isInUse { _ = heap.add(frame, atMost: most) }
            }
            for n in 0...listCount {
                var next = newest(n)?.pointee.older
                while let frame = next {
                    next = frame.pointee.older
                    if frame.isInUse && !heap.add(frame, atMost: most) { break }
                }
            }
        } else {
            forEachAlternate { _ = heap.add($0, atMost: most) }
        }
        return heap.sort()
    }

    // MARK: - Signal stacks

    private struct SignalStack { // stack_t
        var start: UInt64 = 0
        var flags: Int32 = 0 // 1 in use, 2 disabled
        var padding: Int32 = 0
        var byteCount: UInt64 = 0
    }
    private var signalStack: SignalStack? {
        var stack = SignalStack()
        let result = withUnsafeMutablePointer(to: &stack) { SystemCall.call(SystemCall.sigaltstack, 0, bits($0)) }
        return result != 0 || stack.flags & 2 != 0 ? nil : stack
    }
    private func isOnSignalStack(_ stackPointer: UInt64) -> Bool {
        if stackPointer &- context.pointee.signal_low < context.pointee.signal_bytes { return true }
        (context.pointee.signal_low, context.pointee.signal_bytes) = signalStack.map { ($0.start, $0.byteCount) } ?? (0, 0)
        return stackPointer &- context.pointee.signal_low < context.pointee.signal_bytes
    }

    /// A signal stack may be a variable on the thread's own stack. A handler that runs there is above the frames that it interrupts;
    /// where the thread runs below its innermost frame nothing depends on it.
    func isInsideSignalStack(_ stackPointer: UInt64) -> Bool {
        if context.pointee.signal_frames > 0 { return stackPointer &- context.pointee.signal_low < context.pointee.signal_bytes }
        if top.pointee.stack_pointer > stackPointer { return false }
        guard let stack = signalStack else { return false }
        return stackPointer &- stack.start < stack.byteCount
    }
    /// makecontext's ucontext_t is for a stack within the thread's own: from now on no stack pointer says which of the two it is on.
    func inspectContext(_ userContext: UInt64) {
        guard let words = UnsafePointer<UInt64>(bitPattern: UInt(userContext)) else { return }
        let start = words[2], byteCount = words[4] // uc_stack of struct ucontext, of the kernel's on both architectures: a stack_t
        if byteCount > 0 && start < context.pointee.stack_high && start &+ byteCount > context.pointee.stack_low { return distrustStack() }
        beginStack(start, start &+ byteCount)
    }

    /// Frames on the signal stack are dead once the thread runs elsewhere and the kernel says that the signal stack
    /// is not in use (a handler left it by siglongjmp).
    func dropAbandonedSignalFrames() {
        if context.pointee.signal_frames == 0 { return }
        guard let stack = signalStack, stack.flags & 1 == 0 else { return }
        let now = Clock.ticks()
        forEachAlternate { frame in
            if frame.pointee.on_signal_stack == 0 || frame.pointee.stack_pointer &- stack.start >= stack.byteCount { return }
            writeUnwound(frame, now)
            closeAlternate(frame)
        }
    }
}

/// The newest of many open frames, in the memory where they are stored: the oldest of them first while it fills.
private struct OpenFrameHeap {
    let list: UnsafeMutablePointer<trace_open_frame>
    private(set) var count = 0

    init(list: UnsafeMutablePointer<trace_open_frame>) { self.list = list }

    /// False when it is older than all that there is space for.
    mutating func add(_ frame: Frame, atMost most: Int) -> Bool {
        if !frame.isWritten { return true }
        let open = trace_open_frame(enter_ticks: frame.pointee.enter_ticks, function: frame.function, flags: 1 | frame.siteTag)
        if count < most {
            add(open)
        } else if open.enter_ticks > list[0].enter_ticks {
            sink(open, count)
        } else {
            return false
        }
        return true
    }
    private mutating func add(_ frame: trace_open_frame) {
        var index = count
        count &+= 1
        while index > 0 && list[(index &- 1) / 2].enter_ticks > frame.enter_ticks {
            list[index] = list[(index &- 1) / 2]
            index = (index &- 1) / 2
        }
        list[index] = frame
    }

    private func sink(_ frame: trace_open_frame, _ count: Int) {
        var index = 0
        while true {
            var child = index &* 2 &+ 1
            if child >= count { break }
            if child &+ 1 < count && list[child &+ 1].enter_ticks < list[child].enter_ticks { child &+= 1 }
            if list[child].enter_ticks >= frame.enter_ticks { break }
            list[index] = list[child]
            index = child
        }
        list[index] = frame
    }

    /// Oldest first; how many.
    func sort() -> Int {
        var left = count
        while left > 1 { // the oldest goes to the end: newest first
            left &-= 1
            let oldest = list[0], last = list[left]
            sink(last, left)
            list[left] = oldest
        }
        var low = 0, high = count &- 1
        while low < high {
            (list[low], list[high]) = (list[high], list[low])
            low &+= 1
            high &-= 1
        }
        return count
    }
}
