import CTraceLayout
import Testing
import TraceAnalysis
import TraceTesting

@Suite struct StartRecordTests {
    @Test func recordsOfTheStartAreReadAsTheyWereWritten() throws {
        var builder = demo { _, _ in }
        builder.phase(TRACE_PHASE_CREATED, TraceBuilder.usage(at: 0), monotonic: 900, error: 50)
        builder.phase(TRACE_PHASE_MAIN, TraceBuilder.usage(at: 5000, own: 70, cpu: 4000, minor: 9, major: 2), thread: 3)
        builder.initializer(
            0, TRACE_INITIALIZER_INIT, from: TraceBuilder.usage(at: 1000),
            to: TraceBuilder.usage(at: 4000, own: 60, cpu: 100, minor: 7, major: 1))
        builder.initializer(1, module: 4, index: 2, parent: 0, load: 1, thread: 3, address: 0x77, from: TraceBuilder.usage(at: 2000))
        builder.ready(TRACE_READY_OUTPUT, at: 6000, function: 2, thread: 1)
        builder.load(
            1, "./plugin.so", caller: 0, initializer: 0, begin: 1100, opened: 1200,
            mapped: TraceBuilder.usage(at: 1500), end: TraceBuilder.usage(at: 3900))
        builder.once(3, at: 2500, code: 0x1234, token: 0x4321)
        builder.moduleDetail(
            0, relative: 5, symbols: 6, jumpSlots: 7, isLazy: true, soname: "libdemo.so.1", needed: ["libm.so.6", "libc.so.6"])
        builder.binding(0, to: 9, calls: 3, addresses: 1)
        let trace = try Loaded(builder.bytes()).trace
        let start = trace.metadata.start

        let created = try #require(start.phase(.created))
        #expect(created.error.count == 50 && trace.nanosecondsSinceStart(created) == 900 - 1_000_000)
        let main = try #require(start.phase(.main))
        #expect(main.usage.ticks.raw == 5000 && main.usage.ownTicks == 70 && main.usage.cpu.count == 4000)
        #expect(main.usage.minorFaults == 9 && main.usage.majorFaults == 2 && main.thread == 3)
        let outer = try #require(start.initializer(0))
        #expect(outer.kind == .initializer && outer.parent == nil && outer.load == nil)
        #expect(outer.end?.usage.ticks.raw == 4000 && outer.end?.wasLeft == false)
        let inner = try #require(start.initializer(1))
        #expect(inner.kind == .initArray && inner.parent == 0 && inner.load == 1 && inner.module == 4 && inner.index == 2)
        #expect(inner.address == 0x77 && inner.thread == 3 && inner.end == nil)
        #expect(start.ready.first?.reason == .output && start.ready.first?.function == 2)
        let load = try #require(start.load(1))
        #expect(load.path == "./plugin.so" && load.callerModule == 0 && load.initializer == 0)
        #expect(load.begin?.raw == 1100 && load.opened?.raw == 1200 && load.end?.ticks.raw == 3900)
        #expect(start.onces.first?.code == 0x1234 && start.onces.first?.token == 0x4321)
        let detail = try #require(start.moduleDetails[0])
        #expect(detail.soname == "libdemo.so.1" && detail.needed == ["libm.so.6", "libc.so.6"] && detail.isLazy)
        #expect(detail.relativeRelocations == 5 && detail.symbolRelocations == 6 && detail.jumpSlots == 7)
        #expect(start.bindings.first?.toModule == 9 && start.bindings.first?.calls == 3)
    }

    @Test func anInitializerThatWasLeftSaysSo() throws {
        var builder = demo { _, _ in }
        builder.initializer(5, from: TraceBuilder.usage(at: 10), to: TraceBuilder.usage(at: 20), wasLeft: true)
        #expect(try Loaded(builder.bytes()).trace.metadata.start.initializer(5)?.end?.wasLeft == true)
    }

    @Test func anEndWhoseBeginningIsInAnotherFileIsPassedOver() throws {
        var builder = demo { _, _ in }
        var end = trace_initializer_end_record()
        end.initializer = 8
        builder.record(TRACE_RECORD_INITIALIZER_END, end, [])
        let metadata = try Loaded(builder.bytes()).trace.metadata
        #expect(metadata.start.initializers.isEmpty && metadata.damagedRecords == 0)
    }

    @Test func kindsThatThisReaderDoesNotKnowAreCountedAndSkipped() throws {
        var builder = demo { _, _ in }
        builder.phase(99, TraceBuilder.usage(at: 1))
        builder.initializer(0, 99, from: TraceBuilder.usage(at: 1))
        builder.ready(99, at: 1)
        builder.binding(0, to: 1)
        let metadata = try Loaded(builder.bytes()).trace.metadata
        #expect(metadata.unknownRecords == 3 && metadata.start.bindings.count == 1)
    }

    @Test func namesLongerThanTheirRecordAreDamage() throws {
        var builder = demo { _, _ in }
        var detail = trace_module_detail_record()
        detail.soname_bytes = .max
        detail.needed_bytes = .max
        builder.record(TRACE_RECORD_MODULE_DETAIL, detail, [])
        #expect(try Loaded(builder.bytes()).trace.metadata.damagedRecords == 1)
    }
}
