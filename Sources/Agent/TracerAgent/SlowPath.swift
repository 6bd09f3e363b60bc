// Entry points from the trampolines into Swift: for a call, a return, a load, a span. They show which layers each goes through; all of
// them work with a ThreadRecorder.
import CSupport
import CTraceLayout

@c @implementation
public func tracer_slow_enter(
    _ state: UnsafeMutablePointer<thread_state>!,
    _ hook: UnsafeMutablePointer<function_hook>!, _ stackPointer: UInt64,
    _ unwritten: UnsafeMutablePointer<frame_record>!
) -> UnsafeMutablePointer<frame_record>! {
    defer { reportStop() }
    var kind = hook.pointee.kind
    let spills = Spills(stackPointer)
    if kind == UInt8(KIND_START) {
        if let main = InitializerStubs.main(spills.firstArgument) { spills.setFirstArgument(main) }
        return nil
    }
    var recorder = ThreadRecorder(state)
    if tracer_process_page().pointee.alive == 0 { agent.becomeChild(&recorder) }
    if !recorder.isOther {
        SessionControl.look()
        recorder.takeDepth()
    }
    if CalledFunctions.areWanted && (kind == UInt8(KIND_UNNAMED) || kind == UInt8(KIND_PATCHED)) {
        if !recorder.isOther { CalledFunctions.look(at: hook) }
        return nil
    }
    if kind == UInt8(KIND_UNNAMED) {
        if recorder.isOther || !PatchedFunctions.number(hook) { return nil }
        kind = UInt8(KIND_PATCHED)
    }
    if recorder.isOther {
        if Inspection.changesAction(hook, spills) { MappingFaults.restoreInChild() }
        if Inspection.confinement(hook, spills) != nil { recorder.pass() }
        return nil
    }
    if kind == UInt8(KIND_PATCHED) && unwritten == nil {
        switch HotFunctions.decide(hook, recorder) {
        case .passes: return nil
        case .isOrdinary: return UnsafeMutablePointer(bitPattern: Int(SLOW_ORDINARY))
        case .isRecorded: break
        }
    }
    if recorder.context.pointee.sharing != 0 { recorder.checkSharing(stackPointer) }
    recorder.forgetLeftEntries(at: stackPointer)
    stopAfterLoss()
    recorder.resumeFaultHandler()
    if kind == UInt8(KIND_INITIALIZER) {
        let entered = Clock.ticks()
        let stub = InitializerStub(hook)
        if stub.load != 0 {
            stub.findTarget()
            LoaderWatch.runs(of: Int(stub.module), isFinalizer: stub.isFinalizer)
        }
        if !agent.isRecorded { return nil }
        return Initializers.begin(recorder, hook, spills, since: entered)
    }
    let site = spills.site // a tail call's would be that of its caller
    if kind == UInt8(KIND_ENTRY_ONLY) { recorder.endTailCaller(spills) }
    if let unwritten {
        unwritten.pointee.argument = spills.object(hook)
        unwritten.setUnwritten() // not by an interrupted trampoline: it is filled here
        let program = ArgumentPlan.program(of: hook)
        if CallConditions.keep(program, spills) {
            recorder.begin(unwritten, program, spills)
        } else {
            recorder.countUnwanted()
            unwritten.pointee.enter_ticks = Clock.ticks()
            unwritten.setLost()
        }
        return unwritten
    }
    let changesAction = Inspection.changesAction(hook, spills)
    if Inspection.changesIdentity(hook, spills) { TraceSpace.reachFarAhead() }
    if Inspection.endsProcess(hook, spills) { agent.end() }
    if Inspection.mapsCode(hook, spills) { GeneratedCode.expect() }
    if let confinement = Inspection.confinement(hook, spills) { return confinement.endRecording(recorder, hook, site) }
    if let sharing = MemorySharing.of(hook, spills) {
        return recorder.beginSharing(sharing, hook, spills, isCounted: !SafetyHooks.isOne(hook))
    }
    if tracer_process_page().pointee.enabled == 0 || SafetyHooks.isOne(hook) {
        if tracer_process_page().pointee.dropping != 0 && !SafetyHooks.isOne(hook) { TraceOutput.drop() }
        if changesAction { recorder.suspendFaultHandler(until: nil) }
        return nil
    }
    recorder.leaveAlternateModeIfPossible()
    if kind == UInt8(KIND_ONCE) {
        OnceCalls.record(hook, spills, recorder, isPassing: Ready.isPast)
    } else if kind != UInt8(KIND_CALL) && kind != UInt8(KIND_PATCHED) && kind < UInt8(KIND_ARGUMENTS) {
        let entry = FunctionTable.entry(hook.pointee.function)
        if kind != UInt8(KIND_ENTRY_ONLY) { inspect(hook, entry.policy, spills, recorder) }
        let isEntryOnly = entry.policy.isEntryOnly(number: spills.firstArgument) {
            Loads.dependsOnCaller(name: spills.firstArgument, caller: spills.caller)
        }
        if entry.isEntryOnly || isEntryOnly {
            recorder.endTailCaller(spills)
            if changesAction { recorder.suspendFaultHandler(until: nil) }
            if recorder.top.pointee.last == 0 { recorder.writeInstant(hook.pointee.function, from: site) }
            if let target = jumpTarget(entry.policy, spills) { recorder.jumped(from: stackPointer, to: target) }
            return nil
        }
    }
    let frame = recorder.enter(hook, spills, entry: GeneratedCode.mayCall(hook) ? GeneratedCode.entry(hook, spills.returnAddress) : nil)
    if kind == UInt8(KIND_APART) || kind == UInt8(KIND_INSPECT), let frame { noteThrow(recorder, frame, spills) }
    if changesAction { recorder.suspendFaultHandler(until: frame) }
    if kind == UInt8(KIND_LOAD), let frame { Loads.entered(recorder, frame) }
    if kind > UInt8(KIND_OPENS) && kind < UInt8(KIND_ARGUMENTS), let frame { OpenedDescriptors.entered(frame, spills) }
    return frame
}

