// Attaching and detaching: entered by `tracer attach` on a task of its own (entry.c), which has the thread block of a thread that runs on.
// Nothing here reads or writes anything of a thread's own; the context of a thread is made at its first call through a stub.
//
// Detaching leaves what may still be returned through: stubs, labels, contexts. Attaching again uses them, with a new file, into which the
// records of the old one are copied, as in a forked child.
import CSupport
import CTraceLayout

extension Agent {
    mutating func attach(_ texts: CText) -> trace_attach_result {
        if hasBegun || isRecorded { return TRACE_ATTACH_RECORDING }
        if TraceOutput.isConfined { return TRACE_ATTACH_CONFINED }
        guard let arguments, !isElsewhere else { return TRACE_ATTACH_NAMESPACE }
        if isPrepared && isOfParent { return TRACE_ATTACH_CHILD }
        guard let buffer = Memory.pages(Agent.storeBytes) else { return TRACE_ATTACH_NO_MEMORY }
        defer { Memory.release(buffer, Agent.storeBytes) }
        let environment = Agent.list(texts, in: buffer.assumingMemoryBound(to: CText?.self))
        if isPrepared { return attachAgain(environment) }
        Process.begin(arguments)
        Process.wasRunning = true
        Process.isAttached = true
        settings = Settings()
        settings.quiet = true
        let result = start(arguments, argumentCount, environment)
        isPrepared = result == TRACE_ATTACH_DONE
        if !isPrepared && isRecorded { leaveFile() }
        return result
    }

    private mutating func attachAgain(_ environment: UnsafeMutablePointer<CText?>) -> trace_attach_result {
        guard let buffer = stores[store] ?? Memory.pages(Agent.storeBytes) else { return TRACE_ATTACH_NO_MEMORY }
        stores[store] = buffer
        var texts = TextBuffer(buffer.assumingMemoryBound(to: UInt8.self), capacity: Agent.storeBytes)
        var fresh = Settings()
        let complaints = fresh.read(environment, into: &texts)
        if Clock.source == UInt32(TRACE_CLOCK_MONOTONIC) && fresh.clock == .auto { fresh.clock = settings.clock }
        guard fresh.callSites == settings.callSites, fresh.maximumDepth == settings.maximumDepth, fresh.clock == settings.clock else {
            return TRACE_ATTACH_SETTINGS
        }
        store ^= 1
        fresh.quiet = true
        settings = fresh
        initializeLayers()
        chooseClock()
        let before = Clock.ticks()
        ClockWatch.becomeChild()
        guard TraceOutput.begin() else { return TRACE_ATTACH_NO_FILE }
        ModuleTable.forgetRecords()
        FunctionTable.forgetBlocks()
        OpenedDescriptors.becomeChild()
        MetadataWriter.copyKept()
        ThreadRecorder.beginSession()
        MappingFaults.begin()
        isRecorded = true
        complaints.report()
        ArgumentPlan.end()
        beginArguments()
        if !CallChoice.begin() {
            leaveFile()
            return TRACE_ATTACH_SETTINGS
        }
        Triggers.describe()
        describe(arguments!, argumentCount)
        guard let flags = LoaderWatch.begin() else {
            leaveFile()
            return TRACE_ATTACH_LOADER
        }
        TraceOutput.flags = flags | UInt32(TRACE_FLAG_FILTERED) | (settings.callSites ? UInt32(TRACE_FLAG_CALL_SITES) : 0)
        if settings.arguments != nil { findErrno() }
        open(since: before)
        return TRACE_ATTACH_DONE
    }

    mutating func detach() -> trace_attach_result {
        if !isRecorded || !isPrepared { return TRACE_ATTACH_NOT_ATTACHED }
        if isOfParent { return TRACE_ATTACH_CHILD }
        if TraceOutput.isConfined { return TRACE_ATTACH_CONFINED }
        let isOver = LoaderWatch.end {
            tracer_store_release_32(&tracer_process_page().pointee.enabled, 0)
            ReturnLabels.close()
            ChosenCalls.takeBack()
        }
        if !isOver { return TRACE_ATTACH_LOADER }
        ThreadRecorder.releaseAllDead()
        ProcessTitle.write()
        leaveFile()
        return PatchedFunctions.areAnyLeft ? TRACE_ATTACH_CODE_LEFT : TRACE_ATTACH_DONE
    }

    /// The file is complete, and the process has no mapping of it.
    private mutating func leaveFile() {
        isRecorded = false
        Message.isRecording = false
        TraceOutput.close()
        ThreadRecorder.awaitChunks()
        ThreadRecorder.leaveChunks()
        MetadataWriter.leave()
        TraceOutput.leave()
        MappingFaults.end()
    }

    /// The process was forked from the one in which the agent was prepared. Its page is zeros until its first call.
    private var isOfParent: Bool {
        UInt64(Process.pid) != UInt64(truncatingIfNeeded: SystemCall.call(SystemCall.getpid)) || tracer_process_page().pointee.alive == 0
    }

    /// The texts one after the other, as an array that ends in nil.
    private static func list(_ texts: CText, in array: UnsafeMutablePointer<CText?>) -> UnsafeMutablePointer<CText?> {
        var text = texts, count = 0
        while text[0] != 0 && count < storeBytes / MemoryLayout<CText?>.stride &- 1 {
            array[count] = text
            count &+= 1
            text += length(text) &+ 1
        }
        array[count] = nil
        return array
    }
}

@c @implementation
public func tracer_agent_await(_ count: Int32, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) {
    guard let arguments else { return }
    agent.arguments = UnsafeMutableRawPointer(arguments).assumingMemoryBound(to: CText?.self)
    agent.argumentCount = Int(count)
    Process.begin(agent.arguments!)
    agent.isElsewhere = OwnLoading.find() == .elsewhere
}

@c @implementation
public func tracer_agent_attach(_ settings: UnsafePointer<CChar>!) -> Int32 {
    var result = TRACE_ATTACH_NO_MEMORY
    guard let settings else { return Int32(result.rawValue) }
    asGuest { result = agent.attach(UnsafeRawPointer(settings).assumingMemoryBound(to: UInt8.self)) }
    return Int32(result.rawValue)
}

@c @implementation
public func tracer_agent_detach() -> Int32 {
    var result = TRACE_ATTACH_DONE
    asGuest { result = agent.detach() }
    return Int32(result.rawValue)
}

private func asGuest(_ body: () -> Void) {
    Lock.asksKernel = true
    withSignalsBlocked(body)
    Lock.asksKernel = false
}
