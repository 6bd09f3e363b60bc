// The life of the agent in a process: it begins before libc's own initializer, and ends with the last destructor.
import CSupport
import CTraceLayout

/// Settings of the program and its user, and whether this process is recorded at all. Every layer keeps what it needs of them: none
/// below asks the agent.
struct Agent {
    var settings = Settings()
    /// False when this process is not to be recorded; its slots are then untouched, or its stubs pass through.
    var isRecorded = false
    /// The constructor has begun to record, or tried to.
    var hasBegun = false
    /// Main's arguments, noted by the constructor; nil: it has not run.
    var arguments: UnsafeMutablePointer<CText?>?
    var argumentCount = 0
    var isElsewhere = false
    /// Stubs, labels and trampolines are ready: the agent has been attached before.
    var isPrepared = false
    /// Memory for texts of the settings of later attaches, in turn: those of the last one are in use.
    var stores = InlineArray<2, UnsafeMutableRawPointer?>(repeating: nil)
    var store = 0
}
nonisolated(unsafe) var agent = Agent()

extension Agent {
    static let storeBytes = 65536

    mutating func begin(
        _ arguments: UnsafeMutablePointer<CText?>, _ argumentCount: Int,
        _ environment: UnsafeMutablePointer<CText?>?
    ) {
        Process.begin(arguments)
        if Process.isSecure { return } // a setuid program: the loader should not have let us in
        let loading = OwnLoading.find()
        Process.wasRunning = loading != .withProgram
        hasBegun = true
        _ = start(arguments, argumentCount, environment, isElsewhere: loading == .elsewhere)
    }

    /// Prepares the agent in this process, and begins to record. Returns TRACE_ATTACH_….
    mutating func start(
        _ arguments: UnsafeMutablePointer<CText?>, _ argumentCount: Int,
        _ environment: UnsafeMutablePointer<CText?>?, isElsewhere: Bool = false
    ) -> trace_attach_result {
        let isWithoutCounter = Confinement.counterIsForbidden
        let cycles = isWithoutCounter ? 0 : tracer_cycles(), usage = trace_usage.process()
        guard let buffer = Memory.pages(Agent.storeBytes) else { return TRACE_ATTACH_NO_MEMORY }
        var store = TextBuffer(buffer.assumingMemoryBound(to: UInt8.self), capacity: Agent.storeBytes)
        Process.keepTexts(&store)
        Memory.protect(tracer_address_mappings(), UInt64(MAPPING_BYTES), Memory.readWrite)
        Message.begin()
        let complaints = settings.read(environment, into: &store)
        initializeLayers()
        if isElsewhere {
            Message.warn { $0.append("loaded into a namespace of its own (dlmopen): the program runs unrecorded") }
            return TRACE_ATTACH_NAMESPACE
        }
        if !Process.isAttached && !settings.children && isChild { return TRACE_ATTACH_CHILD }
        if isWithoutCounter { settings.clock = .monotonic }
        chooseClock()
        let before = Clock.source == UInt32(TRACE_CLOCK_MONOTONIC) ? Clock.ticks() : cycles
        guard TraceOutput.begin() else { return TRACE_ATTACH_NO_FILE }
        MappingFaults.begin()
        isRecorded = true
        complaints.report()
        describe(arguments, argumentCount)
        if let environment, !Process.wasRunning { Executions.begin(environment, isKept: settings.keepsAgent && settings.children) }
        if !Process.wasRunning { Phases.begin(before, usage) }
        SpecialFunction.begin()
        beginArguments()
        guard CallChoice.begin() else { return TRACE_ATTACH_NO_MEMORY }
        guard ForkWatch.begin() else { return TRACE_ATTACH_NO_WIPE }
        guard Trampolines.isReachable() else { return TRACE_ATTACH_NO_CODE }
        let readsKernelClock = Clock.source == UInt32(TRACE_CLOCK_MONOTONIC)
        // Attached agents: a later time may have a time filter, and stubs lead to the trampolines of the first.
        let isFiltered = Limits.hasTimeFilter || Process.isAttached
        if !Trampolines.prepare(readsKernelClock: readsKernelClock, isFiltered: isFiltered)
            || Process.isAttached && !Trampolines.preparePatched(isFiltered: isFiltered) // a later time threads may be there
            || !ReturnLabels.begin()
        {
            Message.warn { $0.append("this process may not create executable memory (MDWE, SELinux execmem): it runs unrecorded") }
            return TRACE_ATTACH_NO_CODE
        }
        guard let flags = LoaderWatch.begin() else { return TRACE_ATTACH_LOADER }
        TraceOutput.flags =
            flags | (settings.callSites ? UInt32(TRACE_FLAG_CALL_SITES) : 0) | (isFiltered ? UInt32(TRACE_FLAG_FILTERED) : 0)
        if !Process.wasRunning { findEnvironment() }
        if settings.arguments != nil { findErrno() }
        if !Process.isAttached { Calibration.run() } // on a thread of its own
        TraceOutput.writeCost()
        open(since: before)
        return TRACE_ATTACH_DONE
    }

