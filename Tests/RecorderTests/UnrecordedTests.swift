// Programs without a trace: why they have none, and how they are found.
import CRecorder
import CTraceLayout
import Glibc
import Recorder
import Testing

private let loader = "/lib64/ld-linux-x86-64.so.2"

@Suite struct ExecutedProgramTests {
    private let scratch = Scratch()

    /// The executable, and what was mapped after it.
    private func program(_ bytes: [UInt8], _ files: [String]) -> ExecutedProgram {
        var program = ExecutedProgram(name: "p")
        for file in [scratch.write("p", bytes)] + files { program.map(file, inode: 0, isOutput: file.hasSuffix(".trace")) }
        return program
    }
    private var machine: UInt16 { elfMachine }

    @Test func theFileSaysWhyNothingCanBePreloaded() {
        for (bytes, reason) in [
            (elf(elfMachine: machine, loader: nil), TRACE_UNRECORDED_STATIC), (elf(elfMachine: 243), TRACE_UNRECORDED_MACHINE),
            (elf(elfMachine: machine, loader: "/lib/ld-musl-x86_64.so.1"), TRACE_UNRECORDED_MUSL),
            (elf(elfMachine: machine, loader: "/system/bin/linker64"), TRACE_UNRECORDED_LOADER),
        ] {
            #expect(program(bytes, []).reasonUnrecorded(hasEnded: false) == reason)
        }
    }

    @Test func aProgramWithoutTheAgentHasPassedThePreloadsWhenALibraryIsMapped() {
        let bytes = elf(elfMachine: machine, loader: loader)
        #expect(program(bytes, [loader]).reasonUnrecorded(hasEnded: false) == nil) // it may still be mapped
        #expect(program(bytes, [loader]).reasonUnrecorded(hasEnded: true) == TRACE_UNRECORDED_UNKNOWN)
        let whole = program(bytes, [loader, "/lib/libc.so.6"])
        #expect(whole.reasonUnrecorded(hasEnded: false) == TRACE_UNRECORDED_PRELOAD)
        #expect(whole.reasonUnrecorded(hasEnded: true, isAllSeen: false) == TRACE_UNRECORDED_UNKNOWN) // a report was lost
        let agent = program(bytes, [loader, "/opt/lib/libtracer.so", "/lib/libc.so.6"])
        #expect(agent.reasonUnrecorded(hasEnded: false) == nil && agent.reasonUnrecorded(hasEnded: true) == TRACE_UNRECORDED_NO_FILE)
        let elsewhere = program(bytes, [loader, "/opt/lib/libtracer.so", "/tmp/other.trace"])
        #expect(elsewhere.reasonUnrecorded(hasEnded: true) == TRACE_UNRECORDED_ELSEWHERE)
    }

    @Test func nothingIsSaidOfAFileThatIsNotTheOneThatWasExecuted() {
        var program = ExecutedProgram(name: "p")
        let path = scratch.write("p", elf(elfMachine: machine, loader: nil))
        let file = open(path, O_RDONLY)
        let isOverlay = recorder_is_overlay(file) == 1 // the kernel reports other inodes there than stat does
        close(file)
        program.map(path, inode: 1, isOutput: false)
        #expect(program.reasonUnrecorded(hasEnded: true) == (isOverlay ? TRACE_UNRECORDED_STATIC : TRACE_UNRECORDED_UNKNOWN))
        var gone = ExecutedProgram(name: "p")
        gone.map("/no/such/file", inode: 0, isOutput: false)
        #expect(gone.reasonUnrecorded(hasEnded: true) == TRACE_UNRECORDED_UNKNOWN)
    }

    @Test func whatTheKernelHidesIsPrivilegedOrNotReadable() {
        #expect(ExecutedProgram(name: "no-such-program").reasonUnrecorded(hasEnded: true) == TRACE_UNRECORDED_HIDDEN)
        #expect(ExecutedProgram(name: "x").reasonUnrecorded(hasEnded: true, isAllSeen: false) == TRACE_UNRECORDED_UNKNOWN)
        var taken = ExecutedProgram(name: "x")
        taken.isPrivileged = true
        #expect(taken.reasonUnrecorded(hasEnded: false) == TRACE_UNRECORDED_PRIVILEGED)
    }
}

@Suite struct UnrecordedProgramTests {
    private func origin(_ pid: pid_t, at nanoseconds: UInt64) -> KernelRecord.Origin {
        KernelRecord.Origin(pid: pid, tid: pid, nanoseconds: nanoseconds, cpu: 0)
    }
    private func mapping(_ path: String, isOutput: Bool = false) -> KernelRecord {
        .mapped(.init(addresses: 0x1000..<0x2000, offset: 0, path: path, isOutput: isOutput))
    }
    private let scratch = Scratch()
    private func history(_ body: (inout KernelHistory, _ program: String) -> Void) -> [pid_t: [ImageHistory]] {
        var history = KernelHistory(
            root: 5, KernelStorage(spool: KernelSpool(directory: scratch.path), mostBytes: .max, keepsEnd: false))
        body(&history, scratch.write("h", elf(elfMachine: elfMachine, loader: nil)))
        return history.end()
    }

