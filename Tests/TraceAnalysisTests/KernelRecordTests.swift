import CTraceLayout
import Testing
import TraceAnalysis
import TraceTesting

@Suite struct KernelRecordTests {
    @Test func recordsOfTheKernelAreReadAsTheyWereWritten() throws {
        var builder = demo { _, _ in }
        builder.header.session = 7
        builder.kernel(
            asked: TRACE_KERNEL_SWITCHES | TRACE_KERNEL_SAMPLES, from: 900_000, until: 2_000_000, lost: 3, period: 1_000_000)
        builder.switches([(1_000_500, 4711, TRACE_SWITCH_IN), (1_000_100, 4711, TRACE_SWITCH_WAITS), (1_000_200, 8, 99)])
        builder.task(TRACE_TASK_BEGAN, 4712, at: 1_000_300, by: 4711)
        builder.task(TRACE_TASK_NAMED, 4712, at: 1_000_301, name: "loader")
        builder.task(TRACE_TASK_ENDED, 4712, at: 1_000_900)
        builder.pageFault(4711, at: 1_000_600, address: 0x7000, code: 0x5000, "/usr/lib/a.so", offset: 4096)
        builder.foundWaiting(4712, at: 1_000_700, systemCall: 0, (5, 6), kernelFunction: "pipe_read", object: "pipe:[77]")
        builder.foundWaiting(4712, at: 1_000_800, systemCall: -1)
        builder.descriptor(7, at: 1_000_810, access: TRACE_ACCESS_WRITE, "socket:[78]", peer: "socket:[79]")
        builder.descriptor(-1, at: 1_000_820, access: TRACE_ACCESS_READ | TRACE_ACCESS_WRITE, "")
        builder.priority(4712, at: 1_000_840, nice: 5)
        builder.priority(4712, at: 1_000_830, policy: 1, realTime: 10)
        builder.samples([(1_000_010, 4711, 0, [1, 2, 3]), (1_000_020, 4711, TRACE_SAMPLE_KERNEL, [])])
        let trace = try Loaded(builder.bytes()).trace, records = KernelRecords(trace)
        #expect(trace.metadata.damagedRecords == 0 && trace.metadata.unknownRecords == 0 && records.damagedRecords == 0)
        #expect(trace.noSwitches == nil && records.span == 900_000..<2_000_000)
        #expect(records.switches[4711]?.map { $0.at } == [1_000_100, 1_000_500] && records.switches[4711]?[0].kind == .waits)
        #expect(records.switches[8] == nil)
        #expect(records.tasks[4712]?.map { $0.kind } == [.began, .named, .ended])
        #expect(records.tasks[4712]?[0].by == 4711 && records.tasks[4712]?[1].name == "loader")
        let fault = try #require(records.faults[4711]?.first)
        #expect(fault.isMajor && fault.path == "/usr/lib/a.so" && fault.offset == 4096 && fault.at == 1_000_600)
        let waits = try #require(records.waits[4712])
        #expect(waits[0].systemCall == 0 && waits[0].arguments == [5, 6])
        #expect(waits[0].kernelFunction == "pipe_read" && waits[0].object == "pipe:[77]")
        #expect(waits[1].systemCall == nil && waits[1].kernelFunction == "")
        let descriptors = records.descriptors
        #expect(descriptors.map { $0.number } == [7, -1] && descriptors[0].object == "socket:[78]" && descriptors[0].peer == "socket:[79]")
        #expect(descriptors[0].at == 1_000_810 && !descriptors[0].isReadable && descriptors[0].isWritable && descriptors[1].isReadable)
        #expect(records.priorities[4712]?.map { $0.priority.text } == ["real-time 10", "nice 5"])
        #expect(records.samples[4711]?.map { $0.isInKernel } == [false, true])
        #expect(trace.kernelText == "switches, samples; 3 records lost")
    }

