import CTraceLayout
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

private let second: UInt64 = 1_000_000_000

/// A machine whose counter has one tick a nanosecond, and from a moment on another rate.
private func migrated(at change: UInt64, ticksPerNanosecond: Double, asleep: UInt64 = 0) -> @Sendable (UInt64) -> UInt64 {
    { ticks in
        if ticks <= change { return ticks }
        return change + UInt64(Double(ticks > change + asleep ? ticks - change - asleep : 0) / ticksPerNanosecond)
    }
}

/// A trace of `seconds` seconds in which main calls a, each time for 100 µs, again and again: `length` says how many ticks a call has.
private func calls(
    seconds: UInt64, wordsPerChunk: Int, pause: UInt64 = 1_000_000, _ monotonic: @escaping @Sendable (UInt64) -> UInt64,
    length: (UInt64) -> UInt64, _ more: (inout TraceBuilder) -> Void = { _ in }
) throws -> Loaded {
    var builder = demo { builder, thread in
        builder.monotonic = monotonic
        builder.limit(thread, words: wordsPerChunk)
        builder.enter(thread, 1, at: start)
        var ticks = start + 1000
        while monotonic(ticks) < start + seconds * second {
            let isBefore = length(ticks) == 100_000
            builder.complete(thread, isBefore ? 2 : 3, from: ticks, to: ticks + length(ticks))
            ticks += pause
        }
        builder.exit(thread, 1, at: ticks)
    }
    more(&builder)
    return try Loaded(builder.bytes())
}

@Suite struct ClockTests {
    @Test(arguments: [0.5, 0.96, 1.04, 2.0]) func callsBeforeAndAfterAMigrationHaveTheirLengths(rate: Double) throws {
        let change = start + 2 * second, after = UInt64(100_000 * rate)
        let loaded = try calls(
            seconds: 5, wordsPerChunk: 100, migrated(at: change, ticksPerNanosecond: rate),
            length: { $0 < change ? 100_000 : after })
        let a = try #require(loaded["a"]), b = try #require(loaded["b"]), main = try #require(loaded["main"])
        #expect(a.median.map { abs(Int($0.time.count) - 100_000) <= 1000 } == true)
        #expect(b.median.map { abs(Int($0.time.count) - 100_000) <= 1000 } == true)
        #expect(abs(Double(a.total.count) / Double(a.calls) - 100_000) < 1000)
        #expect(abs(Double(b.total.count) / Double(b.calls) - 100_000) < 1000)
        #expect(abs(Double(main.total.count) - 5e9) < 5e6)
        #expect(abs(main.selfTime + Int64(a.total.count + b.total.count) - Int64(main.total.count)) <= 2) // each is rounded
        #expect(loaded.trace.warnings.count == 1)
        #expect(loaded.trace.warnings.first?.contains("the rate of the cycle counter changed") == true)
    }

    @Test func aLongChunkIsParted() throws {
        // One chunk of a thread with little to do: nothing but the agent's own samples shows the change.
        let change = start + 20 * second
        let loaded = try calls(
            seconds: 30, wordsPerChunk: .max, pause: 50_000_000, migrated(at: change, ticksPerNanosecond: 1.25),
            length: { $0 < change ? 100_000 : 125_000 }
        ) { $0.clocks(change - 20_000_000, change + 30_000_000) }
        #expect(loaded["a"]?.maximum?.count == 100_000)
        #expect(loaded["b"].flatMap { $0.maximum.map { abs(Int($0.count) - 100_000) < 200 } } == true)
        #expect(loaded.trace.warnings.count == 1)
    }

    @Test func whatLiesBeforeALeapKeepsItsLength() throws {
        let change = start + 2 * second
        let loaded = try calls(
            seconds: 4, wordsPerChunk: .max, { $0 < change ? $0 : $0 + 1000 * second }, length: { $0 < change ? 100_000 : 100_001 }
        ) { $0.clocks(change - 50_000_000, change) }
        #expect([loaded["a"]?.minimum?.count, loaded["a"]?.maximum?.count] == [100_000, 100_000])
    }

