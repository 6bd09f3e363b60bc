// The three entries from the trampolines. See ThreadRecorder for what they work with.
import CSupport
import CTraceLayout

@c @implementation
public func tracer_slow_enter(_ state: UnsafeMutablePointer<thread_state>!,
                              _ descriptor: UnsafeMutablePointer<function_descriptor>!, _ place: UInt64,
                              _ unwritten: UnsafeMutablePointer<frame_record>!) -> UnsafeMutablePointer<frame_record>! {
    defer { TraceFile.reportStop() }
    let kind = descriptor.pointee.kind
    let spills = Spills(place)
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
    if kind == UInt32(KIND_TAIL) { recorder.endTailCaller(spills) }
    if let unwritten {
        unwritten.setUnwritten() // no longer being filled by an interrupted trampoline: by us
        recorder.begin(unwritten)
        return unwritten
    }
    let changesAction = Inspection.changesAction(descriptor, spills)
    if let confinement = Inspection.confinement(descriptor, spills) { return confinement.endRecording(recorder, descriptor) }
    if tracer_process_page().pointee.enabled == 0 || SafetyHooks.isOne(descriptor) {
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
            recorder.endTailCaller(spills)
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
public func tracer_slow_exit(_ state: UnsafeMutablePointer<thread_state>!, _ label: UInt64, _ place: UInt64, _ now: UInt64) {
    var recorder = ThreadRecorder(state)
    if tracer_process_page().pointee.alive == 0 { ForkWatch.becomeChild(&recorder) }
    MappingFaults.look()
    recorder.returned(to: label, at: place, now)
    TraceFile.reportStop()
}

@c @implementation
public func tracer_slow_loader_event(_ state: UnsafeMutablePointer<thread_state>!, _ unused: UInt64, _ place: UInt64) {
    let entered = Clock.ticks()
    if !agent.isRecorded { return }
    var recorder = ThreadRecorder(state)
    if tracer_process_page().pointee.alive == 0 { ForkWatch.becomeChild(&recorder) }
    LoaderWatch.event(recorder, place, since: entered)
    OwnWork.add(since: entered, until: Clock.ticks())
    TraceFile.reportStop()
}

@c @implementation
public func tracer_slow_span(_ state: UnsafeMutablePointer<thread_state>!, _ name: UnsafePointer<CChar>!, _ place: UInt64,
                             _ kind: UInt64) {
    guard let name, agent.isRecorded else { return }
    var recorder = ThreadRecorder(state)
    if tracer_process_page().pointee.alive == 0 { ForkWatch.becomeChild(&recorder) }
    if kind == UInt64(SPAN_NONE) { return }
    if agent.isRecorded && TraceFile.isWritable {
        Spans.add(recorder, UnsafeRawPointer(name).assumingMemoryBound(to: UInt8.self), kind)
    }
    TraceFile.reportStop()
}

/// The caller's registers, as the trampoline spilled them around the place that a frame is known by.
struct Spills {
    let place: UInt64
    init(_ place: UInt64) { self.place = place }

    private func word(_ offset: Int) -> UnsafeMutablePointer<UInt64> {
        (UnsafeMutableRawPointer(bitPattern: UInt(place))! + offset).assumingMemoryBound(to: UInt64.self)
    }
    /// What is in the return slot: a label when a traced function has made a tail call.
    var returnAddress: UInt64 { word(Int(PLACE_RETURN)).pointee }
    func setReturnAddress(_ address: UInt64) { word(Int(PLACE_RETURN)).pointee = address }
    /// Where the function returns to in the end.
    var caller: UInt64 { ReturnLabels.returnAddress(returnAddress) }
    var firstArgument: UInt64 { word(-Int(SPILL_FIRST)).pointee }
    var secondArgument: UInt64 { word(-Int(SPILL_SECOND)).pointee }
    var thirdArgument: UInt64 { word(-Int(SPILL_THIRD)).pointee }
    var fourthArgument: UInt64 { word(-Int(SPILL_FOURTH)).pointee }
    func setFirstArgument(_ value: UInt64) { word(-Int(SPILL_FIRST)).pointee = value }
}

extension ThreadRecorder {
    /// Opens a frame. nil: it passes, with the return address that it came with.
    func enter(_ descriptor: UnsafeMutablePointer<function_descriptor>, _ spills: Spills) -> Frame? {
        let place = spills.place, isOwn = isOwnStack(place)
        let isTailCall = ReturnLabels.contains(spills.returnAddress)
        guard var label = isTailCall ? ReturnLabels.label(containing: spills.returnAddress) : ReturnLabels.label(of: spills.returnAddress)
        else {
            writeInstant(descriptor.pointee.function)
            return nil
        }
        if isOwn {
            dropAbandonedSignalFrames()
            disarmIfPossible()
            // A record that is being filled may hold the place of its last use: dead only if its enter has been written,
            // which happens after the place.
            unwind {
                $0.pointee.place > place || ($0.pointee.place == place && (isTailCall || ThreadRecorder.mayShare(place: $0, label)))
                    || ($0.isFilling && !isOpenInFile($0))
            }
        } else if !isTailCall, let old = openFrame(at: place, label) {
            // Two calls from one place of the code at one place of the stack: the older one is dead, unless stacks are copied.
            if unit.pointee.copies_stack == 0 {
                writeUnwound(old, Clock.ticks())
                closeForeign(old)
            } else {
                guard let another = ReturnLabels.another(of: label, { openFrame(at: place, $0) != nil }) else {
                    writeInstant(descriptor.pointee.function)
                    return nil
                }
                label = another
            }
        }
        var tails: UInt32 = 0
        if isTailCall {
            tails = 1
            if let caller = isOwn ? ownFrame(at: place, label) : openFrame(at: place, label) {
                if caller.isTailCall { tails = caller.pointee.tails &+ 1 }
                if tails >= UInt32(TAIL_LIMIT) { return replace(caller, descriptor) }
                if !isOwn { caller.pointee.label |= UInt64(LABEL_WATCHED) } // its return is that of both
            }
        }
        guard let frame = isOwn ? push(place: place, tails: tails) : pushForeign(place: place, tails: tails) else { return nil }
        let isWatched = descriptor.pointee.kind == UInt32(KIND_LOAD)
        frame.pointee.label = label | (isTailCall ? UInt64(LABEL_TAIL) : 0) | (isWatched ? UInt64(LABEL_WATCHED) : 0)
        frame.pointee.function = descriptor
        begin(frame)
        if isOwn { top = frame } else { openForeign(frame) }
        return frame
    }

    /// Two open frames at one place of the thread's own stack. On x86_64 each has a return slot there. On aarch64 the return
    /// address comes in a register, and a function that keeps it in another one (LLVM's outliner: `mov x15, x30; bl …;
    /// mov x30, x15`) has no slot. Then what it calls returns into that function. After a jump out of it, by longjmp or an
    /// exception, calls return into its caller: which is the same function when it calls itself, but then it has a slot.
    private static func mayShare(place frame: Frame, _ label: UInt64) -> Bool {
        #if arch(x86_64)
        return false
        #elseif arch(arm64)
        if frame.isFilling || frame.label == label { return false }
        let function = FunctionTable.entry(frame.function)
        func isInside(_ label: UInt64) -> Bool {
            ReturnLabels.returnAddress(label) &- function.target < UInt64(function.byteCount)
        }
        return isInside(label) && !isInside(frame.label)
        #endif
    }

    /// An endless row of tail calls: each ends the one before, in its record.
    private func replace(_ frame: Frame, _ descriptor: UnsafeMutablePointer<function_descriptor>) -> Frame {
        ensureSlack()
        end(frame, Clock.ticks(), frame.pointee.owner != nil)
        frame.pointee.function = descriptor
        frame.setUnwritten()
        begin(frame)
        return frame
    }

    /// A function that must see its real caller was reached by a tail call: the function that made it has ended.
    func endTailCaller(_ spills: Spills) {
        if !ReturnLabels.contains(spills.returnAddress) { return }
        let caller = spills.caller
        returned(to: ReturnLabels.label(containing: spills.returnAddress), at: spills.place, Clock.ticks())
        spills.setReturnAddress(caller)
    }

    // MARK: - Return

    /// A call has returned to its label: its frame ends, and those of the tail calls that it made.
    func returned(to label: UInt64, at place: UInt64, _ now: UInt64) {
        var isKnown = false
        if isOwnStack(place) || unit.pointee.copies_stack != 0 {
            while let frame = ownFrame(at: place, label) {
                let isTailCall = frame.isTailCall
                isKnown = true
                exit(frame, now)
                if !isTailCall { return }
            }
        }
        if Initializers.returned(self, label, place, now) { return }
        while let frame = openFrame(at: place, label) ?? migratedFrame(at: place, label) {
            let isTailCall = frame.isTailCall
            isKnown = true
            exit(frame, now)
            if !isTailCall { return }
        }
        if !isKnown { ThreadRecorder.distrustStack(of: unit) } // it was thought to be dead
    }

    /// The newest open frame of this call on the thread's own stack.
    private func ownFrame(at place: UInt64, _ label: UInt64) -> Frame? {
        var frame = top
        while frame != base {
            if frame.pointee.place == place && frame.label == label && frame.pointee.slot != nil { return frame }
            if frame.pointee.place > place && !frame.isFilling { return nil }
            frame = frame.pointee.below
        }
        return nil
    }

    private func exit(_ frame: Frame, _ now: UInt64) {
        if frame.pointee.function.pointee.kind == UInt32(KIND_LOAD) { Loads.returned(self, frame, now) }
        let wasForeign = frame.pointee.owner != nil
        // While the frame still counts as open: a chunk that is opened now must say so.
        if frame.pointee.slot == nil { frame.setElsewhere() }
        ensureSlack()
        let isInOrder = !wasForeign && unit.pointee.copies_stack == 0
        if isInOrder { unwind { $0 == frame } }
        end(frame, now, !isInOrder)
        if wasForeign {
            closeForeign(frame)
        } else if top == frame {
            top = frame.pointee.below
            frame.pointee.slot = nil
        } else {
            takeOut(frame)
        }
        disarmIfPossible()
    }
    private func end(_ frame: Frame, _ now: UInt64, _ isForeign: Bool) {
        let duration = now &- frame.pointee.enter_ticks
        if duration < hot.pointee.minimum_ticks && !frame.isWritten {
            if hot.pointee.chunk != nil { hot.pointee.chunk.pointee.filtered_by_time &+= 1 }
            return
        }
        if frame.isUnwritten {
            // A call that the time filter keeps, and the calls that it was made in.
            if isForeign {
                writeHeldBack(upTo: top)
                appendEnter(frame)
            } else {
                writeHeldBack(upTo: frame)
            }
        }
        writeExit(frame, now, isForeign)
    }
}
