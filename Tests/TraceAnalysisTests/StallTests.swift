import CTraceLayout
import Foundation
import Presentation
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

private let main: UInt32 = 1, handle: UInt32 = 2, parse: UInt32 = 3, epoll: UInt32 = 4, poll: UInt32 = 5, ask: UInt32 = 6
private let run: UInt32 = 7, iterate: UInt32 = 8, exits: UInt32 = 9, mutex: UInt32 = 10, select: UInt32 = 11, connect: UInt32 = 12

/// The main thread does this; more may be added.
private func program(
    _ steps: [Step], until end: Int? = nil, kernel: Bool = false, _ body: (inout TraceBuilder) -> Void = { _ in }
) -> TraceBuilder {
    var builder = TraceBuilder()
    builder.module(0, "/usr/lib/libdemo.so.1")
    let names = [
        "main", "handle", "parse", "epoll_wait", "poll", "ask", "g_main_loop_run", "g_main_context_iteration", "exit", "pthread_mutex_lock",
        "__select", "connect_to_display",
    ]
    for (index, name) in names.enumerated() { builder.function(UInt32(index + 1), name) }
    builder.steps(builder.thread("main"), steps)
    if let end { builder.header.ended_ns = start + UInt64(end) }
    body(&builder)
    if kernel { builder.kernel(from: start, until: start + 100_000) }
    return builder
}

private func stalls(
    _ builder: TraceBuilder, least: UInt64 = 0, thread: String = "main", workers: Int = 1, window: ClosedRange<Int>? = nil, limit: Int = 0
) throws -> StallReport {
    var trace = try Loaded(builder.bytes()).trace
    if let window { trace = trace.narrowed(to: TimeWindow([start + UInt64(window.lowerBound)..<start + UInt64(window.upperBound)])) }
    return StallReport([trace], threads: ThreadPattern(thread), least: Nanoseconds(least), limit: limit, workers: workers)
}

/// The turns in the order of time, as "900-1900", with how those that no wait ended did.
private func turns(_ report: StallReport) -> [String] {
    report.stalls.map(\.turn).sorted { $0.begin < $1.begin }.map {
        "\($0.begin - start)-\($0.end - start)" + ($0.ended == .wait ? "" : " \($0.ended.rawValue)")
    }
}

private func rows(_ report: StallReport) throws -> [[String: Any]] {
    try #require(jsonObject(report.json.text())["stalls"] as? [[String: Any]])
}

private func path(_ row: [String: Any]) throws -> [String] {
    try #require(row["path"] as? [[String: Any]]).map { "\($0["function"]!) \($0["total_ns"]!)" }
}

/// A loop in main, which returns at the end.
private func loop(_ inner: [Step], from: Int = 100, to: Int = 90_000) -> [Step] { [.call(main, from, to, inner)] }
private func wait(_ from: Int, _ to: Int, _ function: UInt32 = epoll, object: UInt64? = nil) -> Step {
    .call(function, from, to, object: object)
}

@Suite struct StallTests {
    private let plain: [Step] = [
        wait(200, 900), .call(handle, 950, 1900, [.call(parse, 1000, 1800)]), wait(2000, 2900), wait(3000, 3900), .call(handle, 4000, 4100),
        wait(5000, 5900),
    ]

    @Test func aTurnIsFromTheReturnOfAWaitToTheNextOne() throws {
        let report = try stalls(program(loop(plain)))
        #expect(turns(report) == ["900-2000", "2900-3000", "3900-5000", "5900-90000 left"])
        #expect(report.stalls.map(\.length.count) == [84_100, 1100, 1100, 100])
        let found = try rows(report)
        #expect(try found.map(path) == [[], ["handle 950", "parse 800"], ["handle 100"], []])
        #expect(found.map { $0["own_ns"] as? Int } == [84_100, 150, 1000, 100])
        #expect(found.map { $0["start_ns"] as? Int } == [5900, 900, 3900, 2900])
        let one = try #require(report.loops.first)
        #expect(report.loops.count == 1 && one.functions == ["epoll_wait"] && one.waits == 4 && one.lengths.count == 4 && one.stalls == 4)
    }