    @Test func asleepIsNoTime() throws {
        // The counter goes on for ten seconds, the other clock stands still. Nothing runs.
        let change = start + 2 * second
        var slept = false
        let monotonic = migrated(at: change, ticksPerNanosecond: 1, asleep: 10 * second)
        var builder = demo { builder, thread in
            builder.monotonic = monotonic
            builder.limit(thread, words: 100)
            builder.enter(thread, 1, at: start)
            var ticks = start + 1000
            while ticks < start + 15 * second {
                builder.complete(thread, slept ? 3 : 2, from: ticks, to: ticks + 100_000)
                ticks += 1_000_000
                if !slept, ticks >= change { (ticks, slept) = (ticks + 10 * second, true) }
            }
            builder.exit(thread, 1, at: ticks)
        }
        builder.clocks(change - 50_000_000, change + 10 * second + 100_000)
        let loaded = try Loaded(builder.bytes())
        for name in ["a", "b"] { #expect(loaded[name]?.maximum.map { abs(Int($0.count) - 100_000) <= 100 } == true, "\(name)") }
        #expect(loaded["main"].map { abs(Double($0.total.count) - 5e9) < 1e7 } == true)
    }

    @Test func framesThatReturnOutOfOrderAreFoundAcrossAChange() throws {
        let change = start + second
        var builder = demo { builder, thread in
            builder.monotonic = migrated(at: change, ticksPerNanosecond: 2)
            builder.limit(thread, words: 2)
            builder.enter(thread, 1, at: start)
            builder.steps(thread, (1..<20).map { .call(4, $0 * 50_000_000, $0 * 50_000_000 + 1000) })
            builder.steps(thread, [.enter(2, 1_000_000_100), .enter(3, 1_000_000_200)])
            builder.steps(thread, (21..<60).map { .call(4, $0 * 50_000_000, $0 * 50_000_000 + 2000) })
            builder.steps(thread, [.exit(2, 3_000_000_100), .exit(3, 3_000_000_200), .exit(1, 3_000_000_300)])
        }
        builder.clocks(change, change + 1000)
        let loaded = try Loaded(builder.bytes())
        for name in ["a", "b"] { #expect(loaded[name].map { abs(Int($0.total.count) - Int(second)) <= 1000 } == true, "\(name)") }
        #expect(loaded.summary.functions.allSatisfy { $0.name == "c" || $0.calls == 1 })
    }

    @Test func anEvenClockIsOneLine() throws {
        let jitter: @Sendable (UInt64) -> UInt64 = { $0 + $0 * 7919 % 300 } // as samples have it
        let slewed: @Sendable (UInt64) -> UInt64 = { $0 <= start + second ? $0 : $0 + ($0 - start - second) / 2000 } // NTP
        let disturbed: @Sendable (UInt64) -> UInt64 = { (start + second..<start + second + 50_000_000).contains($0) ? $0 + 30_000_000 : $0 }
        for (name, clock) in [("jitter", jitter), ("slewed", slewed), ("disturbed", disturbed)] {
            let loaded = try calls(seconds: 3, wordsPerChunk: 100, clock, length: { _ in 100_000 })
            #expect(loaded.trace.warnings.isEmpty, "\(name)")
            #expect(loaded.trace.timeScale.correction == nil, "\(name)")
        }
    }

    @Test func whateverSamplesSayTimeGoesForward() {
        var random = Xorshift(seed: 88172645463325252)
        func next() -> UInt64 { random.next() }
        for round in 0..<300 {
            let reach: UInt64 = [1 << 20, 1 << 40, .max][round % 3]
            let samples = (0..<40).map { _ in trace_clock_sample(ticks: next() % reach, monotonic_ns: next() % reach) }
            let scale = TimeScale(
                clock: UInt32(TRACE_CLOCK_TSC), ticksPerSecond: 0, samples: samples, certain: Array(samples.prefix(round % 40)))
            var before: UInt64 = 0
            for ticks in ((0..<200).map { _ in next() % reach } + [0, .max]).sorted() {
                let even = scale.even(ticks)
                #expect(even >= before)
                before = even
                _ = scale.nanoseconds(even)
            }
        }
    }
}
