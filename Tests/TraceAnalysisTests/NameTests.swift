import Foundation
import Presentation
import Symbols
import Testing
import TraceAnalysis
import TraceTesting

@Suite struct NameTests {
    @Test func thousandsOfFunctionsKeepTheirOwnNames() throws {
        var builder = demo([.call(10, 0, 1), .call(4321, 10, 11)])
        for id in 10..<5000 as Range<UInt32> { builder.function(id, "_ZN4demo\("function\(id)".utf8.count)function\(id)Ev") }
        let loaded = try Loaded(builder.bytes())
        #expect(loaded.summary.functions(by: .name).map { $0.name } == ["demo::function10()", "demo::function4321()"])
        let table = FunctionNames(loaded.trace.metadata)
        for id in [10, 999, 1000, 1009, 1010, 2500, 4999] as [UInt32] { #expect(table.name(of: id).name == "demo::function\(id)()") }
        #expect(table.name(of: 5000).name == "?#5000")
    }

    @Test func symbolsOfOneNameAreRowsOfTheirOwn() throws {
        var builder = demo([.call(10, 0, 5), .call(11, 10, 11), .call(12, 20, 21)])
        builder.function(10, "_ZN4demo5ThingC1Ev")
        builder.function(11, "_ZN4demo5ThingC2Ev")
        builder.function(12, "_ZN4demo5ThingC2Ev")
        let loaded = try Loaded(builder.bytes())
        let rows = loaded.summary.functions(by: .selfTime)
        #expect(rows.map { $0.name } == ["demo::Thing::Thing()", "demo::Thing::Thing()"])
        #expect(rows.map { $0.symbol } == ["_ZN4demo5ThingC1Ev", "_ZN4demo5ThingC2Ev"])
        #expect(rows.map { $0.calls } == [1, 2])
        #expect(ReportOutput(loaded.run, nil).json.text().contains("\"symbol\": \"_ZN4demo5ThingC1Ev\""))
    }

    @Test func functionsWithoutRecordsOfTheirOwnHaveTheNamesOfTheModulesFile() throws {
        try withLibrary { _, path in
            func trace(buildID: [UInt8]) throws -> TraceFile {
                var builder = demo([.call(10, 0, 1), .call(12, 2, 3)])
                builder.module(1, path, buildID: buildID, bias: 0x7000_0000, byteCount: 0x50_0000)
                builder.functions(10, module: 1, offsets: [0x40_0000, 0, 0x40_0001]) // 11 was never called
                return try Loaded(builder.bytes()).trace
            }
            let known = try trace(buildID: [0xde, 0xad, 0xbe, 0xef])
            let table = FunctionNames(known.metadata)
            // No symbol begins where the last does.
            #expect(([10, 11, 12] as [UInt32]).map { table.name(of: $0).name } == ["hidden", "?#11", "0x400001"])
            #expect(known.warnings.isEmpty)

            // Another file is at the path: nothing is known of the one that was traced.
            let other = try trace(buildID: [1, 2, 3, 4])
            #expect(FunctionNames(other.metadata).name(of: 10).name == "0x400000")
            #expect(other.warnings.isEmpty) // nothing of the trace is missing
            #expect(
                RecordedNames.shared.missing.contains { $0.module.path == path && $0.module.buildID == [1, 2, 3, 4] && $0.functions == 2 })
        }
    }

    @Test func aRecordOfFunctionsThatContradictsItselfIsDamage() throws {
        for (first, module, offsets, count) in [
            (0, 1, [1], nil), (1 << 24, 1, [1], nil), ((1 << 24) - 1, 1, [1, 1], nil), (10, 1, [1], 1000),
            (10, 77, [1], nil), // there is no module 77
        ] as [(UInt32, UInt32, [UInt32], UInt32?)] {
            var builder = demo([.call(10, 0, 1)])
            builder.module(1, "/nowhere/lib.so")
            builder.functions(first, module: module, offsets: offsets, count: count)
            #expect(try Loaded(builder.bytes()).trace.metadata.damagedRecords == 1, "\(first), module \(module)")
        }
    }

    /// `hidden`, which no loader knows, at 0x400000 of a library whose build-id is deadbeef.
    private func named(buildID: [UInt8], offset: UInt64 = 0) throws -> [String] {
        var names: [String] = []
        try withLibrary { _, path in
            var builder = demo { builder, thread in builder.complete(thread, 10, from: start, to: start + 1) }
            builder.module(1, path, buildID: buildID, bias: 0x7000_0000, byteCount: 0x50_0000)
            builder.function(10, "", module: 1, address: 0x7000_0000 + 0x40_0000 + offset)
            names = try Loaded(builder.bytes()).summary.functions(by: .name).map { $0.name }
        }
        return names
    }

