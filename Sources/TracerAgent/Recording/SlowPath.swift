// The three entries from the trampolines. See ThreadRecorder for what they work with.
import CSupport
import CTraceLayout

@c @implementation
public func tracer_slow_enter(_ state: UnsafeMutablePointer<thread_state>!,
                              _ descriptor: UnsafeMutablePointer<function_descriptor>!, _ stackPointer: UInt64,
                              _ unwritten: UnsafeMutablePointer<frame_record>!) -> UnsafeMutablePointer<frame_record>! {
    defer { TraceFile.reportStop() }
    let kind = descriptor.pointee.kind
    let spills = Spills(stackPointer)
    if kind == UInt32(KIND_START) {
        if let main = InitializerStubs.main(spills.firstArgument) { spills.setFirstArgument(main) }
        return nil
    }
    var recorder = ThreadRecorder(state)
    if tracer_process_page().pointee.alive == 0 { ForkWatch.becomeChild(&recorder) }
    MappingFaults.look()
    MappingFaults.resume(recorder)
    if kind == UInt32(KIND_INITIALIZER) {
        let entered = Clock.ticks()
        // Of a module that was loaded later: the loader has its lock and has relocated all that it loaded with it.
        if InitializerStub(descriptor).load != 0 { LoaderWatch.bindPending() }
        return Initializers.begin(recorder, descriptor, spills, since: entered)
    }
    if let unwritten {
        unwritten.setUnwritten() // no longer being filled by an interrupted trampoline: by us
        recorder.begin(unwritten)
        return unwritten
    }
    let changesAction = Inspection.changesAction(descriptor, spills)
    if tracer_process_page().pointee.enabled == 0 {
        if changesAction { MappingFaults.suspend(recorder, until: nil) }
        return nil
    }
    recorder.disarmIfPossible()
    if kind == UInt32(KIND_ONCE) {
        OnceCalls.look(descriptor, spills, recorder)
    } else if kind != UInt32(KIND_CALL) {
        let isTail = Inspection.isTail(descriptor, spills, recorder)
        let isEntryOnly = FunctionTable.entry(descriptor.pointee.function).isEntryOnly
        if isTail || isEntryOnly {
            if changesAction && isEntryOnly { MappingFaults.suspend(recorder, until: nil) }
            if recorder.top.pointee.last == 0 { recorder.writeInstant(descriptor.pointee.function) }
            return nil
        }
    }
    let frame = recorder.enter(descriptor, spills)
    if changesAction { MappingFaults.suspend(recorder, until: frame) }
    if kind == UInt32(KIND_LOAD), let frame { Loads.entered(recorder, frame) }
    return frame
}

@c @implementation
public func tracer_slow_exit(_ state: UnsafeMutablePointer<thread_state>!,
                             _ frame: UnsafeMutablePointer<frame_record>!, _ now: UInt64) {
    var recorder = ThreadRecorder(state)
    if tracer_process_page().pointee.alive == 0 { ForkWatch.becomeChild(&recorder) }
    MappingFaults.look()
    switch frame.pointee.function.pointee.kind {
    case UInt32(KIND_INITIALIZER): Initializers.end(recorder, frame, now)
    case UInt32(KIND_LOAD):
        Loads.returned(recorder, frame, now)
        recorder.exit(frame, now)
    default: recorder.exit(frame, now)
    }
    TraceFile.reportStop()
}

@c @implementation
public func tracer_slow_loader_event(_ state: UnsafeMutablePointer<thread_state>!, _ stackPointer: UInt64) {
    let entered = Clock.ticks()
    if !agent.isRecorded { return }
    var recorder = ThreadRecorder(state)
    if tracer_process_page().pointee.alive == 0 { ForkWatch.becomeChild(&recorder) }
    LoaderWatch.event(recorder, stackPointer, since: entered)
    OwnWork.add(since: entered, until: Clock.ticks())
    TraceFile.reportStop()
}

@c @implementation
public func tracer_slow_span(_ state: UnsafeMutablePointer<thread_state>!, _ name: UnsafePointer<CChar>!, _ kind: UInt64) {
    guard let name, agent.isRecorded else { return }
    var recorder = ThreadRecorder(state)
    if tracer_process_page().pointee.alive == 0 { ForkWatch.becomeChild(&recorder) }
    if kind == UInt64(SPAN_NONE) { return }
    if agent.isRecorded && TraceFile.isWritable {
        Spans.add(recorder, UnsafeRawPointer(name).assumingMemoryBound(to: UInt8.self), kind)
    }
    TraceFile.reportStop()
}

