// The records that make a trace self-contained: program, settings, modules, functions, threads.
import CTraceLayout
import ELF
import Presentation
import Symbols
import TraceFormat

package struct Module: Sendable {
    package var index: UInt32
    package var path: String
    package var buildID: [UInt8]
    package var loadBias: UInt64
    package var addresses: Range<UInt64>
    package var loaded: Ticks
    package var unloaded: Ticks?
    /// nil: the module has a build-id, or an older agent did not say.
    package var file: ModuleIdentity.LoadedFile?

    package var name: String { path.isEmpty ? "[module \(index)]" : basename(path) }
    /// The agent, or its label library.
    package var isOfAgent: Bool { name.hasPrefix("libtracer.so") || name == "libtracer-labels.so" }
    package var identity: ModuleIdentity {
        ModuleIdentity(path: path, buildID: buildID, spanBytes: addresses.upperBound &- addresses.lowerBound, file: file)
    }
}

package struct Function: Sendable {
    package var id: UInt32
    package var module: UInt32?
    package var address: UInt64
    package var isEntryOnly: Bool
    /// No function but a name that the program gave to a span or a mark.
    package var isSpan: Bool
    package var isMark: Bool
    /// The argument that its calls are recorded with, if any.
    package var object: ObjectArgument?
    /// As in the file: mangled.
    package var rawName: String
    /// It is in the file because it was called, whether or not a call of it is.
    package var isThereByCall = false
}

package struct ThreadLife: Sendable {
    package var tid: UInt32
    /// When it was first seen: at its first recorded call.
    package var started: Ticks?
    /// CPU time that it had used until then.
    package var cpuTime: Nanoseconds?
    /// Thread pointer: address of its thread-local storage.
    package var pointer: UInt64?
    package var ended: Ticks?

    /// Returns true if pthread_t `handle` is this thread; nil unknown. The handle points to `struct pthread` of glibc and musl, which
    /// begins or ends at the thread pointer (ELF Handling For Thread-Local Storage, variants II and I) and is smaller than a page.
    package func isNamed(by handle: UInt64) -> Bool? { pointer.map { $0 >= handle && $0 - handle < 4096 } }
}