    @Test func stallsAreTurnsOfAtLeastTheLength() throws {
        let report = try stalls(program(loop(plain)), least: 1100)
        #expect(turns(report) == ["900-2000", "3900-5000", "5900-90000 left"])
        #expect(turns(try stalls(program(loop(plain)), least: 1101)) == ["5900-90000 left"])
        let few = try stalls(program(loop(plain)), least: 1100, limit: 1)
        #expect(turns(few) == ["5900-90000 left"] && few.count == 3)
        #expect(few.lines(width: nil, names: .usual, style: uncoloured).last == "    and 2 shorter ones")
        #expect(
            few.lines(width: nil, names: .usual, style: uncoloured)[0]
                == "main/4711: 4 turns of an event loop (epoll_wait), p50 1.100 us, p99 84.100 us, longest 84.100 us; 3 of 1.100 us or more"
        )
    }

    @Test func twoWaitsAreNoLoop() throws {
        #expect(try stalls(program(loop(Array(plain.prefix(3))))).noLoop != nil)
        #expect(try stalls(program(loop([.call(handle, 200, 300)]))).noLoop != nil)
        #expect(try stalls(program(loop(plain))).noLoop == nil)
    }

    // MARK: - The end

    @Test func theLastTurnEndsWithTheProcess() throws {
        let open: [Step] = [.enter(main, 100)] + plain + [.enter(handle, 6000)]
        let report = try stalls(program(open, until: 70_000))
        #expect(turns(report).last == "5900-70000 open")
        #expect(try path(rows(report)[0]) == ["handle 64000"])
        // It waits.
        #expect(turns(try stalls(program([.enter(main, 100)] + plain + [.enter(epoll, 6000)], until: 70_000))).last == "5900-6000")
        // It waits for something else, in the turn.
        let asking: [Step] = [.enter(main, 100)] + plain + [.enter(ask, 6000), .enter(poll, 6100)]
        #expect(turns(try stalls(program(asking, until: 70_000))).last == "5900-70000 open")
    }

    @Test func theLastTurnEndsWithExitAndWithTheLoop() throws {
        let left: [Step] = [.enter(main, 100)] + plain + [.enter(handle, 6000), .enter(exits, 7000)]
        #expect(turns(try stalls(program(left, until: 70_000))).last == "5900-7000 exit")
        let returned: [Step] = [.call(main, 50, 99_000, [.call(run, 100, 8000, plain), .call(parse, 8100, 98_000)])]
        #expect(turns(try stalls(program(returned))).last == "5900-8000 left")
        // The function that calls the wait returns in each turn: with that the loop goes on.
        let calling = [1000, 2000, 3000].map { Step.call(ask, $0, $0 + 200, [wait($0 + 50, $0 + 150)]) }
        let hanging: [Step] = [.enter(main, 100)] + calling + [.call(parse, 4000, 60_000)]
        #expect(turns(try stalls(program(hanging, until: 70_000))) == ["1150-2050", "2150-3050", "3150-70000 open"])
    }

    @Test func aThreadWithoutOpenCallsEndsItsLastTurn() throws {
        let builder = program(plain, until: 70_000)
        #expect(turns(try stalls(builder)).last == "5900-70000 open")
        var ended = builder
        ended.steps(ended.thread("worker"), [.call(handle, 60_000, 60_100)])
        ended.threadEnd(0, at: start + 7000)
        ended.task(TRACE_TASK_ENDED, 4711, at: start + 7000)
        #expect(turns(try stalls(ended)).last == "5900-7000 left")
        let main = program(plain, until: 70_000) {
            $0.phase(TRACE_PHASE_MAIN, TraceBuilder.usage(at: start + 50))
            $0.phase(TRACE_PHASE_MAIN_RETURNED, TraceBuilder.usage(at: start + 8000))
        }
        #expect(turns(try stalls(main)).last == "5900-8000 left")
    }

    // MARK: - Waits within

    @Test func aWaitInACallbackIsAPartOfTheTurn() throws {
        let asking = loop([
            wait(200, 900), wait(1000, 1900), .call(ask, 2000, 5000, [wait(2100, 3000, poll), wait(3100, 4900, poll)]), wait(6000, 6900),
            wait(7000, 7900), .call(ask, 8000, 8100, [wait(8010, 8050, poll)]), wait(9000, 9900),
        ])
        let report = try stalls(program(asking))
        #expect(turns(report) == ["900-1000", "1900-6000", "6900-7000", "7900-9000", "9900-90000 left"])
        #expect(try path(rows(report)[1]) == ["ask 3000", "poll 2700"])
        #expect(report.loops[0].functions == ["epoll_wait"])
    }

    @Test func aWaitBesideTheLoopIsAPartOfTheTurn() throws {
        let beside = loop([
            wait(200, 900), wait(1000, 1900), wait(2000, 2500, select), wait(3000, 3900), wait(4000, 4900),
        ])
        #expect(turns(try stalls(program(beside))) == ["900-1000", "1900-3000", "3900-4000", "4900-90000 left"])
    }

    @Test func aLoopOnAnotherDescriptorInACallbackIsAPartOfTheTurn() throws {
        // As Node.js runs a command: by a loop of its own, from code that is not recorded.
        let before = (0..<5).map { wait($0 * 1000 + 200, $0 * 1000 + 900, object: 7) }
        let within = [wait(6000, 6500, object: 9), wait(6600, 6900, object: 9)]
        let after = (8..<12).map { wait($0 * 1000 + 200, $0 * 1000 + 900, object: 7) }
        let report = try stalls(program(loop(before + within + after)))
        #expect(turns(report).contains("4900-8200") && report.loops[0].waits == 9)
    }

    @Test func aLoopMayWaitAtTwoPlaces() throws {
        let both = loop((0..<4).flatMap { [wait($0 * 1000 + 200, $0 * 1000 + 500), wait($0 * 1000 + 700, $0 * 1000 + 900, select)] })
        let report = try stalls(program(both))
        #expect(turns(report).prefix(3) == ["500-700", "900-1200", "1500-1700"])
        #expect(report.loops[0].functions == ["__select", "epoll_wait"] && report.loops[0].waits == 8)
    }

    @Test func aLoopInACallbackHasTurnsOfItsOwn() throws {
        let dialog: Step = .call(run, 3000, 8000, [wait(3500, 4000, poll), wait(5000, 6000, poll)])
        let nested: [Step] = [
            .call(
                run, 100, 90_000,
                [wait(200, 900, poll), wait(1000, 1900, poll), .call(handle, 2000, 8500, [dialog]), wait(9000, 9900, poll)])
        ]
        let report = try stalls(program(nested))
        #expect(turns(report) == ["900-1000", "1900-3500", "4000-5000", "6000-9000", "9900-90000 left"])
        #expect(try path(rows(report).first { $0["start_ns"] as? Int == 1900 }!) == ["handle 1500"])
        let iterating = loop(
            [1000, 2000, 4000].map { .call(iterate, $0, $0 + 900, [wait($0 + 100, $0 + 200, poll), .call(handle, $0 + 300, $0 + 800)]) })
        let iterated = try stalls(program(iterating))
        #expect(turns(iterated) == ["1200-2100", "2200-4100", "4200-90000 left"])
        #expect(try path(rows(iterated)[1]) == ["handle 500"], "the function that the loop calls in each turn is not what it was in")
    }

    @Test func aLoopThatIsEnteredAgainIsTheSame() throws {
        let again: Step = .call(handle, 2000, 5000, [.call(ask, 2500, 4500, [wait(3000, 4000)])])
        func asked(_ inner: [Step]) -> [Step] { loop([.call(ask, 150, 80_000, inner)]) }
        let recursive = asked([wait(200, 900), wait(1000, 1900), again, wait(6000, 6900), wait(7000, 7900)])
        #expect(turns(try stalls(program(recursive))) == ["900-1000", "1900-3000", "4000-6000", "6900-7000", "7900-80000 left"])
        // Further in, from another function, on the descriptor of the loop.
        let inner: Step = .call(handle, 2000, 5000, [wait(3000, 4000, object: 7)])
        let same = loop([wait(200, 900, object: 7), wait(1000, 1900, object: 7), inner, wait(6000, 6900, object: 7)])
        #expect(turns(try stalls(program(same))) == ["900-1000", "1900-3000", "4000-6000", "6900-90000 left"])
        let other: Step = .call(handle, 2000, 5000, [wait(3000, 4000, object: 8)])
        let different = loop([wait(200, 900, object: 7), wait(1000, 1900, object: 7), other, wait(6000, 6900, object: 7)])
        #expect(turns(try stalls(program(different))) == ["900-1000", "1900-6000", "6900-90000 left"])
    }

    @Test func waitsOfTheStartAndTheEndAreNoTurnsOfTheLoop() throws {
        let connecting = [300, 600].map { wait($0, $0 + 100, poll) }
        let loops: [Step] = [.call(run, 5000, 50_000, (6..<20).map { wait($0 * 1000, $0 * 1000 + 900) })]
        let whole = loop(connecting + loops + [wait(60_000, 60_100, poll), wait(61_000, 61_100, poll)])
        let report = try stalls(program(whole))
        #expect(report.loops[0].waits == 14 + 4)
        let found = turns(report)
        #expect(found.first == "400-600" && !found.contains { $0.hasPrefix("700-") } && found.contains("6900-7000"))
        #expect(report.stalls.allSatisfy { $0.length.count < 40_000 }, "\(found)")
    }

    @Test func aWaitThatWaitsByAnotherIsOne() throws {
        let outer = loop([1000, 2000, 3000].map { .call(select, $0, $0 + 500, [wait($0 + 100, $0 + 400, poll)]) })
        let report = try stalls(program(outer))
        #expect(turns(report) == ["1500-2000", "2500-3000", "3500-90000 left"] && report.loops[0].waits == 3)
    }

    // MARK: - What the trace lacks

    @Test func aTurnWithMissingChunksIsLeftOut() throws {
        let steps: [Step] =
            [
                .enter(main, 100), wait(200, 900), wait(1000, 1900), .split, .call(handle, 2000, 2100), .lose, wait(6000, 6900),
                wait(7000, 7900),
            ]
            + [wait(8000, 8900), .exit(main, 9000)]
        for workers in [1, 3] {
            let report = try stalls(program(steps), workers: workers)
            #expect(turns(report) == ["900-1000", "6900-7000", "7900-8000", "8900-9000 left"])
            #expect(report.lines(width: nil, names: .usual, style: uncoloured).contains("1 turn left out: chunks are missing in it"))
        }
    }

    @Test func chunksReadApartHaveTheSameTurns() throws {
        var steps: [Step] = [.enter(main, 100)]
        for n in 0..<40 {
            if n % 3 == 0 { steps.append(.split) }
            if n % 5 == 0 {
                steps += [.enter(epoll, n * 1000 + 200, object: 7), .split, .exit(epoll, n * 1000 + 900)]
            } else {
                steps.append(wait(n * 1000 + 200, n * 1000 + 900, object: 7))
            }
        }
        let one = try stalls(program(steps + [.exit(main, 90_000)])),
            several = try stalls(program(steps + [.exit(main, 90_000)]), workers: 4)
        #expect(one.stalls.count == 40 && turns(one) == turns(several))
        #expect(one.loops[0].waits == 40)
    }

    @Test func aTurnMayTakeNoTime() throws {
        let report = try stalls(program(loop([wait(200, 900), wait(900, 1900), wait(1901, 2900), wait(2900, 3900)])))
        #expect(turns(report) == ["900-900", "1900-1901", "2900-2900", "3900-90000 left"])
        #expect(try rows(report).last.map(path) == [])
    }

    @Test func anyDamageLeavesAnAnswer() throws {
        let nested: Step = .call(run, 3000, 8000, [wait(3500, 4000, poll), .split, wait(5000, 6000, poll)])
        let inner: [Step] = [wait(200, 900), .split, wait(1000, 1900, object: 7), nested, wait(9000, 9900, object: 7), wait(9950, 9960)]
        let bytes = program([.enter(main, 100)] + inner + [.enter(handle, 9970)], kernel: true) {
            $0.steps($0.thread("worker"), inner + [.enter(exits, 20_000)])
        }.bytes()
        var random = Xorshift(seed: 1)
        for _ in 0..<300 {
            var damaged = bytes
            for _ in 0...random.next() % 4 {
                damaged[Int(random.next() % UInt64(damaged.count))] = UInt8(truncatingIfNeeded: random.next())
            }
            let file = TemporaryFile(damaged)
            guard let trace = try? TraceFile(path: file.path) else { continue }
            let report = StallReport([trace], threads: ThreadPattern("*"), least: Nanoseconds(0), limit: 0, workers: 1)
            #expect(report.stalls.allSatisfy { $0.turn.begin <= $0.turn.end })
            _ = report.json.text()
            _ = report.lines(width: 80, names: .usual, style: uncoloured)
        }
    }

    @Test func shorterCallsThatAreNotRecordedAreSaid() throws {
        let report = try stalls(program(loop(plain)) { $0.header.minimum_ticks = 500 })
        let text = report.lines(width: nil, names: .usual, style: uncoloured).joined(separator: "\n")
        #expect(text.contains("calls shorter than 500 ns are not recorded: a turn may be several"))
    }

    @Test func aWindowHasTheTurnsThatItTouches() throws {
        #expect(turns(try stalls(program(loop(plain)), window: 1000...1001)) == ["900-2000"])
        #expect(turns(try stalls(program(loop(plain)), window: 2950...4000)) == ["2900-3000", "3900-5000"])
        #expect(try stalls(program(loop(plain)), window: 2100...2200).loops[0].lengths.count == 0)
    }

    // MARK: - Threads and states

    @Test func loopsOfOtherThreadsAreFoundByTheirNames() throws {
        let builder = program(loop(plain)) {
            let worker = $0.thread("worker")
            $0.steps(worker, [wait(200, 300), wait(400, 500), wait(600, 700, poll), wait(800, 900), wait(90_000, 90_010)])
        }
        #expect(try stalls(builder).loops.map(\.functions) == [["epoll_wait"]])
        let all = try stalls(builder, thread: "*")
        #expect(all.titles == ["worker/4712", "main/4711"] || all.titles == ["main/4711", "worker/4712"])
        #expect(try stalls(builder, thread: "worker").titles == ["worker/4712"])
        #expect(try stalls(builder, thread: "nobody").noLoop != nil)
    }

    @Test func aTurnSaysWhatItsThreadDid() throws {
        let steps = loop([
            wait(1000, 1900), wait(2000, 2900), .call(handle, 3000, 9000, [.call(mutex, 4000, 6000, object: 0x77)]), wait(10_000, 10_900),
        ])
        let builder = program(steps, kernel: true) {
            let switches: [(UInt64, Int)] = [
                (4100, TRACE_SWITCH_WAITS), (5900, TRACE_SWITCH_IN), (7000, TRACE_SWITCH_PREEMPTED), (7500, TRACE_SWITCH_IN),
            ]
            $0.switches(switches.map { (start + $0.0, 4711, $0.1) })
        }
        let row = try #require(rows(stalls(builder)).first { $0["start_ns"] as? Int == 2900 })
        let states = ["running_ns", "waiting_ns", "runnable_ns", "unknown_ns"].map { row[$0] as? Int ?? -1 }
        #expect(states == [4800, 1800, 500, 0])
        let waits = try #require(row["waits"] as? [[String: Any]])
        let functions = waits.map { $0["function"] as? String ?? "" }
        #expect(functions == ["pthread_mutex_lock"])
        #expect(try path(row) == ["handle 6000"])
        let text = try stalls(builder).lines(width: nil, names: .usual, style: uncoloured).joined(separator: "\n")
        #expect(text.contains("waited 1.800 us: pthread_mutex_lock("))
        // Without the kernel's account, of which that is said.
        let alone = try #require(rows(stalls(program(steps))).first { $0["start_ns"] as? Int == 2900 })
        #expect(alone["running_ns"] is NSNull && alone["runnable_ns"] is NSNull)
    }
}

private let uncoloured = TextStyle(isColoured: false)