    /// Builds libhidden.so, with section .fixed at 0x400000 and build-id deadbeef.
    private func withLibrary(
        _ text: String = "__attribute__((section(\".fixed\"), used)) static int hidden(int n) { return n + 1; }\n",
        _ options: [String] = [], _ body: (_ directory: String, _ path: String) throws -> Void
    ) throws {
        let directory = try TemporaryDirectory(["hidden.c": Array(text.utf8)])
        try withExtendedLifetime(directory) {
            let library = $0.path + "/libhidden.so"
            let compiler = try Process.run(
                URL(fileURLWithPath: "/usr/bin/env"),
                arguments: [
                    "gcc", "-shared", "-fPIC", "-Wl,--build-id=0xdeadbeef", "-Wl,--section-start=.fixed=0x400000", "-o", library,
                    $0.path + "/hidden.c",
                ] + options)
            compiler.waitUntilExit()
            try #require(compiler.terminationStatus == 0)
            try body($0.path, library)
        }
    }

    @Test(
        arguments: [
            ("_i_Foo__doThing_with_", "-[Foo doThing:with:]"), ("_c_Foo__make", "+[Foo make]"),
            ("_i_NSString_GSPrivate_asURL", "-[NSString(GSPrivate) asURL]"), ("_i_Foo___private_", "-[Foo _private:]"),
            ("_i_Foo_Extra__private_", "-[Foo(Extra) _private:]"),
            // Functions of C.
            ("_i_foo__bar", "_i_foo__bar"), ("_c_mutex_lock_", "_c_mutex_lock_"), ("_i_Foo", "_i_Foo"),
            ("_i_Foo_bar_baz", "_i_Foo_bar_baz"),
            ("_i_Foo__", "_i_Foo__"), ("_c_", "_c_"),
        ])
    func methodsOfObjectiveCAreWrittenAsPeopleDo(symbol: String, name: String) { #expect(demangled(symbol) == name) }

    /// `one` and `two` at one address, which a debug build knows the line of.
    @Test(arguments: [true, false]) func aRowHasItsSourceLocation(hasDebugInformation: Bool) throws {
        let text =
            "\n\n__attribute__((section(\".fixed\"), used)) int one(int n) { return n + 1; }\nint two(int) __attribute__((alias(\"one\")));\n"
        try withLibrary(text, hasDebugInformation ? ["-g"] : []) { directory, path in
            var builder = demo([.call(10, 0, 1), .call(11, 10, 11)])
            builder.module(1, path, buildID: [0xde, 0xad, 0xbe, 0xef], bias: 0x7000_0000, byteCount: 0x50_0000)
            builder.function(10, "one", module: 1, address: 0x7000_0000 + 0x40_0000)
            builder.function(11, "nowhere", address: 0)
            builder.patched(1, functions: 2, patched: 2)
            let made = try Loaded(builder.bytes())
            let locations = FunctionLocations([made.trace], lines: true)
            let table = made.run.table(by: .name, top: 0, locations: locations, style: plain)
            let json = ReportOutput(made.run, locations).json.text()
            #expect(table.contains("one +1"))
            #expect(json.contains("\"aliases\": [\"two\"]"))
            #expect(table.contains("hidden.c:3") == hasDebugInformation)
            #expect(json.contains("\"file\": \"\(directory)/hidden.c\", \"line\": 3") == hasDebugInformation)
            #expect(json.contains("\"file\": null, \"line\": null"))
            let hintCount =
                table.components(separatedBy: "no lines for libhidden.so: their debug information (DWARF) was not found").count - 1
            #expect(hintCount == (hasDebugInformation ? 0 : 1))
            let without = FunctionLocations([made.trace], lines: false)
            #expect(!made.run.table(by: .name, top: 0, locations: without, style: plain).contains("source"))
            #expect(!ReportOutput(made.run, without).json.text().contains("\"line\""))
        }
    }

    @Test func aFunctionWithoutANameHasItFromTheModulesFile() throws {
        #expect(try named(buildID: [0xde, 0xad, 0xbe, 0xef]) == ["hidden"])
    }

    @Test func aFileThatIsNotTheTracedOneNamesNothing() throws {
        #expect(try named(buildID: [0xde, 0xad, 0xbe, 0xee]) == ["libhidden.so+0x400000"])
    }

    @Test func aFunctionInsideAnotherIsNotTheOther() throws {
        #expect(try named(buildID: [0xde, 0xad, 0xbe, 0xef], offset: 4) == ["libhidden.so+0x400004"])
    }
}
