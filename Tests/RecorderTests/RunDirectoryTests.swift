import CTraceLayout
import Glibc
import Recorder
import Testing

/// Returns a trace of a process of this boot and pid namespace that has ended or is alive.
private func trace(session: UInt64 = 7, pid: pid_t) -> [UInt8] {
    emptyTrace {
        ($0.pid, $0.session) = (UInt32(pid), session)
        ($0.boot, $0.pid_namespace) = (ProcessStatus.bootID, ProcessStatus.ownNamespace)
    }
}

/// No process has it: pid_max is below (proc(5)).
private let nobody: pid_t = 0x7fff_0000

@Suite struct RunDirectoryTests {
    let scratch = Scratch()

    private func directory(_ name: String, _ files: [(String, [UInt8])]) -> String {
        let path = scratch.path + "/" + name
        mkdir(path, 0o755)
        for (file, bytes) in files { scratch.write(name + "/" + file, bytes) }
        return path
    }

    @Test func aRunIsNamedByItsProgram() {
        #expect(RunDirectory(of: "/usr/bin/make", in: "/work").path == "/work/tracer.make.")
        #expect(RunDirectory(of: "make", in: "/").path == "/tracer.make.")
        #expect(RunDirectory(of: String(repeating: "n", count: 400), in: "/").path.utf8.count < 255)
    }

    /// 0 it is taken, 1 by force alone, 2 never.
    private func reluctance(_ path: String) -> Int {
        if (try? RunDirectory(at: path, force: false)) != nil { return 0 }
        return (try? RunDirectory(at: path, force: true)) != nil ? 1 : 2
    }

    @Test func whatIsAtAWantedNameIsReplacedOnlyByForceAndOnlyWhenItIsAFormerRun() throws {
        #expect(reluctance(scratch.path + "/free") == 0)
        #expect(reluctance(scratch.write("empty", [])) == 0)
        #expect(reluctance(directory("nothing", [])) == 0)
        #expect(reluctance(scratch.write("old", trace(pid: nobody))) == 1)
        let former = directory("former", [("a.trace", trace(pid: nobody)), ("b.trace", trace(pid: nobody))])
        #expect(reluctance(former) == 1)
        for (name, files) in [
            ("mixed", [("a.trace", trace(pid: nobody)), ("notes", Array("text".utf8))]), ("alive", [("a.trace", trace(pid: getpid()))]),
        ] as [(String, [(String, [UInt8])])] {
            #expect(reluctance(directory(name, files)) == 2)
        }
        #expect(reluctance(scratch.write("text", Array("hello".utf8))) == 2)
        #expect(reluctance(scratch.write("live", trace(pid: getpid()))) == 2)
        #expect(reluctance("/dev/null") == 2)
    }

    @Test func aTraceOfAnEarlierStartOfTheSystemHasEndedOnceNobodyWritesIt() {
        var bytes = trace(pid: getpid())
        bytes[MemoryLayout<trace_file_header>.offset(of: \.boot)!] ^= 1
        let path = scratch.write("before", bytes)
        #expect(reluctance(path) == 2) // written this moment, perhaps by another machine
        var times = [timeval(tv_sec: time(nil) - 7200, tv_usec: 0), timeval(tv_sec: time(nil) - 7200, tv_usec: 0)]
        utimes(path, &times)
        #expect(reluctance(path) == 1)
    }

    @Test(.enabled(if: geteuid() == 0)) func whatBelongsToAnotherUserIsNeverReplaced() {
        let path = scratch.write("old", trace(pid: nobody))
        chown(path, 65534, 65534)
        #expect(reluctance(path) == 2)
    }

