import CTraceLayout
import Presentation
import Symbols
import Testing
import TraceAnalysis
import TraceTesting

private let runs = TRACE_SWITCH_IN, waits = TRACE_SWITCH_WAITS, preempted = TRACE_SWITCH_PREEMPTED
private let mutex: UInt64 = 0x559c_0010

extension TraceBuilder {
    /// Adds switches of a thread that loses its CPU and gets one again.
    fileprivate mutating func off(_ times: [(from: UInt64, to: UInt64)], _ tid: UInt32 = 4711, _ kind: Int = waits) {
        for time in times { switches([(start + time.from, tid, kind), (start + time.to, tid, runs)]) }
    }
}

/// Two threads, 4711 and 4712, of a program that locks, and `names` of further functions from 20 on. The main thread waits when it is
/// `off` its CPU.
private func machine(
    kernel: Bool = true, _ names: [String] = [], main: [Step] = [], other: [Step] = [],
    off: [(from: UInt64, to: UInt64)] = [], _ body: (inout TraceBuilder, _ main: Int, _ other: Int) -> Void = { _, _, _ in }
) -> TraceBuilder {
    var builder = TraceBuilder()
    builder.header.session = 1
    builder.module(0, "/usr/lib/libdemo.so.1")
    let functions: [(UInt32, String)] = [
        (1, "main"), (2, "parse"), (10, "pthread_mutex_lock"), (11, "pthread_mutex_unlock"), (12, "pthread_cond_wait"),
        (13, "pthread_cond_signal"), (14, "usleep"), (15, "pthread_join"), (16, "read"), (17, "pthread_mutex_trylock"), (18, "sem_wait"),
        (19, "sem_post"),
    ]
    for (id, name) in functions + names.enumerated().map({ (UInt32(20 + $0.offset), $0.element) }) { builder.function(id, name) }
    let mainThread = builder.thread("main"), otherThread = builder.thread("settings")
    builder.steps(otherThread, other)
    builder.steps(mainThread, main)
    builder.off(off)
    body(&builder, mainThread, otherThread)
    if kernel { builder.kernel(from: start, until: start + 20_000_000) }
    return builder
}

private func search(_ builder: TraceBuilder, workers: Int = 1) throws -> WaitSearch {
    WaitSearch(try Loaded(builder.bytes()).trace, workers: workers)
}

