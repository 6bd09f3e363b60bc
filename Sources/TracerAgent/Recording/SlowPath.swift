// The three entries from the trampolines. See ThreadRecorder for what they work with.
import CSupport
import CTraceLayout

@c @implementation
public func tracer_slow_enter(_ state: UnsafeMutablePointer<thread_state>!,
                              _ descriptor: UnsafeMutablePointer<function_descriptor>!, _ stackPointer: UInt64,
                              _ unwritten: UnsafeMutablePointer<frame_record>!) -> UnsafeMutablePointer<frame_record>! {
    defer { TraceFile.reportStop() }
    if descriptor.pointee.kind == UInt32(KIND_CONSTRUCTOR) {
        LoaderWatch.bindPending()
        return nil
    }
    var recorder = ThreadRecorder(state)
    if tracer_process_page().pointee.alive == 0 { ForkWatch.becomeChild(&recorder) }
    if let unwritten {
        recorder.writeEnter(unwritten)
        return unwritten
    }
    if tracer_process_page().pointee.enabled == 0 { return nil }
    recorder.disarmIfPossible()
    let spills = Spills(stackPointer)
    if descriptor.pointee.kind != UInt32(KIND_CALL) {
        let isTail = Inspection.isTail(descriptor, spills)
        if isTail {
            if recorder.top.pointee.remaining > 0 { recorder.writeInstant(descriptor.pointee.function) }
            return nil
        }
    }
    return recorder.enter(descriptor, spills)
}

@c @implementation
public func tracer_slow_exit(_ state: UnsafeMutablePointer<thread_state>!,
                             _ frame: UnsafeMutablePointer<frame_record>!, _ now: UInt64) {
    var recorder = ThreadRecorder(state)
    if tracer_process_page().pointee.alive == 0 { ForkWatch.becomeChild(&recorder) }
    recorder.exit(frame, now)
    TraceFile.reportStop()
}

@c @implementation
public func tracer_slow_loader_event(_ state: UnsafeMutablePointer<thread_state>!) {
    if !agent.isRecorded { return }
    var recorder = ThreadRecorder(state)
    if tracer_process_page().pointee.alive == 0 { ForkWatch.becomeChild(&recorder) }
    LoaderWatch.event()
    TraceFile.reportStop()
}

/// The caller's registers, as the trampoline spilled them below the traced stack pointer.
struct Spills {
    let stackPointer: UInt64
    init(_ stackPointer: UInt64) { self.stackPointer = stackPointer }

    private func word(_ offset: Int) -> UInt64 {
        UnsafeRawPointer(bitPattern: UInt(stackPointer))!.load(fromByteOffset: offset, as: UInt64.self)
    }
    var returnAddress: UInt64 { word(0) }
    /// What becomes of the frame: the caller's stack pointer before the call.
    var frameAddress: UInt64 { stackPointer &+ 8 }
    var savedRegister: UInt64 { word(-Int(SPILL_RBX)) }
    var firstArgument: UInt64 { word(-Int(SPILL_RDI)) }
    var secondArgument: UInt64 { word(-Int(SPILL_RSI)) }
}

extension ThreadRecorder {
    func enter(_ descriptor: UnsafeMutablePointer<function_descriptor>, _ spills: Spills) -> Frame? {
        let place = spills.frameAddress
        let returned = agent.clock == UInt32(TRACE_CLOCK_MONOTONIC) ? tracer_address_returned_monotonic()
                                                                    : tracer_address_returned_cycles()
        let isTailCall = spills.returnAddress == returned
        let isOwn = isOwnStack(place)
        if isOwn {
            dropAbandonedSignalFrames()
            disarmIfPossible()
            unwind { $0.pointee.stack_pointer > place || ($0.pointee.stack_pointer == place && isTailCall) }
        }
        let outer = isOwn || unit.pointee.foreign == nil ? top : unit.pointee.foreign!
        if outer.pointee.remaining == 0 {
            if state.pointee.chunk != nil { state.pointee.chunk.pointee.filtered_by_depth &+= 1 }
            return nil
        }
        var tails: UInt32 = 0
        if isTailCall && outer.pointee.stack_pointer == place {
            tails = outer.pointee.tails &+ 1
            if tails >= UInt32(TAIL_LIMIT) {
                writeInstant(descriptor.pointee.function)
                return nil
            }
        }
        guard let frame = takeRecord() else {
            TraceFile.drop()
            return nil
        }
        frame.pointee.return_address = spills.returnAddress
        frame.pointee.saved_register = spills.savedRegister
        frame.pointee.stack_pointer = place
        frame.pointee.head = Event.head(.enter, descriptor.pointee.function)
        frame.pointee.remaining = outer.pointee.remaining &- 1
        frame.pointee.tails = tails
        frame.pointee.slot = nil
        frame.pointee.owner = nil
        writeEnter(frame)
        if isOwn {
            frame.pointee.below = top
            top = frame
        } else {
            linkForeign(frame)
        }
        return frame
    }

    /// Leaves the record to the trampoline, which reads the return address from it and gives it back.
    func exit(_ frame: Frame, _ now: UInt64) {
        // While the frame is still open: a chunk that is opened now must say so.
        if frame.pointee.slot == nil { frame.pointee.slot = UnsafeMutablePointer(bitPattern: UInt(SLOT_ELSEWHERE)) }
        ensureSlack()
        let wasForeign = frame.pointee.owner != nil
        if wasForeign {
            unlinkForeign(frame)
        } else {
            unwind { $0 == frame }
            if top == frame { top = frame.pointee.below }
        }
        let duration = now &- frame.pointee.enter_ticks
        if duration < state.pointee.minimum_ticks && Int64(bitPattern: duration) >= 0 && unwrite(frame) { return }
        writeExit(frame, now, wasForeign)
        frame.pointee.slot = nil
        disarmIfPossible()
    }

    /// The call was shorter than the filter: its enter becomes a hole if it can still be reached.
    private func unwrite(_ frame: Frame) -> Bool {
        guard let slot = frame.pointee.slot, UInt(bitPattern: slot) != UInt(SLOT_ELSEWHERE), let header = state.pointee.chunk
        else { return false }
        slot.pointee = 0
        header.pointee.filtered_by_time &+= 1
        frame.pointee.slot = nil
        disarmIfPossible()
        return true
    }
}
