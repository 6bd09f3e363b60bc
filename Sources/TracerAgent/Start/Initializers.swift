// Times what the loader and libc call: DT_PREINIT_ARRAY, DT_INIT, DT_INIT_ARRAY, DT_FINI, DT_FINI_ARRAY, and main.
// InitializerStubs.swift leads them through stubs of KIND_INITIALIZER. Such a call is no event and takes no level of the
// call tree: it has a frame record of its own, off the thread's chain, and two records in the metadata.
import CSupport
import CTraceLayout

enum Initializers {
    nonisolated(unsafe) private static var count: UInt64 = 0
    /// Frame records that nobody uses, linked by `older`.
    nonisolated(unsafe) private static var free: Frame?
    nonisolated(unsafe) private static var lock = SpinLock()
    private static let batchBytes = 4096

    /// In the place of a number: the call is that of main.
    private static let main = UInt64.max

    /// In a forked child: another thread of the parent may have held it.
    static func becomeChild() { lock = SpinLock() }

    /// About to run. nil: it runs unmeasured.
    static func begin(_ recorder: ThreadRecorder, _ descriptor: UnsafeMutablePointer<function_descriptor>,
                      _ spills: Spills, since entered: UInt64) -> Frame? {
        if !agent.isRecorded || !TraceFile.isWritable { return nil }
        if ReturnLabels.contains(spills.returnAddress) { return nil } // a tail call: its return is that of a traced call
        guard let label = ReturnLabels.label(of: spills.returnAddress), let frame = take() else { return nil }
        let stub = InitializerStub(descriptor)
        let unit = recorder.unit
        if recorder.isOwnStack(spills.place) { closeLeft(unit, below: spills.place &+ 8) }
        frame.pointee.label = label
        frame.pointee.place = spills.place
        frame.pointee.tails = recorder.isOwnStack(spills.place) ? 0 : 1
        frame.pointee.function = descriptor
        let parent = innermost(unit)
        frame.pointee.older = unit.pointee.initializers
        unit.pointee.initializers = frame
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
        fixed.thread = unit.pointee.index
        fixed.load = stub.load == 0 ? .max : stub.load
        fixed.address = UInt64(UInt(bitPattern: descriptor.pointee.target))
        fixed.usage = .thread()
        guard let place = Metadata.append(Int(TRACE_RECORD_INITIALIZER), UInt16(stub.kind), fixed, isPassing: stub.load != 0)
        else { return frame }
        // The clock last: what was done until now is the agent's.
        let now = Clock.ticks()
        let record = place.assumingMemoryBound(to: trace_initializer_record.self)
        record.pointee.usage.own_ticks = OwnWork.add(since: entered, until: now)
        record.pointee.usage.ticks = now
        return frame
    }

    /// False when it is none that has returned.
    static func returned(_ recorder: ThreadRecorder, _ label: UInt64, _ place: UInt64, _ now: UInt64) -> Bool {
        var next = recorder.unit.pointee.initializers
        while let frame = next {
            if frame.pointee.place == place && frame.label == label {
                end(recorder, frame, now)
                return true
            }
            next = frame.pointee.older
        }
        return false
    }
    private static func end(_ recorder: ThreadRecorder, _ frame: Frame, _ now: UInt64) {
        let unit = recorder.unit
        if frame.pointee.tails == 0 { closeLeft(unit, below: frame.pointee.place) }
        unlink(unit, frame)
        if number(frame) == main {
            Phases.write(TRACE_PHASE_MAIN_RETURNED, recorder, .process(), at: now)
        } else {
            writeEnd(unit, frame, now, TRACE_INITIALIZER_RETURNED)
        }
        giveBack(frame)
    }

    /// Number of the innermost one that is open on the thread, or TRACE_NONE.
    static func innermost(_ unit: UnsafeMutablePointer<thread_unit>) -> UInt32 {
        var place = unit.pointee.initializers
        while let frame = place {
            if number(frame) != main { return UInt32(truncatingIfNeeded: number(frame)) }
            place = frame.pointee.older
        }
        return .max
    }

    /// Those deeper in the thread's own stack than `place` have been left, by an exception or longjmp.
    static func closeLeft(_ unit: UnsafeMutablePointer<thread_unit>, below place: UInt64) {
        var next = unit.pointee.initializers
        while let frame = next {
            next = frame.pointee.older
            if frame.pointee.tails != 0 || frame.pointee.place >= place { continue }
            unlink(unit, frame)
            if number(frame) != main { writeEnd(unit, frame, Clock.ticks(), TRACE_INITIALIZER_LEFT) }
            giveBack(frame)
        }
    }

    private static func writeEnd(_ unit: UnsafeMutablePointer<thread_unit>, _ frame: Frame, _ now: UInt64, _ how: some BinaryInteger) {
        if !TraceFile.isWritable { return }
        let usage = trace_usage.thread().at(now, own: OwnWork.ticks)
        var fixed = trace_initializer_end_record()
        fixed.initializer = UInt32(truncatingIfNeeded: number(frame))
        fixed.thread = unit.pointee.index
        fixed.usage = usage
        let isOfLoad = frame.pointee.function.map { InitializerStub($0).load != 0 } ?? false
        _ = Metadata.append(Int(TRACE_RECORD_INITIALIZER_END), UInt16(truncatingIfNeeded: how), fixed, isPassing: isOfLoad)
        OwnWork.add(since: now, until: Clock.ticks())
    }

    // MARK: - Frame records

    private static func number(_ frame: Frame) -> UInt64 { frame.pointee.reserved.0 }
    private static func number(_ frame: Frame, _ number: UInt64) { frame.pointee.reserved.0 = number }

    private static func take() -> Frame? {
        lock.lock()
        defer { lock.unlock() }
        if free == nil {
            guard let pages = Memory.pages(batchBytes) else { return nil }
            for n in 0..<(batchBytes / Int(FRAME_BYTES)) {
                let frame = (pages + n &* Int(FRAME_BYTES)).assumingMemoryBound(to: frame_record.self)
                frame.pointee.older = free
                free = frame
            }
        }
        let frame = free!
        free = frame.pointee.older
        return frame
    }
    private static func giveBack(_ frame: Frame) {
        lock.lock()
        frame.pointee.older = free
        free = frame
        lock.unlock()
    }
    /// The innermost, but where coroutines interleave.
    private static func unlink(_ unit: UnsafeMutablePointer<thread_unit>, _ frame: Frame) {
        if unit.pointee.initializers == frame {
            unit.pointee.initializers = frame.pointee.older
            return
        }
        var newer = unit.pointee.initializers
        while let place = newer {
            if place.pointee.older == frame {
                place.pointee.older = frame.pointee.older
                return
            }
            newer = place.pointee.older
        }
    }
}