/// The caller's registers, as the trampoline spilled them below the traced stack pointer.
struct Spills {
    let stackPointer: UInt64
    init(_ stackPointer: UInt64) { self.stackPointer = stackPointer }

    private func word(_ offset: Int) -> UInt64 {
        UnsafeRawPointer(bitPattern: UInt(stackPointer))!.load(fromByteOffset: offset, as: UInt64.self)
    }
    #if arch(x86_64)
    var returnAddress: UInt64 { word(0) }
    #elseif arch(arm64)
    var returnAddress: UInt64 { word(-Int(SPILL_X30)) }
    #endif
    var savedRegister: UInt64 { word(-Int(SPILL_SAVED)) }
    var firstArgument: UInt64 { word(-Int(SPILL_FIRST)) }
    var secondArgument: UInt64 { word(-Int(SPILL_SECOND)) }
    var thirdArgument: UInt64 { word(-Int(SPILL_THIRD)) }
    func setFirstArgument(_ value: UInt64) {
        UnsafeMutableRawPointer(bitPattern: UInt(stackPointer))!.storeBytes(of: value, toByteOffset: -Int(SPILL_FIRST), as: UInt64.self)
    }
}

extension ThreadRecorder {
    func enter(_ descriptor: UnsafeMutablePointer<function_descriptor>, _ spills: Spills) -> Frame? {
        let isTailCall = spills.returnAddress == agent.trampolines.returned || spills.returnAddress == agent.trampolines.watched
        let isOwn = isOwnStack(spills.stackPointer)
        let place = spills.stackPointer
        if isOwn {
            dropAbandonedSignalFrames()
            disarmIfPossible()
            // A record that is being filled may hold the place of its last use: dead only if its enter has been written,
            // which happens after the place.
            unwind {
                $0.pointee.place > place || ($0.pointee.place == place && isTailCall) || ($0.isFilling && !isOpenInFile($0))
            }
        }
        var tails: UInt32 = 0
        if isOwn && isTailCall && top.pointee.place == place {
            tails = (top.pointee.below.pointee.place == place ? top.pointee.tails : 0) &+ 1
            if tails >= UInt32(TAIL_LIMIT) {
                writeInstant(descriptor.pointee.function)
                return nil
            }
        }
        guard let frame = isOwn ? push(place: place, tails: tails) : pushForeign(place: place)
        else { return nil }
        frame.pointee.return_address = spills.returnAddress
        frame.pointee.saved_register = spills.savedRegister
        frame.pointee.function = descriptor
        begin(frame)
        if isOwn { top = frame } else { openForeign(frame) }
        return frame
    }

    /// The trampoline has read the return address and the caller's register already.
    func exit(_ frame: Frame, _ now: UInt64) {
        if frame.isLeft { return returnFromLeft() }
        let wasForeign = frame.pointee.owner != nil
        // While the frame still counts as open: a chunk that is opened now must say so.
        if frame.pointee.slot == nil { frame.setElsewhere() }
        ensureSlack()
        let isStray = !wasForeign && !isInChain(frame)
        if !wasForeign && !isStray { unwind { $0 == frame } }
        let duration = now &- frame.pointee.enter_ticks
        if duration < hot.pointee.minimum_ticks && !frame.isWritten {
            if hot.pointee.chunk != nil { hot.pointee.chunk.pointee.filtered_by_time &+= 1 }
        } else {
            if frame.isUnwritten { writeKept(frame, wasForeign) }
            writeExit(frame, now, wasForeign || isStray)
        }
        if wasForeign {
            closeForeign(frame)
        } else {
            if top == frame { top = frame.pointee.below }
            frame.pointee.slot = nil
        }
        disarmIfPossible()
    }

    /// A call that the time filter keeps, and the calls that it was made in.
    private func writeKept(_ frame: Frame, _ isForeign: Bool) {
        if isForeign {
            writeHeldBack(upTo: top)
            appendEnter(frame)
        } else {
            writeHeldBack(upTo: frame)
        }
    }
}
