// Calls of functions that gcc or clang has compiled with -finstrument-functions. Their frames are in the thread's chain, but nothing
// returns to their label: the function itself reports that it returns.
import CSupport
import CTraceLayout

/// Instrumented functions by address, as the trampolines look them up (CSupport/layout.h).
enum InstrumentedTable {
    typealias Hook = UnsafeMutablePointer<function_hook>
    nonisolated(unsafe) private static var lock = Lock()
    nonisolated(unsafe) private static var table: UnsafeMutablePointer<Hook?>?
    nonisolated(unsafe) private static var capacity = 0
    nonisolated(unsafe) private static var count = 0
    nonisolated(unsafe) private static var isOpen = true
    /// Not under a time filter, not with call sites, not where the clock is a system call: then each call goes the slow way.
    private static var isFast: Bool {
        !Limits.hasTimeFilter && !Trampolines.recordsSites && Clock.source != UInt32(TRACE_CLOCK_MONOTONIC)
    }
    private static let slack = Int(INSTRUMENTED_SLACK)
    private static var none: Hook? { tracer_address_no_function() }

    /// In a forked child: another thread of the parent may have held it.
    static func becomeChild() { lock = Lock() }

    /// The hook of the function, which `make` makes at its first call. nil: no memory. Where code was unmapped and other code has
    /// come there may be several; `isOurs` distinguishes them.
    static func hook(of function: UInt64, _ isOurs: (Hook) -> Bool, _ make: () -> Hook?) -> Hook? {
        lock.lock()
        defer { lock.unlock() }
        if let table {
            var bucket = first(function, in: table), earlier: Hook?
            while let known = bucket.pointee, known != none {
                if known.pointee.target == UnsafeRawPointer(bitPattern: UInt(function)) { return known }
                if address(known) == function && isOurs(known) { earlier = known }
                bucket += 1
            }
            if let earlier {
                earlier.pointee.target = UnsafeRawPointer(bitPattern: UInt(function))
                return earlier
            }
        }
        if (count &+ 1) &* 4 > capacity && !grow() { return nil }
        guard let hook = make(), put(hook, into: table!) || grow() && put(hook, into: table!) else { return nil }
        count &+= 1
        return hook
    }

    private static func first(_ function: UInt64, in table: UnsafeMutablePointer<Hook?>) -> UnsafeMutablePointer<Hook?> {
        let hash = (UInt32(truncatingIfNeeded: function) &* UInt32(LABEL_HASH)) &>> 12
        return table + Int(hash &>> 3) & (capacity &- 1)
    }
    /// In the target of one whose code was unmapped.
    private static let gone: UInt64 = 1 << 63
    private static func address(_ hook: Hook) -> UInt64 { UInt64(UInt(bitPattern: hook.pointee.target)) & ~gone }
    /// False: there is no free entry near its bucket. The last one after the table stays empty.
    private static func put(_ hook: Hook, into table: UnsafeMutablePointer<Hook?>) -> Bool {
        var bucket = first(address(hook), in: table)
        while bucket.pointee != none { bucket += 1 }
        if bucket + 1 == table + (capacity &+ slack) { return false }
        bucket.pointee = hook
        return true
    }
    /// A larger table; the trampolines may be looking into the old one, which stays.
    private static func grow() -> Bool {
        let wanted = max(1024, capacity &* 4), old = table, oldCount = capacity &+ slack
        guard let buffer = Memory.pages((wanted &+ slack &+ 1) &* 8) else { return false }
        buffer.storeBytes(of: UInt64((wanted &- 1) &* 8), as: UInt64.self)
        let fresh = (buffer + 8).assumingMemoryBound(to: Hook?.self)
        for n in 0..<(wanted &+ slack) { fresh[n] = none }
        if tracer_label_of_instrumented().pointee == 0 {
            guard let label = ReturnLabels.label(of: tracer_address_instrumented_exit()) else { return false }
            tracer_label_of_instrumented().pointee = label
        }
        capacity = wanted
        table = fresh
        if let old { for n in 0..<oldCount where old[n] != none { if !put(old[n]!, into: fresh) { return false } } }
        publish()
        return true
    }

    /// The code there has been unmapped: other functions may come to its address.
    static func forget(_ low: UInt64, _ high: UInt64) {
        lock.lock()
        defer { lock.unlock() }
        guard let table else { return }
        for n in 0..<(capacity &+ slack) where address(table[n]!) &- low < high &- low {
            table[n]!.pointee.target = UnsafeRawPointer(bitPattern: UInt(address(table[n]!) | gone))
        }
    }