    /// A file, a directory of several, and nothing.
    @Test(arguments: [0, 1, 2]) func anEarlierRunIsThereAgainUnlessItIsReplaced(kind: Int) throws {
        for isReplaced in [true, false] {
            let bytes = trace(pid: nobody)
            let path =
                kind == 0
                ? scratch.write("run", bytes)
                : kind == 1 ? directory("run", [("a.trace", bytes), ("b.trace", bytes)]) : scratch.path + "/run"
            let before = RunDirectory.names(in: path)
            let earlier = try RunDirectory(at: path, force: true).setAside()
            #expect(RunDirectory.names(in: path) == [])
            if isReplaced { earlier.remove() } else { earlier.putBack() }
            #expect(RunDirectory.names(in: path) == (isReplaced ? [] : before))
            #expect(RunDirectory.names(in: scratch.path) == (isReplaced || kind < 2 ? ["run"] : []))
            var info = stat()
            if !isReplaced, kind == 0 { #expect(lstat(path, &info) == 0 && info.st_size == off_t(bytes.count)) }
            for name in RunDirectory.names(in: path) ?? [] { unlink(path + "/" + name) }
            remove(path)
        }
    }

    @Test(arguments: [true, false])
    func theOnlyFileTakesTheDirectorysPlace(isNumbered: Bool) throws {
        let path = directory("run", [("p.trace", trace(pid: nobody))])
        let moved = RunDirectory.takeOut(path + "/p.trace", of: path, isNumbered: isNumbered)
        #expect(moved == (isNumbered ? path + ".trace" : path))
        var info = stat()
        #expect(lstat(try #require(moved), &info) == 0 && info.st_mode & S_IFMT == S_IFREG && info.st_size == 4096)
        #expect(RunDirectory.names(in: scratch.path)?.count == 1)
        unlink(moved!)
    }

    @Test func somebodyElsesFileKeepsTheDirectory() {
        let path = directory("run", [("p.trace", trace(pid: nobody)), ("notes", [1])])
        #expect(RunDirectory.takeOut(path + "/p.trace", of: path, isNumbered: true) == nil)
        #expect(RunDirectory.names(in: path)?.count == 2)
    }

    @Test func aTraceThatIsThereIsReplacedOnlyWhenItsProcessHasEnded() {
        let path = directory("run", [("p.trace", trace(pid: nobody))])
        scratch.write("run.trace", Array("mine".utf8))
        #expect(RunDirectory.takeOut(path + "/p.trace", of: path, isNumbered: true) == nil)
        scratch.write("run.trace", trace(session: 3, pid: nobody))
        #expect(RunDirectory.takeOut(path + "/p.trace", of: path, isNumbered: true) == path + ".trace")
    }

    @Test func onlyRunsThatHaveEndedCanBeRemoved() throws {
        func failure(_ path: String, living: Set<UInt64> = []) -> FinishedRun.Failure? {
            do {
                _ = try FinishedRun(path, living: living)
                return nil
            } catch { return error }
        }
        #expect(failure(scratch.write("a.trace", trace(pid: nobody))) == nil)
        #expect(failure(scratch.write("a.trace", trace(pid: nobody)), living: [7]) == .isBeingRecorded)
        #expect(failure(scratch.write("live.trace", trace(pid: getpid()))) == .isBeingRecorded)
        #expect(failure(scratch.write("bare.trace", trace(session: 0, pid: nobody))) != nil) // LD_PRELOAD alone
        #expect(failure(scratch.write("text.trace", Array("hello".utf8))) != nil)
        symlink("a.trace", scratch.path + "/link.trace")
        #expect(failure(scratch.path + "/link.trace") != nil)
        unlink(scratch.path + "/link.trace")
        #expect(
            failure(directory("two", [("a.\(nobody).trace", trace(pid: nobody)), ("b.\(nobody).trace", trace(session: 8, pid: nobody))]))
                != nil)
        #expect(failure(directory("golden", [("before.trace", trace(pid: nobody))])) != nil) // somebody's copy
        let run = directory(
            "run", [("a.\(nobody).trace", trace(pid: nobody)), ("b.1.trace", []), ("a.\(nobody).2.trace", trace(pid: nobody))])
        let found = try FinishedRun(run, living: [])
        #expect(found.isDirectory)
        try found.remove()
        #expect(access(run, F_OK) != 0)
    }

    @Test func defaultNamesAreThoseOfRecord() {
        for (name, isDirectory) in [("tracer.make.4711", true), ("tracer.a.b.4711.2", true), ("tracer.make.4711.trace", false)] {
            #expect(FinishedRun.isDefaultName(name, isDirectory: isDirectory))
        }
        for (name, isDirectory) in [
            ("tracer.make.4711", false), ("tracer.make", true), ("make.4711.trace", false), ("tracer.make.x.trace", false),
            ("tracer.4711", true),
        ] {
            #expect(!FinishedRun.isDefaultName(name, isDirectory: isDirectory))
        }
    }
}

@Suite struct LivingSessionsTests {
    @Test func aProcessIsFoundByItsEnvironment() {
        let session: UInt64 = 0x1234_5678_9abc_def0, before = getpid()
        #expect(!LivingSessions.all.contains(session))
        var ends: [Int32] = [0, 0]
        #expect(pipe(&ends) == 0)
        var actions = posix_spawn_file_actions_t(), pid: pid_t = 0
        posix_spawn_file_actions_init(&actions)
        posix_spawn_file_actions_adddup2(&actions, ends[0], 0)
        posix_spawn_file_actions_addclose(&actions, ends[1])
        withCStrings(["cat"].map { Array($0.utf8CString) }) { arguments in
            withCStrings(["TRACER_SESSION=123456789abcdef0-1-0"].map { Array($0.utf8CString) }) { variables in
                _ = posix_spawn(&pid, "/bin/cat", &actions, nil, arguments, variables)
            }
        }
        close(ends[0])
        #expect(LivingSessions.all.contains(session))
        #expect(LivingSessions.mayHaveAny(of: session, since: before))
        close(ends[1]) // cat ends
        waitpid(pid, nil, 0)
        #expect(!LivingSessions.all.contains(session))
        #expect(!LivingSessions.mayHaveAny(of: session, since: pid))
    }
}
