// Frames on a stack that is not the thread's own: a signal stack, a coroutine, a stack that is copied away and back.
// Below-or-above proves nothing between two stacks, and such frames end in any order. So each has a record apart, and
// while one is open the thread is armed: the stand-in is its top, and the end of every call names its frame (RESUME). The
// trampolines do that by themselves (arch/*/trampoline.S, from "Frames on other stacks are open"): they take records from
// `ready` and put them back. While they do, `busy` is set, and a signal handler's calls come here and leave `ready` alone.
import CSupport
import CTraceLayout

extension ThreadRecorder {
    private func arm() {
        if isArmed { return }
        unit.pointee.top = state.pointee.top
        state.pointee.top = standIn
        state.pointee.low = .max
    }
    func disarmIfPossible() {
        collectEnded()
        if isForeignOpen || unit.pointee.busy != 0 { return }
        // A trampoline that was interrupted before it stored the top may have done so since, over the stand-in.
        if isArmed { state.pointee.top = unit.pointee.top }
        restoreLow()
    }
    /// The fast path again, if nothing speaks against it.
    func restoreLow() {
        let isFast = tracer_process_page().pointee.enabled != 0 && !isArmed && unit.pointee.is_changing == 0
        state.pointee.low = isFast ? unit.pointee.stack_low : .max
    }

    // MARK: - Begin and end of a frame

    /// A record for a frame on a stack that is not the thread's own. nil: not recorded.
    func pushForeign(place: UInt64, tails: UInt32) -> Frame? {
        let level = top.pointee.level &+ UInt32(truncatingIfNeeded: unit.pointee.foreign_count) &+ 1
        if agent.settings.maximumDepth != 0 && level > agent.settings.maximumDepth {
            countBeyondDepth()
            return nil
        }
        guard prepareLists(), let frame = takeRecord() else {
            TraceFile.drop()
            return nil
        }
        frame.pointee.level = level
        frame.pointee.place = place
        frame.pointee.tails = tails
        frame.pointee.on_signal_stack = isOnSignalStack(place) ? 1 : 0
        return frame
    }
    /// Its enter is written, or held back.
    func openForeign(_ frame: Frame) {
        arm()
        let list = unit.pointee.busy != 0 ? tracer_strays(unit)! : list(of: frame.pointee.place)
        frame.pointee.older = list.pointee
        list.pointee = frame
        frame.pointee.use = UInt32(USE_OPEN)
        unit.pointee.foreign_count &+= 1
        unit.pointee.patience = PATIENCE
        unit.pointee.signal_frames &+= UInt64(frame.pointee.on_signal_stack)
    }
    /// It stays in its list, and its thread takes it back when it comes by, when a coroutine has moved to another thread or a
    /// trampoline was interrupted that is changing the lists.
    @inline(never) func closeForeign(_ frame: Frame) {
        frame.pointee.slot = nil
        let owner = frame.pointee.owner!
        if owner == unit && unit.pointee.busy == 0 { return giveBack(frame) }
        frame.pointee.use = UInt32(USE_ENDED)
        ThreadRecorder.endedLock.lock()
        frame.pointee.next_ended = owner.pointee.ended
        owner.pointee.ended = frame
        ThreadRecorder.endedLock.unlock()
    }

    nonisolated(unsafe) private static var endedLock = SpinLock()
    /// In a forked child: another thread of the parent may have held it.
    static func resetEnded() { endedLock = SpinLock() }

    private func collectEnded() {
        if unit.pointee.ended == nil || unit.pointee.busy != 0 { return }
        ThreadRecorder.endedLock.lock()
        var place = unit.pointee.ended
        unit.pointee.ended = nil
        ThreadRecorder.endedLock.unlock()
        while let frame = place {
            place = frame.pointee.next_ended
            giveBack(frame)
        }
    }
    /// Whether frames of a thread that has ended are still open elsewhere.
    static func hasForeign(_ unit: UnsafeMutablePointer<thread_unit>) -> Bool {
        var count = unit.pointee.foreign_count
        endedLock.lock()
        var place = unit.pointee.ended
        while let frame = place {
            count &-= 1
            place = frame.pointee.next_ended
        }
        endedLock.unlock()
        return count > 0
    }

    // MARK: - Lists of open frames, by place

    static let listBytes = 8 << Int(LIST_BITS)