    /// All is prepared: recording begins.
    func open(since before: UInt64) {
        TraceOutput.header.pointee.flags = TraceOutput.flags
        TraceOutput.header.pointee.start_ticks = before
        let now = Clock.ticks()
        TraceOutput.header.pointee.started_ticks = now
        Message.isRecording = true
        OwnWork.add(since: before, until: now)
        if ArgumentPlan.isInUse { OpenedDescriptors.beginProcess() }
        reportStop()
        if settings.startsOn && TraceOutput.isWritable {
            ReturnLabels.open()
            tracer_store_release_32(&tracer_process_page().pointee.enabled, 1)
            SessionControl.note(isOn: true, isBeginning: true)
        } else {
            ReturnLabels.close() // Calibration needed them
            SessionControl.note(isOn: false, isBeginning: true)
        }
    }

    // MARK: - Environment

    func initializeLayers() {
        Message.isQuiet = settings.quiet
        Limits.maximumDepth = settings.maximumDepth
        Limits.fileBytes = settings.sizeLimit
        Limits.mode = settings.mode
        TriggerList.text = settings.mode == .counts ? nil : settings.triggers
        TraceName.template = settings.output
        TraceOutput.session = settings.session.number
        if settings.session.namespace != 0 && settings.session.namespace == TraceName.pidNamespace() {
            FileJob.recorder = settings.session.recorder
        }
        NameFilter.include = settings.include
        NameFilter.exclude = settings.exclude
        NameFilter.ready = settings.ready
        Phases.execTime = settings.execTime
        PatchedFunctions.wanted = settings.functions
        PatchedFunctions.minimumSize = settings.minimumSize
        CalledFunctions.areWanted = settings.mode == .counts
        NameFilter.leavesSlots = settings.mode == .counts
        HotFunctions.areKept = settings.keepsHot || Process.isAttached // counters would be of the first file
        ReturnLabels.servesPatched = settings.functions != nil || Process.isAttached // a later time may have functions
        Trampolines.recordsSites = settings.callSites
        CacheHome.isUsed = settings.usesCache
        CacheHome.folder = settings.cacheHome
        CacheHome.home = settings.home
    }

    func chooseClock() {
        if settings.clock == .auto && tracer_cycles_usable() != 0 {
            Clock.source = Architecture.cycleClock
            Clock.ticksPerSecond = tracer_cycles_frequency()
        } else {
            Clock.source = UInt32(TRACE_CLOCK_MONOTONIC)
            Clock.ticksPerSecond = 1_000_000_000
        }
        Limits.minimumTicks = settings.minimumNanoseconds > 0 ? Clock.ticks(in: settings.minimumNanoseconds) : 0
        Limits.keptTicks = settings.keptNanoseconds > 0 ? Clock.ticks(in: settings.keptNanoseconds &+ Limits.keptBeyond) : 0
        Triggers.begin()
    }

