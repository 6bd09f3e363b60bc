import ELF
import Foundation
import Statistics
import Symbols
import Testing

private let slow = """
    static int state;

    static void __attribute__((constructor, used)) slow_init(void) {
        state = 1;
    }
    int touch(void) { return state; }

    """

@Suite struct SymbolizerTests {
    @Test func aStaticFunctionHasItsNameFileAndLine() throws {
        let built = try Built(["slow.c": slow], "gcc", ["-g"])
        let address = try built.address("slow_init")
        let symbolizer = Symbolizer()
        #expect(symbolizer.function(at: address, in: built.identity)?.name == "slow_init")
        #expect(symbolizer.function(at: address + 1, in: built.identity)?.address == address)
        let source = try #require(symbolizer.source(at: address, in: built.identity))
        #expect(source.fileName == "slow.c")
        #expect(source.line == 3)
        #expect(source.path.hasPrefix("/"))
    }

    @Test func aResolverIsNotTakenForWhatItChooses() throws {
        let text = """
            static int twice(int x) { return 2 * x; }
            static int (*choose(void))(int) { return twice; }
            int chosen(int x) __attribute__((ifunc("choose")));

            """
        let built = try Built(["chosen.c": text], "gcc", ["-g"])
        let address = try built.address("choose")
        #expect(Symbolizer().function(at: address, in: built.identity)?.name == "choose")
        try built.run("strip", [built.path])
        #expect(Symbolizer().function(at: address, in: built.identity)?.name == "chosen.resolver")
    }

    @Test func aStrippedFileHasNoNamesOfStaticFunctions() throws {
        let built = try Built(["slow.c": slow], "gcc", ["-g"])
        let address = try built.address("slow_init"), touch = try built.address("touch")
        try built.run("strip", [built.path])
        let symbolizer = Symbolizer()
        #expect(symbolizer.hasFile(of: built.identity))
        #expect(symbolizer.function(at: address, in: built.identity) == nil)
        #expect(symbolizer.function(at: touch, in: built.identity)?.name == "touch")
        #expect(symbolizer.source(at: address, in: built.identity) == nil)
    }

    @Test(arguments: [true, false]) func aStrippedFileHasItsNamesFromItsDebugFile(byBuildID: Bool) throws {
        let built = try Built(["slow.c": slow], "gcc", ["-g"])
        let address = try built.address("slow_init")
        let identity = built.identity
        let id = identity.buildID.map { String(format: "%02x", $0) }
        let debugDirectory = built.directory + "/debug"
        let debugFile =
            byBuildID ? "\(debugDirectory)/.build-id/\(id[0])/\(id[1...].joined()).debug" : "\(built.directory)/.debug/libbuilt.debug"
        try FileManager.default.createDirectory(
            atPath: (debugFile as NSString).deletingLastPathComponent, withIntermediateDirectories: true)
        try built.run("objcopy", ["--only-keep-debug", built.path, debugFile])
        try built.run("strip", [built.path])
        if !byBuildID { try built.run("objcopy", ["--add-gnu-debuglink=\(debugFile)", built.path]) }
        let symbolizer = Symbolizer(debugDirectories: [debugDirectory])
        #expect(symbolizer.function(at: address, in: identity)?.name == "slow_init")
        #expect(symbolizer.source(at: address, in: identity)?.line == 3)
    }

    @Test func aFileThatWasReplacedIsNotBelieved() throws {
        let built = try Built(["slow.c": slow], "gcc", ["-g"])
        let address = try built.address("slow_init")
        var other = built.identity
        other.buildID[0] ^= 1
        let symbolizer = Symbolizer()
        #expect(!symbolizer.hasFile(of: other))
        #expect(symbolizer.function(at: address, in: other) == nil)
        #expect(symbolizer.source(at: address, in: other) == nil)
    }

    @Test func aFileWithoutBuildIDIsTheOneOfItsSize() throws {
        let built = try Built(["slow.c": slow], "gcc", ["-Wl,--build-id=none"])
        let address = try built.address("slow_init")
        var identity = built.identity
        #expect(identity.buildID.isEmpty)
        #expect(Symbolizer().function(at: address, in: identity)?.name == "slow_init")
        identity.spanBytes += 8
        #expect(Symbolizer().function(at: address, in: identity) == nil)
    }

    @Test(arguments: ["g++", "clang++"], ["-O0", "-O2"])
    func staticInitializersAreOfTheirFileAndNameItsGlobals(compiler: String, level: String) throws {
        let text = """
            struct Loud { Loud(int n); ~Loud(); int n; };
            Loud::Loud(int n) : n(n) { extern void hear(int); hear(n); }
            Loud::~Loud() { extern void hear(int); hear(-n); }
            int plain = 7;
            namespace inner { Loud first(1); }
            static Loud second(2);
            Loud third = 3;
            static int never_made_by_code;
            int use() { return second.n + never_made_by_code++ + plain; }

            """
        let other = "int heard; void hear(int n) { heard += n; } int make(); int made = make(); int make() { return heard; }\n"
        let built = try Built(["globals.cpp": text, "other.cpp": other], compiler, ["-g", level])
        let symbolizer = Symbolizer()
        let name = "_GLOBAL__sub_I_globals.cpp"
        let address = try built.address(name)
        let function = try #require(symbolizer.function(at: address, in: built.identity))
        #expect(function.name == name)
        let initializers = try #require(symbolizer.staticInitializers(function, in: built.identity))
        #expect(initializers.fileName == "globals.cpp")
        #expect(initializers.globals == ["_ZN5inner5firstE", compiler == "g++" ? "second" : "_ZL6second", "third"])
        #expect(!initializers.areDestructors)
    }