    private func prepareLists() -> Bool {
        if unit.pointee.lists == nil {
            unit.pointee.lists = Memory.pages(ThreadRecorder.listBytes)?.assumingMemoryBound(to: Frame?.self)
        }
        return unit.pointee.lists != nil
    }
    private func list(of place: UInt64) -> UnsafeMutablePointer<Frame?> { ThreadRecorder.list(unit, place) }
    private static func list(_ unit: UnsafeMutablePointer<thread_unit>, _ place: UInt64) -> UnsafeMutablePointer<Frame?> {
        unit.pointee.lists + Int(truncatingIfNeeded: ((place &>> 4) &* UInt64(LIST_HASH)) &>> UInt64(64 &- LIST_BITS))
    }

    /// The newest open frame with this label at this place of a stack that is not the thread's own.
    func openFrame(at place: UInt64, _ label: UInt64) -> Frame? { ThreadRecorder.openFrame(of: unit, at: place, label) }

    private static func openFrame(of unit: UnsafeMutablePointer<thread_unit>, at place: UInt64, _ label: UInt64) -> Frame? {
        if unit.pointee.lists == nil || unit.pointee.foreign_count == 0 { return nil }
        return search(list(unit, place), place, label) ?? search(tracer_strays(unit), place, label)
    }
    private static func search(_ list: UnsafeMutablePointer<Frame?>, _ place: UInt64, _ label: UInt64) -> Frame? {
        var next = list.pointee
        var most = mostForeign // of another thread, which may be changing them: its free ones come next then
        while let frame = next, most > 0 {
            if frame.pointee.place == place && frame.label == label && frame.isInUse { return frame }
            next = frame.pointee.older
            most &-= 1
        }
        return nil
    }
    /// The same of a coroutine that has moved here from another thread. Its own frames rest; those before them in the list may
    /// just be taken out of it, which ends the search too early: then once more.
    @inline(never) func migratedFrame(at place: UInt64, _ label: UInt64) -> Frame? {
        for _ in 0..<16 {
            var found: Frame?
            ThreadRecorder.withUnits { other in
                if found == nil && other != unit { found = ThreadRecorder.openFrame(of: other, at: place, label) }
            }
            if let found { return found }
        }
        return nil
    }

