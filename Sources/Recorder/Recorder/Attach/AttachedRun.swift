// A run of a process that was there before: the agent is brought into it, and taken back when the time is over, the user says so, or the
// process ends.
import CRecorder
import CTraceLayout
import ELF
import Glibc
import TraceFormat

package struct AttachedRun {
    /// Why it is over.
    package enum End: Equatable, Sendable {
        /// The time, or a signal to the tool.
        case detached
        case programEnded
        /// The process has called exec, and the agent went with its old program.
        case programReplaced
        /// It could not be taken back.
        case left(String)
    }
    package struct Result: Sendable {
        package var recording: RecordingResult
        package var end: End
        /// The code of some functions still leads through the agent.
        package var leavesCode: Bool
        package var stops: AgentInjection.Stops
    }

    private let target: AttachTarget
    private let claim: AttachClaim
    private let settings: [(name: String, value: String)]
    /// Functions or arguments are to be recorded of a process that cannot read the plans for them: where these are.
    private let loan: LentPlans.Origin?
    /// The traces are there while it records, and in `output` afterwards.
    package let directory: String
    private let output: String
    /// What was there before, until the process is recorded.
    private let earlier: RunDirectory.Earlier?
    /// nil: the process has the tool's view of the file system.
    private let workplace: Workplace?
    private let isNamed: Bool
    private let session: UInt64
    private let template: OutputTemplate
    private let snapshotPlan: SnapshotPlan?
    private let snapshotDirectory: String
    private let kernelRequest: KernelRequest
    private let wishes: SignalWishes
    /// Gets a line for each thing that a signal to the tool has had done.
    package var tell: (String) -> Void = { _ in }
    /// Nanoseconds; nil: without end.
    private let limit: UInt64?
    /// The agent is in the process, and records.
    package var whenBegun: (AttachTarget) -> Void = { _ in }

    private static let signals: [Int32] = [SIGHUP, SIGINT, SIGQUIT, SIGTERM]
    private static let lookAtProgram: UInt64 = 1_000_000_000

    /// Checks everything that can be checked before something is touched, and makes the directory of the traces.
    /// - Parameter limit: nanoseconds to record for; nil: until a signal comes
    package init(
        pid: pid_t, options: RecordOptions, for limit: UInt64?, environment: ProgramEnvironment = .inherited
    ) throws(Refusal) {
        var settings = try options.variables()
        try options.check(environment: { environment[$0] })
        for setting in Setting.all
        where setting.name != Variables.output.name.description && !settings.contains(where: { $0.name == setting.name }) {
            if let value = environment[setting.name] { settings.append((setting.name, value)) }
        }
        guard !settings.contains(where: { $0.name == Variables.mode.name.description && Variables.mode.read($0.value) == .counts }) else {
            throw .usage("mode counts counts functions by their entries from their first call on: start the program with tracer record")
        }
        target = try AttachTarget(pid: pid)
        let isOther = target.user != geteuid() || target.view.root != nil
        // The process need not know where plans are.
        var plans: String?
        if settings.contains(where: { $0.name == Variables.functions.name.description }) {
            plans = environment["XDG_CACHE_HOME"] ?? environment["HOME"].map { $0 + "/.cache" }
            if let plans, !isOther { settings.append(("XDG_CACHE_HOME", plans)) }
        }
        let arguments = settings.first { $0.name == Variables.arguments.name.description }?.value
        loan =
            !isOther || plans == nil && arguments == nil
            ? nil : LentPlans.Origin(functions: plans.map { $0 + "/tracer/plans" }, arguments: arguments)
        claim = try AttachClaim(pid)
        self.limit = limit
        guard let current = getcwd(nil, 0) else {
            throw .usage("the current directory no longer exists: change to one that does")
        }
        defer { free(current) }
        let wanted = try options.outputTemplate(environment: { environment[$0] }, currentDirectory: String(cString: current))
        try wanted.checkDirectory()
        snapshotPlan = options.snapshots
        wishes = options.signals
        var values = environment
        for (name, value) in settings { values.set(name, value) }
        kernelRequest = KernelRequest(options, values)
        snapshotDirectory = wanted.directory
        isNamed = options.wantedOutput(environment: { environment[$0] }) != nil
        if isNamed {
            guard let path = wanted.path else { throw .usage("output \(wanted.text): give a name without %p and %e, such as slow.trace") }
            earlier = try RunDirectory(at: path, force: options.replaces).setAside()
            output = path
        } else {
            earlier = nil
            output = try Self.makeDirectory(of: target, in: wanted.directory)
        }
        do throws(Refusal) {
            workplace = if let root = target.view.root { try Workplace(for: target, at: root) } else { nil }
        } catch {
            Self.forget(output, earlier)
            throw error
        }
        directory = workplace?.path ?? output
        template = try OutputTemplate(directory: directory, names: RunDirectory.names)
        session = UInt64.random(in: 1...UInt64.max)
        let digits = String(session, radix: 16)
        settings.append(
            (Variables.output.name.description, try OutputTemplate(directory: workplace?.inner ?? output, names: RunDirectory.names).text))
        settings.append(
            (
                Variables.session.name.description,
                String(repeating: "0", count: Variables.SessionStamp.numberDigits - digits.count) + digits
                    + "-\(getpid())-\(ProcessStatus.ownNamespace)"
            ))
        self.settings = settings
        // The process makes its file there.
        if workplace == nil, target.user != geteuid(), chown(output, target.user, target.group) != 0 {
            let error = errno
            Self.forget(output, earlier)
            throw .cannotRun("cannot give \(output) to the user of process \(pid): \(String(cString: strerror(error)))")
        }
    }

    /// tracer.NAME.PID, as those of `tracer record`; a later one of the same process has a number.
    private static func makeDirectory(of target: AttachTarget, in parent: String) throws(Refusal) -> String {
        let start = (parent == "/" ? "" : parent) + "/tracer.\(target.name.filter { $0 != "/" }).\(target.pid)"
        for attempt in 1...1000 {
            let path = attempt == 1 ? start : "\(start).\(attempt)"
            if access(path + ".trace", F_OK) == 0 { continue }
            let error = recorder_make_directory(path)
            if error == EEXIST { continue }
            guard error == 0 else {
                throw .usage("cannot create the directory \(path): \(String(cString: strerror(error))); choose another with -o")
            }
            return path
        }
        throw .usage("\(start).trace and a thousand more are there: remove some (tracer clean), or choose another name with -o")
    }

    /// May be called once in a process: it takes the signals that end it.
    package func run() throws(Refusal) -> Result {
        var waited = sigset_t()
        sigemptyset(&waited)
        for signal in Self.signals + wishes.numbers { sigaddset(&waited, signal) }
        recorder_take_signals(&waited) // none ends the tool while it leads a thread
        let process = recorder_open_process(target.pid)
        defer { if process >= 0 { close(process) } }
        let watch = FileWatch(template: template, session: session)
        var injection: AgentInjection, settings = settings
        defer { workplace?.remove() }
        Self.allowDescriptors()
        // What the kernel reports has this namespace's numbers, and a trace those of its process.
        let hasOurNumbers = ProcessNumbers.namespace(of: "\(target.pid)") == ProcessNumbers.namespace()
        let kernel = hasOurNumbers ? kernelRequest.watch(target.pid, isRunning: true, directory: output) : nil
        let lent = loan.flatMap { LentPlans(for: target, from: $0, in: workplace) }
        defer { lent?.remove() }
        // Nothing else of a cache is kept there.
        if let lent { settings += [("XDG_CACHE_HOME", lent.home), (Variables.cache.name.description, "off")] }
        if let path = lent?.arguments, let n = settings.firstIndex(where: { $0.name == Variables.arguments.name.description }) {
            settings[n].value = path
        }
        do {
            injection = try AgentInjection(target)
            try injection.begin(settings)
        } catch {
            kernel?.stop()
            removeDirectory()
            throw error
        }
        earlier?.remove()
        let begun = clockTime()
        whenBegun(target)
        var keeper = snapshotPlan.map { SnapshotKeeper($0, directory: snapshotDirectory) }
        keeper?.kernel = kernel
        let server = kernel.flatMap { ExcerptServer($0, session: session) }
        var end = follow(watch, process, waited, until: limit.map { begun &+ $0 }, &keeper, kernel)
        var leavesCode = false
        if end == .detached {
            do {
                leavesCode = try !injection.end()
            } catch {
                end =
                    hasEnded(process)
                    ? .programEnded : ProcessModules.agent(of: target.pid) == nil ? .programReplaced : .left(error.message)
            }
        }
        detachChildren()
        keeper?.exit = { [target] in $0 == target.pid ? Self.exit(of: process) : nil }
        let snapshots = keeper?.end()
        server?.end()
        let appendix = kernel.map { KernelAppendix($0) }
        var recording = tidied(isReplaced: end == .programReplaced, appendix)
        recording.snapshots = snapshots
        return Result(recording: recording, end: end, leavesCode: leavesCode, stops: injection.stops)
    }

    /// Each thread of the process has an event for each CPU, and as many as a process may have by default are too few for some.
    private static func allowDescriptors() {
        var limit = rlimit()
        guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0, limit.rlim_cur < limit.rlim_max else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
    }

    /// Nothing was recorded. What the process has begun to write goes as well; a child that it forked meanwhile keeps its trace.
    private func removeDirectory() {
        let kept = Set(SessionFiles.all(template, session: session).filter { $0.pid != target.number }.map(\.path))
        for path in (RunDirectory.names(in: directory) ?? []).map({ directory + "/" + $0 }) where !kept.contains(path) { unlink(path) }
        Self.forget(output, earlier)
    }
    /// What was there before is there again.
    private static func forget(_ output: String, _ earlier: RunDirectory.Earlier?) {
        if let earlier { earlier.putBack() } else { rmdir(output) }
    }

    // MARK: - While it records

    private func follow(
        _ watch: FileWatch, _ process: Int32, _ signals: sigset_t, until end: UInt64?, _ keeper: inout SnapshotKeeper?,
        _ kernel: KernelWatch?
    )
        -> End
    {
        var signals = signals, preparer: FilePreparer?, collectors = ChunkCollectors(), nextLook = clockTime() + Self.lookAtProgram
        defer { collectors.end() }
        let arrivals = recorder_signal_descriptor(&signals)
        defer { if arrivals >= 0 { close(arrivals) } }
        var wished = WishedSignals(wishes, snapshotPlan, kernel, directory: snapshotDirectory, tell)
        while true {
            while let header = watch.next() {
                collectors.add(header)
                keeper?.add(header)
                wished.add(header)
                if header.current.pid == target.number { preparer = FilePreparer(header) }
            }
            let now = clockTime()
            if let end, now >= end { return .detached }
            if hasEnded(process) { return .programEnded }
            if now >= nextLook {
                if ProcessModules.agent(of: target.pid) == nil { return hasEnded(process) ? .programEnded : .programReplaced }
                nextLook = now + Self.lookAtProgram
            }
            var wait = preparer?.look() ?? PreparationPlan.idleNanoseconds
            wait = min(wait, collectors.look(), end.map { $0 - now } ?? .max, watch.isExpecting ? FileWatch.expectingNanoseconds : .max)
            if let due = keeper?.look() { wait = min(wait, due) }
            var timeout = timespec(tv_sec: Int(wait / 1_000_000_000), tv_nsec: Int(wait % 1_000_000_000))
            recorder_await(arrivals, watch.notifications, &timeout)
            var info = siginfo_t(), none = timespec()
            let signal = sigtimedwait(&signals, &info, &none)
            if signal > 0, !wished.take(signal) { return .detached }
        }
    }

    /// How it ended; nil: the kernel does not say so to others, or its parent has not waited for it (PIDFD_GET_INFO, Linux 6.15).
    private static func exit(of process: Int32) -> ProcessExit? {
        var status: Int32 = 0
        for _ in 0..<20 where process >= 0 {
            if recorder_process_end(process, &status) != 0 {
                guard case .ended(let exit) = RunningProgram.Change(waitStatus: status) else { return nil }
                return exit
            }
            usleep(10_000)
        }
        return nil
    }

    private func hasEnded(_ process: Int32) -> Bool {
        guard process >= 0 else { return !ProcessStatus.isAlive(target.pid) }
        var ended = pollfd(fd: process, events: Int16(POLLIN), revents: 0)
        return poll(&ended, 1, 0) > 0
    }

    // MARK: - At the end

    /// Processes that it has forked since have the agent, too. One that is just making its file cannot be let go yet.
    private func detachChildren() {
        for _ in 0..<5 {
            if detachKnownChildren() { return }
            usleep(20_000)
        }
    }
    /// False: one could not be let go.
    private func detachKnownChildren() -> Bool {
        var areGone = true
        for entry in SessionFiles.all(template, session: session) {
            guard let header = TraceHeader(path: entry.path), header.current.state == UInt32(TRACE_RECORDING),
                let pid = ProcessNumbers.number(of: entry.pid, in: entry.namespace), pid != target.pid, ProcessStatus.isAlive(pid)
            else { continue }
            do {
                var injection = try AgentInjection(AttachTarget(pid: pid))
                _ = try injection.end()
            } catch {
                areGone = false
            }
        }
        return areGone
    }

    /// - Parameter isReplaced: the process has executed another program since
    private func tidied(isReplaced: Bool, _ appendix: KernelAppendix?) -> RecordingResult {
        var isCut = false
        var files = SessionFiles.all(template, session: session).compactMap { entry -> RecordingResult.File? in
            guard let header = TraceHeader(path: entry.path) else { return nil }
            // A process of another namespace has no number here any more.
            let isGone =
                entry.namespace != 0 && ProcessNumbers.number(of: entry.pid, in: entry.namespace).map { !ProcessStatus.isAlive($0) } ?? true
            let isRoot = entry.pid == target.number, isOver = header.current.state != UInt32(TRACE_RECORDING)
            var info = stat()
            fstat(header.file, &info)
            var bytes = UInt64(info.st_size)
            // Who has been detached from has no mapping of its file any more.
            if isGone || isOver || isRoot && isReplaced {
                var collector = ChunkCollector(header)
                collector.end()
                bytes = UsedEnd.cut(file: header.file, size: bytes, nextOffset: header.current.next_offset)
                header.limit(extendedOffset: bytes)
                if let appendix {
                    isCut = !appendix.write(to: header, isGone: true) || isCut
                    fstat(header.file, &info)
                    bytes = UInt64(info.st_size)
                }
                // It is of who has asked for it, who may replace or remove it; refused where nobody has two users.
                if target.user != geteuid() { _ = fchown(header.file, geteuid(), getegid()) }
            }
            let isEnded = isGone || isOver || isRoot && isReplaced
            return .init(
                path: isEnded ? broughtOut(header) : header.path, bytes: bytes, isRoot: isRoot, isEnded: isEnded, isBeingWritten: !isEnded)
        }
        var path = output
        if target.user != geteuid() { _ = chown(output, geteuid(), getegid()) }
        if files.count <= 1, files.allSatisfy({ $0.isEnded }) {
            if files.isEmpty {
                rmdir(output)
            } else if let newPath = RunDirectory.takeOut(files[0].path, of: output, isNumbered: !isNamed) {
                files[0].path = newPath
                path = newPath
            }
        }
        return RecordingResult(status: 0, path: path, files: files, statesAreCut: isCut)
    }

    /// The path that a trace has from now on. One that the process has made in another view of the file system is copied from there; where that
    /// cannot be, it stays.
    private func broughtOut(_ header: TraceHeader) -> String {
        guard let workplace, let name = header.path.split(separator: "/").last else { return header.path }
        let path = output + "/" + name
        let error = workplace.copy(header.file, to: path)
        guard error == 0 else {
            tell(
                "cannot write \(path): \(String(cString: strerror(error))); the trace stays where the process has made it, \(workplace.inner)/\(name)"
            )
            return header.path
        }
        unlink(header.path)
        return path
    }
}
