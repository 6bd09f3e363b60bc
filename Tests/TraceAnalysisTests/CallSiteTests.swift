import CTraceLayout
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

@Suite struct CallSiteTests {
    /// Function and return address -> calls, total and self time.
    private func sites(_ builder: TraceBuilder, workers: Int = 2, window: TimeWindow = .whole) throws -> [String: [Int64]] {
        let trace = try Loaded(builder.bytes()).trace.narrowed(to: window)
        var result: [String: [Int64]] = [:]
        for row in SiteReport([trace], nil, workers: workers).rows {
            let site = row.site.flatMap { $0.isKnown ? "\($0.module)+\(String($0.address ?? 0, radix: 16))" : nil } ?? "-"
            result["\(row.name) \(site)"] = [Int64(row.calls), Int64(row.total.count), row.selfTime]
        }
        return result
    }

    private let caller: UInt64 = 0x5000_0100, other: UInt64 = 0x5000_0200, within: UInt64 = 0x5000_0300

    /// main calls work from two call sites; work calls itself from a third, and leaves from a fourth. One call is a jump.
    private func recursion(words: Int = .max) -> TraceBuilder {
        demo { builder, thread in
            builder.limit(thread, words: words)
            builder.enter(thread, 1, at: start)
            for round in 0..<10 as Range<UInt64> {
                let begin = start + 1000 * round
                builder.enter(thread, 2, at: begin + 10, site: round % 5 == 0 ? other : caller)
                builder.enter(thread, 2, at: begin + 20, site: within)
                builder.enter(thread, 2, at: begin + 30, site: within)
                builder.complete(thread, 3, from: begin + 40, to: begin + 50, site: 0x5000_0400)
                builder.complete(thread, 3, from: begin + 60, to: begin + 65)
                builder.exit(thread, 2, at: begin + 100)
                builder.exit(thread, 2, at: begin + 110)
                builder.exit(thread, 2, at: begin + 130)
            }
            builder.exit(thread, 1, at: start + 20_000)
        }
    }

    @Test(arguments: [1, 2, 3, 7, 1000], [1, 3])
    func sumsDoNotDependOnWhereChunksEnd(words: Int, workers: Int) throws {
        let found = try sites(recursion(words: words), workers: workers)
        #expect(found["a libdemo.so.1+100"] == [8, 8 * 120, 8 * 30])
        #expect(found["a libdemo.so.1+200"] == [2, 2 * 120, 2 * 30])
        #expect(found["a libdemo.so.1+300"] == [20, 10 * 90, 10 * (90 - 15)]) // recursive: the outermost of this call site
        #expect(found.values.reduce(0) { $0 + $1[0] } == 51)
        #expect(found.filter { $0.key.hasSuffix("libdemo.so.1+400") }.map(\.value) == [[10, 100, 100]])
        #expect(found.filter { $0.key.hasSuffix(" -") }.map { $0.value[0] }.sorted() == [1, 10]) // main's, and the jumps'
    }

    @Test func callsThatAreOpenAtTheEndHaveTheirSites() throws {
        let found = try sites(
            demo([
                .enter(2, 0, site: caller), .enter(2, 10, site: within), .split, .enter(2, 30, site: within), .call(1, 50, 60, site: other),
            ]))
        #expect(found["a libdemo.so.1+100"] == [1, 60, 10])
        #expect(found["a libdemo.so.1+300"] == [2, 50, 40])
    }

    @Test func whatARingHasOverwrittenIsInTheListOfOpenCalls() throws {
        let found = try sites(demo(isRing: true, [.call(1, 0, 200, [.call(2, 10, 110, [.lose], site: caller)], site: other)]))
        #expect(found["a libdemo.so.1+100"] == [1, 100, 0]) // it is not known what they did
        #expect(found["main libdemo.so.1+200"] == [1, 200, 90])
    }

    @Test func aWindowHasTheCallsThatBeginInIt() throws {
        let window = TimeWindow([start + 15..<start + 1015])
        let found = try sites(recursion(words: 3), window: window)
        #expect(found["a libdemo.so.1+200"] == [0, 115, 25]) // begun before
        #expect(found["a libdemo.so.1+100"] == [1, 5, 5])
        #expect(found["a libdemo.so.1+300"]?[0] == 2)
    }

    /// A module is unloaded and another one gets its addresses; the first comes again.
    @Test func anAddressIsOfTheModuleThatHadItThen() throws {
        var builder = TraceBuilder()
        builder.module(0, "/usr/bin/demo", bias: 0x1000_0000)
        builder.module(1, "/usr/lib/libfirst.so", bias: 0x7000_0000)
        builder.module(2, "/usr/lib/libsecond.so", bias: 0x7000_4000, loaded: start + 100)
        builder.moduleDetail(1, load: 1)
        builder.moduleDetail(1, load: 3)
        builder.load(3, "/usr/lib/libfirst.so", begin: start + 200, opened: start + 201, mapped: TraceBuilder.usage(at: start + 202))
        builder.function(1, "far")
        builder.steps(builder.thread(), [(10, 11), (50, 52), (150, 153), (250, 254)].map { .call(1, $0.0, $0.1, site: 0x7000_5000) })
        let found = try sites(builder)
        #expect(found["far libfirst.so+5000"] == [3, 1 + 2 + 4, 7])
        #expect(found["far libsecond.so+1000"] == [1, 3, 3])
    }

    @Test func aSiteWithoutItsCallSaysNothing() throws {
        let found = try sites(
            demo([
                .call(1, 0, 5, site: caller), .word(.control(.site, other), 10), .word(Event(word: 0), 10), // killed between the two
                .call(1, 20, 25),
            ]))
        #expect(found == ["main libdemo.so.1+100": [1, 5, 5], "main -": [1, 5, 5]])
    }
}