    private func takeOutOfList(_ frame: Frame) {
        for n in 0..<2 {
            var link = n == 0 ? list(of: frame.pointee.place) : tracer_strays(unit)!
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

    /// What exceptions leave on such a stack is never known to be dead. 128 MB of it are enough.
    private static let mostForeign: UInt64 = 1 << 20
    /// The trampolines know neither depth nor filter here, and a handler must not take what the one that it interrupts
    /// has in its hands.
    private var takesReady: Bool { unit.pointee.busy == 0 && agent.settings.maximumDepth == 0 && agent.minimumTicks == 0 }

    private func takeRecord() -> Frame? {
        if takesReady {
            if unit.pointee.ready == nil { addRecords(to: &unit.pointee.ready) }
            guard let frame = unit.pointee.ready else { return nil }
            unit.pointee.ready = frame.pointee.older
            return frame
        }
        if unit.pointee.free_foreign == nil { addRecords(to: &unit.pointee.free_foreign) }
        guard let frame = unit.pointee.free_foreign else { return nil }
        unit.pointee.free_foreign = frame.pointee.older
        return frame
    }
    /// Few at first: most threads have a frame or two on a signal stack and no more.
    private func addRecords(to list: inout Frame?) {
        if unit.pointee.foreign_count > ThreadRecorder.mostForeign { return }
        let byteCount = unit.pointee.foreign_batches == nil ? agent.pageBytes : ThreadRecorder.batchBytes
        guard let (start, count) = ThreadRecorder.newBatch(byteCount, &unit.pointee.foreign_batches) else { return }
        for n in 0..<count {
            let frame = (start + n &* Int(FRAME_BYTES)).assumingMemoryBound(to: frame_record.self)
            frame.pointee.owner = unit
            frame.pointee.older = list
            list = frame
        }
    }
    private func giveBack(_ frame: Frame) {
        takeOutOfList(frame)
        frame.pointee.use = 0
        unit.pointee.foreign_count &-= 1
        unit.pointee.signal_frames &-= UInt64(frame.pointee.on_signal_stack)
        frame.pointee.on_signal_stack = 0
        if takesReady {
            frame.pointee.older = unit.pointee.ready
            unit.pointee.ready = frame
        } else {
            frame.pointee.older = unit.pointee.free_foreign
            unit.pointee.free_foreign = frame
        }
    }
    @inline(__always) private func forEachForeign(_ body: (Frame) -> Void) {
        var place = unit.pointee.foreign_batches
        while let batch = place {
            place = batch.pointee.next
            let start = UnsafeMutableRawPointer(batch)
            for n in 1..<(Int(batch.pointee.byte_count) / Int(FRAME_BYTES)) {
                let frame = (start + n &* Int(FRAME_BYTES)).assumingMemoryBound(to: frame_record.self)
                if frame.isInUse { body(frame) }
            }
        }
    }

    // MARK: - What a chunk wants to know

    /// Whether a trampoline that a signal interrupted may have words of such a frame reserved in the chunk.
    var isForeignPending: Bool {
        if !isForeignOpen { return false }
        var isAny = false
        forEachForeign { frame in
            if frame.isFilling ? frame.pointee.use == UInt32(USE_OPEN)
                               : frame.isClosing && frame.pointee.use != UInt32(USE_CLOSING_SPENT) { isAny = true }
        }
        return isAny
    }
    /// Their enters are in a chunk that is no longer written. If words of an interrupted trampoline are reserved in it, it
    /// is left alone, and these words do not matter to the next one.
    func markForeignElsewhere() {
        if !isForeignOpen { return }
        forEachForeign { frame in
            if frame.isFilling {
                frame.pointee.use = UInt32(USE_FILLING_SPENT)
            } else if frame.isClosing {
                frame.pointee.use = UInt32(USE_CLOSING_SPENT)
            } else if frame.isWritten {
                frame.setElsewhere()
            }
        }
    }
    func settleForeign() {
        if isForeignOpen { forEachForeign { settle($0) } }
    }
    /// Those whose enter is in the file.
    func countForeign() -> Int {
        if !isForeignOpen { return 0 }
        var count = 0
        forEachForeign { if $0.isWritten { count &+= 1 } }
        return count
    }
    /// The newest of them, oldest first. How many.
    func storeForeign(_ list: UnsafeMutablePointer<trace_open_frame>, atMost most: Int) -> Int {
        if !isForeignOpen || most == 0 { return 0 }
        var heap = OpenFrameHeap(list: list)
        forEachForeign { frame in
            if !frame.isWritten { return }
            let open = trace_open_frame(enter_ticks: frame.pointee.enter_ticks, function: frame.function, flags: 1)
            if heap.count < most {
                heap.add(open)
            } else if open.enter_ticks > list[0].enter_ticks {
                heap.replaceOldest(open)
            }
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
    private func isOnSignalStack(_ place: UInt64) -> Bool {
        if place &- unit.pointee.signal_low < unit.pointee.signal_bytes { return true }
        (unit.pointee.signal_low, unit.pointee.signal_bytes) = signalStack.map { ($0.start, $0.byteCount) } ?? (0, 0)
        return place &- unit.pointee.signal_low < unit.pointee.signal_bytes
    }

    /// Frames on the signal stack are dead once the thread runs elsewhere and the kernel says that the signal stack
    /// is not in use (a handler left it by siglongjmp).
    func dropAbandonedSignalFrames() {
        if unit.pointee.signal_frames == 0 { return }
        guard let stack = signalStack, stack.flags & 1 == 0 else { return }
        let now = Clock.ticks()
        forEachForeign { frame in
            if frame.pointee.on_signal_stack == 0 || frame.pointee.place &- stack.start >= stack.byteCount { return }
            writeUnwound(frame, now)
            closeForeign(frame)
        }
    }
}

/// The newest of many open frames, in the place where they are stored: the oldest of them first while it fills.
private struct OpenFrameHeap {
    let list: UnsafeMutablePointer<trace_open_frame>
    private(set) var count = 0

    init(list: UnsafeMutablePointer<trace_open_frame>) { self.list = list }

    mutating func add(_ frame: trace_open_frame) {
        var place = count
        count &+= 1
        while place > 0 && list[(place &- 1) / 2].enter_ticks > frame.enter_ticks {
            list[place] = list[(place &- 1) / 2]
            place = (place &- 1) / 2
        }
        list[place] = frame
    }
    func replaceOldest(_ frame: trace_open_frame) { sink(frame, count) }

    private func sink(_ frame: trace_open_frame, _ count: Int) {
        var place = 0
        while true {
            var child = place &* 2 &+ 1
            if child >= count { break }
            if child &+ 1 < count && list[child &+ 1].enter_ticks < list[child].enter_ticks { child &+= 1 }
            if list[child].enter_ticks >= frame.enter_ticks { break }
            list[place] = list[child]
            place = child
        }
        list[place] = frame
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