package struct Metadata: Sendable, RecordReader {
    /// Texts by TRACE_TEXT_ key, in file order; the parts of a NUL-separated text are joined by `texts`, split by `list`.
    package private(set) var texts: [Int: [String]] = [:]
    package private(set) var modules: [UInt32: Module] = [:]
    package private(set) var functions: [UInt32: Function] = [:]
    package private(set) var threads: [UInt32: ThreadLife] = [:]
    package private(set) var start = StartRecords()
    /// Kernel events that were requested; `KernelRecords` reads the events themselves on demand. nil: none were requested.
    package private(set) var kernel: KernelGrant?
    /// Clock samples that the agent took because the clock's rate had changed.
    private(set) var clockSamples: [trace_clock_sample] = []
    /// Modules whose functions the user wants recorded: how many there are, and how many of them are. None: there was no plan.
    package private(set) var patched: [UInt32: (functions: Int, patched: Int)] = [:]
    /// Modules that were patched while threads ran them, and how many of these functions are not recorded for that reason.
    package private(set) var leftWhileRunning: [UInt32: Int] = [:]
    /// Functions of which not all calls are recorded from a moment on, by id: there were very many, and they are short.
    package private(set) var suppressed: [UInt32: Ticks] = [:]
    /// Functions whose later calls are counted, by the number of their counter in `passed`.
    private(set) var counters: [UInt32: UInt32] = [:]
    /// Calls of suppressed functions that are counted and not recorded, by thread and function id; without zeros.
    package private(set) var passed: [UInt32: [UInt32: UInt64]] = [:]
    /// The same by the number of the counter.
    private var passedByCounter: [UInt32: [UInt32: UInt64]] = [:]
    /// Prototypes of the functions whose arguments are recorded, by their programs.
    private var prototypes: [UInt32: RecordedPrototype] = [:]
    /// ELF e_machine of the process.
    private let machine: UInt32
    /// When the kernel saw threads end, by thread id: CLOCK_MONOTONIC, in no order.
    private(set) var taskEnds: [UInt32: [UInt64]] = [:]
    /// Programs that the process executed, in the order of time, and CLOCK_MONOTONIC then.
    private(set) var executions: [(at: UInt64, program: String)] = []
    /// Programs of the run without a trace: in one of its traces.
    package private(set) var unrecorded: [UnrecordedProcess] = []
    package internal(set) var damagedRecords = 0
    package private(set) var unknownRecords = 0

    static let longestText = 64 << 10, longestName = 16 << 10, mostTexts = 1000, mostClockSamples = 100_000, mostExecutions = 1000
    private static let mostUnrecorded = 100_000

    /// Without any record yet.
    init(machine: UInt32) { self.machine = machine }

    init(_ file: InputFile, _ chunks: [Chunk], machine: UInt32) {
        self.init(machine: machine)
        readRecords(of: file, chunks)
        addFunctions()
        passed = passedByCounter.mapValues { calls in
            Dictionary(calls.compactMap { number, count in counters[number].map { ($0, count) } }) { $0 &+ $1 }
        }
    }

    /// Functions, by module, for which the file has only their id and their offset from the module's lowest address.
    private var addressed: [UInt32: [(id: UInt32, offset: UInt32)]] = [:]

    private mutating func addFunctions() {
        for (index, entries) in addressed {
            guard let module = modules[index] else {
                damagedRecords += 1
                continue
            }
            let addresses = entries.map { module.addresses.lowerBound &+ UInt64($0.offset) }
            let names = RecordedNames.shared.names(of: addresses.map { $0 &- module.loadBias }, in: module.identity)
            for (n, entry) in entries.enumerated() {
                functions[entry.id] = Function(
                    id: entry.id, module: index, address: addresses[n], isEntryOnly: false, isSpan: false, isMark: false,
                    rawName: names?[n] ?? "0x" + String(addresses[n] &- module.loadBias, radix: 16), isThereByCall: true)
            }
        }
        addressed = [:]
    }

    /// Arguments that were recorded with a call, by their names; nil: there are none, or their prototype is not in the file.
    /// - Parameters:
    ///   - result: of the call, which may have what it wrote to a buffer
    ///   - descriptors: what those among them are open on when the call begins; nil: that is not said
    package func arguments(
        _ values: RecordedValues?, _ result: RecordedValues? = nil, _ descriptors: DescriptorNames? = nil, from begin: UInt64 = 0
    ) -> NamedArguments? {
        guard let values, let recorded = prototypes[values.program] else { return nil }
        var named = NamedArguments(values: recorded.arguments(values, result))
        descriptors?.name(&named, of: recorded, from: begin)
        return named
    }
    /// The result that was recorded with a call's end, and errno's name if it has failed.
    /// - Parameter end: of the call; nil: it is not known
    package func result(_ values: RecordedValues?, _ descriptors: DescriptorNames? = nil, at end: UInt64? = nil) -> (
        value: ArgumentValue, errno: String?
    )? {
        guard let values, let recorded = prototypes[values.program], var result = recorded.result(values) else { return nil }
        if let end, let descriptors { result.value = descriptors.name(result.value, of: recorded, at: end) }
        return result
    }

    /// The prototype of a call's values.
    func prototype(_ values: RecordedValues) -> RecordedPrototype? { prototypes[values.program] }
    /// Prototypes of all functions of which a call was recorded with its arguments or its result, by the functions' names.
    package var recordedPrototypes: [RecordedPrototype] {
        prototypes.values.sorted { ($0.prototype.names[0], $0.prototype.text) < ($1.prototype.names[0], $1.prototype.text) }
    }

    /// True if not all calls of the function are recorded, and those that are not are counted.
    package func isCounted(_ function: UInt32) -> Bool { counted.contains(function) }
    private var counted: Set<UInt32> = []

    /// When recording was switched on and off.
    package private(set) var switched: [(moment: Ticks, isOn: Bool)] = []

    /// When functions were chosen anew (`tracer control PID filter`), and by which lists.
    package private(set) var choices: [(moment: Ticks, lists: ChosenLists)] = []
    private static let mostChoices = 10_000

    /// Every moment in it becomes even.
    mutating func stretch(_ clock: ClockCorrection) {
        for n in switched.indices { clock.stretch(&switched[n].moment) }
        for n in choices.indices { clock.stretch(&choices[n].moment) }
        for function in suppressed.keys { clock.stretch(&suppressed[function]!) }
        for module in modules.keys {
            clock.stretch(&modules[module]!.loaded)
            clock.stretch(&modules[module]!.unloaded)
        }
        for thread in threads.keys {
            clock.stretch(&threads[thread]!.started)
            clock.stretch(&threads[thread]!.ended)
        }
        start.stretch(clock)
    }

    mutating func begin(byteCount: Int) {
        functions.reserveCapacity(functions.count + byteCount / (2 * MemoryLayout<trace_function_record>.size))
    }

    mutating func read(_ record: trace_record, _ buffer: borrowing ByteBuffer, _ offset: Int, _ byteCount: Int) throws(DamagedRecord) {
        switch Int(record.type) {
        case TRACE_RECORD_TEXT:
            let fixed = try body(trace_text_record.self, buffer, offset, byteCount)
            add(try tail(fixed, fixed.text_bytes, buffer, offset, byteCount, Self.longestText), key: Int(record.key))
        case TRACE_RECORD_MODULE:
            let module = try body(trace_module_record.self, buffer, offset, byteCount)
            guard module.build_id_bytes <= 20, module.low_address <= module.high_address else { throw DamagedRecord() }
            let path = try tail(module, module.path_bytes, buffer, offset, byteCount, Self.longestText)
            let buildID = buffer.bytes(
                at: offset + MemoryLayout<trace_module_record>.offset(of: \.build_id)!,
                byteCount: Int(module.build_id_bytes))
            modules[module.module] = Module(
                index: module.module, path: printable(path), buildID: buildID, loadBias: module.load_bias,
                addresses: module.low_address..<module.high_address, loaded: Ticks(module.loaded_ticks))
        case TRACE_RECORD_MODULE_FILE:
            let file = try body(trace_module_file_record.self, buffer, offset, byteCount)
            let stamp = FileStamp(byteCount: file.byte_count, seconds: file.written_seconds, nanoseconds: file.written_nanoseconds)
            modules[file.module]?.file = ModuleIdentity.LoadedFile(stamp: stamp, inodeHash: file.file)
        case TRACE_RECORD_FUNCTION:
            let function = try body(trace_function_record.self, buffer, offset, byteCount)
            guard function.function > 0, function.function < Event.functionReach,
                Int(function.name_bytes) <= byteCount - MemoryLayout<trace_function_record>.size
            else { throw DamagedRecord() }
            let name = buffer.text(
                at: offset + MemoryLayout<trace_function_record>.size, byteCount: min(Int(function.name_bytes), Self.longestName))
            functions[function.function] = Function(
                id: function.function, module: function.module == .max ? nil : function.module,
                address: function.address, isEntryOnly: function.flags & UInt32(TRACE_FUNCTION_ENTRY_ONLY) != 0,
                isSpan: function.flags & UInt32(TRACE_FUNCTION_SPAN) != 0,
                isMark: function.flags & UInt32(TRACE_FUNCTION_MARK) != 0, object: ObjectArgument(flags: function.flags), rawName: name)
        case TRACE_RECORD_FUNCTIONS:
            let size = MemoryLayout<trace_functions_record>.size
            let fixed = try body(trace_functions_record.self, buffer, offset, byteCount)
            guard fixed.first > 0, fixed.first < Event.functionReach, fixed.count <= Event.functionReach - fixed.first,
                Int(fixed.count) <= (byteCount - size) / 4
            else { throw DamagedRecord() }
            for n in 0..<fixed.count {
                let moduleOffset = buffer.load(UInt32.self, at: offset + size + Int(n) * 4)!
                if moduleOffset != 0 { addressed[fixed.module, default: []].append((fixed.first + n, moduleOffset)) }
            }
        case TRACE_RECORD_THREAD:
            let thread = try body(trace_thread_record.self, buffer, offset, byteCount)
            threads[thread.thread, default: ThreadLife(tid: thread.tid)].started = Ticks(thread.ticks)
            let used = try? body(trace_thread_begin_record.self, buffer, offset, byteCount).cpu_ns
            let pointer = try? body(trace_thread_pointer_record.self, buffer, offset, byteCount).pointer
            threads[thread.thread]?.cpuTime = used.map { Nanoseconds($0) }
            threads[thread.thread]?.pointer = pointer
        case TRACE_RECORD_THREAD_END:
            let thread = try body(trace_thread_record.self, buffer, offset, byteCount)
            threads[thread.thread, default: ThreadLife(tid: thread.tid)].ended = Ticks(thread.ticks)
        case TRACE_RECORD_MODULE_END:
            let end = try body(trace_module_end_record.self, buffer, offset, byteCount)
            modules[end.module]?.unloaded = end.ticks == 0 ? nil : Ticks(end.ticks)
        case TRACE_RECORD_CLOCK:
            let clock = try body(trace_clock_record.self, buffer, offset, byteCount)
            if clockSamples.count < Self.mostClockSamples { clockSamples.append(clock.sample) }
        case TRACE_RECORD_SWITCHED:
            let fixed = try body(trace_switched_record.self, buffer, offset, byteCount)
            if switched.count < Self.mostClockSamples { switched.append((Ticks(fixed.ticks), record.key != 0)) }
        case TRACE_RECORD_CHOICE:
            let fixed = try body(trace_choice_record.self, buffer, offset, byteCount)
            guard record.key == 1, choices.count < Self.mostChoices else { return } // else it is what somebody wants
            let counts = [fixed.functions_bytes, fixed.include_bytes, fixed.exclude_bytes].map { UInt64($0) }
            let total = counts.reduce(0, +), start = MemoryLayout<trace_choice_record>.size
            guard total <= UInt64(min(byteCount - start, Int(TRACE_CHOICE_BYTES))) else { throw DamagedRecord() }
            let all = buffer.bytes(at: offset + start, byteCount: Int(total))
            func list(_ n: Int) -> [String] {
                let from = Int(counts[..<n].reduce(0, +))
                return all[from..<(from + Int(counts[n]))].split(separator: UInt8(ascii: ":")).map { printable(Array($0)) }
            }
            choices.append((Ticks(fixed.ticks), ChosenLists(functions: list(0), include: list(1), exclude: list(2))))
        case TRACE_RECORD_PATCHED:
            let patched = try body(trace_patched_record.self, buffer, offset, byteCount)
            guard patched.patched <= patched.functions else { throw DamagedRecord() }
            self.patched[patched.module] = (Int(patched.functions), Int(patched.patched))
            if patched.running > 0 { leftWhileRunning[patched.module] = Int(patched.running) - 1 }
        case TRACE_RECORD_SUPPRESSED:
            let hot = try body(trace_suppressed_record.self, buffer, offset, byteCount)
            suppressed[hot.function] = min(suppressed[hot.function] ?? Ticks(hot.ticks), Ticks(hot.ticks))
            if hot.counter != 0 {
                counters[hot.counter] = hot.function
                counted.insert(hot.function)
            }
        case TRACE_RECORD_PASSED:
            let size = MemoryLayout<trace_passed_record>.size
            let fixed = try body(trace_passed_record.self, buffer, offset, byteCount)
            guard Int(fixed.count) <= (byteCount - size) / 8 else { throw DamagedRecord() }
            for n in 0..<fixed.count {
                let calls = buffer.load(UInt64.self, at: offset + size + Int(n) * 8)!
                if calls != 0 { passedByCounter[fixed.thread, default: [:]][n + 1, default: 0] &+= calls }
            }
        case TRACE_RECORD_PROTOTYPE:
            let fixed = try body(trace_prototype_record.self, buffer, offset, byteCount)
            let text = String(decoding: try tail(fixed, fixed.text_bytes, buffer, offset, byteCount, Self.longestText), as: UTF8.self)
            prototypes[fixed.program] = RecordedPrototype(text: text, machine: machine)
        case TRACE_RECORD_KERNEL:
            let kernel = try body(trace_kernel_record.self, buffer, offset, byteCount)
            self.kernel = KernelGrant(kernel)
        case TRACE_RECORD_TASK:
            if let task = try? body(trace_task_record.self, buffer, offset, byteCount) { add(task, Int(record.key), buffer, offset) }
        case TRACE_RECORD_UNRECORDED:
            let fixed = try body(trace_unrecorded_record.self, buffer, offset, byteCount)
            let path = try tail(fixed, fixed.path_bytes, buffer, offset, byteCount, Self.longestName)
            if unrecorded.count < Self.mostUnrecorded { unrecorded.append(UnrecordedProcess(fixed, program: printable(path))) }
        case TRACE_RECORD_REPLACED, TRACE_RECORD_KERNEL_NAME, TRACE_RECORD_WAIT_STACKS: break
        case _ where KernelRecords.kinds.contains(Int(record.type)): break
        default: try readStart(record, buffer, offset, byteCount)
        }
    }

    /// `KernelRecords` reads these, too, and says what is wrong with them.
    private mutating func add(_ task: trace_task_record, _ key: Int, _ buffer: borrowing ByteBuffer, _ offset: Int) {
        if key == TRACE_TASK_ENDED { taskEnds[task.tid, default: []].append(task.ns) }
        guard key == TRACE_TASK_EXECUTED, executions.count < Self.mostExecutions else { return }
        let name = buffer.bytes(at: offset + MemoryLayout<trace_task_record>.offset(of: \.name)!, byteCount: 16).prefix { $0 != 0 }
        executions.append((task.ns, printable(Array(name))))
    }

    private mutating func readStart(
        _ record: trace_record, _ buffer: borrowing ByteBuffer, _ offset: Int, _ byteCount: Int
    ) throws(DamagedRecord) {
        switch Int(record.type) {
        case TRACE_RECORD_PHASE:
            let phase = try body(trace_phase_record.self, buffer, offset, byteCount)
            guard let kind = Phase.Kind(rawValue: Int(record.key)) else { return unknownRecords += 1 }
            start.phases.append(
                Phase(
                    kind: kind, usage: Usage(phase.usage), monotonic: phase.monotonic_ns == 0 ? nil : Nanoseconds(phase.monotonic_ns),
                    error: Nanoseconds(phase.error_ns), thread: phase.thread))
        case TRACE_RECORD_INITIALIZER:
            let fixed = try body(trace_initializer_record.self, buffer, offset, byteCount)
            guard let kind = Initializer.Kind(rawValue: Int(record.key)) else { return unknownRecords += 1 }
            start.add(
                Initializer(
                    number: fixed.initializer, kind: kind, parent: known(fixed.parent), module: fixed.module, index: fixed.index,
                    thread: fixed.thread, load: known(fixed.load), address: fixed.address, begin: Usage(fixed.usage)))
        case TRACE_RECORD_INITIALIZER_END:
            let end = try body(trace_initializer_end_record.self, buffer, offset, byteCount)
            start.end(
                initializer: end.initializer,
                Initializer.End(usage: Usage(end.usage), wasLeft: Int(record.key) == TRACE_INITIALIZER_LEFT))
        case TRACE_RECORD_READY:
            let ready = try body(trace_ready_record.self, buffer, offset, byteCount)
            guard let reason = Ready.Reason(rawValue: Int(record.key)) else { return unknownRecords += 1 }
            start.ready.append(
                Ready(
                    reason: reason, function: ready.function == 0 ? nil : ready.function,
                    thread: ready.thread, ticks: Ticks(ready.ticks)))
        case TRACE_RECORD_LOAD:
            let load = try body(trace_load_record.self, buffer, offset, byteCount)
            let path = try tail(load, load.path_bytes, buffer, offset, byteCount, Self.longestText)
            start.add(
                Load(
                    number: load.load, thread: load.thread, callerModule: known(load.caller_module),
                    initializer: known(load.initializer), begin: load.begin_ticks == 0 ? nil : Ticks(load.begin_ticks),
                    opened: load.opened_ticks == 0 ? nil : Ticks(load.opened_ticks), mapped: Usage(load.mapped), path: printable(path)))
        case TRACE_RECORD_LOAD_END:
            let end = try body(trace_load_end_record.self, buffer, offset, byteCount)
            start.end(load: end.load, Usage(end.usage))
        case TRACE_RECORD_ONCE:
            let once = try body(trace_once_record.self, buffer, offset, byteCount)
            start.onces.append(
                Once(
                    function: once.function, thread: once.thread, ticks: Ticks(once.ticks),
                    code: once.code, token: once.token))
        case TRACE_RECORD_OPENED:
            let opened = try body(trace_opened_record.self, buffer, offset, byteCount)
            start.openings.append(Opening(ticks: Ticks(opened.ticks), thread: opened.thread, ownTicks: opened.own_ticks))
        case TRACE_RECORD_MODULE_DETAIL: try readDetail(buffer, offset, byteCount)
        case TRACE_RECORD_BINDING:
            let binding = try body(trace_binding_record.self, buffer, offset, byteCount)
            start.bindings.append(
                Binding(
                    module: binding.module, toModule: binding.to_module, calls: binding.calls,
                    addresses: binding.addresses))
        default: unknownRecords += 1
        }
    }

    private mutating func readDetail(_ buffer: borrowing ByteBuffer, _ offset: Int, _ byteCount: Int) throws(DamagedRecord) {
        let size = MemoryLayout<trace_module_detail_record>.size
        let detail = try body(trace_module_detail_record.self, buffer, offset, byteCount)
        guard UInt64(detail.soname_bytes) + UInt64(detail.needed_bytes) <= UInt64(byteCount - size) else { throw DamagedRecord() }
        if let known = start.moduleDetails[detail.module], detail.load != 0, known.load != detail.load {
            start.moduleDetails[detail.module]?.laterLoads.append(detail.load)
            return
        }
        let soname = buffer.bytes(at: offset + size, byteCount: min(Int(detail.soname_bytes), Self.longestName))
        let needed = buffer.bytes(
            at: offset + size + Int(detail.soname_bytes),
            byteCount: min(Int(detail.needed_bytes), Self.longestText))
        start.moduleDetails[detail.module] = ModuleDetail(
            module: detail.module, load: detail.load == 0 ? nil : detail.load,
            relativeRelocations: detail.relative_relocations, relrBytes: detail.relr_bytes,
            symbolRelocations: detail.symbol_relocations, otherRelocations: detail.other_relocations,
            jumpSlots: detail.jump_slots, isLazy: detail.flags & UInt32(TRACE_MODULE_LAZY) != 0,
            mappedBytes: detail.mapped_bytes, soname: printable(soname.prefix { $0 != 0 }),
            needed: needed.split(separator: 0).map { printable($0) })
    }

    private mutating func add(_ bytes: [UInt8], key: Int) {
        guard texts[key, default: []].count < Self.mostTexts else { return }
        switch key {
        case TRACE_TEXT_ARGUMENTS, TRACE_TEXT_SETTINGS:
            // NUL after each: an empty argument is one too.
            var parts = bytes.split(separator: 0, omittingEmptySubsequences: false).map { printable($0) }
            if parts.last == "" { parts.removeLast() }
            texts[key, default: []] += parts
        case TRACE_TEXT_TITLE: // padded with NULs; a command line has one after each part
            texts[key] = [commandLine(bytes)]
        default:
            texts[key, default: []].append(printable(bytes.prefix { $0 != 0 }))
        }
    }
}

/// A command line as /proc has it, a NUL after each part, in words: a title is padded with NULs or spaces.
func commandLine(_ bytes: [UInt8]) -> String {
    let text = bytes.split(separator: 0).map { printable($0) }.joined(separator: " ")
    return String(text.prefix(upTo: text.lastIndex(where: { $0 != " " }).map { text.index(after: $0) } ?? text.startIndex))
}
