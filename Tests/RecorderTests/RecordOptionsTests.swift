import Recorder
import Testing
import TraceFormat

@Suite struct RecordOptionsTests {
    func refusal(_ change: (inout RecordOptions) -> Void) -> Refusal? {
        var options = RecordOptions()
        change(&options)
        do throws(Refusal) {
            _ = try options.variables()
            return nil
        } catch {
            return error
        }
    }

    @Test func optionsBecomeVariables() throws {
        var options = RecordOptions()
        #expect(try options.variables().isEmpty)
        options.set(Variables.maximumDepth, "007")
        options.set(Variables.minimumTime, "0.25")
        options.set(Variables.include, ["mem*", "libz.so*"])
        options.set(Variables.exclude, ["free"])
        options.set(Variables.maximumSize, "64M")
        options.set(Variables.mode, "ring")
        options.set(Variables.children, false)
        options.set(Variables.cache, false)
        options.set(Variables.start, "off")
        options.set(Variables.quiet, true)
        #expect(
            try options.variables().map { "\($0.name)=\($0.value)" } == [
                "TRACER_MAXDEPTH=7", "TRACER_MINMS=0.25", "TRACER_INCLUDE=mem*:libz.so*", "TRACER_EXCLUDE=free",
                "TRACER_MAXSIZE=64M", "TRACER_MODE=ring", "TRACER_CHILDREN=off", "TRACER_CACHE=off", "TRACER_START=off", "TRACER_QUIET=on",
            ])
    }

    @Test(arguments: ["", "1000001", "-1", "+1", "1.5", "ten", " 3", "4294967296", "99999999999999999999999"])
    func badDepthIsUsage(_ text: String) {
        #expect(refusal { $0.set(Variables.maximumDepth, text) }?.status == 2)
    }

    @Test(arguments: ["", ".", "1.", "-1", "1e3", "1,5", "nan", "0x1", "1.2.3", " 1"])
    func badMillisecondsAreUsage(_ text: String) {
        #expect(refusal { $0.set(Variables.minimumTime, text) }?.status == 2)
    }

    @Test(arguments: ["0", "1", "0.5", ".5", "123456789.123456789"])
    func goodMillisecondsPass(_ text: String) {
        #expect(refusal { $0.set(Variables.minimumTime, text) } == nil)
    }

    @Test func sizesHaveBinaryUnits() {
        #expect(Variables.maximumSize.read("65536") == 65536)
        #expect(Variables.maximumSize.read("512K") == 512 << 10)
        #expect(Variables.maximumSize.read("64m") == 64 << 20)
        #expect(Variables.maximumSize.read("64MB") == 64 << 20)
        #expect(Variables.maximumSize.read("0") == 0)
        #expect(Variables.maximumSize.read("2G") == 2 << 30)
        for text in ["", "K", "1", "63K", "-64M", "64BM", "64 M", "1048576G", "1T", "0.5G", "99999999999G", "18446744073709551616"] {
            #expect(Variables.maximumSize.read(text) == nil, "\(text)")
            #expect(refusal { $0.set(Variables.maximumSize, text) }?.status == 2)
        }
    }

    @Test func emptyGlobAndScopeOperatorAreUsage() {
        #expect(refusal { $0.set(Variables.include, [""]) }?.status == 2)
        #expect(refusal { $0.set(Variables.exclude, ["std::*"]) }?.message.contains("_ZNSt*") == true)
        #expect(refusal { $0.set(Variables.exclude, ["a:b"]) } == nil)
    }

    @Test(arguments: ["on", "1", "yes"], ["off", "0", "no"])
    func switchesAreWrittenAsOnAndOff(on: String, off: String) throws {
        for (text, value) in [(on, "on"), (off, "off")] {
            var options = RecordOptions()
            options.set(Variables.start, text)
            #expect(try options.variables().map(\.value) == [value])
        }
        #expect(Variables.children.read("On") == nil && Variables.quiet.read("") == nil)
    }

    @Test func aBadVariableIsRefusedUnlessAnOptionReplacesIt() throws {
        var options = RecordOptions()
        let environment = ["TRACER_MINMS": "abc", "TRACER_MODE": "ring", "TRACER_OUT": "", "TRACER_OTHER": "x"]
        #expect(throws: Refusal.usage("TRACER_MINMS=abc: give milliseconds, such as 0.5")) {
            try options.check(environment: { environment[$0] })
        }
        #expect(throws: Refusal.usage("TRACER_CLOCK=: give auto or monotonic")) {
            try options.check(environment: { $0 == "TRACER_CLOCK" ? "" : nil })
        }
        options.set(Variables.minimumTime, "1")
        try options.check(environment: { environment[$0] })
    }

    @Test func whatTheRecorderPassesToTheAgentIsReadAsItIsWritten() throws {
        let session = try #require(Variables.session.read("00000000000000ff-4711-4026531836"))
        #expect(session.number == 255 && session.recorder == 4711 && session.namespace == 4_026_531_836)
        for text in [
            "ff-4711", "00000000000000ff", "00000000000000fF-1-1", "00000000000000ff-", "00000000000000ff-1", "00000000000000ff-1-",
            "00000000000000ff-1-x",
        ] {
            #expect(Variables.session.read(text) == nil)
        }
        let exec = try #require(Variables.exec.read("000000000000001234-0000000042"))
        #expect(exec.nanoseconds == 1234 && exec.pid == 42)
        #expect(Variables.exec.read("-42") == nil && Variables.exec.read("12") == nil)
    }

    @Test func wordsOutsideTheListAreUsage() {
        #expect(refusal { $0.set(Variables.mode, "Full") }?.status == 2)
        #expect(refusal { $0.set(Variables.start, "later") }?.status == 2)
    }
}

