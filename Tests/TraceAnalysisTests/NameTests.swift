import Testing
import TraceTesting
@testable import TraceAnalysis

@Suite struct NameTests {
    @Test func thousandsOfFunctionsKeepTheirOwnNames() throws {
        var builder = demo { builder, thread in
            builder.complete(thread, 10, from: start, to: start + 1)
            builder.complete(thread, 4321, from: start + 10, to: start + 11)
        }
        for id in 10 ..< 5000 as Range<UInt32> { builder.function(id, "_ZN4demo\("function\(id)".utf8.count)function\(id)Ev") }
        let loaded = try Loaded(builder.bytes())
        #expect(loaded.summary.functions(by: .name).map { $0.name } == ["demo::function10()", "demo::function4321()"])
        let table = FunctionTable(loaded.trace.metadata)
        for id in [10, 999, 1000, 1009, 1010, 2500, 4999] as [UInt32] { #expect(table.name(of: id).name == "demo::function\(id)()") }
        #expect(table.name(of: 5000).name == "?#5000")
    }

    @Test func symbolsOfOneNameAreRowsOfTheirOwn() throws {
        var builder = demo { builder, thread in
            builder.complete(thread, 10, from: start, to: start + 5)
            builder.complete(thread, 11, from: start + 10, to: start + 11)
            builder.complete(thread, 12, from: start + 20, to: start + 21)
        }
        builder.function(10, "_ZN4demo5ThingC1Ev")
        builder.function(11, "_ZN4demo5ThingC2Ev")
        builder.function(12, "_ZN4demo5ThingC2Ev")
        let loaded = try Loaded(builder.bytes())
        let rows = loaded.summary.functions(by: .selfTime)
        #expect(rows.map { $0.name } == ["demo::Thing::Thing()", "demo::Thing::Thing()"])
        #expect(rows.map { $0.symbol } == ["_ZN4demo5ThingC1Ev", "_ZN4demo5ThingC2Ev"])
        #expect(rows.map { $0.calls } == [1, 2])
        #expect(loaded.summary.json(loaded.trace).text().contains("\"symbol\": \"_ZN4demo5ThingC1Ev\""))
    }
}