/// The recorder of the calling thread, for what is not a call through a stub. nil: nothing is recorded, or the thread's block is in use by
/// another task.
private func ownRecorder(_ state: UnsafeMutablePointer<thread_state>) -> ThreadRecorder? {
    if !agent.isRecorded { return nil }
    var recorder = ThreadRecorder(state)
    if tracer_process_page().pointee.alive == 0 { agent.becomeChild(&recorder) }
    return recorder.isOther ? nil : recorder
}

@inline(__always) func stopAfterLoss() {
    if MappingFaults.takeLoss() { TraceOutput.stop(TRACE_STOP_FILE, Failure.cut) }
}

@c @implementation
public func tracer_slow_exit(_ state: UnsafeMutablePointer<thread_state>!, _ label: UInt64, _ stackPointer: UInt64, _ now: UInt64) {
    var recorder = ThreadRecorder(state)
    if tracer_process_page().pointee.alive == 0 { agent.becomeChild(&recorder) }
    SessionControl.look()
    recorder.endPassing()
    recorder.goOn()
    recorder.takeDepth()
    stopAfterLoss()
    recorder.returned(to: label, at: stackPointer, now)
    reportStop()
}

@c @implementation
public func tracer_slow_loader_event(_ state: UnsafeMutablePointer<thread_state>!, _ unused: UInt64, _ stackPointer: UInt64) {
    let entered = Clock.ticks()
    guard let recorder = ownRecorder(state) else { return }
    LoaderWatch.event(recorder, stackPointer, since: entered, within: Initializers.innermost(recorder.context))
    OwnWork.add(since: entered, until: Clock.ticks())
    reportStop()
}

@c @implementation
public func tracer_slow_span(
    _ state: UnsafeMutablePointer<thread_state>!, _ name: UnsafePointer<CChar>!, _ stackPointer: UInt64,
    _ kind: UInt64
) {
    guard let name, let recorder = ownRecorder(state), kind != UInt64(SPAN_NONE) else { return }
    if agent.isRecorded && TraceOutput.isWritable {
        Spans.add(recorder, UnsafeRawPointer(name).assumingMemoryBound(to: UInt8.self), kind)
    }
    reportStop()
}

@c @implementation
public func tracer_slow_instrumented_enter(
    _ state: UnsafeMutablePointer<thread_state>!, _ function: UInt64, _ stackPointer: UInt64, _ site: UInt64
) {
    guard let recorder = ownRecorder(state) else { return }
    SessionControl.look()
    if recorder.context.pointee.sharing != 0 { recorder.checkSharing(stackPointer) }
    stopAfterLoss()
    recorder.resumeFaultHandler()
    if tracer_process_page().pointee.enabled != 0 {
        InstrumentedFunctions.enter(recorder, function, at: stackPointer, from: site)
    } else if tracer_process_page().pointee.dropping != 0 {
        TraceOutput.drop()
    }
    reportStop()
}

