// One run: start the program under the agent, relay signals, prepare its file ahead, and tidy up when it has ended.
import CRecorder
import CTraceLayout
import ELF
import Glibc
import TraceFormat

/// Result of a run: how the program ended, and the files that the run left behind.
package struct RecordingResult: Sendable {
    package struct File: Sendable {
        package var path: String
        package var bytes: UInt64
        /// True for the program itself, false for a process that it started.
        package var isRoot: Bool
        /// For certain.
        package var isEnded: Bool
        /// Its process is still alive: a daemon, say.
        package var isBeingWritten: Bool
    }
    /// The program's, or 128 + the signal that ended it.
    package var status: Int32
    /// All of it: a directory, or the only file. nil where each process has a file by a template.
    package var path: String?
    /// The oldest first.
    package var files: [File]
    /// `stopCondition` ended the program.
    package var wasStopped = false
    /// When threads ran and waited could not be written.
    package var statesAreCut = false
    /// Programs without a trace, as far as they are known: the traces have them, too, if there is one.
    package var unrecorded: [UnrecordedProgram] = []
    /// nil: none were asked for.
    package var snapshots: KeptSnapshots?
}

package struct RecordingRun {
    package var target: ExecTarget
    /// NUL-terminated.
    var arguments: [[CChar]]
    package var environment: ProgramEnvironment
    /// Path of the files; for a run directory that has no number yet, the directory that it will be made in.
    package var template: OutputTemplate
    private var directory: RunDirectory?
    let session: UInt64
    private let kernelRequest: KernelRequest
    private let snapshotPlan: SnapshotPlan?
    /// The directory in which the user looks for what the run leaves.
    private let snapshotDirectory: String
    private let signals: SignalWishes
    /// Gets a line for each thing that a signal to the tool has had done.
    package var tell: (String) -> Void = { _ in }
    /// The processes that the program starts are to be recorded.
    private let recordsChildren: Bool
    /// Asked now and then, with the path of a trace of the program, or of a process that it has started: if all of them are to be
    /// ended, by SIGTERM and then by SIGKILL.
    package var stopCondition: ((_ path: String, _ isProgram: Bool) -> Bool)?

    /// Checks everything that can be checked before something is started. `command` is the program and its
    /// arguments as the user typed them, each NUL-terminated.
    package init(command: [[CChar]], options: RecordOptions, environment inherited: ProgramEnvironment = .inherited) throws(Refusal) {
        let variables = try options.variables()
        try options.check(environment: { inherited[$0] })
        guard let directory = getcwd(nil, 0) else {
            throw .usage("the current directory no longer exists: change to one that does")
        }
        defer { free(directory) }
        template = try options.outputTemplate(environment: { inherited[$0] }, currentDirectory: String(cString: directory))
        try template.checkDirectory()
        snapshotPlan = options.snapshots
        snapshotDirectory = template.directory
        signals = options.signals
        let isOutputWanted = options.wantedOutput(environment: { inherited[$0] }) != nil
        // The name is text, since it is looked up; arguments are bytes and stay what they are.
        let name = command.first.map { String(decoding: $0.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self) }
        target = try ExecTarget(program: name ?? "", searchPath: inherited["PATH"], identity: .current)
        arguments = target.leadingArguments.map { $0.utf8.map { CChar(bitPattern: $0) } + [0] } + command.dropFirst()
        let agent = try AgentLibrary.find()
        try agent.checkAgent()
        if options.gathersProcesses {
            if !isOutputWanted {
                self.directory = RunDirectory(of: name ?? "", in: template.directory)
            } else if let path = template.path {
                self.directory = try RunDirectory(at: path, force: options.replaces)
            }
        }

        var random = SystemRandomNumberGenerator()
        session = UInt64.random(in: 1...UInt64.max, using: &random)
        environment = inherited
        // Functions are called from many call sites. Without labels for them recording goes on, and the agent says what is missing.
        let labels = options.isSet(Variables.functions) ? try? AgentLibrary.find(AgentLibrary.labels) : nil
        environment.set("LD_PRELOAD", AgentLibrary.preload([agent] + (labels.map { [$0] } ?? []), keeping: inherited["LD_PRELOAD"]))
        environment.set(Variables.output.name.description, template.text)
        for (name, value) in variables { environment.set(name, value) }
        kernelRequest = KernelRequest(options, environment)
        recordsChildren =
            environment[Variables.children.name.description].flatMap { Variables.children.read($0) } ?? Variables.children.standard
        // Filled in by the child just before it calls execve (crecorder.c).
        environment.set(
            Variables.exec.name.description,
            String(repeating: "0", count: Variables.ExecStamp.nanosecondDigits) + "-"
                + String(repeating: "0", count: Variables.ExecStamp.pidDigits))
        let digits = String(session, radix: 16)
        environment.set(
            Variables.session.name.description,
            String(repeating: "0", count: Variables.SessionStamp.numberDigits - digits.count) + digits
                + "-\(getpid())-\(ProcessStatus.ownNamespace)")
    }

    /// Has the loader's own work noted (libtracer-audit.so), in a file beside the traces. It makes the loader slower.
    package mutating func auditLoader() throws(Refusal) -> LoaderNotes {
        let audit = try AgentLibrary.find(AgentLibrary.audit)
        let notes = try LoaderNotes(directory: template.directory)
        environment.set("LD_AUDIT", audit.preload(keeping: environment["LD_AUDIT"]))
        environment.set(LOADER_NOTES_VARIABLE, notes.setting)
        return notes
    }

    /// Returns when the program has ended. May be called once in a process: it takes the signals.
    package func run() throws(Refusal) -> RecordingResult {
        var waited = SignalRelay.waitedSet
        recorder_take_signals(&waited)
        var relay = SignalRelay()
        defer { relay.end() }
        var template = template, environment = environment, number = ""
        if let directory, !directory.isNumbered {
            try directory.make()
            template = try OutputTemplate(directory: directory.path, names: RunDirectory.names)
            environment.set(Variables.output.name.description, template.text)
        }
        var watch = directory?.isNumbered == true ? nil : FileWatch(template: template, session: session)
        let program: RunningProgram
        var kernel: KernelWatch?
        do {
            program = try RunningProgram(
                target.path, arguments, environment: environment, directory: directory?.numbered, number: &number
            ) { [kernelRequest, template] in
                kernel = kernelRequest.watch($0, directory: template.directory)
            }
        } catch {
            kernel?.stop()
            if let directory, !directory.isNumbered { rmdir(directory.path) }
            throw error
        }
        if let directory, directory.isNumbered {
            template = try OutputTemplate(directory: directory.path + number, names: RunDirectory.names)
            watch = FileWatch(template: template, session: session)
            watch?.scan() // the program has begun
        }
        var stop = stopCondition.map { ProgramStop(program.pid, session: session, condition: $0) }
        let ends = ProcessEnds()
        var survey = kernel?.isReporting == true ? nil : ProcessSurvey(root: program.pid)
        var keeper = snapshotPlan.map { SnapshotKeeper($0, directory: snapshotDirectory) }
        keeper?.kernel = kernel
        let server = kernel.flatMap { ExcerptServer($0, session: session) }
        var wished = WishedSignals(signals, snapshotPlan, kernel, directory: snapshotDirectory, tell)
        let (exit, ended) = follow(program, watch!, ends, &relay, &stop, &survey, &keeper, &wished)
        keeper?.exit = { pid in
            ends.look()
            return pid == program.pid ? exit : ends.exit(of: pid)
        }
        if stop != nil || keeper != nil {
            noteTraces(watch!, of: program, ends, &stop) { keeper?.add($0) }
            stop?.end(ends)
        }
        let snapshots = keeper?.end()
        server?.end()
        ends.look()
        survey?.lookNow()
        let appendix = kernel.map { KernelAppendix($0) }, traces = SessionFiles.all(template, session: session)
        let run = UnrecordedPrograms.Run(
            traces: traces, names: Set(SessionFiles.names(template)), root: program.pid, recordsChildren: recordsChildren)
        let unrecorded = appendix?.unrecorded(in: run) ?? UnrecordedPrograms(seen: survey?.found ?? [], in: run)
        let holder = (traces.first { $0.pid == UInt32(program.pid) } ?? traces.first)?.path
        var isCut = false
        var files = tidyFiles(traces, of: program, exit, at: ended, ends, appendix) { header, isGone in
            if let appendix { isCut = !appendix.write(to: header, isGone: isGone) || isCut }
            guard header.path == holder, !unrecorded.all.isEmpty else { return }
            _ = header.append(unrecorded.records, opened: header.current.last, isGone: isGone)
        }
        var path: String?
        if let directory {
            path = template.directory
            if files.allSatisfy({ $0.isEnded }), files.count <= 1, !LivingSessions.mayHaveAny(of: session, since: program.pid) {
                if files.isEmpty {
                    rmdir(template.directory)
                } else if let newPath = RunDirectory.takeOut(files[0].path, of: template.directory, isNumbered: directory.isNumbered) {
                    files[0].path = newPath
                    path = newPath
                }
            }
        }
        return RecordingResult(
            status: exit.status, path: path, files: files, wasStopped: stop?.isUnderWay ?? false, statesAreCut: isCut,
            unrecorded: unrecorded.all, snapshots: snapshots)
    }

    /// Runs `body` before the program starts. A thread of the tool that did not block the signals of the run loop could take them
    /// from it, so threads that `body` begins inherit a mask that does; signals that arrive meanwhile stay pending until it ends.
    package static func prepare(_ body: () -> Void) {
        var waited = SignalRelay.waitedSet, before = sigset_t()
        pthread_sigmask(SIG_BLOCK, &waited, &before)
        body()
        pthread_sigmask(SIG_SETMASK, &before, nil)
    }

    /// Returns how the program ended, and when: CLOCK_MONOTONIC.
    private func follow(
        _ program: RunningProgram, _ watch: FileWatch, _ ends: ProcessEnds, _ relay: inout SignalRelay,
        _ stop: inout ProgramStop?, _ survey: inout ProcessSurvey?, _ keeper: inout SnapshotKeeper?, _ wished: inout WishedSignals
    ) -> (exit: ProcessExit, ended: UInt64) {
        var preparer: FilePreparer?, collectors = ChunkCollectors()
        defer { collectors.end() }
        keeper?.exit = { pid in
            ends.look()
            return ends.exit(of: pid)
        }
        var wait: UInt64 = 250_000 // the agent makes its file within the program's first millisecond
        while true {
            // A process that ends at once must be seen before it has been waited for, so files are not looked for only now and then.
            if let (signal, info) = relay.wait(wait, or: watch.notifications), signal != SIGCHLD, !wished.take(signal) {
                relay.relay(signal, info, to: program.pid)
            }
            // Asked at each turn: a thread of the tool that does not block SIGCHLD may have taken it, which is to ignore it (signal(7)).
            while let change = program.nextChange() {
                switch change {
                case .ended(let exit): return (exit, clockTime())
                case .stopped(let signal): relay.programStopped(by: signal, program)
                case .continued: break
                }
            }
            program.reapSiblings()
            // A new image of the process, after exec, has a new file: prepare that one from now on.
            let own = noteTraces(watch, of: program, ends, &stop) {
                collectors.add($0)
                keeper?.add($0)
                wished.add($0)
            }
            if let own { preparer = FilePreparer(own) }
            wait = preparer?.look() ?? min(wait * 2, PreparationPlan.idleNanoseconds)
            wait = min(wait, collectors.look())
            if let due = keeper?.look() { wait = min(wait, due) }
            if let due = stop?.look(ends) { wait = min(wait, due) }
            if let due = survey?.look() { wait = min(wait, due) }
            if watch.isExpecting { wait = min(wait, FileWatch.expectingNanoseconds) }
        }
    }

    /// Takes note of new traces. Returns the program's own, if there is one.
    @discardableResult
    private func noteTraces(
        _ watch: FileWatch, of program: RunningProgram, _ ends: ProcessEnds, _ stop: inout ProgramStop?,
        _ body: (TraceHeader) -> Void = { _ in }
    ) -> TraceHeader? {
        let namespace = ProcessStatus.ownNamespace
        var own: TraceHeader?
        while let header = watch.next() {
            let state = header.current, pid = pid_t(bitPattern: state.pid)
            body(header)
            if pid == program.pid {
                own = header
            } else if state.pid_namespace == namespace, namespace != 0 {
                ends.watch(pid)
            } else {
                continue
            }
            stop?.add(header.path, of: pid)
        }
        return own
    }

    /// Cuts off what was prepared and not used, and lists the files. Only of processes that are gone for certain: another one
    /// may still write, and truncating a file under its mapping would kill it. `append` puts after each what belongs there.
    private func tidyFiles(
        _ entries: [SessionFiles.Entry], of program: RunningProgram, _ exit: ProcessExit, at ended: UInt64, _ ends: ProcessEnds,
        _ appendix: KernelAppendix?, append: (_ header: TraceHeader, _ isGone: Bool) -> Void
    ) -> [RecordingResult.File] {
        var laterImages: Set<UInt32> = [] // pids: after exec, all but the last image of one are gone
        let namespace = ProcessStatus.ownNamespace
        return entries.reversed().compactMap { entry -> RecordingResult.File? in
            guard let header = TraceHeader(path: entry.path) else { return nil }
            let state = header.current
            let isRoot = state.pid == UInt32(program.pid) && state.parent_pid == UInt32(getpid())
            let countsHere = state.pid_namespace != 0 && state.pid_namespace == namespace
            let isLast = !countsHere || laterImages.insert(state.pid).inserted
            let isGone = isRoot || countsHere && (!isLast || ProcessStatus.isGone(pid_t(bitPattern: state.pid)))
            if isLast, let exit = isRoot ? exit : countsHere ? ends.exit(of: pid_t(bitPattern: state.pid)) : nil { header.set(exit) }
            // The kernel was there; the recorder learned it a moment later.
            if isGone, let ended = appendix?.end(of: state) ?? (isRoot && isLast ? ended : nil) { header.set(ended: ended) }
            if isGone {
                var collector = ChunkCollector(header)
                collector.end()
            }
            var info = stat()
            fstat(header.file, &info)
            var bytes = UInt64(info.st_size)
            if isGone {
                let used = header.current.next_offset
                bytes = UsedEnd.cut(file: header.file, size: bytes, nextOffset: used)
                if bytes < used { header.set(nextOffset: bytes) } // a chunk was reserved and never opened
                header.limit(extendedOffset: bytes)
            }
            append(header, isGone)
            if isGone {
                fstat(header.file, &info)
                bytes = UInt64(info.st_size)
            }
            return RecordingResult.File(
                path: header.path, bytes: bytes, isRoot: isRoot, isEnded: isGone,
                isBeingWritten: !isGone && state.state == UInt32(TRACE_RECORDING)
                    && (ProcessNumbers.number(of: state.pid, in: state.pid_namespace).map { ProcessStatus.isAlive($0) } ?? false))
        }.reversed()
    }
}
