import LaunchLab
import Recorder
import Statistics
import Testing

@Suite struct BuildTests {
    private let command = LaunchCommand(words: ["./app"])

    private func fault(_ path: String, major: Bool = false) -> TextFault { TextFault(nanoseconds: 1, path: path, isMajor: major) }

    private func values(_ launches: BuildLaunches, _ kind: BuildFigure.Kind, _ scope: BuildFigure.Scope, isCold: Bool = false) -> [Double]?
    {
        launches.values[BuildFigure(kind: kind, scope: scope, isCold: isCold)]
    }

    @Test func faultsAreCountedByFileAndALaunchWithoutOneCountsAsNone() {
        var launches = BuildLaunches(command, program: "/work/app")
        launches.add([fault("/work/app"), fault("/work/app", major: true)], isCold: false)
        launches.add([fault("/lib/libc.so.6"), fault("/work/app")], isCold: false)
        launches.add([fault("/lib/libc.so.6")], isCold: true)
        launches.add([], isCold: false)
        #expect(values(launches, .minorTextFaults, .all) == [1, 2, 0])
        #expect(values(launches, .minorTextFaults, .program) == [1, 1, 0])
        #expect(values(launches, .minorTextFaults, .library("libc.so.6")) == [0, 1, 0])
        #expect(values(launches, .majorTextFaults, .program) == [1, 0, 0])
        #expect(values(launches, .minorTextFaults, .library("libc.so.6"), isCold: true) == [1])
    }

    @Test func libraryThatOneBuildAloneHasIsComparedWithNone() {
        var old = BuildLaunches(command, program: "/a"), new = BuildLaunches(command, program: "/b")
        for _ in 0..<6 {
            old.add([fault("/lib/libold.so"), fault("/a")], isCold: false)
            new.add([fault("/b")], isCold: false)
        }
        let rows = BuildComparison(old: old, new: new).rows.filter { $0.figure.kind == .minorTextFaults }
        #expect(rows.map(\.figure.scope) == [.all, .program, .library("libold.so")])
        #expect(rows.map(\.difference.medians) == [-1, 0, -1])
        #expect(rows.map(\.difference.isSignificant) == [true, false, true])
        #expect(rows.map(\.isSame) == [false, true, false])
    }

    @Test func figureThatIsNotKnownOfOneIsOmitted() {
        var old = BuildLaunches(command, program: "/a"), new = BuildLaunches(command, program: "/b")
        old.add(.touchedText, isCold: false, 4096)
        old.add(.timeToReady, .all, isCold: true, 1000)
        new.add(.timeToReady, .all, isCold: true, 2000)
        #expect(BuildComparison(old: old, new: new).rows.map(\.figure.kind) == [.timeToReady])
    }

    @Test func touchedTextIsThatOfTheProgramsCode() {
        func mapping(_ access: String, _ path: String, size: Int, resident: Int, referenced: Int) -> String {
            """
            55c6732a5000-55c673533000 \(access) 0001e000 fe:00 16220399                   \(path)
            Size:               \(size) kB
            Rss:                \(resident) kB
            Referenced:         \(referenced) kB
            VmFlags: rd ex mr mw me

            """
        }
        let data = mapping("rw-p", "/work/my app", size: 8, resident: 8, referenced: 8)
        let library = mapping("r-xp", "/lib/libc.so.6", size: 400, resident: 100, referenced: 100)
        let text = mapping("r-xp", "/work/my app", size: 100, resident: 100, referenced: 24)
        #expect(TouchedText.byteCount(smaps: data + text + library, program: "/work/my app") == .success(24 * 1024))
        // Another image of the process: what is mapped there was mapped as it was faulted on.
        let other = mapping("r-xp", "/work/my app", size: 100, resident: 64, referenced: 64)
        guard case .failure = TouchedText.byteCount(smaps: data + other, program: "/work/my app") else {
            Issue.record("taken for touched text")
            return
        }
    }
}