    @Test func anExecWithoutATraceIsFoundAndOneWithATraceIsNot() {
        let images = history { history, program in
            history.add(.named("sh", isExec: true), origin(5, at: 10))
            history.add(mapping("/bin/sh"), origin(5, at: 11))
            history.add(.began(child: 6, of: 5, by: 5), origin(6, at: 20)) // a copy, which makes no call
            history.add(.ended, origin(6, at: 21))
            for (pid, time) in [(7, 30), (8, 40)] as [(pid_t, UInt64)] {
                history.add(.began(child: pid, of: 5, by: 5), origin(pid, at: time))
                history.add(.named("h", isExec: true), origin(pid, at: time + 1))
                history.add(mapping(program), origin(pid, at: time + 2))
                history.add(.ended, origin(pid, at: time + 5))
            }
            history.add(.named("h", isExec: true), origin(5, at: 90))
            history.add(mapping(program), origin(5, at: 91))
        }
        let namespace = ProcessStatus.ownNamespace
        func found(_ traces: [(pid: UInt32, begun: UInt64)], names: Set<String> = [], recordsChildren: Bool = true) -> [pid_t] {
            let entries = traces.map { SessionFiles.Entry(path: "/x/\($0.pid).trace", pid: $0.pid, namespace: namespace, begun: $0.begun) }
            let run = UnrecordedPrograms.Run(traces: entries, names: names, root: 5, recordsChildren: recordsChildren)
            return UnrecordedPrograms(images, lost: 0, in: run).all.map(\.pid)
        }
        #expect(found([(5, 12)]) == [7, 8, 5])
        #expect(found([(5, 12), (7, 33)]) == [8, 5])
        #expect(found([(5, 12), (7, 29)]) == [7, 8, 5]) // another process with this id has it
        #expect(found([(5, 12), (8, 43), (7, 33), (5, 95)]) == [])
        #expect(found([(5, 12)], recordsChildren: false) == [5])
    }

    @Test func aTraceOfAnotherNamespaceIsKnownByItsName() {
        let images = history { history, _ in
            history.add(.named("p", isExec: true), origin(5, at: 10))
            for path in ["/bin/p", loader, "/opt/libtracer.so"] { history.add(mapping(path), origin(5, at: 11)) }
            history.add(mapping("/else/where/p.1.trace", isOutput: true), origin(5, at: 12))
            history.add(.ended, origin(5, at: 20))
        }
        func reasons(_ names: Set<String>) -> [Int] {
            UnrecordedPrograms(images, lost: 0, in: .init(traces: [], names: names, root: 5)).all.map(\.reason)
        }
        #expect(reasons(["p.1.trace"]) == [] && reasons(["p.2.trace"]) == [TRACE_UNRECORDED_ELSEWHERE])
    }

    @Test func veryManyAreCountedByName() {
        let seen = (0..<3000).map { UnrecordedProgram(pid: $0 + 10, parent: 5, at: UInt64($0), path: "/bin/p", reason: 1) }
        let records = UnrecordedPrograms(seen: seen, in: .init(traces: [], names: [], root: 5)).records
        let size = (MemoryLayout<trace_unrecorded_record>.size + 6 + 7) & ~7
        #expect(records.count == 1001 * size)
        let last = records.suffix(size).withUnsafeBytes { $0.loadUnaligned(as: trace_unrecorded_record.self) }
        #expect(last.count == 2000 && last.pid == 1010 && last.path_bytes == 6)
    }

    @Test func aProgramWithoutTheAgentIsFoundInProc() throws {
        var ends: [Int32] = [0, 0]
        pipe(&ends)
        let child = started("/bin/cat", reading: ends[0])
        defer {
            close(ends[1])
            kill(child, SIGKILL) // another test's child may have the other end
            waitpid(child, nil, 0)
        }
        close(ends[0])
        var survey = ProcessSurvey(root: getpid())
        // Its loader may still be at work.
        for _ in 0..<100_000 where survey.found.allSatisfy({ $0.pid != child }) {
            survey.lookNow()
            sched_yield()
        }
        let found = try #require(survey.found.first { $0.pid == child })
        #expect(found.path.hasSuffix("/cat") && found.parent == getpid() && found.reason == TRACE_UNRECORDED_PRELOAD)
        let count = survey.found.count
        survey.lookNow()
        #expect(survey.found.count { $0.pid == child } == 1 && survey.found.count >= count)
    }
}

/// The architecture of the tests, as ELF numbers it.
private var elfMachine: UInt16 {
    #if arch(x86_64)
    62
    #else
    183
    #endif
}

private func started(_ path: String, reading descriptor: Int32) -> pid_t {
    var actions = posix_spawn_file_actions_t(), pid: pid_t = 0
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, descriptor, 0)
    var arguments: [UnsafeMutablePointer<CChar>?] = [strdup(path), nil], environment: [UnsafeMutablePointer<CChar>?] = [nil]
    defer { free(arguments[0]) }
    posix_spawn(&pid, path, &actions, nil, &arguments, &environment)
    return pid
}