    @Test func whoGoesFirstIsByClassAndThenByItsValue() {
        func priority(_ policy: Int32, nice: Int32 = 0, realTime: UInt32 = 0) -> SchedulerPriority {
            SchedulerPriority(policy: policy, nice: nice, realTime: realTime)
        }
        let rising = [
            priority(5, nice: -20), priority(0, nice: 19), priority(3), priority(0, nice: -20), priority(1, realTime: 1),
            priority(2, realTime: 99), priority(6),
        ]
        for (index, one) in rising.enumerated() {
            for (other, two) in rising.enumerated() { #expect(one.isLower(than: two) == (index < other)) }
            #expect(!one.isLower(than: priority(77)) && !priority(77).isLower(than: one)) // an unknown policy
        }
        #expect(rising.map { $0.text }.prefix(3) == ["idle", "nice 19", "nice 0"] && rising[5].text == "real-time 99")
    }

    @Test func momentsOfTheKernelAreOnTheClockOfTheTrace() throws {
        var builder = TraceBuilder(start: 3_000_000, ticksPerNanosecond: 3)
        let thread = builder.thread()
        builder.complete(thread, 1, from: 3_000_000, to: 9_000_000)
        builder.kernel(until: 3_000_000)
        builder.switches([(999_000, 4711, TRACE_SWITCH_WAITS), (1_001_000, 4711, TRACE_SWITCH_IN)])
        let records = KernelRecords(try Loaded(builder.bytes()).trace)
        #expect(records.switches[4711]?.map { $0.at } == [2_997_000, 3_003_000])
    }

    @Test func countsAndLengthsBeyondTheirRecordsAreDamage() throws {
        func damaged(_ body: (inout TraceBuilder) -> Void) throws -> Int {
            var builder = demo { _, _ in }
            builder.kernel(until: 2_000_000)
            body(&builder)
            return KernelRecords(try Loaded(builder.bytes()).trace).damagedRecords
        }
        #expect(try damaged { $0.switches([(1, 2, TRACE_SWITCH_IN)], count: 2) } == 1)
        #expect(try damaged { $0.switches([], count: .max) } == 1)
        #expect(try damaged { $0.samples([(1, 2, 0, [3])], count: 2) } == 1)
        #expect(try damaged { $0.samples([], count: .max) } == 1)
        func filled<T: BitwiseCopyable>(_ type: Int, _ record: T, _ change: (inout T) -> Void) throws -> Int {
            var record = record
            change(&record)
            return try damaged { $0.record(type, record, []) }
        }
        #expect(try filled(TRACE_RECORD_PAGE_FAULT, trace_page_fault_record()) { $0.path_bytes = .max } == 1)
        #expect(try filled(TRACE_RECORD_WAIT, trace_wait_record()) { ($0.function_bytes, $0.object_bytes) = (.max, .max) } == 1)
        #expect(try filled(TRACE_RECORD_DESCRIPTOR, trace_descriptor_record()) { ($0.object_bytes, $0.peer_bytes) = (1, .max) } == 1)
        #expect(try filled(TRACE_RECORD_POLLED, trace_polled_record()) { $0.object_bytes = .max } == 1)
    }

    @Test func eachThreadHasItsOwnSwitchesHoweverManyThereAre() throws {
        var builder = demo { _, _ in }, all: [(UInt64, UInt32, Int)] = []
        builder.header.session = 7
        builder.kernel(from: start, until: start + 100_000)
        // Threads in turn; some of their ids end in the same bits.
        let tids = [1, 65, 129, 4711, 4711 + 64, 2, 3] as [UInt32]
        for n in 0..<700 { all.append((start + UInt64(n), tids[n % 7], n / 7 % 2 == 0 ? TRACE_SWITCH_IN : TRACE_SWITCH_WAITS)) }
        for part in stride(from: 0, to: 700, by: 50) { builder.switches(Array(all[part..<part + 50])) }
        let records = KernelRecords(try Loaded(builder.bytes()).trace)
        #expect(Set(records.switches.keys) == Set(tids))
        for (index, tid) in tids.enumerated() {
            #expect(records.switches[tid]?.map(\.at) == (0..<100).map { start + UInt64($0 * 7 + index) })
        }
    }

    @Test func whatWasRefusedSaysWhyAndWhatAllowsIt() throws {
        func trace(session: UInt64 = 1, _ body: (inout TraceBuilder) -> Void) throws -> TraceFile {
            var builder = demo { _, _ in }
            builder.header.session = session
            body(&builder)
            return try Loaded(builder.bytes()).trace
        }
        #expect(
            try trace { $0.kernel(granted: 0, error: 13, paranoid: 4, until: 2) }.noSwitches
                == "switches not granted: Permission denied, kernel.perf_event_paranoid is 4: sysctl kernel.perf_event_paranoid=2")
        #expect(
            try trace { $0.kernel(granted: 0, error: 1, until: 2) }.noSwitches
                == "switches not granted: Operation not permitted, perhaps by a container's seccomp filter: docker run --cap-add PERFMON")
        #expect(
            try trace { $0.kernel(asked: 0, until: 2) }.noSwitches == "it was recorded without context switches: use tracer record --states"
        )
        #expect(try trace { _ in }.noSwitches == "it was recorded without kernel events")
        #expect(try trace(session: 0) { _ in }.noSwitches?.contains("use tracer record") == true)
    }
}
