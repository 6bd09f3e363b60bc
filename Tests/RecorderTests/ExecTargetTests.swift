import Glibc
import Recorder
import Testing

#if arch(x86_64)
@Suite struct ExecTargetTests {
    let scratch = Scratch()
    let user = Identity(realUser: 1000, effectiveUser: 1000, realGroup: 1000, effectiveGroup: 1000, noNewPrivileges: false)

    func refusal(_ program: String, path: String? = "/bin", _ identity: Identity? = nil) -> Refusal? {
        do throws(Refusal) {
            _ = try ExecTarget(program: program, searchPath: path, identity: identity ?? user)
            return nil
        } catch {
            return error
        }
    }

    @Test func dynamicExecutableIsStartedAsItIs() throws {
        let path = scratch.write("dynamic", elf())
        #expect(try ExecTarget(program: path, searchPath: nil, identity: user) == ExecTarget(path: path, leadingArguments: [path]))
    }

    @Test func theLoadersProgramIsBehindItsOptions() {
        let loader = "/lib64/ld-linux-x86-64.so.2"
        #expect(ExecTarget.programOfLoader(loader, ["./app", "--argv0"]) == "./app")
        #expect(ExecTarget.programOfLoader(loader, ["--inhibit-cache", "--library-path", "/lib", "--argv0", "x", "./app"]) == "./app")
        #expect(ExecTarget.programOfLoader(loader, ["--list"]) == nil)
        #expect(ExecTarget.programOfLoader("/bin/sh", ["./app"]) == nil)
    }

    @Test func nameIsSoughtInThePath() throws {
        scratch.write("tool", elf())
        let target = try ExecTarget(program: "tool", searchPath: "/nowhere:\(scratch.path)", identity: user)
        #expect(target == ExecTarget(path: scratch.path + "/tool", leadingArguments: ["tool"]))
    }

    @Test func fileThatMayNotBeExecutedIsPassedOver() throws {
        let other = Scratch()
        scratch.write("tool", elf(), mode: 0o644)
        other.write("tool", elf())
        let target = try ExecTarget(program: "tool", searchPath: "\(scratch.path):\(other.path)", identity: user)
        #expect(target.path == other.path + "/tool")
        #expect(refusal("tool", path: scratch.path)?.status == 126)
    }

    @Test func missingProgramIs127() {
        #expect(refusal("no-such-program")?.status == 127)
        #expect(refusal("/no/such/program")?.status == 127)
        #expect(refusal("")?.status == 127)
    }

    @Test(arguments: [
        ("static", elf(loader: nil), "statically linked"),
        ("arm", elf(elfMachine: 183), "another CPU architecture (aarch64)"),
        ("musl", elf(loader: "/lib/ld-musl-x86_64.so.1"), "musl"),
        ("orphan", elf(loader: "/lib/no-such-loader.so"), "which was not found"),
        ("cut", Array(elf()[..<100]), "cannot be executed"),
    ])
    func untraceableExecutableIsRefused(name: String, bytes: [UInt8], reason: String) {
        let refused = refusal(scratch.write(name, bytes))
        #expect(refused?.status == 126)
        #expect(refused?.message.contains(reason) == true, "\(refused?.message ?? "not refused")")
        #expect(refused?.message.contains("\n") == false)
    }

    @Test func thirtyTwoBitExecutableIsRefused() {
        var bytes = elf()
        bytes[4] = 1
        #expect(refusal(scratch.write("small", bytes))?.message.contains("32-bit") == true)
    }

    @Test func scriptIsJudgedByItsInterpreter() {
        let bad = scratch.write("static", elf(loader: nil)), good = scratch.write("good", elf())
        #expect(refusal(scratch.write("fine", "#!\(good)\n")) == nil)
        let refused = refusal(scratch.write("script", "#!\(bad) -x\n"))
        #expect(refused?.status == 126)
        #expect(refused?.message.contains("the interpreter of \(scratch.path)/script") == true)
        #expect(refusal(scratch.write("lost", "#!/no/such/interpreter\n"))?.status == 126)
    }

    @Test func programThatEnvStartsIsJudgedToo() {
        scratch.write("frozen", elf(loader: nil))
        let script = scratch.write("script", "#!/usr/bin/env -S frozen -x\n")
        #expect(refusal(script, path: scratch.path)?.message.contains("statically linked") == true)
        #expect(refusal(script, path: "/bin") == nil) // env will say that it is not there
    }