@Suite struct OutputTemplateTests {
    @Test func relativeTemplateIsMadeAbsolute() throws {
        let template = try OutputTemplate("out/%e.%p", currentDirectory: "/home/me")
        #expect(template.text == "/home/me/out/%e.%p")
        #expect(template.directory == "/home/me/out")
        #expect(try OutputTemplate("/x", currentDirectory: "/home").directory == "/")
        #expect(try OutputTemplate("x", currentDirectory: "/").text == "/x")
    }

    @Test func optionWinsOverVariableOverDefault() throws {
        var options = RecordOptions()
        func text(_ variable: String?) throws -> String {
            try options.outputTemplate(environment: { _ in variable }, currentDirectory: "/d").text
        }
        #expect(try text(nil) == "/d/tracer.%e.%p.trace")
        #expect(try text("") == "/d/tracer.%e.%p.trace")
        #expect(try text("v") == "/d/v")
        options.output = "o"
        #expect(try text("v") == "/d/o")
    }

    @Test(arguments: ["", "dir/", "a%x", "a%", "%p/trace", "/x%e/t", String(repeating: "n", count: 256)])
    func templateThatNamesNoFileIsUsage(_ text: String) {
        #expect(throws: Refusal.self) { try OutputTemplate(text, currentDirectory: "/d") }
    }

    @Test func percentSignsOfDirectoriesAreKept() throws {
        let template = try OutputTemplate("in 50%%/100%%.%p", currentDirectory: "/odd%p%")
        #expect(template.text == "/odd%%p%%/in 50%%/100%%.%p")
        #expect(template.directory == "/odd%p%/in 50%")
        #expect(template.mayName("100%.12"))
    }

    @Test func aSecondFileOfANameWithoutPlaceholdersIsRecognised() throws {
        let template = try OutputTemplate("app.trace", currentDirectory: "/d")
        for name in ["app.trace", "app.4711.trace", "app.4711.2.trace"] { #expect(template.mayName(name)) }
        #expect(!template.mayName("other.trace"))
    }

    @Test func onlyNamesThatBeginLikeTheTemplateAreLookedAt() throws {
        let template = try OutputTemplate("run.%e.%p", currentDirectory: "/d")
        #expect(template.mayName("run.ls.12"))
        #expect(!template.mayName("walk.ls.12"))
    }

    @Test func directoryMustExist() throws {
        #expect(throws: Refusal.self) { try OutputTemplate("/no/such/t", currentDirectory: "/").checkDirectory() }
        #expect(throws: Refusal.self) { try OutputTemplate("/etc/passwd/t", currentDirectory: "/").checkDirectory() }
        #expect(throws: Never.self) { try OutputTemplate("/tmp/t", currentDirectory: "/").checkDirectory() }
    }
}

@Suite struct ProgramEnvironmentTests {
    func entries(_ texts: [String]) -> ProgramEnvironment { ProgramEnvironment(entries: texts.map { Array($0.utf8CString) }) }
    func texts(_ environment: ProgramEnvironment) -> [String] {
        environment.entries.map { String(decoding: $0.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self) }
    }

    @Test func valueIsReplacedInPlaceAndOnce() {
        var environment = entries(["A=1", "LD_PRELOAD=x", "AB=2", "LD_PRELOAD=y"])
        environment.set("LD_PRELOAD", "z")
        environment.set("A", "")
        environment.set("NEW", "v")
        #expect(texts(environment) == ["A=", "LD_PRELOAD=z", "AB=2", "NEW=v"])
        #expect(environment["AB"] == "2")
        #expect(environment["B"] == nil)
    }

    @Test func bytesThatAreNotTextSurvive() {
        var environment = ProgramEnvironment(entries: [[65, 61, -1, -2, 0]])
        environment.set("B", "1")
        #expect(environment.entries[0] == [65, 61, -1, -2, 0])
    }
}

@Suite struct AgentLibraryTests {
    @Test func preloadKeepsWhatWasThereAfterOurs() throws {
        let agent = try AgentLibrary(path: "/opt/libtracer.so")
        #expect(agent.preload(keeping: nil) == "/opt/libtracer.so")
        #expect(agent.preload(keeping: "") == "/opt/libtracer.so")
        #expect(agent.preload(keeping: "a.so b.so:/opt/libtracer.so") == "/opt/libtracer.so:a.so:b.so")
    }

    @Test(arguments: ["/a b/libtracer.so", "/a:b/libtracer.so", "/$LIB/libtracer.so"])
    func pathThatTheVariableCannotHoldIsRefused(_ path: String) {
        #expect(throws: Refusal.self) { try AgentLibrary(path: path) }
    }

    @Test func libraryIsFoundBesideTheToolOrInLib() throws {
        let scratch = Scratch()
        #expect(throws: Refusal.self) { try AgentLibrary.find(besides: scratch.path) }
        scratch.write("libtracer.so", "x")
        #expect(try AgentLibrary.find(besides: scratch.path).path == scratch.path + "/libtracer.so")
    }
}

@Suite struct WaitStatusTests {
    @Test func statusWordIsTakenApart() {
        #expect(RunningProgram.Change(waitStatus: 7 << 8) == .ended(.exited(status: 7)))
        #expect(RunningProgram.Change(waitStatus: 9) == .ended(.killed(signal: 9)))
        #expect(RunningProgram.Change(waitStatus: 0x80 | 11) == .ended(.killed(signal: 11))) // with a core
        #expect(RunningProgram.Change(waitStatus: 20 << 8 | 0x7f) == .stopped(signal: 20))
        #expect(RunningProgram.Change(waitStatus: 0xffff) == .continued)
    }
}