    // MARK: - Recording on and off

    static func open() {
        isOpen = true
        publish()
    }
    static func close() {
        isOpen = false
        tracer_publish_instrumented(tracer_closed_instrumented())
    }
    private static func publish() { if isOpen && isFast, let table { tracer_publish_instrumented(table) } }
}

extension UnsafeMutablePointer<frame_record> {
    var isInstrumented: Bool { pointee.stack_pointer & 15 == UInt64(INSTRUMENTED_ABOVE) }
}

extension ThreadRecorder {
    /// - Parameter stackPointer: by which the frames of calls that the function makes from here are known
    func enterInstrumented(_ hook: UnsafeMutablePointer<function_hook>, at stackPointer: UInt64, from site: UInt64) {
        let own = stackPointer &+ UInt64(INSTRUMENTED_ABOVE)
        let isOwn = isOwnStack(stackPointer) && !isInsideSignalStack(stackPointer)
        leaveAlternateModeIfPossible()
        if isOwn {
            dropAbandonedSignalFrames()
            // Two at one stack pointer: the one is inlined into the other, unless they are one function.
            unwind {
                $0.pointee.stack_pointer > own || $0.pointee.stack_pointer == own && $0.pointee.function != hook
                    || $0.isJustTaken
            }
        }
        if ReturnLabels.contains(site) && isRecorded(hook, ReturnLabels.label(containing: site), isOwn) { return }
        let label = label(of: site)
        if label == 0 { return writeInstant(hook.pointee.function, from: site) }
        if !isOwn, let old = openFrame(at: own, label) { // it is dead
            writeUnwound(old, Clock.ticks())
            closeAlternate(old)
        }
        guard let frame = isOwn ? push(own, tails: 0) : pushAlternate(own, tails: 0) else { return }
        frame.pointee.label = label
        frame.pointee.function = hook
        begin(frame)
        if isOwn { top = frame } else { openAlternate(frame) }
    }

    private func label(of site: UInt64) -> UInt64 {
        if ReturnLabels.contains(site) { return ReturnLabels.label(containing: site) }
        return Trampolines.recordsSites ? ReturnLabels.label(of: site) ?? 0 : tracer_label_of_instrumented().pointee
    }

    /// Returns true if the call that returns to this label is one of this function: it came through a slot, or through its own first
    /// bytes.
    private func isRecorded(_ hook: UnsafeMutablePointer<function_hook>, _ label: UInt64, _ isOwn: Bool) -> Bool {
        if !isOwn { return true } // code inlined into a coroutine's first function is not distinguished
        var frame = top
        while frame != base {
            if frame.label == label && !frame.isInstrumented {
                return tracer_function_address(frame.function) == UInt64(UInt(bitPattern: hook.pointee.target))
            }
            frame = frame.pointee.below
        }
        return false
    }

    /// - Parameter isLast: the function's own frame is given up already: it has jumped here, where `site` is the next thing on the stack
    func exitInstrumented(_ function: UInt64, at stackPointer: UInt64, from site: UInt64, isLast: Bool) {
        let own = stackPointer &+ UInt64(INSTRUMENTED_ABOVE), target = UnsafeRawPointer(bitPattern: UInt(function))
        func isOurs(_ frame: Frame) -> Bool { frame.isInstrumented && frame.pointee.function.pointee.target == target }
        if !isOwnStack(stackPointer) || isInsideSignalStack(stackPointer) {
            if ReturnLabels.contains(site) { return } // see isRecorded
            // Found by its stack pointer at once, else among all of them.
            let known = isLast ? nil : openFrame(at: own, label(of: site))
            if let frame = known ?? instrumentedFrame(isLast ? 0..<own : own..<(own &+ 4096), isOurs), isOurs(frame) {
                exit(frame, Clock.ticks())
            }
            return
        }
        var frame = top, found: Frame?
        while frame != base {
            if isLast {
                // All that lies below is dead but for its own frame, which is the outermost.
                if frame.pointee.stack_pointer >= own && !frame.isFilling { break }
                if isOurs(frame) { found = frame }
            } else if isOurs(frame) && frame.pointee.stack_pointer >= own {
                // Its stack has grown since (alloca). At the deepest level it may be one that is not recorded.
                if frame.pointee.stack_pointer == own || top.pointee.last == 0 { found = frame }
                break
            } else if !frame.isInstrumented && frame.pointee.stack_pointer > own && !frame.isFilling {
                break
            }
            frame = frame.pointee.below
        }
        if let found { exit(found, Clock.ticks()) }
    }
}