    @Test func chainOfScriptsEndsAfterFour() {
        var last = scratch.write("end", elf())
        for level in 1...4 { last = scratch.write("level\(level)", "#!\(last)\n") }
        #expect(refusal(last) == nil)
        #expect(refusal(scratch.write("level5", "#!\(last)\n"))?.message.contains("more than 4 scripts") == true)
    }

    @Test func textWithoutAMagicLineGoesToTheShell() throws {
        let path = scratch.write("text", "echo hi\n")
        #expect(
            try ExecTarget(program: path, searchPath: nil, identity: user)
                == ExecTarget(path: "/bin/sh", leadingArguments: ["sh", path]))
    }

    @Test func directoryAndNonExecutableAreRefused() {
        #expect(refusal("/tmp")?.status == 126)
        #expect(refusal(scratch.write("data", "x", mode: 0o644))?.status == 126)
    }

    @Test func loaderItselfIsNotTakenForAStaticProgram() {
        #expect(refusal("/lib64/ld-linux-x86-64.so.2") == nil)
    }

    @Test func setUserProgramIsRefusedForOthersOnly() {
        let path = scratch.write("privileged", elf(), mode: 0o4755)
        var info = stat()
        stat(path, &info)
        #expect(refusal(path, path: nil, user)?.message.contains("set-user-ID") == (info.st_uid == 1000 ? nil : true))
        let owner = Identity(realUser: info.st_uid, effectiveUser: info.st_uid, realGroup: 0, effectiveGroup: 0, noNewPrivileges: false)
        #expect(refusal(path, path: nil, owner) == nil)
    }
}
#endif

@Suite struct FilePrivilegesTests {
    let user = Identity(realUser: 1000, effectiveUser: 1000, realGroup: 1000, effectiveGroup: 1000, noNewPrivileges: false)
    let root = Identity(realUser: 0, effectiveUser: 0, realGroup: 0, effectiveGroup: 0, noNewPrivileges: false)

    func file(_ mode: mode_t, owner: uid_t = 0, group: gid_t = 0, capabilities: [UInt8] = [], nosuid: Bool = false) -> FilePrivileges {
        FilePrivileges(mode: mode, owner: owner, group: group, capabilities: capabilities, mountIgnoresThem: nosuid)
    }

    @Test func setUserCountsWhenItChangesTheUser() {
        #expect(file(0o4755).secureReason(for: user) != nil)
        #expect(file(0o4755).secureReason(for: root) == nil)
        #expect(file(0o4755, owner: 1000).secureReason(for: user) == nil)
        #expect(file(0o4755, owner: 1000).secureReason(for: root) != nil)
        #expect(file(0o4755, nosuid: true).secureReason(for: user) == nil)
        var confined = user
        confined.noNewPrivileges = true
        #expect(file(0o4755).secureReason(for: confined) == nil)
    }

    @Test func setGroupCountsOnlyWithGroupExecute() {
        #expect(file(0o2755).secureReason(for: user) != nil)
        #expect(file(0o2745).secureReason(for: user) == nil)
        #expect(file(0o2755, group: 1000).secureReason(for: user) == nil)
        #expect(file(0o2755, group: 43).secureReason(for: root) != nil)
    }

    @Test func capabilitiesCountForAllButRoot() {
        // setcap cap_net_raw=ep: version 2, effective; permitted bit 13
        let netRaw: [UInt8] = [1, 0, 0, 2, 0, 0x20, 0, 0] + [UInt8](repeating: 0, count: 12)
        #expect(file(0o755, capabilities: netRaw).secureReason(for: user) == "has file capabilities")
        #expect(file(0o755, capabilities: netRaw).secureReason(for: root) == nil)
        #expect(file(0o755, capabilities: netRaw, nosuid: true).secureReason(for: user) == nil)
        let none: [UInt8] = [0, 0, 0, 2] + [UInt8](repeating: 0, count: 16)
        #expect(file(0o755, capabilities: none).secureReason(for: user) == nil)
        #expect(file(0o755, capabilities: [1, 0]).secureReason(for: user) == nil)
    }

    @Test func aToolThatIsPrivilegedItselfIsSeen() {
        let raised = Identity(realUser: 1000, effectiveUser: 0, realGroup: 1000, effectiveGroup: 1000, noNewPrivileges: false)
        #expect(file(0o755).secureReason(for: raised) != nil)
    }
}
