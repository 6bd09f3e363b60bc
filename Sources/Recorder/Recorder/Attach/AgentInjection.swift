// Brings the agent into a running process, and makes it begin and end there. One thread of the process stands still meanwhile, for the time of
// a dlopen(3) at most; what takes longer is done by a thread of the tool's making (Sources/Agent/AgentEntry/attach_task.S).
import CRecorder
import CTraceLayout
import ELF
import Glibc

package struct AgentInjection {
    /// How long threads of the process have stood still.
    package struct Stops: Equatable, Sendable {
        package var count = 0
        /// Nanoseconds.
        package var longest: UInt64 = 0
    }

    private let target: AttachTarget
    private let library: AgentLibrary
    private let symbols: SymbolTable
    private let variables: SymbolTable
    package private(set) var stops = Stops()

    /// For the thread that calls dlopen. It is gone when that has returned.
    private static let callBytes: UInt64 = 256 << 10
    /// For the agent's work in the process, and what it is told.
    private static let taskBytes: UInt64 = 512 << 10
    /// Functions of attach_task.S.
    private enum Task: String { case attach = "tracer_attach_task", detach = "tracer_detach_task" }
    private static let patience: UInt64 = 60_000_000_000
    /// What `tracer_task_result` is until the task has written it.
    private static let unknown = [UInt8](repeating: 0xff, count: 4)

    package init(_ target: AttachTarget) throws(Refusal) {
        self.target = target
        library = try AgentLibrary.find()
        try library.checkAgent()
        guard let file = ObjectFile(path: library.path) else { throw .cannotRun("\(library.path) cannot be read") }
        symbols = SymbolTable(file)
        variables = SymbolTable(file, .variables)
    }

    // MARK: - Begin and end

    /// Loads the agent if it is not there yet, and has it begin with these settings. A tool that was killed may have left it recording: that
    /// ends before. Nobody else records the process (`AttachClaim`).
    package mutating func begin(_ settings: [(name: String, value: String)]) throws(Refusal) {
        let text: [UInt8] = settings.flatMap { Array("\($0.name)=\($0.value)".utf8) + [UInt8(0)] } + [0]
        var result = try run(.attach, telling: text)
        if result == TRACE_ATTACH_RECORDING {
            _ = try end()
            result = try run(.attach, telling: text)
        }
        try check(result)
    }

    /// Has it end, and take back what it changed. False: the code of some functions could not be put back.
    package mutating func end() throws(Refusal) -> Bool {
        let result = try run(.detach, telling: [0])
        if result == TRACE_ATTACH_CODE_LEFT { return false }
        try check(result)
        return true
    }

    private func check(_ result: trace_attach_result) throws(Refusal) {
        if result == TRACE_ATTACH_DONE { return }
        // What the agent has made for its work may have been ended before it was itself.
        throw target.awaitChange(100_000_000) ?? .cannotRun("process \(target.pid) \(Self.reason(result))")
    }

    private mutating func run(_ task: Task, telling text: [UInt8]) throws(Refusal) -> trace_attach_result {
        guard UInt64(text.count) <= Self.taskBytes / 4 else { throw .usage("the settings have \(text.count) bytes: give fewer globs") }
        let known = try agentBias()
        guard known != nil || task == .attach else {
            throw .cannotRun("the agent is not in process \(target.pid) any more: has it called exec?")
        }
        let entry = try address(of: task.rawValue, in: symbols), result = try address(of: "tracer_task_result", in: variables)
        let reserve = try address(of: "tracer_detach_stack", in: variables)
        let image = known == nil ? try libraryImage() : []
        var search = ThreadSearch(target, isForLoading: known == nil)
        let thread = try search.find()
        var begun: pid_t = 0, bias: UInt64 = 0, failure: Error?
        do {
            bias = try known ?? load(image, thread)
            guard target.memory.write(Self.unknown, at: bias &+ result) else { throw LedThread.Failure.refused(EFAULT) }
            let stack = try stack(for: task, reserve: bias &+ reserve, thread)
            begun = try begin(bias &+ entry, telling: text, on: stack, thread)
        } catch {
            failure = error
        }
        do throws(LedThread.Failure) {
            let stopped = try thread.goOn()
            stops.count += 1 + search.stops
            stops.longest = max(stops.longest, stopped, search.longest)
        } catch {
            thread.forget()
            failure = failure ?? error
        }
        // Only now: what has killed the thread may have waited until it was let go.
        if let failure { throw failure as? Refusal ?? refusal(failure as? LedThread.Failure ?? .isGone) }
        return try waitForEnd(of: begun, result: bias &+ result)
    }

    private func refusal(_ failure: LedThread.Failure) -> Refusal {
        let pid = target.pid
        return switch failure {
        case .isGone: target.awaitChange() ?? .cannotRun("process \(pid) has ended the thread that was to load the agent: try again")
        case .refused(let error):
            target.change ?? .cannotRun("process \(pid) cannot be led to load the agent: \(String(cString: strerror(error)))")
        case .isLocked: .cannotRun("process \(pid) is loading a library, and waits in it: try again")
        }
    }

    // MARK: - The library

    /// Load bias of the agent that an earlier attach has left; nil: it is not there.
    private func agentBias() throws(Refusal) -> UInt64? {
        guard let agent = ProcessModules.agent(of: target.pid) else { return nil }
        guard agent.isAttached else {
            throw .cannotRun(
                "process \(target.pid) has run under the agent from its start: its trace is where TRACER_OUT or tracer record said")
        }
        // The build id is in there.
        guard let first = Self.contents(library.path, 2048), target.memory.bytes(agent.bias, first.count) == first else {
            throw .cannotRun(
                "process \(target.pid) has the agent of another build of tracer from an earlier attach: use that one, or restart the process"
            )
        }
        return agent.bias
    }

    private func address(of name: String, in table: SymbolTable) throws(Refusal) -> UInt64 {
        if let address = table.address(of: name) { return address }
        throw .cannotRun("\(library.path) has no \(name): run scripts/build again")
    }

    /// The file, in which `tracer_load_mode` says that its constructor is to do nothing.
    private func libraryImage() throws(Refusal) -> [UInt8] {
        let mode = try address(of: "tracer_load_mode", in: variables)
        guard var image = Self.contents(library.path, .max),
            let segment = (try? FileHeader(image).programHeaders { Array(image[Int($0)...].prefix($1)) })?.first(where: {
                $0.kind == .load && mode >= $0.address && mode - $0.address + 4 <= $0.fileByteCount
            })
        else { throw .cannotRun("\(library.path) cannot be read") }
        image[Int(segment.offset + mode - segment.address)] = 1 // the lowest of four bytes
        return image
    }

    private static func contents(_ path: String, _ most: Int) -> [UInt8]? {
        guard let all = ProcessStatus.readAll(path), !all.isEmpty else { return nil }
        return Array(all.prefix(most))
    }

    // MARK: - In the process

    /// Returns the load bias.
    private func load(_ image: [UInt8], _ thread: LedThread) throws -> UInt64 {
        let room = try memory(Self.callBytes, thread), stack = room &+ Self.callBytes, modules = target.modules
        defer { _ = try? thread.systemCall(RECORDER_MUNMAP, room, Self.callBytes) }
        // The thread's own errno is as it was: a call that succeeds leaves it alone.
        let errnoAddress = try thread.call(modules.errnoLocation, [0, 0], stack: stack), errno = target.memory.bytes(errnoAddress, 4)
        defer { _ = target.memory.write(errno, at: errnoAddress) }

        let descriptor = try memoryFile(at: room, thread)
        defer { _ = try? thread.systemCall(RECORDER_CLOSE, descriptor) }
        let file = open("/proc/\(target.pid)/fd/\(descriptor)", O_RDWR | O_CLOEXEC)
        guard file >= 0 else { throw target.refused(Glibc.errno) }
        let error = writeWhole(image, to: file)
        close(file)
        guard error == 0 else { throw LedThread.Failure.refused(error) }
        // No program loads anything by this name, so none is given the agent for it later.
        try place("/proc/self/task/../fd/\(descriptor)", at: room)
        let handle = try thread.call(modules.open.address, [room, modules.open.mode], stack: stack)
        guard handle != 0, let bias = target.memory.word(handle) else { // struct link_map begins with l_addr (<link.h>)
            throw Refusal.cannotRun("process \(target.pid) cannot load the agent: \(try reason(thread, stack) ?? "dlopen failed")")
        }
        return bias
    }

    private func reason(_ thread: LedThread, _ stack: UInt64) throws -> String? {
        guard let function = target.modules.openError else { return nil }
        let text = try thread.call(function, [0, 0], stack: stack)
        let bytes = text == 0 ? [] : target.memory.bytes(text, 256).prefix { $0 != 0 }
        return bytes.isEmpty ? nil : printable(bytes)
    }

    private func memory(_ byteCount: UInt64, _ thread: LedThread) throws -> UInt64 {
        let result = try thread.systemCall(
            RECORDER_MMAP, 0, byteCount, UInt64(PROT_READ | PROT_WRITE), UInt64(MAP_PRIVATE | MAP_ANONYMOUS), .max, 0)
        guard result > 0 || result < -4095 else { throw LedThread.Failure.refused(Int32(-result)) }
        return UInt64(bitPattern: result)
    }

    private func place(_ text: String, at address: UInt64) throws {
        guard target.memory.write(Array(text.utf8) + [0], at: address) else { throw LedThread.Failure.refused(EFAULT) }
    }

    /// memfd_create(2); with MFD_EXEC, which Linux has since 6.3 and may ask for.
    private func memoryFile(at room: UInt64, _ thread: LedThread) throws -> UInt64 {
        try place(AgentLibrary.agent, at: room)
        let closes: UInt64 = 1, isExecutable: UInt64 = 0x10
        var result = try thread.systemCall(RECORDER_MEMFD_CREATE, room, closes | isExecutable)
        if result == -Int64(EINVAL) { result = try thread.systemCall(RECORDER_MEMFD_CREATE, room, closes) }
        guard result >= 0 else { throw LedThread.Failure.refused(Int32(-result)) }
        return UInt64(result)
    }

    /// `reserve`: address of the agent's word that says where memory is kept for a process that may map nothing more, to be let go.
    private func stack(for task: Task, reserve: UInt64, _ thread: LedThread) throws -> Range<UInt64> {
        do {
            let start = try memory(Self.taskBytes, thread)
            return start..<start &+ Self.taskBytes
        } catch LedThread.Failure.refused(ENOMEM) where task == .detach {
            guard let start = target.memory.word(reserve), start != 0 else { throw LedThread.Failure.refused(ENOMEM) }
            return start..<start &+ UInt64(TRACE_DETACH_STACK_BYTES)
        }
    }

    private func begin(_ entry: UInt64, telling text: [UInt8], on stack: Range<UInt64>, _ thread: LedThread) throws -> pid_t {
        guard target.memory.write(text, at: stack.lowerBound) else { throw LedThread.Failure.refused(EFAULT) }
        return try thread.begin(
            task: entry, stack.lowerBound, stack: stack.lowerBound, stackBytes: stack.upperBound &- stack.lowerBound)
    }

    /// Until the task has ended. Returns what it says.
    private func waitForEnd(of task: pid_t, result address: UInt64) throws(Refusal) -> trace_attach_result {
        let end = clockTime() + Self.patience
        while access("/proc/\(target.pid)/task/\(task)", F_OK) == 0 {
            guard clockTime() < end else {
                throw .cannotRun(
                    "the agent has not come to an end within \(Self.patience / 1_000_000_000) s in process \(target.pid), which goes on")
            }
            usleep(200)
        }
        let word = target.memory.bytes(address, Self.unknown.count)
        if word.count == Self.unknown.count, word != Self.unknown {
            return trace_attach_result(word.withUnsafeBytes { $0.loadUnaligned(as: UInt32.self) })
        }
        // It was ended before it was done.
        throw target.awaitChange() ?? .cannotRun("process \(target.pid) has ended the agent's thread: try again")
    }

    /// As the agent has it (trace_layout.h).
    private static func reason(_ result: trace_attach_result) -> String {
        switch result {
        case TRACE_ATTACH_RECORDING: "is being recorded already: end that first"
        case TRACE_ATTACH_NO_MEMORY: "has no memory left for the agent"
        case TRACE_ATTACH_NO_FILE:
            "cannot make its trace: let it write to this directory, in files of any size (ulimit -f), or choose another with -o"
        case TRACE_ATTACH_NO_CODE: "may not make executable memory (MDWE, SELinux execmem), which the agent needs"
        case TRACE_ATTACH_NO_WIPE: "runs on a kernel before Linux 4.14, which the agent needs to be attached"
        case TRACE_ATTACH_LOADER: "has a loader that the agent does not know, or is loading a library for long: try again"
        case TRACE_ATTACH_SETTINGS:
            "was attached to before with another --max-depth or --call-sites, which stay as they are: give the same"
        case TRACE_ATTACH_CHILD: "was forked from one that had been attached to: restart it to record it"
        case TRACE_ATTACH_CONFINED: "has restricted its system calls: the agent cannot work in it"
        case TRACE_ATTACH_NAMESPACE: "has the agent in a namespace of its own (dlmopen): it cannot be recorded"
        case TRACE_ATTACH_NOT_ATTACHED: "is not being recorded"
        default: "cannot be recorded (\(result.rawValue))"
        }
    }
}
