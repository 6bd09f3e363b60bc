// The life of the agent in a process: it begins before libc's own initializer, and ends with the last destructor.
import CSupport
import CTraceLayout

/// What the agent knows about its process. Written while it begins and, in a forked child, begins again; read
/// everywhere.
struct Agent {
    var settings = Settings()
    var pid: UInt32 = 0
    var pageBytes = 4096
    var clock: UInt32 = 0
    var ticksPerSecond: UInt64 = 0
    var minimumTicks: UInt64 = 0
    var flags: UInt32 = 0
    var programHeaders: UInt64 = 0
    var programHeaderCount = 0
    var loaderBase: UInt64 = 0
    var entry: UInt64 = 0
    var kernelImage: UInt64 = 0
    var mainStackHigh: UInt64 = 0
    var boundSlots: UInt64 = 0
    /// See Calibration; 0 unknown.
    var leafCost: UInt32 = 0
    var insideCost: UInt32 = 0
    var trampolines = trampoline_set(enter: 0, special: 0, returned: 0)
    /// Texts in pages of our own: the program as it was started, the executable, the directory.
    var program = CText(StaticString("program").utf8Start)
    var executable = CText(StaticString("?").utf8Start)
    var directory = CText(StaticString(".").utf8Start)
    /// False when this process is not to be recorded; its slots are then untouched, or its stubs pass through.
    var isRecorded = false
    /// While the modules of a start are bound and there is no other thread: nobody else uses anything of ours.
    var isAlone = false
}
nonisolated(unsafe) var agent = Agent()

extension Agent {
    private static let storeBytes = 65536

    mutating func begin(_ arguments: UnsafeMutablePointer<CText?>, _ argumentCount: Int,
                        _ environment: UnsafeMutablePointer<CText?>) {
        pid = UInt32(truncatingIfNeeded: SystemCall.call(SystemCall.getpid))
        readAuxiliaryVector(environment)
        if isSecure { return } // a setuid program: the loader should not have let us in
        let isWithoutCounter = Confinement.counterIsForbidden
        let cycles = isWithoutCounter ? 0 : tracer_cycles(), usage = trace_usage.process()
        mainStackHigh = UInt64(UInt(bitPattern: arguments))
        guard let room = Memory.pages(Agent.storeBytes) else { return }
        var store = TextBuffer(room.assumingMemoryBound(to: UInt8.self), capacity: Agent.storeBytes)
        keepTexts(&store)
        Memory.protect(tracer_address_mappings(), UInt64(MAPPING_BYTES), Memory.readWrite)
        Message.begin()
        let complaints = settings.read(environment, into: &store)
        if !settings.children && isChild { return }
        if isWithoutCounter { settings.forcesMonotonic = true }
        chooseClock()
        let before = clock == UInt32(TRACE_CLOCK_MONOTONIC) ? Clock.ticks() : cycles
        guard TraceFile.begin() else { return }
        MappingFaults.begin()
        isRecorded = true
        complaints.report()
        describe(arguments, argumentCount)
        Phases.begin(before, usage)
        SpecialFunction.begin()
        trampolines = tracer_trampolines(clock == UInt32(TRACE_CLOCK_MONOTONIC) ? 1 : 0, minimumTicks > 0 ? 1 : 0)
        guard ForkWatch.begin(), Trampolines.isReachable() else { return }
        if !Trampolines.prepare() || !ReturnLabels.begin() {
            Message.say { $0.append("this process may not make code (MDWE, SELinux execmem): it runs unrecorded") }
            return
        }
        flags = LoaderWatch.begin()
        (leafCost, insideCost) = Calibration.run()
        TraceFile.header.pointee.leaf_cost = leafCost
        TraceFile.header.pointee.inside_cost = insideCost
        TraceFile.header.pointee.flags = flags
        TraceFile.header.pointee.start_ticks = before
        let now = Clock.ticks()
        TraceFile.header.pointee.started_ticks = now
        OwnWork.add(since: before, until: now)
        TraceFile.reportStop()
        if settings.startsOn && TraceFile.isWritable {
            tracer_process_page().pointee.enabled = 1
            ThreadRecorder.takeFastPath() // Calibration has begun this thread
        }
    }

    // MARK: - Surroundings

    /// getauxval(3)'s table stands behind the environment.
    private mutating func readAuxiliaryVector(_ environment: UnsafeMutablePointer<CText?>) {
        var index = 0
        while environment[index] != nil { index &+= 1 }
        let vector = UnsafeRawPointer(environment + (index &+ 1)).assumingMemoryBound(to: UInt64.self)
        var n = 0
        var capabilities: UInt64 = 0, moreCapabilities: UInt64 = 0
        while vector[n] != 0 {
            let value = vector[n &+ 1]
            switch vector[n] {
            case 3: programHeaders = value              // AT_PHDR
            case 5: programHeaderCount = Int(value)     // AT_PHNUM
            case 6: pageBytes = Int(value)              // AT_PAGESZ
            case 7: loaderBase = value                  // AT_BASE
            case 9: entry = value                       // AT_ENTRY
            case 16: capabilities = value               // AT_HWCAP
            case 23: isSecure = value != 0              // AT_SECURE
            case 26: moreCapabilities = value           // AT_HWCAP2
            case 31:                                    // AT_EXECFN
                if let name = CText(bitPattern: UInt(value)) { program = name }
            case 33: kernelImage = value                // AT_SYSINFO_EHDR
            default: break
            }
            n &+= 2
        }
        #if arch(arm64)
        tracer_set_capabilities(capabilities, moreCapabilities)
        #endif
    }