    private func findEnvironment() {
        let query = SymbolQuery(name: Name(CText(Executions.environmentName.utf8Start)), version: VersionNeed())
        guard let found = ModuleTable.anyDefinition(of: query) else { return }
        let image = withUnsafePointer(to: &ModuleTable.modules.pointer(found.module).pointee.image) { $0 }
        if let symbol = image.pointee.symbol(found.symbol)?.pointee { tracer_set_environment(image.pointee.bias &+ symbol.value) }
    }

    func beginArguments() {
        guard let path = settings.arguments, settings.mode != .counts else { return }
        let isByDefault = ArgumentPlan.isByDefault(path), beginning = ArgumentPlan.begin(path)
        // A plan that nobody has asked for may be gone: a cache may be emptied.
        if beginning == .damaged || beginning == .absent && !isByDefault {
            Message.warn {
                $0.append("no arguments are recorded: ")
                $0.append(contentsOf: path)
                $0.append(" is missing, damaged, or another user's")
            }
        }
        let isFiltered = SystemCall.call(SystemCall.prctl, Control.getFilters) == 2 // SECCOMP_MODE_FILTER (prctl(2))
        ArgumentValues.begin(mayCopy: !isFiltered)
        if isFiltered && !isByDefault {
            Message.warn { $0.append("strings are recorded by their addresses alone: a filter of system calls is in force") }
        }
    }
    /// __errno_location (LSB 5.0, libc) says where a thread's errno is: in static thread-local storage, as far from the thread pointer in
    /// every thread.
    func findErrno() {
        let query = SymbolQuery(name: Name(CText(StaticString("__errno_location").utf8Start)), version: VersionNeed())
        guard let found = ModuleTable.anyDefinition(of: query) else { return }
        let image = withUnsafePointer(to: &ModuleTable.modules.pointer(found.module).pointee.image) { $0 }
        guard FunctionHome.isLibc(image), let symbol = image.pointee.symbol(found.symbol)?.pointee else { return }
        tracer_set_errno_distance(tracer_call_resolver(image.pointee.bias &+ symbol.value) &- tracer_thread_pointer())
    }

    /// True when the setting `children` skips this process: `tracer record` is not its parent, or, without it, the
    /// parent has this library mapped too.
    private var isChild: Bool {
        let parent = UInt64(truncatingIfNeeded: SystemCall.call(SystemCall.getppid))
        return settings.session.recorder != 0 ? parent != settings.session.recorder : ProcessMaps.mentionsAgent(parent)
    }

    /// The program takes an orderly way out, in this thread.
    func end() {
        if !isRecorded || TraceOutput.isConfined { return }
        if let context = tracer_thread_state().pointee.context, context.pointee.state != nil {
            let recorder = ThreadRecorder(tracer_thread_state())
            recorder.releaseDead()
            // The chunk stays open: destructors of other libraries may still run.
            if let chunk = context.pointee.position.pointee.chunk { ThreadRecorder.nameThread(chunk) }
        }
        ProcessTitle.write()
        TraceOutput.end()
    }

    func describe(_ arguments: UnsafeMutablePointer<CText?>, _ count: Int) {
        MetadataWriter.text(UInt16(TRACE_TEXT_PROGRAM), Process.executable, length(Process.executable))
        MetadataWriter.text(UInt16(TRACE_TEXT_CALLED), Process.program, length(Process.program))
        MetadataWriter.text(UInt16(TRACE_TEXT_DIRECTORY), Process.directory, length(Process.directory))
        guard let buffer = Memory.pages(65536) else { return }
        var text = TextBuffer(buffer.assumingMemoryBound(to: UInt8.self), capacity: 65536)
        if Process.wasRunning && !Process.isStartedByLoader {
            ProcessTitle.readCommandLine(into: &text) // the program may have changed the array
        } else {
            for n in 0..<count {
                guard let argument = arguments[n] else { break }
                text.append(contentsOf: argument)
                text.append(0)
            }
        }
        MetadataWriter.text(UInt16(TRACE_TEXT_ARGUMENTS), CText(text.start), text.count)
        ProcessTitle.note(CText(text.start), text.count)
        text = TextBuffer(text.start, capacity: 65536)
        settings.describe(&text)
        MetadataWriter.text(UInt16(TRACE_TEXT_SETTINGS), CText(text.start), text.count)
        Memory.release(buffer, 65536)
    }
}

