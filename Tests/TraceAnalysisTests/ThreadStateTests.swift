import CTraceLayout
import Testing
import TraceAnalysis
import TraceTesting

private let runs = TRACE_SWITCH_IN, waits = TRACE_SWITCH_WAITS, preempted = TRACE_SWITCH_PREEMPTED

private func states(lost: UInt64 = 0, _ body: (inout TraceBuilder) -> Void) throws -> [ThreadStates] {
    var builder = demo { builder, thread in builder.complete(thread, 1, from: start + 10, to: start + 20) }
    builder.kernel(from: start, until: start + 1000, lost: lost)
    body(&builder)
    let trace = try Loaded(builder.bytes()).trace
    return ThreadStates.all(trace, KernelRecords(trace))
}

private func text(_ thread: ThreadStates) -> [String] { thread.stretches.map { "\($0.state) \($0.end - $0.begin)" } }

@Suite struct ThreadStateTests {
    @Test func aThreadThatWasThereRanUntilItsFirstSwitch() throws {
        let all = try states {
            $0.switches([
                (start + 100, 4711, waits), (start + 300, 4711, runs), (start + 400, 4711, preempted), (start + 450, 4711, runs),
            ])
        }
        #expect(all.map { $0.title } == ["demo/4711"])
        #expect(text(all[0]) == ["running 100", "waiting 200", "running 100", "runnable 50", "running 550"])
    }

    @Test func aThreadThatBeginsWaitsForACPUFirst() throws {
        let all = try states {
            $0.switches([(start + 230, 4712, runs), (start + 260, 4712, waits), (start + 290, 4712, runs)])
            $0.task(TRACE_TASK_BEGAN, 4712, at: start + 200, by: 4711)
            $0.task(TRACE_TASK_NAMED, 4712, at: start + 240, name: "loader")
            $0.task(TRACE_TASK_ENDED, 4712, at: start + 300)
        }
        #expect(all.map { $0.title } == ["demo/4711", "loader/4712"])
        #expect(text(all[1]) == ["runnable 30", "running 30", "waiting 30", "running 10"])
        #expect(all[1].hasEnded && all[1].thread == nil)
        // The first has made a call, and nobody has taken its CPU.
        #expect(text(all[0]) == ["running 1000"])
    }

    @Test func whetherAThreadRanIsUnknownWhereItsSwitchesMayBeLostOrItMadeNoCall() throws {
        #expect(text(try states(lost: 1) { _ in }[0]) == ["unknown 1000"])
        let named = try states { $0.task(TRACE_TASK_NAMED, 4712, at: start + 240, name: "silent") }
        #expect(text(named[1]) == ["unknown 1000"])
    }

    @Test func aThreadIsCalledAsTheOneThatBeganIt() throws {
        let all = try states {
            $0.task(TRACE_TASK_NAMED, 4711, at: start + 5, name: "early")
            $0.task(TRACE_TASK_BEGAN, 4712, at: start + 200, by: 4711)
            $0.task(TRACE_TASK_NAMED, 4711, at: start + 300, name: "late")
            $0.task(TRACE_TASK_BEGAN, 4713, at: start + 400, by: 4711)
        }
        #expect(all.dropFirst().map { $0.title } == ["early/4712", "late/4713"])
    }

    @Test func aThreadIdThatIsUsedAgainIsAnotherThread() throws {
        let all = try states {
            $0.task(TRACE_TASK_BEGAN, 4712, at: start + 100, by: 4711)
            $0.switches([(start + 110, 4712, runs)])
            $0.task(TRACE_TASK_ENDED, 4712, at: start + 200)
            $0.task(TRACE_TASK_BEGAN, 4712, at: start + 500, by: 4711)
            $0.switches([(start + 530, 4712, runs), (start + 540, 4712, waits)])
        }
        #expect(all.map { $0.tid } == [4711, 4712, 4712])
        #expect(text(all[1]) == ["runnable 10", "running 90"] && text(all[2]) == ["runnable 30", "running 10", "waiting 460"])
    }

    @Test func whatALostRecordHidesIsUnknown() throws {
        let all = try states(lost: 1) {
            $0.switches([
                (start + 100, 4711, waits), (start + 200, 4711, waits), (start + 300, 4711, runs), (start + 400, 4711, runs),
                (start + 500, 4711, waits),
            ])
        }
        #expect(text(all[0]) == ["unknown 100", "unknown 100", "waiting 100", "unknown 100", "running 100", "unknown 500"])
    }

    @Test func aWindowCutsStates() throws {
        let all = try states { $0.switches([(start + 100, 4711, waits), (start + 300, 4711, runs)]) }
        let window = TimeWindow([start + 50..<start + 150, start + 290..<start + 310])
        #expect(all[0].time(.running, in: window) == 60 && all[0].time(.waiting, in: window) == 60)
        #expect(all[0].time(.runnable, in: window) == 0)
    }
}
