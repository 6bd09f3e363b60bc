import CTraceLayout
import Foundation
import Presentation
import Testing
import TraceAnalysis
import TraceTesting

private let loop: UInt32 = 1, epoll: UInt32 = 2, poll: UInt32 = 3, wait: UInt32 = 4, signal: UInt32 = 5, lock: UInt32 = 6
private let unlock: UInt32 = 7, sleep: UInt32 = 8, recv: UInt32 = 9, join: UInt32 = 10, write: UInt32 = 11, barrier: UInt32 = 12
private let work: UInt64 = 0x77, result: UInt64 = 0x88

/// A call in which its thread is off-CPU but for 10 ns at either end.
private func waiting(_ function: UInt32, _ from: Int, _ to: Int, object: UInt64? = nil) -> Step {
    .call(function, from, to, object: object)
}

/// Threads 4711 (main), 4712 and so on of a program that ends at `end`; a call that waits and reaches the end never returns.
private func program(_ threads: [[Step]], until end: Int = 20_000, _ body: (inout TraceBuilder) -> Void = { _ in }) -> TraceBuilder {
    var builder = TraceBuilder()
    builder.module(0, "/usr/lib/libdemo.so.1")
    let names = [
        "loop", "epoll_wait", "poll", "pthread_cond_wait", "pthread_cond_signal", "pthread_mutex_lock", "pthread_mutex_unlock", "usleep",
        "recv", "pthread_join", "write", "pthread_barrier_wait",
    ]
    for (index, name) in names.enumerated() { builder.function(UInt32(index + 1), name) }
    let isWaiting = Set([epoll, poll, wait, lock, sleep, recv, join, barrier])
    func switches(_ steps: [Step], _ tid: UInt32) {
        for step in steps {
            guard case .call(let function, let from, let to, let inner, _, _) = step else { continue }
            switches(inner, tid)
            guard isWaiting.contains(function), to - from > 100 else { continue }
            let out = (start + UInt64(from) + 10, tid, TRACE_SWITCH_WAITS)
            builder.switches(to < end ? [out, (start + UInt64(to) - 10, tid, TRACE_SWITCH_IN)] : [out])
        }
    }
    func ended(_ steps: [Step]) -> [Step] {
        steps.flatMap { step -> [Step] in
            guard case .call(let function, let from, let to, let inner, let site, let object) = step, to >= end else { return [step] }
            return [.enter(function, from, site: site, object: object)] + ended(inner)
        }
    }
    for (index, steps) in threads.enumerated() {
        builder.steps(builder.thread(index == 0 ? "main" : "worker"), ended(steps))
        switches(steps, 4711 + UInt32(index))
    }
    body(&builder)
    builder.kernel(from: start, until: start + UInt64(end))
    return builder
}

/// The idle waits, as "4712 pthread_cond_wait 1000": the thread, the call, and when that began.
private func idle(_ builder: TraceBuilder) throws -> [String] {
    var searches = [WaitSearch(try Loaded(builder.bytes()).trace, workers: 1)]
    WaitSearch.findWakers(&searches)
    WaitSearch.findIdle(&searches)
    let found = searches[0]
    return found.waits.filter(\.isIdle).map {
        "\(found.threads[$0.thread].tid) \(found.name($0.call.row) ?? "-") \($0.begin - start - 10)"
    }
}

private let events: [Step] = [waiting(epoll, 1000, 1900), waiting(epoll, 2000, 2900), waiting(epoll, 3000, 3900)]

@Suite struct IdleWaitTests {
    @Test func anEventLoopIsIdleOnceTheProgramIsReady() throws {
        #expect(try idle(program([events])) == ["4711 epoll_wait 1000", "4711 epoll_wait 2000", "4711 epoll_wait 3000"])
        func started(_ body: (inout TraceBuilder) -> Void) throws -> [String] {
            try idle(
                program([events]) {
                    $0.phase(TRACE_PHASE_AGENT, TraceBuilder.usage(at: start))
                    body(&$0)
                })
        }
        #expect(try started { $0.ready(TRACE_READY_MARK, at: start + 1950) } == ["4711 epoll_wait 2000", "4711 epoll_wait 3000"])
        // A program that is never ready may be what somebody waits for.
        #expect(try started { _ in }.isEmpty)
        // Twice is no loop.
        #expect(try idle(program([Array(events.prefix(2))])).isEmpty)
    }