    @Test func withoutDWARFStaticInitializersKnowTheirFile() throws {
        let built = try Built([
            "a.cpp": "int f(); int x = f(); int f() { return 1; }\n", "b.cpp": "int g(); int y = g(); int g() { return 2; }\n",
        ])
        let symbolizer = Symbolizer()
        let function = try #require(symbolizer.function(at: try built.address("_GLOBAL__sub_I_b.cpp"), in: built.identity))
        #expect(
            symbolizer.staticInitializers(function, in: built.identity)
                == Symbolizer.StaticInitializers(fileName: "b.cpp", globals: [], areDestructors: false))
    }

    /// The linker writes no build-id, and both builds have the same segments.
    @Test func withoutBuildIDAFileIsKnownBySizeAndTime() throws {
        let built = try Built(["slow.c": slow], "gcc", ["-g", "-Wl,--build-id=none"])
        let address = try built.address("slow_init"), stamp = try #require(ObjectFile(path: built.path)).stamp
        var module = built.identity
        #expect(Symbolizer().function(at: address, in: module)?.name == "slow_init", "an older trace does not say more")
        module.file = .init(stamp: stamp, inodeHash: 0)
        #expect(Symbolizer().function(at: address, in: module)?.name == "slow_init")
        for change in [{ $0.nanoseconds ^= 1 }, { $0.seconds += 1 }, { $0.byteCount += 1 }] as [(inout FileStamp) -> Void] {
            var other = stamp
            change(&other)
            module.file = .init(stamp: other, inodeHash: 0)
            #expect(Symbolizer().function(at: address, in: module) == nil)
            #expect(ChangedFiles.shared.modules.contains(module))
        }
    }

    /// With -gsplit-dwarf the file has lines, and names of globals are in a file beside it.
    @Test(arguments: ["-gdwarf-4", "-gdwarf-5"]) func splitDWARFHasLinesAndGlobals(version: String) throws {
        let built = try Built(
            ["a.cpp": "int f();\nint x = f();\nint f() { return 1; }\n"], "g++", [version, "-gsplit-dwarf", "-gno-column-info"])
        let f = try built.address("_Z1fv"), start = try built.address("_GLOBAL__sub_I_a.cpp")
        func ask() throws -> (line: Int?, initializers: Symbolizer.StaticInitializers?) {
            let symbolizer = Symbolizer()
            let function = try #require(symbolizer.function(at: start, in: built.identity))
            return (symbolizer.source(at: f, in: built.identity)?.line, symbolizer.staticInitializers(function, in: built.identity))
        }
        let whole = try ask()
        #expect(whole.line == 3)
        #expect(whole.initializers == .init(fileName: "a.cpp", globals: ["x"], areDestructors: false))
        let parts = try FileManager.default.contentsOfDirectory(atPath: built.directory).filter { $0.hasSuffix(".dwo") }
        let part = built.directory + "/" + (try #require(parts.first))
        try FileManager.default.removeItem(atPath: part)
        #expect(try ask().line == 3)
        #expect(try ask().initializers?.globals == [])
        mkfifo(part, 0o600) // nobody waits for it
        #expect(try ask().line == 3)
        #expect(try ask().initializers?.globals == [])
    }

    @Test func whatIsNotAFileIsNotOpened() {
        let symbolizer = Symbolizer()
        for path in ["/dev/zero", "/", "/nowhere", "", "[vdso]", "linux-vdso.so.1", "/dev/stdin"] {
            #expect(!symbolizer.hasFile(of: ModuleIdentity(path: path, buildID: [], spanBytes: 0)))
        }
    }

    @Test func damagedFilesGiveNoAnswerOrATrueOneAndNeverACrash() throws {
        let built = try Built(["slow.c": slow], "gcc", ["-g"])
        let address = try built.address("slow_init")
        let identity = built.identity
        let good = try Data(contentsOf: URL(fileURLWithPath: built.path))
        var random = SplitMix(seed: 1)
        func next(_ bound: Int) -> Int { Int.random(in: 0..<bound, using: &random) }
        for round in 0..<300 {
            var bytes = good
            if round % 3 == 0 { bytes = bytes.prefix(next(bytes.count)) }
            for _ in 0..<next(40) where !bytes.isEmpty { bytes[next(bytes.count)] = UInt8(truncatingIfNeeded: next(256)) }
            let path = built.directory + "/damaged.so"
            try bytes.write(to: URL(fileURLWithPath: path))
            let symbolizer = Symbolizer()
            let module = ModuleIdentity(path: path, buildID: identity.buildID, spanBytes: identity.spanBytes)
            if let function = symbolizer.function(at: address, in: module) {
                _ = symbolizer.staticInitializers(FunctionSymbol(name: "_GLOBAL__sub_I_x", address: address, byteCount: 9), in: module)
                #expect(function.address <= address)
            }
            _ = symbolizer.source(at: address, in: module)
        }
    }
}