@c @implementation
public func tracer_agent_start(
    _ count: Int32, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
    _ environment: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?
) {
    guard let arguments else { return }
    withSignalsBlocked {
        agent.begin(
            UnsafeMutableRawPointer(arguments).assumingMemoryBound(to: CText?.self), Int(count),
            environment.map { UnsafeMutableRawPointer($0).assumingMemoryBound(to: CText?.self) })
    }
}

@c @implementation
public func tracer_agent_end() {
    if !agent.isRecorded || tracer_process_page().pointee.alive == 0 || TraceOutput.isConfined { return }
    withSignalsBlocked {
        stopAfterLoss()
        reportStop()
        Phases.exit()
        agent.end()
    }
}

// MARK: - Calls from the layers below (layout.h)

@c @implementation
public func tracer_record_message(_ text: UnsafePointer<UInt8>!, _ byteCount: Int) {
    if TraceOutput.isOpen { MetadataWriter.text(UInt16(TRACE_TEXT_MESSAGE), text, byteCount) }
}

@c @implementation
public func tracer_chunk_full(
    _ chunk: UnsafePointer<trace_chunk_header>!, _ end: UnsafePointer<UInt64>!, _ context: UnsafeMutablePointer<thread_context>!
) {
    HotFunctions.look(chunk, end, context)
}

@c @implementation
public func tracer_function_address(_ function: UInt32) -> UInt64 { FunctionTable.entry(function).target }

@c @implementation
public func tracer_function_contains(_ function: UInt32, _ address: UInt64) -> Bool { FunctionTable.entry(function).contains(address) }

@c @implementation
public func tracer_function_trigger(_ function: UInt32) -> UInt8 {
    if TriggerList.text == nil { return 0 }
    let entry = FunctionTable.entry(function)
    return entry.choice == CallChoice.current ? entry.trigger : 0
}

@c @implementation
public func tracer_watched_called(_ function: UInt32, _ trigger: UInt8, _ thread: UInt32, _ tid: UInt32) {
    Triggers.began(function, trigger, thread, tid)
}

@c @implementation
public func tracer_watched_ended(_ frame: UnsafeMutablePointer<frame_record>!, _ thread: UInt32, _ now: UInt64) {
    if TriggerList.text != nil, let frame { Triggers.ended(frame, thread, now) }
}

@c @implementation
public func tracer_returned_apart(
    _ state: UnsafeMutablePointer<thread_state>!, _ label: UInt64, _ stackPointer: UInt64, _ now: UInt64
) -> Bool {
    Initializers.returned(ThreadRecorder(state), label, stackPointer, now)
}

@c @implementation
public func tracer_opened(_ frame: UnsafeMutablePointer<frame_record>!, _ thread: UInt32, _ now: UInt64) {
    if let frame { OpenedDescriptors.returned(frame, thread, now) }
}

@c @implementation
public func tracer_load_returned(
    _ state: UnsafeMutablePointer<thread_state>!, _ ending: UnsafeMutablePointer<frame_record>!, _ now: UInt64
) {
    guard let frame = ending else { return }
    let recorder = ThreadRecorder(state)
    if !Loads.leave(recorder, frame) { return }
    if frame.pointee.owner == nil { Initializers.closeAbandoned(recorder.context, below: frame.pointee.stack_pointer) }
    let load = frame.load
    if load == 0 { return }
    LoaderWatch.isLoaded(load)
    Loads.returned(load, now)
}