    @Test func aPoolIsIdleBetweenItsTasks() throws {
        let tasks: [Step] = [
            waiting(wait, 1000, 1900, object: work), waiting(wait, 2000, 2900, object: work), waiting(wait, 3000, 3900, object: work),
        ]
        let main: [Step] = [1880, 2880, 3880].map { .call(signal, $0, $0 + 5, object: work) }
        let idleOnes = ["4712 pthread_cond_wait 1000", "4712 pthread_cond_wait 2000", "4712 pthread_cond_wait 3000"]
        #expect(try idle(program([main, tasks])) == idleOnes)
        // One that never gets a task is idle until the end.
        let unused: [Step] = [waiting(wait, 500, 20_000, object: work)]
        #expect(try idle(program([main, tasks, unused])) == idleOnes + ["4713 pthread_cond_wait 500"])
        #expect(try idle(program([main, unused])) == ["4712 pthread_cond_wait 500"])
        // An event loop that has others work waits for nobody, and nor does anybody for it.
        let dispatcher: [Step] = events + [.call(signal, 4880, 4885, object: work)]
        let worker: [Step] = [(500, 4900), (5000, 5900), (6000, 20_000)].map { waiting(wait, $0, $1, object: work) }
        #expect(
            try idle(program([dispatcher, worker])) == [
                "4711 epoll_wait 1000", "4711 epoll_wait 2000", "4711 epoll_wait 3000",
                "4712 pthread_cond_wait 500", "4712 pthread_cond_wait 5000", "4712 pthread_cond_wait 6000",
            ])
        // A meeting of threads is no work.
        let meetings: [Step] = [1000, 2000, 3000].map { waiting(barrier, $0, $0 + 900, object: 0x99) }
        #expect(try idle(program([[], meetings])).isEmpty)
    }

    /// The worker gets something to do at 4,900, waits again from 5,500 until 8,000 for nobody knows what, and lets main go on at 8,900.
    @Test func mainAndTheWorkerThatItWaitsForAreNotIdle() throws {
        let worker: [Step] = [
            waiting(wait, 1000, 1900, object: work), waiting(wait, 2000, 4950, object: work), waiting(wait, 5500, 8000, object: 0x99),
            .call(signal, 8900, 8905, object: result), waiting(wait, 9000, 20_000, object: work),
        ]
        let main: [Step] = [
            .call(signal, 4900, 4905, object: work), waiting(wait, 5000, 8950, object: result),
            waiting(wait, 10_000, 11_000, object: result),
            waiting(wait, 12_000, 13_000, object: result),
        ]
        #expect(
            try idle(program([main, worker])) == [
                "4712 pthread_cond_wait 1000", "4712 pthread_cond_wait 2000", "4712 pthread_cond_wait 9000",
            ])
        // Nor is it while main waits for its end.
        let joined = program([[waiting(join, 500, 15_000)], Array(worker.prefix(2)) + [waiting(wait, 5500, 8000, object: 0x99)]]) {
            $0.threadEnd(1, at: start + 14_900)
            $0.task(TRACE_TASK_ENDED, 4712, at: start + 14_950)
        }
        #expect(try idle(joined).isEmpty)
    }

    @Test func aThreadIsNotIdleWhileItHoldsWhatAnotherWaitsFor() throws {
        let timer: [Step] = [
            waiting(sleep, 1000, 1900), .call(lock, 1950, 1960, object: 0xa0), waiting(sleep, 2000, 2900),
            .call(unlock, 2950, 2960, object: 0xa0), waiting(sleep, 3000, 3900),
        ]
        #expect(try idle(program([[], timer])) == ["4712 usleep 1000", "4712 usleep 2000", "4712 usleep 3000"])
        let user: [Step] = [waiting(lock, 2200, 2980, object: 0xa0), .call(unlock, 2990, 2995, object: 0xa0)]
        #expect(try idle(program([[], timer, user])) == ["4712 usleep 1000", "4712 usleep 3000"])
        // For less than half of its wait, and 1 ms.
        let late: [Step] = [waiting(lock, 2700, 2980, object: 0xa0), .call(unlock, 2990, 2995, object: 0xa0)]
        #expect(try idle(program([[], timer, late])) == ["4712 usleep 1000", "4712 usleep 2000", "4712 usleep 3000"])
    }

    @Test func aSleepThatAThreadDoesNotComeBackToIsNoTimer() throws {
        let task: [Step] = [waiting(sleep, 1000, 1900)]
        #expect(try idle(program([[], task, task, task], until: 2_000_000)).isEmpty)
        // It is told to end within 1 ms.
        #expect(try idle(program([[], task])) == ["4712 usleep 1000"])
        // It waits for messages, too, so that a sleep is part of what they have it do.
        let messages: [Step] = [1000, 2000, 3000, 4000].flatMap { [waiting(recv, $0, $0 + 400), waiting(sleep, $0 + 500, $0 + 900)] }
        #expect(try idle(program([[], messages])).isEmpty)
    }

    @Test func aConditionThatItsWaitersSignalIsALock() throws {
        let turns: [[Step]] = (0...1).map { turn in
            (0..<4).flatMap { round -> [Step] in
                let at = 1000 + round * 2000 + turn * 1000
                return [waiting(wait, at, at + 950, object: work), .call(signal, at + 1930, at + 1935, object: work)]
            }
        }
        #expect(try idle(program([[]] + turns)).isEmpty)
    }

    @Test func anAnswerThatAThreadWaitsForIsNoWork() throws {
        let rounds = [1000, 2000, 3000, 4000]
        // Both in one function: which is the work is not known.
        let beside: [Step] = rounds.flatMap { [waiting(recv, $0, $0 + 400), waiting(wait, $0 + 500, $0 + 900, object: result)] }
        #expect(try idle(program([[], beside])).isEmpty)
        // An event loop that asks somebody within.
        let within: [Step] = rounds.flatMap { at -> [Step] in
            [waiting(epoll, at, at + 400), .call(loop, at + 450, at + 950, [waiting(poll, at + 500, at + 900)])]
        }
        #expect(try idle(program([[], within])) == rounds.map { "4712 epoll_wait \($0)" })
    }

    @Test func mainIsNotIdleWhileItPollsForItsOwnThread() throws {
        let polls: [Step] = [1000, 2000, 3000].map { waiting(poll, $0, $0 + 900) }
        func pipes(_ written: [Int]) -> TraceBuilder {
            let writer: [Step] = written.map { .call(write, $0, $0 + 5, object: 4) }
            return program([polls, writer]) {
                $0.header.session = 1
                $0.opened(3, at: start + 500, "pipe:[9]", key: TRACE_ACCESS_READ | TRACE_OPENED_PIPE, pair: 4)
                $0.opened(4, at: start + 500, "pipe:[9]", key: TRACE_ACCESS_WRITE | TRACE_OPENED_PIPE, pair: 3)
                for at in [1500, 2500, 3500] as [UInt64] { $0.polled(4711, 3, at: start + at, access: TRACE_ACCESS_READ, "pipe:[9]") }
            }
        }
        #expect(try idle(pipes([])).count == 3)
        #expect(try idle(pipes([2850])) == ["4711 poll 1000", "4711 poll 3000"])
        #expect(try idle(pipes([1850, 2850])).isEmpty)
    }

    @Test func idleThreadsAreOneLineAndInNoTable() throws {
        let pool: [Step] = [1000, 2000, 3000].map { waiting(wait, $0, $0 + 900, object: work) }
        let trace = try Loaded(program([[waiting(lock, 1000, 9000, object: 0xa0)], pool, pool]).bytes()).trace
        func lines(withIdle: Bool) -> [String] {
            WaitReport([trace], WaitChoice(withIdle: withIdle), workers: 1).lines(limit: 0, width: nil, names: .usual, style: plain)
        }
        let text = "idle: worker/4712, worker/4713 5.280 us in pthread_cond_wait"
        #expect(lines(withIdle: false).prefix(2) == ["demo: 1 wait, 7.980 us", text])
        #expect(!lines(withIdle: false).dropFirst(2).contains { $0.contains("pthread_cond_wait") })
        #expect(lines(withIdle: true).prefix(2) == ["demo: 7 waits, 13.260 us", text])
        #expect(lines(withIdle: true).dropFirst(2).contains { $0.contains("pthread_cond_wait") })
        let json = try jsonObject(WaitOutput(WaitReport([trace], workers: 1), limit: 0).json.text())
        #expect((json["waits"] as? [[String: Any]])?.map { $0["is_idle"] as? Bool } == [false] + [Bool](repeating: true, count: 6))
        let rows = try #require(json["idle"] as? [[String: Any]])
        #expect(
            rows.map { $0["tid"] as? Int } == [4712, 4713]
                && rows.allSatisfy { $0["waits"] as? Int == 3 && $0["duration_ns"] as? Int == 2640 })
        #expect((json["totals"] as? [String: Any])?.keys.sorted() == ["lock"])
    }
}