    private mutating func keepTexts(_ store: inout TextBuffer) {
        let name = store.start + store.count
        store.append(contentsOf: program)
        store.append(0)
        program = CText(name)
        executable = Agent.read(&store) {
            SystemCall.call(SystemCall.readlinkat, -100, bits(StaticString("/proc/self/exe").utf8Start), bits($0), $1)
        } ?? program
        directory = Agent.read(&store) {
            let count = SystemCall.call(SystemCall.getcwd, bits($0), $1)
            return failed(count) ? count : count &- 1
        } ?? directory
    }
    private static func read(_ store: inout TextBuffer,
                             _ call: (UnsafeMutablePointer<UInt8>, Int) -> Int) -> CText? {
        var room = InlineArray<4096, UInt8>(repeating: 0)
        var span = room.mutableSpan
        let start = store.start + store.count
        return span.withUnsafeMutableBufferPointer { bytes in
            let count = call(bytes.baseAddress!, 4095)
            if count <= 0 { return nil }
            bytes[count] = 0
            store.append(contentsOf: CText(bytes.baseAddress!))
            store.append(0)
            return CText(start)
        }
    }

    private mutating func chooseClock() {
        if !settings.forcesMonotonic && tracer_cycles_usable() != 0 {
            clock = Machine.cycleClock
            ticksPerSecond = tracer_cycles_frequency()
        } else {
            clock = UInt32(TRACE_CLOCK_MONOTONIC)
            ticksPerSecond = 1_000_000_000
        }
        if settings.minimumNanoseconds == 0 { return }
        // The filter needs the length of a tick now. Where the processor does not say it, it is measured: 1 ms once,
        // only when the filter is used, good to a few parts in ten thousand.
        var perSecond = ticksPerSecond
        if perSecond == 0 {
            let first = Clock.sample()
            while Clock.monotonic() &- first.monotonic_ns < 1_000_000 {}
            let last = Clock.sample()
            perSecond = (last.ticks &- first.ticks) &* 1_000_000_000 / (last.monotonic_ns &- first.monotonic_ns)
        }
        minimumTicks = settings.minimumNanoseconds / 1_000_000 &* (perSecond / 1000)
            &+ settings.minimumNanoseconds % 1_000_000 &* (perSecond / 1000) / 1_000_000
        if minimumTicks == 0 { minimumTicks = 1 }
    }

    /// True when TRACER_CHILDREN=0 leaves this process out: `tracer record` is not its parent, or, without it, the
    /// parent has this library mapped too.
    private var isChild: Bool {
        let parent = UInt64(truncatingIfNeeded: SystemCall.call(SystemCall.getppid))
        return settings.recorder != 0 ? parent != settings.recorder : ProcessMaps.mentionsAgent(parent)
    }

    private func describe(_ arguments: UnsafeMutablePointer<CText?>, _ count: Int) {
        Metadata.text(UInt16(TRACE_TEXT_PROGRAM), executable, length(executable))
        Metadata.text(UInt16(TRACE_TEXT_DIRECTORY), directory, length(directory))
        guard let room = Memory.pages(65536) else { return }
        var text = TextBuffer(room.assumingMemoryBound(to: UInt8.self), capacity: 65536)
        for n in 0..<count {
            guard let argument = arguments[n] else { break }
            text.append(contentsOf: argument)
            text.append(0)
        }
        Metadata.text(UInt16(TRACE_TEXT_ARGUMENTS), CText(text.start), text.count)
        text = TextBuffer(text.start, capacity: 65536)
        settings.describe(&text)
        Metadata.text(UInt16(TRACE_TEXT_SETTINGS), CText(text.start), text.count)
        Memory.release(room, 65536)
    }
}
nonisolated(unsafe) private var isSecure = false

extension Machine {
    #if arch(x86_64)
    static let cycleClock = UInt32(TRACE_CLOCK_TSC)
    #elseif arch(arm64)
    static let cycleClock = UInt32(TRACE_CLOCK_CNTVCT)
    #endif
}

/// All signals (but SIGBUS, see MappingFaults) stay blocked while `body` runs: a handler must not find the agent half-way.
func withSignalsBlocked(_ body: () -> Void) {
    var all = tracer_blocked().pointee, old: UInt64 = 0
    withUnsafeMutablePointer(to: &old) { old in
        withUnsafeMutablePointer(to: &all) {
            _ = SystemCall.call(SystemCall.rt_sigprocmask, 0, bits($0), bits(old), 8)
        }
        body()
        _ = SystemCall.call(SystemCall.rt_sigprocmask, 2, bits(old), 0, 8)
    }
}

@c @implementation
public func tracer_agent_start(_ count: Int32, _ arguments: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?,
                               _ environment: UnsafeMutablePointer<UnsafeMutablePointer<CChar>?>?) {
    guard let arguments, let environment else { return }
    withSignalsBlocked {
        agent.begin(UnsafeMutableRawPointer(arguments).assumingMemoryBound(to: CText?.self), Int(count),
                    UnsafeMutableRawPointer(environment).assumingMemoryBound(to: CText?.self))
    }
}

@c @implementation
public func tracer_agent_end() {
    if !agent.isRecorded || tracer_process_page().pointee.alive == 0 || TraceFile.isConfined { return }
    withSignalsBlocked {
        MappingFaults.look()
        TraceFile.reportStop()
        Phases.exit()
        if let unit = tracer_thread_state().pointee.unit, unit.pointee.state != nil {
            let recorder = ThreadRecorder(tracer_thread_state())
            recorder.ensureSlack()
            recorder.writeHeldBack(upTo: recorder.top) // what the time filter holds back is open at the end
            // The chunk stays open: destructors of other libraries may still run.
            if let chunk = unit.pointee.hot.pointee.chunk { ThreadRecorder.nameThread(chunk) }
        }
        TraceFile.end()
    }
}
