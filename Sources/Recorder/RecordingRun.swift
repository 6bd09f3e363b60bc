// One run: start the program under the agent, relay signals, prepare its file ahead, and tidy up when it has ended.
import CRecorder
import CTraceLayout
import Glibc

/// What a run left behind.
public struct RecordingResult: Sendable {
    public struct File: Sendable {
        public var path: String
        public var bytes: UInt64
        /// Of the program itself, in contrast to a process that it started.
        public var isRoot: Bool
        /// Its process is still alive: a daemon, say.
        public var isBeingWritten: Bool
    }
    /// The program's, or 128 + the signal that ended it.
    public var status: Int32
    /// The oldest first.
    public var files: [File]
    /// `StopCondition` ended the program.
    public var wasStopped = false
}

/// Ends the program when something has happened: SIGTERM, and SIGKILL when that does not help.
public struct StopCondition {
    /// Asked now and then, with the path of the program's trace.
    public var isReached: (String) -> Bool
    /// From SIGTERM to SIGKILL.
    public var graceNanoseconds: UInt64

    public init(graceNanoseconds: UInt64 = 2_000_000_000, isReached: @escaping (String) -> Bool) {
        self.isReached = isReached
        self.graceNanoseconds = graceNanoseconds
    }
}

public struct RecordingRun {
    public var launch: Launch
    /// NUL-terminated.
    var arguments: [[CChar]]
    public var environment: ProgramEnvironment
    public var template: OutputTemplate
    let session: UInt64
    public var stopCondition: StopCondition?

    /// Checks everything that can be checked before something is started. `command` is the program and its
    /// arguments as the user typed them, each NUL-terminated.
    public init(command: [[CChar]], settings: Settings, environment inherited: ProgramEnvironment = .inherited) throws(Refusal) {
        let variables = try settings.variables()
        guard let directory = getcwd(nil, 0) else {
            throw .usage("the current directory is gone: change to one that exists")
        }
        defer { free(directory) }
        template = try settings.outputTemplate(environment: { inherited[$0] }, currentDirectory: String(cString: directory))
        try template.checkDirectory()
        // The name is text, since it is looked up; arguments are bytes and stay what they are.
        let name = command.first.map { String(decoding: $0.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self) }
        launch = try Launch(program: name ?? "", searchPath: inherited["PATH"], identity: .current)
        arguments = launch.leadingArguments.map { $0.utf8.map { CChar(bitPattern: $0) } + [0] } + command.dropFirst()
        let agent = try AgentLibrary.find()
        try agent.checkAgent()

        var random = SystemRandomNumberGenerator()
        session = UInt64.random(in: 1...UInt64.max, using: &random)
        environment = inherited
        environment.set("LD_PRELOAD", agent.preload(keeping: inherited["LD_PRELOAD"]))
        environment.set("TRACER_OUT", template.text)
        for (name, value) in variables { environment.set(name, value) }
        let digits = String(session, radix: 16)
        // Filled in by the child just before it calls execve (crecorder.c): CLOCK_MONOTONIC in ns, '-', its process id.
        environment.set("TRACER_EXEC", String(repeating: "0", count: 18) + "-" + String(repeating: "0", count: 10))
        environment.set("TRACER_SESSION", String(repeating: "0", count: 16 - digits.count) + digits + "-\(getpid())")
    }

    /// Has the loader's own work noted (libtracer-audit.so), in a file beside the traces whose path this returns. It makes
    /// the loader slower.
    public mutating func auditLoader() throws(Refusal) -> String {
        let audit = try AgentLibrary.find(AgentLibrary.audit)
        let path = template.directory + "/.tracer-loader.\(getpid())"
        unlink(path)
        environment.set("LD_AUDIT", audit.preload(keeping: environment["LD_AUDIT"]))
        environment.set("TRACER_LOADER", "\(getpid()):\(path)")
        return path
    }

    /// Returns when the program has ended. May be called once in a process: it takes the signals.
    public func run() throws(Refusal) -> RecordingResult {
        var waited = SignalRelay.waitedSet
        recorder_take_signals(&waited)
        var relay = SignalRelay()
        defer { relay.end() }
        let watch = FileWatch(template: template, session: session)
        let program = try RunningProgram(launch.path, arguments, environment: environment)
        let start = ProcessStatus.startTime(of: program.pid)
        var stop = stopCondition.map { ProgramStop($0, program.pid) }
        let status = follow(program, watch, &relay, &stop)
        return RecordingResult(status: status, files: tidyFiles(of: program, startedAt: start), wasStopped: stop?.isUnderWay ?? false)
    }

    private func follow(_ program: RunningProgram, _ watch: FileWatch, _ relay: inout SignalRelay,
                        _ stop: inout ProgramStop?) -> Int32 {
        var waited = SignalRelay.waitedSet
        var preparer: FilePreparer?
        var wait: UInt64 = 250_000 // the agent makes its file within the program's first millisecond
        while true {
            var info = siginfo_t()
            var timeout = timespec(tv_sec: Int(wait / 1_000_000_000), tv_nsec: Int(wait % 1_000_000_000))
            let signal = sigtimedwait(&waited, &info, &timeout)
            if signal == SIGCHLD {
                while let change = program.nextChange() {
                    switch change {
                    case .ended(let status): return status
                    case .stopped(let signal): relay.programStopped(by: signal, program)
                    case .continued: break
                    }
                }
            } else if signal > 0 {
                relay.relay(signal, info, to: program.pid)
            }
            // A new image of the process, after exec, has a new file: prepare that one from now on.
            if let header = watch.next(pid: program.pid) {
                preparer = FilePreparer(header)
                stop?.path = header.path
            }
            if let preparer {
                wait = preparer.look()
            } else {
                wait = min(wait * 2, PreparationPlan.idleNanoseconds)
            }
            if let due = stop?.look() { wait = min(wait, due) }
        }
    }

    /// Cuts off what was prepared and not used, and lists the files. Only the program's own files are cut: it is gone
    /// for certain. Another process may still write, and truncating a file under its mapping would kill it; whether it
    /// lives cannot be told from its pid, which may be that of another namespace.
    private func tidyFiles(of program: RunningProgram, startedAt start: UInt64) -> [RecordingResult.File] {
        SessionFiles.all(template, session: session).map { header in
            let state = header.current
            let isRoot = state.pid == UInt32(program.pid) && state.parent_pid == UInt32(getpid())
            let isGone = isRoot && (state.process_start == start || state.process_start == 0)
            var info = stat()
            fstat(header.file, &info)
            var bytes = UInt64(info.st_size)
            if isGone {
                bytes = UsedEnd.cut(file: header.file, size: bytes, nextOffset: state.next_offset)
                if bytes < state.next_offset { header.set(nextOffset: bytes) } // a chunk was reserved and never opened
                header.limit(extendedOffset: bytes)
            }
            return RecordingResult.File(
                path: header.path, bytes: bytes, isRoot: isRoot,
                isBeingWritten: !isGone && state.state == UInt32(TRACE_RECORDING)
                    && ProcessStatus.isAlive(pid_t(bitPattern: state.pid), startedAt: state.process_start))
        }
    }
}
