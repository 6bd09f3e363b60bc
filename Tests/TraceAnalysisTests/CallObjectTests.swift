import CTraceLayout
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

/// Objects that calls wait for (ARGUMENT), as replay and dump get them.
@Suite struct CallObjectTests {
    private func traced(wordsPerChunk: Int = 1 << 12, _ steps: [Step]) throws -> Loaded {
        var builder = TraceBuilder()
        builder.module(0, "/usr/lib/libdemo.so.1")
        builder.function(1, "main")
        builder.function(2, "lock", flags: 1 << Int(TRACE_FUNCTION_ARGUMENT_SHIFT))
        builder.function(3, "read", flags: 1 << Int(TRACE_FUNCTION_ARGUMENT_SHIFT) | Int(TRACE_FUNCTION_ARGUMENT_IS_INT))
        let thread = builder.thread()
        builder.limit(thread, words: wordsPerChunk)
        builder.steps(thread, steps)
        return try Loaded(builder.bytes())
    }

    private func objects(_ loaded: Loaded) throws -> [String] {
        var found: [String] = []
        let table = FunctionNames(loaded.trace.metadata)
        try loaded.trace.replay(thread: 0, until: TraceEnd(loaded.trace), deepest: 0, limit: 0, table) { line in
            let object = line.object.map { loaded.trace.metadata.object($0, of: line.function!).text }
            found.append(table.name(of: line.function!).name + "(" + (object ?? "") + ")")
            return true
        }
        return found
    }

    @Test(arguments: [1 << 12, 3]) func eachCallHasItsOwn(wordsPerChunk: Int) throws {
        let loaded = try traced(
            wordsPerChunk: wordsPerChunk,
            [
                .enter(1, 0), .call(2, 10, 20, object: 0x55d0c0),
                .call(2, 30, 60, [.call(3, 40, 50, object: 3)], site: 0x5000_1234, object: 0x7f00_1234_5678), .call(2, 70, 80),
                .call(3, 90, 95, object: 0x12_ffff_ffff), .exit(1, 100),
            ])
        #expect(try objects(loaded) == ["main()", "lock(0x55d0c0)", "lock(0x7f0012345678)", "read(3)", "lock()", "read(-1)"])
    }

    @Test func anObjectBeforeAnEmptyWordIsNobodys() throws {
        let loaded = try traced([
            .call(1, 0, 100, [.word(.control(.argument, 0x1234), 5), .word(Event(word: 0), 5), .call(2, 10, 20)])
        ])
        #expect(try objects(loaded) == ["main()", "lock()"])
    }

    @Test func dumpShowsTheWordAndTheCall() throws {
        let loaded = try traced([.call(3, 10, 20, object: 7)])
        let table = FunctionNames(loaded.trace.metadata)
        var lines: [String] = []
        try loaded.trace.dump(table) { event in
            lines.append("\(event.kind.rawValue) \(event.value.map { String($0) } ?? "") \(event.object?.text ?? "")")
        }
        #expect(lines.suffix(2) == ["argument 7 ", "complete  7"])
    }
}