@c @implementation
public func tracer_slow_instrumented_exit(
    _ state: UnsafeMutablePointer<thread_state>!, _ function: UInt64, _ stackPointer: UInt64, _ site: UInt64
) {
    guard let recorder = ownRecorder(state) else { return }
    recorder.endPassing()
    recorder.goOn()
    stopAfterLoss()
    recorder.exitInstrumented(function, at: stackPointer, from: site, isLast: Spills(stackPointer).returnAddress == site)
    reportStop()
}

@c @implementation
public func tracer_slow_bind(
    _ state: UnsafeMutablePointer<thread_state>!, _ hook: UnsafeMutablePointer<function_hook>!,
    _ stackPointer: UInt64, _ slot: UInt64
) -> UInt64 {
    var recorder = ThreadRecorder(state)
    if tracer_process_page().pointee.alive == 0 { agent.becomeChild(&recorder) }
    defer { reportStop() }
    return LazySlots.bind(Int(hook.pointee.function), Int(truncatingIfNeeded: slot), Spills(stackPointer).lazyTarget)
}

@inline(__always) func reportStop() {
    if !TraceOutput.hasNewsOfStop { return }
    ReturnLabels.close()
    TraceOutput.reportStop()
}

/// Inspects the arguments of a call.
private func inspect(
    _ hook: UnsafeMutablePointer<function_hook>, _ policy: HookPolicy, _ spills: Spills,
    _ recorder: ThreadRecorder
) {
    switch policy {
    case .dlopen: Loads.asked(recorder, spills)
    case .threadName: ThreadRecorder.rename(thread: spills.firstArgument, name: spills.secondArgument)
    case .catching: recorder.caught(spills.firstArgument, at: spills.stackPointer, returningTo: spills.returnAddress)
    case .makeContext: recorder.inspectContext(spills.firstArgument)
    case .output, .notify, .notifyOfPid, .waylandRequest, .ready: Ready.inspect(hook, policy, spills, recorder)
    default: break
    }
}

private func jumpTarget(_ policy: HookPolicy, _ spills: Spills) -> UInt64? {
    switch policy {
    case .jump: JumpTarget.of(jump: spills.firstArgument)
    case .contextJump: JumpTarget.of(context: spills.firstArgument)
    default: nil
    }
}

/// Exceptions are known by their headers, struct _Unwind_Exception, which __cxa_throw's object follows (Itanium C++ ABI, 2.2.1).
private func noteThrow(_ recorder: ThreadRecorder, _ frame: Frame, _ spills: Spills) {
    let headerBytes: UInt64 = 32
    switch FunctionTable.entry(frame.function).policy {
    case .throwing: recorder.throwing(spills.firstArgument &- headerBytes, frame, isFirst: true)
    case .raising: recorder.throwing(spills.firstArgument, frame, isFirst: true)
    case .rethrowing: recorder.throwing(0, frame, isFirst: true)
    case .resuming: recorder.throwing(spills.firstArgument, frame, isFirst: false)
    default: break
    }
}

extension Confinement {
    /// Opens a new chunk, in which the calls that are open now still end, so that none of them needs the slow path. The call itself is
    /// recorded by its entry. Returns the result for the slow path, nil: the agent keeps no frame of the call.
    func endRecording(_ recorder: ThreadRecorder, _ hook: UnsafeMutablePointer<function_hook>, _ site: UInt64) -> Frame? {
        let isRecording = tracer_process_page().pointee.enabled != 0
        if isRecording || recorder.position.pointee.chunk != nil { _ = recorder.openChunk() }
        if isRecording && !SafetyHooks.isOne(hook) && recorder.top.pointee.last == 0 {
            recorder.writeInstant(hook.pointee.function, from: site)
        }
        TraceOutput.stop(rawValue, 0)
        reportStop()
        MappingFaults.end()
        tracer_store_release_32(tracer_confinement(), 1)
        if self == .counter { recorder.forgetFrames() }
        return nil
    }
}
