import CTraceLayout
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

/// Functions that were chosen anew while the process ran (CHOICE).
@Suite struct FunctionChoiceTests {
    private func choice(_ lists: [String], at time: UInt64, key: Int = 1, _ builder: inout TraceBuilder, longer: UInt32 = 0) {
        var record = trace_choice_record(
            record: trace_record(), ticks: start + time, functions_bytes: UInt32(lists[0].utf8.count),
            include_bytes: UInt32(lists[1].utf8.count), exclude_bytes: UInt32(lists[2].utf8.count), reserved: 0)
        record.exclude_bytes &+= longer
        builder.record(TRACE_RECORD_CHOICE, key: key, record, Array(lists.joined().utf8))
    }

    @Test func listsAreReadWithTheirMoments() throws {
        let loaded = try Loaded(
            demo { builder, index in
                choice(["handle*:lib.so!x", "", "mem*"], at: 200, &builder)
                choice(["", "", ""], at: 300, &builder)
                choice(["", "wanted", ""], at: 0, key: 0, &builder) // what somebody wants is not yet so
                builder.steps(index, [.call(1, 0, 400)])
            }.bytes())
        let found = loaded.trace.metadata.choices
        #expect(found.map(\.moment) == [Ticks(start + 200), Ticks(start + 300)])
        #expect(found.first?.lists == ChosenLists(functions: ["handle*", "lib.so!x"], include: [], exclude: ["mem*"]))
        #expect(found.last?.lists.isEmpty == true)
        #expect(loaded.trace.hasChoices)
        let texts = loaded.trace.flagTexts.filter { $0.contains("tracer control") }
        #expect(texts.count == 2)
        #expect(
            texts.first?.hasSuffix(
                "only some functions were recorded: --functions 'handle*' --functions 'lib.so!x' --exclude 'mem*' (tracer control)") == true
        )
        #expect(texts.last?.hasSuffix("on all functions were recorded again (tracer control)") == true)
    }

    /// Lengths of lists beyond the record, or beyond all measure.
    @Test(arguments: [9, 65_536, UInt32.max - 3]) func aDamagedRecordIsNotRead(longer: UInt32) throws {
        let loaded = try Loaded(
            demo { builder, index in
                choice(["a", "b", "cde"], at: 200, &builder, longer: longer)
                builder.steps(index, [.call(1, 0, 400)])
            }.bytes())
        #expect(!loaded.trace.hasChoices)
        #expect(loaded.summary.calls == 1)
    }

    @Test func aTraceWithoutOneSaysNothingOfIt() throws {
        let loaded = try Loaded(demo { builder, index in builder.steps(index, [.call(1, 0, 400)]) }.bytes())
        #expect(!loaded.trace.hasChoices && !loaded.trace.flagTexts.contains { $0.contains("tracer control") })
    }
}