/// Searches in the traces of one run, in the order of the processes given.
private func searches(_ builders: [TraceBuilder]) throws -> [WaitSearch] {
    let files = builders.map { TemporaryFile($0.bytes()) }
    let traces = try withExtendedLifetime(files) { try TraceRun(path: "run", files: files.map(\.path)).open() }
    return try builders.map { builder in
        WaitSearch(try #require(traces.first { $0.header.pid == builder.header.pid }), workers: 1)
    }
}

/// Thread 4712 has the lock in parse from 1,000 on, and lets go of it at 5,000; thread 4711 wants it at 2,000. What they do meanwhile
/// may be added.
private func contended(
    main: [Step] = [], other: [Step] = [], _ body: (inout TraceBuilder) -> Void = { _ in }
) -> TraceBuilder {
    let waiting: [Step] = [.enter(1, 600), .enter(10, 2000, object: mutex)]
    let before: [Step] = [.call(10, 950, 1000, object: mutex)], after: [Step] = [.call(11, 5000, 5100, object: mutex)]
    return machine(
        main: waiting + main + [.exit(10, 5300), .call(11, 5400, 5500, object: mutex), .exit(1, 9900)],
        other: [.call(2, 500, 9000, before + other + after)], off: [(2100, 5200)]
    ) { builder, _, _ in body(&builder) }
}

extension Wait {
    /// The function by which another process ended it, and how long after that the thread ran.
    fileprivate var otherWaker: String? { otherProcess.map { "\($0.function ?? "-") \($0.late.count)" } }
}

@Suite struct WaitTests {
    @Test func whatACallWasOpenForWhenRecordingStoppedIsNotWhatIsWaitedForLater() throws {
        var builder = machine(main: [.enter(16, 600)], off: [(700, 900), (60_000, 70_000)])
        builder.header.state = UInt32(TRACE_STOPPED)
        builder.header.stopped_ticks = start + 1000
        let found = try search(builder)
        #expect(found.waits.map { $0.kind } == [.other, .other])
        #expect(found.waits.map { found.name($0.call.row) } == ["read", nil])
    }

    /// All functions of libc.so.6 are recorded: a mutex waits in `__lll_lock_wait`, waitpid in wait4.
    @Test(arguments: [1, 3]) func aCallThatWaitsInAnotherOfItsLibraryIsTheOneThatIsShown(workers: Int) throws {
        let found = try search(
            machine(
                main: [
                    .call(30, 600, 1700, [.call(31, 610, 1610)], object: mutex),
                    .call(32, 2600, 3700, [.call(33, 2610, 3610, object: 77)], object: 77),
                    .call(34, 4600, 5700, [.call(35, 4610, 5610)]), // what is done once is the program's, and not recorded
                    .call(36, 6600, 7700, [.call(37, 6610, 7610)]), // in a signal handler
                ], off: [(620, 1600), (2620, 3600), (4620, 5600), (6620, 7600)]
            ) { builder, _, _ in
                builder.module(1, "/usr/lib/libc.so.6")
                for (id, name) in [
                    (30, "pthread_mutex_lock"), (31, "__lll_lock_wait"), (32, "waitpid"), (33, "wait4"), (34, "pthread_once"),
                    (35, "malloc"), (36, "select"), (37, "epoll_wait"),
                ] {
                    builder.function(UInt32(id), name, module: 1)
                }
            }, workers: workers)
        #expect(found.waits.map { found.name($0.call.row) } == ["pthread_mutex_lock", "waitpid", "malloc", "epoll_wait"])
        #expect(found.waits.map { $0.kind } == [.lock, .child, .other, .event])
        #expect(found.waits.map { $0.object } == ["0x559c0010", "process 77", nil, nil])
    }

    @Test(arguments: [1, 3]) func aWaitForALockHasItsHolderAndWhoWokeIt(workers: Int) throws {
        let found = try search(contended(), workers: workers)
        let wait = try #require(found.waits.count == 1 ? found.waits[0] : nil)
        #expect(wait.kind == .lock && wait.begin == start + 2100 && wait.duration == 3100 && wait.object == "0x559c0010")
        #expect(found.name(wait.call.row) == "pthread_mutex_lock" && found.name(wait.call.parent) == "main")
        let holder = try #require(wait.holder)
        #expect(found.threads[holder.thread].tid == 4712 && holder.since == start + 1000 && found.name(holder.inside.row) == "parse")
        let waker = try #require(wait.waker)
        #expect(found.threads[waker.thread].tid == 4712 && found.name(waker.act.row) == "pthread_mutex_unlock" && waker.late == 200)
    }

    @Test func chunksThatAreReadAloneTellTheSame() throws {
        let whole = try search(contended()).waits[0]
        let parts = contended(main: [.split], other: [.split])
        for workers in [1, 2, 4] {
            let wait = try #require(try search(parts, workers: workers).waits.first)
            #expect(wait.object == whole.object && wait.holder?.since == whole.holder?.since && wait.waker?.late == whole.waker?.late)
        }
    }

    @Test func whoHoldsAndWaitsItselfIsAChain() throws {
        let builder = contended(other: [.call(14, 2200, 4200)]) {
            $0.off([(1100, 2150)], 4712, preempted)
            $0.off([(2300, 4100)], 4712)
        }
        let found = try search(builder), index = try #require(found.waits.firstIndex { $0.kind == .lock })
        let chain = WaitChain(of: index, in: found)
        #expect(chain.links.count == 1 && !chain.isCircular && chain.preempted == 50)
        #expect(found.waits[chain.links[0].wait].kind == .sleep && chain.links[0].duration == 1800)
        // The holder is placed in `parse`, not in the call in which it waits itself.
        #expect(found.waits[index].holder.map { found.name($0.inside.row) } == "parse")
    }

    /// Each of the two threads holds what the other waits for.
    private func crossed(lets go: Bool) throws -> WaitChain {
        let released: [Step] = go ? [.call(11, 1400, 1450, object: 0xb0)] : []
        let builder = machine(
            main: [.call(10, 100, 200, object: 0xa0), .enter(10, 1000, object: 0xb0)],
            other: [.call(10, 100, 200, object: 0xb0)] + released + [.enter(10, 1500, object: 0xa0)]
        ) { builder, _, _ in builder.switches([(start + 1100, 4711, waits), (start + 1600, 4712, waits)]) }
        let found = try search(builder)
        return WaitChain(of: try #require(found.waits.indices.first { found.threads[found.waits[$0].thread].tid == 4711 }), in: found)
    }

    @Test func whoWaitForEachOtherDoSoAtOneMoment() throws {
        #expect(try crossed(lets: false).isCircular && crossed(lets: false).links.count == 1)
        // A thread that has released its lock delays nobody by its own wait.
        #expect(try !crossed(lets: true).isCircular && crossed(lets: true).links.isEmpty)
    }

    @Test func aPageThatWasNotInMemoryHasItsFileAndItsWait() throws {
        let builder = machine(main: [.call(2, 1000, 9000)], off: [(2000, 5000)]) { builder, _, _ in
            builder.pageFault(4711, at: start + 5005, address: 0x5000_0123, "/usr/lib/libdemo.so.1", offset: 4096)
            builder.pageFault(4711, at: start + 6000, kind: TRACE_FAULT_MINOR)
        }
        let found = try search(builder), pages = found.pageWaits(Symbolizer())
        #expect(pages.count == 1 && pages[0].duration == 3000 && pages[0].offset == 4096 && pages[0].path == "/usr/lib/libdemo.so.1")
        let totals = PageTotals.all(pages, process: 0)
        #expect(totals.count == 1 && totals[0].count == 1 && totals[0].duration == 3000)
    }

    @Test func aPageOfTheAgentsIsNoWaitOfTheProgram() throws {
        let builder = machine(main: [.call(2, 1000, 9000)], off: [(2000, 5000)]) { builder, _, _ in
            builder.pageFault(4711, at: start + 5005, "/usr/lib/libtracer.so", offset: 4096)
        }
        let found = try search(builder)
        #expect(found.waits.isEmpty && found.agentsWaits == (1, 3000))
        #expect(WaitSearch.notes([found]) == ["not shown: 1 wait for the agent, 3.000 us"])
    }

    @Test func minorFaultsAreCountedByFileAndAreNoWaits() throws {
        let builder = machine(main: [.call(2, 1000, 9000)], other: [.call(2, 1000, 9000)], off: [(2000, 5000)]) { builder, _, _ in
            for n in 0..<5 { builder.pageFault(4711, at: start + 6000 + UInt64(n), kind: TRACE_FAULT_MINOR, "/usr/lib/b.so", offset: 4096) }
            builder.pageFault(4712, at: start + 7000, kind: TRACE_FAULT_MINOR)
            builder.pageFault(4711, at: start + 7000, kind: TRACE_FAULT_MINOR, "/usr/lib/libtracer.so")
            builder.pageFault(4711, at: start + 8000, "/usr/lib/b.so")
        }
        let found = try search(builder)
        let totals = PageTotals.all(found.minorFaults(), process: 0)
        #expect(totals.map { [$0.path, String($0.count), String($0.duration)] } == [["/usr/lib/b.so", "5", "0"], ["", "1", "0"]])
    }

    @Test func wakeUpsWithinOneCallAreOneWait() throws {
        let builder = machine(
            main: [.enter(12, 100, object: 0x77), .exit(12, 4000)], other: [.call(13, 3000, 3100, object: 0x77)],
            off: [(200, 1000), (1100, 3050)])
        let found = try search(builder)
        let wait = try #require(found.waits.first)
        #expect(found.waits.count == 1 && wait.kind == .condition && wait.count == 2 && wait.duration == 800 + 1950)
        #expect(wait.holder == nil && wait.waker?.late == 50 && wait.end == start + 3050)
    }

    @Test func whoWaitsForAConditionHoldsNothing() throws {
        let builder = machine(
            main: [.enter(10, 1000, object: mutex), .exit(10, 2000)],
            other: [
                .call(10, 100, 200, object: mutex), .enter(12, 300, object: 0x77), .exit(12, 8000), .call(11, 9000, 9100, object: mutex),
            ], off: [(1100, 1900)])
        let wait = try #require(try search(builder).waits.first)
        #expect(wait.kind == .lock && wait.holder == nil && wait.waker == nil)
    }

    @Test func whoTriesIsAHolderOnlyWhenItLetsGo() throws {
        func holder(unlocks: Bool) throws -> Wait.Holder? {
            let unlock: [Step] = unlocks ? [.call(11, 1500, 1600, object: mutex)] : []
            let builder = machine(
                main: [.enter(10, 1000, object: mutex), .exit(10, 2000)], other: [.call(17, 100, 200, object: mutex)] + unlock,
                off: [(1100, 1900)])
            return try #require(try search(builder).waits.first).holder
        }
        #expect(try holder(unlocks: true)?.since == start + 200)
        #expect(try holder(unlocks: false) == nil)
    }

    /// Pairs of calls that take the lock and release it while nobody waits for it.
    private func pairs(_ times: StrideTo<Int>, split: Bool = true) -> [Step] {
        times.flatMap { [.call(10, $0, $0 + 2, object: mutex), .call(11, $0 + 5, $0 + 7, object: mutex)] + (split ? [Step.split] : []) }
    }

    @Test(arguments: [1, 3], [false, true]) func whatIsDoneWithALockWhileNobodyWaitsChangesNothing(workers: Int, split: Bool) throws {
        let few = try search(contended(), workers: workers).waits[0]
        var builder = contended()
        builder.steps(0, pairs(stride(from: 10_000, to: 12_000, by: 10), split: split))
        builder.steps(1, pairs(stride(from: 12_000, to: 14_000, by: 10), split: split))
        let many = try #require(try search(builder, workers: workers).waits.first)
        #expect(many.holder != nil && many.holder?.since == few.holder?.since && many.holder?.thread == few.holder?.thread)
        #expect(many.waker != nil && many.waker?.at == few.waker?.at && many.waker?.late == few.waker?.late)
    }

    /// Thread 4712 has taken the lock, and its release was not recorded. Before the main thread waits, a third thread has had the lock.
    @Test(arguments: [1, 3]) func aHoldHasEndedWhenAnotherThreadHadTheLockUnawaited(workers: Int) throws {
        let builder = machine(
            main: [.enter(10, 9000, object: mutex), .exit(10, 9500)],
            other: [.call(10, 2050, 2060, object: mutex)], off: [(9100, 9400)]
        ) { builder, _, _ in
            let third = builder.thread("third")
            builder.steps(third, self.pairs(stride(from: 1000, to: 5000, by: 100), split: false))
        }
        let wait = try #require(try search(builder, workers: workers).waits.first)
        #expect(wait.kind == .lock && wait.holder == nil)
    }

    /// Within a hold its own thread takes the lock again and again.
    @Test(arguments: [1, 3]) func aRecursiveLockIsHeldUntilItsLastRelease(workers: Int) throws {
        let builder = machine(
            main: [.enter(10, 9000, object: mutex), .exit(10, 9900)],
            other: [.call(10, 100, 200, object: mutex)] + pairs(stride(from: 1000, to: 5000, by: 100), split: false)
                + [.call(11, 9500, 9600, object: mutex)], off: [(9100, 9800)])
        let wait = try #require(try search(builder, workers: workers).waits.first)
        #expect(wait.holder?.since == start + 200 && wait.waker?.late == 300)
    }

    @Test func aSemaphoreIsHeldByWhoPostsItAgain() throws {
        let builder = machine(
            main: [.enter(18, 1000, object: mutex), .exit(18, 2000)],
            other: [.call(18, 100, 200, object: mutex), .call(19, 1500, 1600, object: mutex)], off: [(1100, 1900)])
        let found = try search(builder), wait = try #require(found.waits.first)
        #expect(wait.kind == .condition && wait.holder?.since == start + 200 && wait.waker?.late == 400)
    }

    @Test func theThreadThatEndedIsWhomAJoinWaitedFor() throws {
        let builder = machine(
            main: [.enter(15, 1000, object: 0x7f00), .exit(15, 3100)], other: [.call(2, 10, 20)], off: [(1100, 3000)]
        ) { builder, _, other in
            builder.threadEnd(other, at: start + 2900)
            builder.task(TRACE_TASK_ENDED, 4712, at: start + 3050)
        }
        let found = try search(builder), wait = try #require(found.waits.first)
        #expect(wait.kind == .join && wait.waker.map { found.threads[$0.thread].tid } == 4712 && wait.waker?.late == 100)
    }

    /// Thread 4711 waits by futex(2); 4712 and perhaps a third thread make the same call on the same word.
    @Test func whoCalledFutexOnTheSameWordWokeWhoWaitedForIt() throws {
        func found(other: UInt64? = mutex, third: Int? = nil, thirdWaits: Bool = false) throws -> (Wait, tid: UInt32?) {
            let builder = machine(
                ["syscall"], main: [.enter(20, 1000, object: mutex), .exit(20, 5300)], other: [.call(20, 5000, 5100, object: other)],
                off: [(1100, 5200)]
            ) { builder, _, _ in
                guard let third else { return }
                builder.steps(builder.thread("third"), [.enter(20, third, object: mutex), .exit(20, thirdWaits ? 9000 : 5150)])
                if thirdWaits { builder.off([(UInt64(third) + 10, 8900)], 4713) }
            }
            let search = try search(builder)
            let wait = try #require(search.waits.first { search.threads[$0.thread].tid == 4711 })
            return (wait, wait.waker.map { search.threads[$0.thread].tid })
        }
        let alone = try found()
        #expect(
            alone.0.kind == .lock && alone.0.object == "0x" + String(mutex, radix: 16) && alone.tid == 4712 && alone.0.waker?.late == 200)
        // Another system call of that thread, which has no argument in the trace.
        #expect(try found(other: nil).tid == nil)
        // With two candidates the waker is unknown, unless one of them waits itself.
        #expect(try found(third: 4900).tid == nil)
        #expect(try found(third: 4900, thirdWaits: true).tid == 4712)
        #expect(try found(third: 5050, thirdWaits: true).tid == 4712)
    }

    @Test func aFutexIsForAConditionWhereTheCallThatMakesItIs() throws {
        func kind(in outer: String) throws -> WaitKind? {
            let builder = machine(
                ["syscall", outer], main: [.enter(21, 900), .enter(20, 1000, object: mutex), .exit(20, 5300), .exit(21, 5400)],
                off: [(1100, 5200)])
            return try search(builder).waits.first?.kind
        }
        #expect(try kind(in: "dispatch_group_wait") == .condition)
        // The initializer's.
        #expect(try kind(in: "pthread_once") == .lock)
    }

    /// The call around it that waits is the one that is shown, with the word; who called futex on the same word woke it.
    @Test(arguments: [1, 3]) func aFutexCallIsExplainedByTheCallAroundIt(workers: Int) throws {
        let found = try search(
            machine(
                ["syscall", "g_cond_wait", "inner"],
                main: [
                    .enter(21, 900), .enter(22, 950), .enter(20, 1000, object: mutex), .exit(20, 5300), .exit(22, 5310), .exit(21, 5400),
                ], other: [.call(20, 5000, 5100, object: mutex + 64)], off: [(1100, 5200)]
            ) { builder, _, _ in builder.steps(builder.thread("third"), [.call(20, 2000, 2100, object: mutex)]) }, workers: workers)
        let wait = try #require(found.waits.first)
        #expect(found.name(wait.call.row) == "g_cond_wait" && wait.kind == .condition && wait.object == "0x559c0010")
        #expect(wait.waker.map { found.threads[$0.thread].tid } == 4713 && wait.holder == nil)
    }

    /// Swift's has its lock behind its flag. A word elsewhere is what the code that is run once waits for.
    @Test(arguments: [UInt64(8), 0x1000]) func aFutexCallIsOfWhatRunsSomethingOnceOnlyWithinItsObject(offset: UInt64) throws {
        let builder = machine(
            ["syscall", "swift_once"],
            main: [
                .enter(21, 900, object: mutex), .enter(20, 1000, object: mutex + offset), .exit(20, 5300), .exit(21, 5400),
            ], other: [.call(21, 500, 5100, object: mutex)], off: [(1100, 5200)])
        let found = try search(builder), wait = try #require(found.waits.first)
        #expect(found.name(wait.call.row) == (offset == 8 ? "swift_once" : "syscall") && wait.kind == .lock)
        #expect(wait.holder?.since == (offset == 8 ? start + 500 : nil))
    }

    /// Thread 4712 has got the guard and initializes; its release makes a futex call on the same word.
    @Test func whoInitializesAVariableHoldsItsGuard() throws {
        let names = ["syscall", "__cxa_guard_acquire", "__cxa_guard_release"]
        func found(third: [Step] = []) throws -> WaitSearch {
            try search(
                machine(
                    names,
                    main: [.enter(21, 900, object: mutex), .enter(20, 1000, object: mutex), .exit(20, 5300), .exit(21, 5400)],
                    other: [
                        .call(21, 500, 600, object: mutex), .call(2, 610, 4900),
                        .call(22, 5000, 5200, [.call(20, 5050, 5100, object: mutex)], object: mutex),
                    ], off: [(1100, 5250)]
                ) { builder, _, _ in builder.steps(builder.thread("third"), third) })
        }
        // A third that waits too has released nothing.
        for third in [[], [Step.call(21, 1000, 6000, [.call(20, 1010, 5900, object: mutex)], object: mutex)]] {
            let found = try found(third: third), wait = try #require(found.waits.first)
            #expect(found.name(wait.call.row) == "__cxa_guard_acquire" && wait.kind == .lock && wait.object == "0x559c0010")
            #expect(wait.holder.map { found.threads[$0.thread].tid } == 4712 && wait.holder?.since == start + 600)
            #expect(wait.holder.map { found.name($0.inside.row) } == "parse")
            #expect(wait.waker.map { found.name($0.act.row) } == "__cxa_guard_release" && wait.waker?.late == 250)
        }
    }

    /// Threads 4711 and perhaps 4713 wait for what 4712 runs.
    @Test func whoRunsSomethingOnceHoldsIt() throws {
        func found(third: Bool = false, thirdWaits: Bool = false, isSplit: Bool = false) throws -> (Wait, tid: UInt32?, Int) {
            let split: [Step] = isSplit ? [.split] : []
            let builder = machine(
                ["pthread_once"], main: [.enter(20, 1000, object: mutex), .exit(20, 5300), .call(20, 5400, 5410, object: mutex)],
                other: [.enter(20, 500, object: mutex), .call(2, 600, 4900)] + split + [.exit(20, 5100)], off: [(1100, 5200)]
            ) { builder, _, _ in
                guard third else { return }
                builder.steps(builder.thread("third"), [.call(20, 900, 5250, object: mutex)])
                if thirdWaits { builder.off([(910, 5240)], 4713) }
            }
            let search = try search(builder, workers: isSplit ? 2 : 1)
            let wait = try #require(search.waits.first { search.threads[$0.thread].tid == 4711 })
            #expect(wait.waker?.thread == wait.holder?.thread)
            return (wait, wait.holder.map { search.threads[$0.thread].tid }, search.waits.count)
        }
        let alone = try found()
        #expect(alone.tid == 4712 && alone.0.kind == .lock && alone.0.holder?.since == start + 500 && alone.0.waker?.late == 100)
        #expect(try found(third: true, thirdWaits: true).tid == 4712)
        #expect(try found(isSplit: true).tid == 4712)
        // Nobody knows which of the two runs it.
        #expect(try found(third: true).tid == nil)
    }

    /// Rust's park has no argument: the word is what the kernel had, and unpark wakes by that.
    @Test func whoWakesTheWordOfAParkedThreadIsItsWaker() throws {
        func waker(of word: UInt64) throws -> String? {
            let builder = machine(
                [
                    "_ZN3std6thread4park17h0123456789abcdefE",
                    "_RNvNtNtNtNtCsjrHSEGnQ3l9_3std3sys3pal4unix5futex10futex_wake",
                ], main: [.enter(20, 1000), .exit(20, 15_100_000)], other: [.call(21, 14_000_000, 14_100_000, object: mutex)],
                off: [(1100, 15_000_000)]
            ) { builder, _, _ in
                builder.foundWaiting(4711, at: start + 10_000_000, systemCall: 202, (word, 0), kernelFunction: "futex_do_wait")
            }
            let found = try search(builder), wait = try #require(found.waits.first)
            #expect(
                wait.kind == .condition && wait.holder == nil && wait.systemCall == nil && wait.object == "0x" + String(word, radix: 16))
            return wait.waker.map { found.threads[$0.thread].name }
        }
        #expect(try waker(of: mutex) == "settings")
        #expect(try waker(of: mutex + 64) == nil)
    }

    /// Others had begun to read the page: a minor fault, and so of no use but for a thread that was found waiting for a page.
    @Test(arguments: [true, false]) func aPageThatOthersReadHasItsFileFromAMinorFault(isFound: Bool) throws {
        let builder = machine(main: [.call(2, 1000, 16_000_000)], off: [(2000, 15_000_000)]) { builder, _, _ in
            if isFound {
                builder.foundWaiting(4711, at: start + 10_000_000, systemCall: -1, (0, 0), kernelFunction: "folio_wait_bit_common")
            }
            builder.pageFault(4711, at: start + 15_000_005, kind: TRACE_FAULT_MINOR, "/usr/lib/b.so")
            builder.pageFault(4711, at: start + 15_000_015, kind: TRACE_FAULT_MINOR, "/usr/lib/c.so")
        }
        let wait = try #require(try search(builder).waits.first)
        #expect(wait.kind == (isFound ? .disk : .other) && wait.object == (isFound ? "/usr/lib/b.so" : nil) && wait.systemCall == nil)
    }

    /// Its page fault is no wait for another thread's run.
    @Test func whoRunsSomethingOnceMayWaitForAPage() throws {
        let builder = machine(["pthread_once"], main: [.call(20, 1000, 6000, object: mutex)], off: [(2000, 5000)]) { builder, _, _ in
            builder.pageFault(4711, at: start + 5005, "/usr/lib/libdemo.so.1")
        }
        let wait = try #require(try search(builder).waits.first)
        #expect(wait.kind == .disk && wait.object == "/usr/lib/libdemo.so.1" && wait.holder == nil)
    }

    @Test func aSystemCallByNumberIsAFutexOnlyWhereItHasAWord() throws {
        let builder = machine(["syscall"], main: [.enter(20, 1000), .exit(20, 5300)], off: [(1100, 5200)])
        let wait = try #require(try search(builder).waits.first)
        #expect(wait.kind == .other && wait.object == nil && wait.waker == nil)
    }

    @Test(arguments: [
        (
            "_RNvMs_NtNtNtNtCs_3std3sys4sync5mutex5futexNtB4_5Mutex14lock_contended", "std::sys::sync::mutex::futex::Mutex::lock_contended",
            WaitKind.lock
        ),
        ("_ZN3std3sys4sync7condvar5futex7Condvar4wait17h0123456789abcdefE", "std::sys::sync::condvar::futex::Condvar::wait", .condition),
        ("_ZN3std6thread4park17h0123456789abcdefE", "std::thread::park", .condition),
    ]) func rustsLibraryIsKnownInTheProgram(symbol: String, name: String, kind: WaitKind) throws {
        var builder = TraceBuilder(program: "/usr/bin/crab")
        builder.module(0, "/usr/bin/crab")
        builder.function(1, symbol)
        builder.function(2, "pthread_mutex_lock") // the program's own
        let table = FunctionNames(try Loaded(builder.bytes()).trace.metadata)
        #expect(WaitingFunction.all(table, of: "crab").map { $0?.kind } == [nil, kind, nil])
    }

    /// Both have ended when the join of one returns, which the call names by its pthread_t.
    @Test(arguments: [UInt64(0), 0x700]) func ofSeveralThreadsThatEndedAJoinWaitedForTheOneThatItNames(offset: UInt64) throws {
        func waker(pointers: [UInt64?]) throws -> UInt32? {
            let builder = machine(
                main: [.enter(15, 1000, object: 0x7f00_0000), .exit(15, 3100)], off: [(1100, 3000)]
            ) { builder, _, other in
                for (thread, pointer) in zip([other, builder.thread("third")], pointers) {
                    builder.threadBegin(thread, at: start + 5, pointer: pointer)
                    builder.complete(thread, 2, from: start + 10, to: start + 20)
                    builder.threadEnd(thread, at: start + 1500 + UInt64(thread))
                }
                builder.task(TRACE_TASK_ENDED, 4712, at: start + 2900)
                builder.task(TRACE_TASK_ENDED, 4713, at: start + 2950)
            }
            let found = try search(builder), wait = try #require(found.waits.first)
            #expect(wait.kind == .join)
            return wait.waker.map { found.threads[$0.thread].tid }
        }
        let this = 0x7f00_0000 + offset, another = 0x7f80_0000 + offset
        #expect(try waker(pointers: [this, another]) == 4712)
        #expect(try waker(pointers: [another, this]) == 4713)
        #expect(try waker(pointers: [nil, this]) == 4713)
        #expect(try waker(pointers: [nil, another]) == 4712)
        #expect(try waker(pointers: [another, another]) == nil)
        #expect(try waker(pointers: [nil, nil]) == nil)
        #expect(try waker(pointers: [this, this]) == nil)
    }

    /// It waits for process 4720 with waitpid, then for any child.
    @Test func theProcessThatEndedIsTheChildThatWasWaitedFor() throws {
        func child(_ pid: UInt32, of parent: UInt32 = 4711, endedAt end: UInt64) throws -> WaitSearch {
            var builder = TraceBuilder(program: "/usr/bin/child", pid: pid)
            builder.header.parent_pid = parent
            builder.module(0, "/usr/lib/libdemo.so.1")
            builder.function(1, "work")
            builder.complete(builder.thread("child"), 1, from: start + 10, to: start + 20)
            builder.kernel(from: start, until: start + 20_000_000)
            builder.task(TRACE_TASK_ENDED, pid, at: end)
            return try search(builder)
        }
        let parent = machine(
            ["waitpid", "wait"], main: [.enter(20, 1000, object: 4720), .exit(20, 3100), .enter(21, 4000), .exit(21, 6100)],
            off: [(1100, 3000), (4100, 6000)])
        func children(_ others: [WaitSearch]) throws -> [Wait.OtherProcess?] {
            var all = [try search(parent)] + others
            WaitSearch.findWakers(&all)
            return all[0].waits.map { $0.otherProcess }
        }
        func ended(_ pid: UInt32, late: UInt64) -> Wait.OtherProcess {
            Wait.OtherProcess(name: "child", pid: pid, tid: pid, begun: start, thread: 0, late: Nanoseconds(late))
        }
        let first = try child(4720, endedAt: start + 2900), other = try child(4730, endedAt: start + 2950)
        let second = try child(4740, endedAt: start + 5990), unrelated = try child(4750, of: 1, endedAt: start + 5000)
        let known = [ended(4720, late: 100), ended(4740, late: 10)]
        #expect(try children([first, other, second, unrelated]) == known)
        // Two have ended in that time: nobody knows which of them it was.
        #expect(try children([first, second, child(4760, endedAt: start + 5000)]) == [known[0], nil])
        #expect(try children([unrelated]) == [nil, nil])
    }

    /// Thread 4711 reads descriptor 3 from 1,000 on, is looked at, and runs at 3,000; what else there is, `body` says.
    private func reader(_ object: String = "pipe:[9]", _ body: (inout TraceBuilder, Int) -> Void = { _, _ in }) -> TraceBuilder {
        machine(
            ["write", "close", "recv", "send"], main: [.enter(16, 1000, object: 3), .exit(16, 3100)], off: [(1100, 3000)]
        ) { builder, _, other in
            body(&builder, other)
            builder.foundWaiting(4711, at: start + 2000, systemCall: 0, (3, 0), kernelFunction: "pipe_read", object: object)
            builder.descriptor(3, at: start + 2001, access: TRACE_ACCESS_READ, object, peer: object.hasPrefix("s") ? "socket:[10]" : "")
        }
    }

    /// Process 4720, which has called functions with descriptors.
    private func peer(
        _ object: String = "pipe:[9]", access: Int = TRACE_ACCESS_WRITE, peer: String = "", endedAt end: UInt64? = nil,
        calls: [(name: String, at: Int, descriptor: UInt64?)]
    ) throws -> WaitSearch {
        try search(feeder(object, access: access, peer: peer, endedAt: end, calls: calls))
    }

    private func feeder(
        _ object: String = "pipe:[9]", access: Int = TRACE_ACCESS_WRITE, peer: String = "", endedAt end: UInt64? = nil,
        calls: [(name: String, at: Int, descriptor: UInt64?)], isMeasuredBadly: Bool = false
    ) -> TraceBuilder {
        var builder = TraceBuilder(program: "/usr/bin/feeder", pid: 4720)
        if isMeasuredBadly {
            (builder.header.session, builder.header.boot) = (1, 1)
            builder.monotonic = { $0 == start ? start : $0 &+ ($0 &- start) } // two nanoseconds a tick
        }
        builder.module(0, "/usr/lib/libdemo.so.1")
        let names = ["main", "write", "close", "send", "read", "closedir", "fclose"]
        for (index, name) in names.enumerated() { builder.function(UInt32(1 + index), name) }
        let steps = calls.map { call -> Step in
            .call(UInt32(1 + names.firstIndex(of: call.name)!), call.at, call.at + 20, object: call.descriptor)
        }
        builder.steps(builder.thread("feeder"), [.call(1, 10, isMeasuredBadly ? 2_000_000 : 9000, steps)])
        builder.kernel(from: start, until: start + 20_000_000)
        builder.descriptor(5, at: start + 2002, access: access, object, peer: peer)
        if let end { builder.task(TRACE_TASK_ENDED, 4720, at: start + end) }
        return builder
    }

    private func connected(_ reader: TraceBuilder, _ other: WaitSearch? = nil) throws -> (wait: Wait, search: WaitSearch) {
        try connected([try search(reader)] + (other.map { [$0] } ?? []))
    }

    private func connected(_ searches: [WaitSearch]) throws -> (wait: Wait, search: WaitSearch) {
        var all = searches
        WaitSearch.findWakers(&all)
        return (try #require(all[0].waits.first), all[0])
    }

    @Test func whoWritesToAPipeWakesWhoReadsIt() throws {
        // The last before it ran; what is written to other descriptors, or was before it waited, is none of it.
        let calls: [(String, Int, UInt64?)] = [
            ("write", 900, 5), ("write", 2500, 5), ("write", 2800, 6), ("read", 2900, 5), ("write", 3500, 5),
        ]
        let wait = try connected(reader(), peer(calls: calls)).wait
        let waker = try #require(wait.otherProcess)
        #expect(waker.name == "feeder" && waker.pid == 4720 && waker.tid == 4720 && waker.function == "write" && waker.caller == "main")
        #expect(waker.late.count == 500 && wait.waker == nil && wait.peers.isEmpty && wait.object == "pipe:[9]")
        // A process that has only the read end has not written to the pipe.
        #expect(try connected(reader(), peer(access: TRACE_ACCESS_READ, calls: calls)).wait.otherProcess == nil)
    }

    /// The samples of a process that was killed may be close together, and its rate wrong: then a write seems to come after what it woke.
    @Test func aProcessHasTheRateThatWasMeasuredBest() throws {
        let calls: [(String, Int, UInt64?)] = [("write", 2500, 5)]
        var long = reader()
        long.header.boot = 1
        long.complete(0, 16, from: start + 19_000_000, to: start + 19_000_010, object: 3)
        let wait = try connected(searches([long, feeder(calls: calls, isMeasuredBadly: true)])).wait
        #expect(wait.otherWaker == "write 500")
        // A process of another start of the machine may have had another rate.
        long.header.boot = 2
        #expect(try connected(searches([long, feeder(calls: calls, isMeasuredBadly: true)])).wait.otherProcess == nil)
    }

    @Test func whoWritesInTheSameProcessIsAThreadOfIt() throws {
        let (wait, search) = try connected(
            reader { builder, other in
                builder.complete(other, 20, from: start + 2400, to: start + 2450, object: 4)
                builder.descriptor(4, at: start + 2003, access: TRACE_ACCESS_WRITE, "pipe:[9]")
            })
        let waker = try #require(wait.waker)
        #expect(search.threads[waker.thread].tid == 4712 && search.name(waker.act.row) == "write" && waker.late == 600)
        #expect(wait.otherProcess == nil)
    }

    @Test func aSocketIsWrittenToAtTheOneItIsConnectedTo() throws {
        let sent: [(String, Int, UInt64?)] = [("send", 2500, 5)], both = TRACE_ACCESS_READ | TRACE_ACCESS_WRITE
        let wait = try connected(reader("socket:[9]"), peer("socket:[10]", access: both, peer: "socket:[9]", calls: sent)).wait
        #expect(wait.otherProcess?.function == "send")
        // Another one, though it was written to as well.
        let other = try connected(reader("socket:[9]"), peer("socket:[11]", access: both, peer: "socket:[12]", calls: sent)).wait
        #expect(other.otherProcess == nil && other.peers.isEmpty)
    }

    @Test func whoClosesOrEndsLetsAReaderGoOn() throws {
        #expect(try connected(reader(), peer(calls: [("close", 2600, 5)])).wait.otherWaker == "close 400")
        let ended = try connected(reader(), peer(endedAt: 2700, calls: [])).wait
        #expect(ended.otherProcess?.function == nil && ended.otherProcess?.pid == 4720 && ended.otherProcess?.late.count == 300)
    }

    /// Descriptor 5 was another file before it was closed, and is again after it has been.
    @Test func whatADescriptorWasBeforeAndAfterItIsClosedIsAnotherMatter() throws {
        #expect(try connected(reader(), peer(calls: [("write", 1500, 5), ("close", 1600, 5)])).wait.otherProcess == nil)
        #expect(try connected(reader(), peer(calls: [("close", 2500, 5), ("write", 2700, 5)])).wait.otherProcess?.function == "close")
    }

    /// The trace does not record which descriptor fclose closes; a directory's is no pipe.
    @Test func whatMayHaveClosedADescriptorIsNotSaidToHave() throws {
        let closed = try connected(reader(), peer(calls: [("fclose", 2500, nil), ("write", 2700, 5)])).wait
        #expect(closed.otherProcess == nil && closed.peers.map { $0.pid } == [4720])
        #expect(try connected(reader(), peer(calls: [("closedir", 2500, nil), ("write", 2700, 5)])).wait.otherWaker == "write 300")
    }

    /// Thread 4711 waits for descriptors 3 and 7 from 1,000 on, and runs at 3,000.
    private func poller(_ body: (inout TraceBuilder, Int) -> Void = { _, _ in }) -> TraceBuilder {
        machine(["poll", "write"], main: [.enter(20, 1000), .exit(20, 3100)], off: [(1100, 3000)]) { builder, _, other in
            body(&builder, other)
            for (number, object) in [(1, "pipe:[7]"), (3, "pipe:[8]")] { // found in an earlier wait
                builder.polled(4711, Int32(number), at: start + 900, access: TRACE_ACCESS_READ, object)
            }
            for (number, object) in [(3, "pipe:[9]"), (7, "anon_inode:[eventfd]")] {
                builder.polled(4711, Int32(number), at: start + 2000, access: TRACE_ACCESS_READ, object)
            }
        }
    }

    @Test func whoWritesToOneOfWhatIsPolledWakesWhoPolls() throws {
        let wait = try connected(poller(), peer(calls: [("write", 2500, 5)])).wait
        #expect(wait.object == "pipe:[9]" && wait.otherWaker == "write 500")
        let earlier = try connected(poller(), peer("pipe:[8]", calls: [("write", 2500, 5)])).wait
        #expect(earlier.otherProcess == nil && earlier.object == nil)
        // The other way round.
        let read = try connected(poller(), peer(access: TRACE_ACCESS_READ, calls: [("read", 2500, 5)])).wait
        #expect(read.otherProcess == nil && read.peers.isEmpty)
    }

    @Test func anEventfdIsWrittenToByTheSameDescriptor() throws {
        let (wait, search) = try connected(
            poller { builder, other in builder.complete(other, 21, from: start + 2400, to: start + 2450, object: 7) },
            peer(calls: [("write", 2300, 5)]))
        #expect(wait.object == "eventfd, descriptor 7" && wait.waker.map { search.threads[$0.thread].tid } == 4712)
        // An eventfd of another process is another one.
        #expect(try connected(poller(), peer("anon_inode:[eventfd]", calls: [("write", 2500, 7)])).wait.otherProcess == nil)
    }

    @Test func whoCouldHaveWrittenIsShownWhereNobodyIsKnownToHave() throws {
        let wait = try connected(reader(), peer(calls: [])).wait
        #expect(wait.otherProcess == nil && wait.peers == [Wait.Peer(name: "feeder", pid: 4720, descriptor: 5)])
    }

    @Test(arguments: [(Int32(0), Int32(10), Optional("nice 10")), (0, 0, nil), (0, -5, nil), (5, 0, "idle")])
    func whoHoldsAndComesAfterWhoWaitsIsPriorityInversion(policy: Int32, nice: Int32, holder: String?) throws {
        let found = try search(
            contended {
                $0.off([(2500, 4000)], 4712, preempted)
                $0.priority(4711, at: start + 3000)
                $0.priority(4712, at: start + 3001, policy: policy, nice: nice)
            })
        let chain = WaitChain(of: 0, in: found)
        #expect(chain.preempted == 1500 && chain.inversion?.holder.text == holder)
        if holder != nil { #expect(chain.inversion?.waiter.text == "nice 0") }
    }

    @Test func whatADescriptorIsOpenOnSeparatesFilesFromPipes() throws {
        func wait(_ object: String, kernelFunction: String = "", systemCall: Int32 = 0) throws -> Wait {
            let builder = machine(
                main: [.enter(16, 1000, object: 5), .exit(16, 13_000_100)], off: [(1100, 13_000_000)]
            ) { builder, _, _ in
                if !object.isEmpty || systemCall != 0 {
                    builder.foundWaiting(
                        4711, at: start + 11_000_000, systemCall: systemCall, (5, 0), kernelFunction: kernelFunction, object: object)
                }
            }
            return try #require(try search(builder).waits.first)
        }
        #expect(try wait("").kind == .other && wait("").object == "descriptor 5")
        #expect(try wait("pipe:[77]").kind == .pipe && wait("pipe:[77]").object == "pipe:[77]")
        #expect(try wait("/home/x/data", kernelFunction: "folio_wait_bit_common").kind == .disk)
        #expect(try wait("/home/x/fifo", kernelFunction: "pipe_read").kind == .pipe)
        #expect(try wait("/dev/pts/3").kind == .terminal)
        #expect(try wait("socket:[7]").kind == .socket && wait("anon_inode:[timerfd]").kind == .timer)
        #expect(try wait("/proc/kmsg").kind == .other && wait("/dev/shm/data").kind == .disk)
        // It was looked at a moment too late: in no call of that name it reads.
        #expect(try wait("", systemCall: 202).kind == .other)
    }

    /// Four reads of descriptor 5, each longer than 1,000; the second was looked at, and found to read a file.
    @Test func whatADescriptorIsOpenOnHoldsUntilItIsClosed() throws {
        func reads(_ between: [(UInt64, UInt32, UInt64?)]) throws -> [String] {
            let builder = machine(["close", "pread", "recv", "dup2"]) { builder, main, _ in
                var calls = [(1000, 16, 5), (100_000, 16, 5), (13_000_000, 16, 5), (14_000_000, 16, 5)] as [(UInt64, UInt32, UInt64?)]
                calls = (calls + between).sorted { $0.0 < $1.0 }
                for (at, function, descriptor) in calls {
                    let isLong = at == 100_000, end = at + (isLong ? 12_000_000 : function == 16 ? 2000 : 10)
                    builder.complete(main, function, from: start + at, to: start + end, object: descriptor)
                    if function == 16 { builder.off([(at + 10, end - 10)]) }
                }
                builder.foundWaiting(
                    4711, at: start + 11_000_000, systemCall: 0, (5, 0), kernelFunction: "folio_wait_bit_common", object: "/x/data")
            }
            return try search(builder).waits.sorted { $0.begin < $1.begin }.map { "\($0.kind) \($0.object ?? "")" }
        }
        let file = "disk /x/data", number = "other descriptor 5"
        #expect(try reads([]) == [file, file, file, file])
        #expect(try reads([(13_500_000, 20, 6)]) == [file, file, file, file])
        #expect(try reads([(50_000, 20, 5), (13_500_000, 20, 5)]) == [number, file, file, number])
        // The trace has no argument of this call: the descriptor that it closes is unknown.
        #expect(try reads([(13_500_000, 23, nil)]) == [file, file, file, number])
        // Files alone are read so, and sockets so.
        #expect(try reads([(13_500_000, 20, 5), (15_000_000, 21, 5)]) == [file, file, file, "disk descriptor 5"])
        #expect(try reads([(13_500_000, 20, 5), (15_000_000, 22, 5)]) == [file, file, file, "socket descriptor 5"])
        #expect(try reads([(15_000_000, 22, 5)]) == [number, file, number, number]) // it cannot be both
    }

    /// Descriptor 5 is made four times, and read after each. Nobody has looked.
    @Test func whatADescriptorRefersToIsWhatItsCallMade() throws {
        func reads(_ between: [(UInt64, UInt32, UInt64?)]) throws -> [String] {
            let builder = machine(["close", "dup2", "fclose"]) { builder, main, _ in
                let read = (1...4).map { (UInt64($0 * 10_000), UInt32(16), Optional(UInt64(5))) }
                for (at, function, descriptor) in (read + between).sorted(by: { $0.0 < $1.0 }) {
                    let end = at + (function == 16 ? 2000 : 10)
                    builder.complete(main, function, from: start + at, to: start + end, object: descriptor)
                    if function == 16 { builder.off([(at + 10, end - 10)]) }
                }
                builder.opened(5, at: start + 9000, "/x/data")
                builder.opened(5, at: start + 19_000, "pipe:[7]", key: TRACE_ACCESS_READ | TRACE_OPENED_PIPE)
                builder.opened(5, at: start + 29_000, "/x/fifo", key: TRACE_ACCESS_READ | TRACE_OPENED_PIPE, stream: 0x7f00_0010)
                builder.opened(5, at: start + 39_000, "socket:[9]")
            }
            return try search(builder).waits.sorted { $0.begin < $1.begin }.map { "\($0.kind) \($0.object ?? "")" }
        }
        let all = ["disk /x/data", "pipe pipe:[7]", "pipe /x/fifo", "socket socket:[9]"], unknown = "other descriptor 5"
        #expect(try reads([]) == all)
        // It is closed, and no call is known that made what is read then.
        #expect(try reads([(19_500, 20, 5)]) == [all[0], unknown, all[2], all[3]])
        #expect(try reads([(19_500, 20, 6), (29_500, 21, 6)]) == all)
        #expect(try reads([(29_500, 21, 5), (39_500, 21, nil)]) == [all[0], all[1], unknown, unknown])
        #expect(try reads([(29_500, 22, 0x7f00_0010)]) == [all[0], all[1], unknown, all[3]])
        // A stream of another descriptor, perhaps; but this one could have been the address's.
        #expect(try reads([(29_500, 22, 0x7f00_0020)]) == [all[0], all[1], unknown, all[3]])
    }

    /// Thread 4712 writes to the other end of what 4711 waits for, too soon for anybody to have looked.
    @Test func whoMadeBothEndsKnowsWhoWaitsForWhom() throws {
        func waker(_ body: (inout TraceBuilder) -> Void) throws -> UInt64? {
            let builder = machine(["write"], main: [.enter(16, 1000, object: 3), .exit(16, 3100)], off: [(1100, 3000)]) {
                builder, _, other in
                builder.complete(other, 20, from: start + 2400, to: start + 2450, object: 4)
                body(&builder)
            }
            let (wait, search) = try connected(builder)
            #expect(wait.waker.map { search.threads[$0.thread].tid } ?? 4712 == 4712)
            return wait.waker?.late
        }
        let reads = TRACE_ACCESS_READ | TRACE_OPENED_PIPE, writes = TRACE_ACCESS_WRITE | TRACE_OPENED_PIPE
        #expect(
            try waker {
                $0.opened(3, at: start + 500, "pipe:[9]", key: reads, pair: 4)
                $0.opened(4, at: start + 500, "pipe:[9]", key: writes, pair: 3)
            } == 600)
        #expect(
            try waker {
                $0.opened(3, at: start + 500, "socket:[9]", pair: 4)
                $0.opened(4, at: start + 500, "socket:[10]", pair: 3)
            } == 600)
        // Descriptor 4 was another pipe's since.
        #expect(
            try waker {
                $0.opened(3, at: start + 500, "pipe:[9]", key: reads, pair: 4)
                $0.opened(4, at: start + 500, "pipe:[9]", key: writes, pair: 3)
                $0.opened(4, at: start + 700, "pipe:[8]", key: writes)
            } == nil)
        // Sockets of two calls may be connected, and nobody knows to what.
        #expect(
            try waker {
                $0.opened(3, at: start + 500, "socket:[9]")
                $0.opened(4, at: start + 510, "socket:[10]")
            } == nil)
    }

    @Test func withoutACallTheSystemCallOrThePageDetermines() throws {
        let builder = machine(
            main: [.enter(2, 1000), .exit(2, 19_000_000)],
            off: [(1000, 11_001_000), (12_000_000, 12_001_000), (14_000_000, 14_000_500)]
        ) { builder, _, _ in
            builder.off([(13_000_000, 13_001_000)], 4711, preempted)
            builder.foundWaiting(4711, at: start + 10_000_000, systemCall: 202, (0x99, 0), kernelFunction: "futex_wait_queue")
            builder.foundWaiting(4711, at: start + 14_000_100, systemCall: 202)
            builder.pageFault(4711, at: start + 12_001_005, address: 0x5000, "/usr/lib/a.so", offset: 4096)
        }
        let found = try search(builder)
        #expect(found.waits.map { $0.kind } == [.lock, .disk, .processor, .other])
        #expect(found.waits[0].systemCall == "futex" && found.waits[1].object == "/usr/lib/a.so")
        #expect(found.waits.allSatisfy { found.name($0.call.row) == "parse" })
        let times = ThreadTimes(found, found.waits[0].thread, in: .whole)
        #expect(times.waiting == 11_000_000 + 1000 + 500 && times.runnable == 1000)
        #expect(times.waits == [.lock: 11_000_000, .disk: 1000, .other: 500])
        #expect(times.running == 20_000_000 - 11_001_500 - 1000 && times.kernel == nil)
    }

    @Test func withoutSwitchesCallsThatWaitAreTheWaits() throws {
        let builder = machine(
            kernel: false, main: [.call(10, 2000, 22_000, object: mutex)],
            other: [.call(10, 950, 1000, object: mutex), .call(11, 21_000, 21_100, object: mutex)])
        let found = try search(builder), wait = try #require(found.waits.first)
        #expect(found.noSwitches == "it was recorded without kernel events" && found.waits.count == 1)
        #expect(wait.kind == .lock && wait.duration == 20_000 && wait.waker?.late == nil && wait.waker?.at == start + 21_000)
        #expect(wait.holder?.since == start + 1000)
        let times = ThreadTimes(found, wait.thread, in: .whole)
        #expect(times.running == nil && times.waiting == 20_000)
    }

    @Test func aWindowHasThePartsOfWaitsThatLieInIt() throws {
        let trace = try Loaded(contended().bytes()).trace.narrowed(to: TimeWindow([start + 3000..<start + 4000]))
        let found = WaitSearch(trace, workers: 1), wait = try #require(found.waits.first)
        #expect(wait.begin == start + 3000 && wait.duration == 1000 && wait.kind == .lock && wait.holder?.since == start + 1000)
    }

    @Test func samplesLeaveWhatTheKernelDid() throws {
        var builder = machine(kernel: false, main: [.call(2, 10, 20)])
        builder.kernel(
            asked: TRACE_KERNEL_SWITCHES | TRACE_KERNEL_SAMPLES, from: start, until: start + 10_000, period: 1000)
        builder.switches([(start + 8000, 4711, waits)])
        builder.samples((1...5).map { (start + $0 * 1000, 4711, 0, []) })
        let found = try search(builder)
        let times = ThreadTimes(found, try #require(found.threads.firstIndex { $0.tid == 4711 }), in: .whole)
        #expect(times.running == 8000 && times.kernel == 3000)
    }

    @Test func threadsThatQueueForALockAreAConvoy() throws {
        func lock(_ waits: [(thread: Int, begin: UInt64, end: UInt64)]) -> LockTotals {
            LockTotals(
                waits.map {
                    Wait(thread: $0.thread, begin: $0.begin, end: $0.end, duration: $0.end - $0.begin, kind: .lock, call: OpenCall())
                },
                process: 0, object: "0x1", site: { _ in "f" }, heldIn: { _ in nil })
        }
        let convoy = lock([(0, 0, 10), (1, 5, 15), (2, 8, 20), (0, 12, 25), (1, 18, 30), (2, 100, 101)])
        #expect(convoy.longestQueue.isConvoy && convoy.longestQueue.waits == 5 && convoy.longestQueue.duration == 30)
        #expect(convoy.mostAtOnce == 3 && convoy.threads == 3 && convoy.waitedIn.first?.waits == 6 && convoy.longest == 13)
        #expect(!lock([(0, 0, 10), (1, 5, 15), (2, 8, 20)]).longestQueue.isConvoy)
    }
}
