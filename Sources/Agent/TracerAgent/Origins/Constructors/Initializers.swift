// Times what the loader and libc call: DT_PREINIT_ARRAY, DT_INIT, DT_INIT_ARRAY, DT_FINI, DT_FINI_ARRAY, and main.
// InitializerStubs.swift leads them through stubs of KIND_INITIALIZER. Such a call is no event and takes no level of the
// call tree: it has a frame record of its own, off the thread's chain, and two records in the metadata.
import CSupport
import CTraceLayout

enum Initializers {
    nonisolated(unsafe) private static var count: UInt64 = 0
    /// In the place of a number: the call is that of main.
    private static let main = UInt64.max

    /// About to run. nil: it runs unmeasured.
    static func begin(
        _ recorder: ThreadRecorder, _ hook: UnsafeMutablePointer<function_hook>,
        _ spills: Spills, since entered: UInt64
    ) -> Frame? {
        if !TraceOutput.isWritable { return nil }
        if ReturnLabels.contains(spills.returnAddress) { return nil } // a tail call: its return is that of a recorded call
        guard let label = ReturnLabels.label(of: spills.returnAddress), let frame = FramePool.take() else { return nil }
        let stub = InitializerStub(hook)
        let context = recorder.context
        if recorder.isOwnStack(spills.stackPointer) { closeAbandoned(context, below: spills.stackPointer &+ 8) }
        frame.pointee.label = label
        frame.pointee.stack_pointer = spills.stackPointer
        frame.pointee.tails = recorder.isOwnStack(spills.stackPointer) ? 0 : 1
        frame.pointee.function = hook
        let parent = innermost(context)
        frame.pointee.older = context.pointee.initializers
        context.pointee.initializers = frame
        if stub.kind == InitializerStub.main {
            number(frame, main)
            Phases.write(TRACE_PHASE_MAIN, recorder, .process(), since: entered)
            return frame
        }
        let mine = tracer_atomic_add(&count, 1)
        number(frame, mine)
        var fixed = trace_initializer_record()
        fixed.initializer = UInt32(truncatingIfNeeded: mine)
        fixed.parent = parent
        fixed.module = stub.module
        fixed.index = stub.index
        fixed.thread = context.pointee.index
        fixed.load = stub.load == 0 ? .max : stub.load
        fixed.address = UInt64(UInt(bitPattern: hook.pointee.target))
        fixed.usage = .thread(cpu: CPUTime.now(context))
        guard let address = MetadataWriter.append(Int(TRACE_RECORD_INITIALIZER), UInt16(stub.kind), fixed, isPassing: stub.load != 0)
        else { return frame }
        // The clock last: what was done until now is the agent's.
        let now = Clock.ticks()
        let record = address.assumingMemoryBound(to: trace_initializer_record.self)
        record.pointee.usage.own_ticks = OwnWork.add(since: entered, until: now)
        record.pointee.usage.ticks = now
        return frame
    }

    /// False when it is none that has returned.
    static func returned(_ recorder: ThreadRecorder, _ label: UInt64, _ stackPointer: UInt64, _ now: UInt64) -> Bool {
        var next = recorder.context.pointee.initializers
        while let frame = next {
            if frame.pointee.stack_pointer == stackPointer && frame.label == label {
                end(recorder, frame, now)
                return true
            }
            next = frame.pointee.older
        }
        return false
    }
    private static func end(_ recorder: ThreadRecorder, _ frame: Frame, _ now: UInt64) {
        let context = recorder.context
        if frame.pointee.tails == 0 { closeAbandoned(context, below: frame.pointee.stack_pointer) }
        unlink(context, frame)
        if number(frame) == main {
            Phases.write(TRACE_PHASE_MAIN_RETURNED, recorder, .process(), at: now)
        } else {
            writeEnd(context, frame, now, TRACE_INITIALIZER_RETURNED)
        }
        FramePool.giveBack(frame)
    }

    /// Number of the innermost one that is open on the thread, or TRACE_NONE.
    static func innermost(_ context: ThreadContext) -> UInt32 {
        var next = context.pointee.initializers
        while let frame = next {
            if number(frame) != main { return UInt32(truncatingIfNeeded: number(frame)) }
            next = frame.pointee.older
        }
        return .max
    }

    /// Closes frames deeper in the thread's own stack than `stackPointer`: an exception or longjmp has left them.
    static func closeAbandoned(_ context: ThreadContext, below stackPointer: UInt64) {
        var next = context.pointee.initializers
        while let frame = next {
            next = frame.pointee.older
            if frame.pointee.tails != 0 || frame.pointee.stack_pointer >= stackPointer { continue }
            unlink(context, frame)
            if number(frame) != main { writeEnd(context, frame, Clock.ticks(), TRACE_INITIALIZER_LEFT) }
            FramePool.giveBack(frame)
        }
    }

    private static func writeEnd(_ context: ThreadContext, _ frame: Frame, _ now: UInt64, _ how: some BinaryInteger) {
        if !TraceOutput.isWritable { return }
        let usage = trace_usage.thread(cpu: CPUTime.read(context)).at(now, own: OwnWork.ticks)
        var fixed = trace_initializer_end_record()
        fixed.initializer = UInt32(truncatingIfNeeded: number(frame))
        fixed.thread = context.pointee.index
        fixed.usage = usage
        let isOfLoad = frame.pointee.function.map { InitializerStub($0).load != 0 } ?? false
        _ = MetadataWriter.append(Int(TRACE_RECORD_INITIALIZER_END), UInt16(truncatingIfNeeded: how), fixed, isPassing: isOfLoad)
        OwnWork.add(since: now, until: Clock.ticks())
    }

    // MARK: - Frame records, of FramePool

    private static func number(_ frame: Frame) -> UInt64 { frame.pointee.reserved.0 }
    private static func number(_ frame: Frame, _ number: UInt64) { frame.pointee.reserved.0 = number }

    /// The innermost, but where coroutines interleave.
    private static func unlink(_ context: ThreadContext, _ frame: Frame) {
        if context.pointee.initializers == frame {
            context.pointee.initializers = frame.pointee.older
            return
        }
        var newer = context.pointee.initializers
        while let candidate = newer {
            if candidate.pointee.older == frame {
                candidate.pointee.older = frame.pointee.older
                return
            }
            newer = candidate.pointee.older
        }
    }
}

/// A thread's CPU time, to ask the kernel for which takes as long as all else at the end of an initializer. After one that has
/// ended the next one begins within a microsecond: so soon, the thread has run all the time since, and the recording clock says how long.
private enum CPUTime {
    private static let soon: UInt64 = 2000 // ns: no thread loses its CPU and has it again meanwhile
    /// Nanoseconds of a tick, times 2^32; 0 unknown. Good to a hundredth.
    nonisolated(unsafe) private static var tick: UInt64 = 0

    static func now(_ context: ThreadContext) -> UInt64 {
        let ticks = Clock.ticks() &- context.pointee.cpu_ticks
        if tick == 0 || ticks >= 1 &<< 16 { return Clock.ofThread() }
        let passed = (ticks &* tick) &>> 32
        return passed < soon ? context.pointee.cpu_ns &+ passed : Clock.ofThread()
    }
    /// And keeps it.
    static func read(_ context: ThreadContext) -> UInt64 {
        if Clock.source == UInt32(TRACE_CLOCK_MONOTONIC) { return Clock.ofThread() } // reading that clock is a system call as well
        if tick == 0 { measureTick() }
        let before = Clock.ticks(), time = Clock.ofThread()
        context.pointee.cpu_ticks = before &+ (Clock.ticks() &- before) / 2
        context.pointee.cpu_ns = time
        return time
    }
    private static func measureTick() {
        let (now, width) = Clock.measuredSample(), first = TraceOutput.header.pointee.first
        let ticks = now.ticks &- first.ticks, time = now.monotonic_ns &- first.monotonic_ns
        if width < ticks / 128 && time < 1 &<< 31 { tick = (time &<< 32) / ticks }
    }
}
