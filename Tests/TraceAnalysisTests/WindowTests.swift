import Presentation
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

/// A part of a trace: what begins in it is counted, and of each call the part of its time that lies there.
@Suite struct WindowTests {
    /// Sums of one function.
    private struct Sums: Equatable {
        var calls: UInt64 = 0
        var total: UInt64 = 0
        var selfTime: Int64 = 0

        static func + (a: Sums, b: Sums) -> Sums {
            Sums(calls: a.calls + b.calls, total: a.total + b.total, selfTime: a.selfTime + b.selfTime)
        }
    }

    private func sums(_ summary: Summary) -> [String: Sums] {
        Dictionary(
            uniqueKeysWithValues: summary.functions.map {
                ($0.name, Sums(calls: $0.calls, total: $0.total.count, selfTime: $0.selfTime))
            })
    }

    private func sums(_ tree: CallTree) -> [String: Sums] {
        var sums: [String: Sums] = [:]
        for node in tree.nodes where node.parent >= 0 && !tree.functions[node.function].isOwnCode {
            let name = tree.functions[node.function].name
            sums[name] = (sums[name] ?? Sums()) + Sums(calls: node.calls, total: 0, selfTime: node.selfTime)
        }
        return sums.filter { $0.value != Sums() }
    }

    private func withoutTotals(_ sums: [String: Sums]) -> [String: Sums] {
        sums.mapValues { Sums(calls: $0.calls, total: 0, selfTime: $0.selfTime) }.filter { $0.value != Sums() }
    }

    /// main from 0 to 1000, a from 100 to 400 and in it b from 200 to 300, a again from 600 to 900.
    private let nested = demo([.call(1, 0, 1000, [.call(2, 100, 400, [.call(3, 200, 300)]), .call(2, 600, 900)])])

    private func summary(_ builder: TraceBuilder, _ ranges: [Range<UInt64>], workers: Int = 1) throws -> Summary {
        let loaded = try Loaded(builder.bytes())
        return Summary(
            loaded.trace.narrowed(to: TimeWindow(ranges.map { start + $0.lowerBound..<start + $0.upperBound })), workers: workers)
    }

    @Test func callsThatBeginInItAreCountedAndOfEachThePartInItIsItsTime() throws {
        let part = try summary(nested, [250..<700])
        #expect(part.rows == ["a 1 250 200", "b 0 50 50", "main 0 450 200"])
        #expect(part.calls == 1)
    }

    @Test func aCallThatLiesInItInPartHasNoLengthOfACall() throws {
        let part = try summary(nested, [250..<1000])
        let a = try #require(part.functions.first { $0.name == "a" })
        #expect(a.timedCalls == 1 && a.average == Nanoseconds(300) && a.minimum == Nanoseconds(300))
        let main = try #require(part.functions.first { $0.name == "main" })
        #expect(main.timedCalls == 0 && main.average == nil && main.median == nil)
    }

    @Test func whatEndsWhereItBeginsOrBeginsWhereItEndsIsOutside() throws {
        #expect(sums(try summary(nested, [300..<400]))["b"] == nil)
        let whole = try summary(nested, [200..<300])
        #expect(sums(whole)["b"] == Sums(calls: 1, total: 100, selfTime: 100))
        #expect(whole.functions.first { $0.name == "b" }?.maximum == Nanoseconds(100)) // it ends with it, and lies in it as a whole
        #expect(sums(try summary(nested, [0..<600]))["a"]?.calls == 1)
    }

    @Test func severalMomentsAreOneWindow() throws {
        let part = try summary(nested, [150..<250, 650..<700])
        #expect(part.rows == ["a 0 150 100", "b 1 50 50", "main 0 150 0"])
    }

    @Test func ownCodeIsWhatOfItNoCallCovers() throws {
        let builder = demo([.call(2, 100, 200), .call(2, 700, 1000)])
        let part = try summary(builder, [150..<800])
        #expect([part.span, part.own] == [Nanoseconds(650), Nanoseconds(500)])
        let outside = try summary(builder, [300..<400])
        #expect(outside.own == Nanoseconds(100) && outside.inCalls == Nanoseconds(0))
    }

    /// Chunks are read alone, each knows what was open when it began; some are not read at all.
    @Test(arguments: [1, 2, 3, 4, 5] as [UInt64], [Int.max, 7, 40])
    func partsOfATraceAddUpToTheWhole(seed: UInt64, wordsPerChunk: Int) throws {
        for framesPerChunk in [Int.max, 2] {
            let loaded = try Loaded(
                program(seed: seed, events: 600, wordsPerChunk: wordsPerChunk, framesPerChunk: framesPerChunk, hasResumes: false).bytes())
            let whole = loaded.summary, end = TraceEnd(loaded.trace).ticks.raw
            let cuts = [start, start + (end - start) / 7, start + (end - start) / 7 + 13, start + (end - start) / 2, end - 5]
            var report: [String: Sums] = [:], tree: [String: Sums] = [:]
            var events: UInt64 = 0, own: UInt64 = 0
            for (index, from) in cuts.enumerated() {
                let part = loaded.trace.narrowed(
                    to: TimeWindow([(index == 0 ? 0 : from)..<(index + 1 < cuts.count ? cuts[index + 1] : .max)]))
                let sum = Summary(part, workers: 3)
                report.merge(sums(sum), uniquingKeysWith: +)
                events += sum.calls
                own += sum.own.count
                let paths = CallTree(part, workers: 3)
                tree.merge(sums(paths), uniquingKeysWith: +)
                #expect(sums(paths) == withoutTotals(sums(sum)))
            }
            #expect(report == sums(whole))
            #expect(withoutTotals(tree) == withoutTotals(sums(whole)))
            #expect(events == whole.calls)
            #expect(own == whole.own.count)
        }
    }

    @Test(arguments: [1, 2, 3] as [UInt64], [Int.max, 7])
    func manyMomentsTellTheSameAsEachAlone(seed: UInt64, wordsPerChunk: Int) throws {
        let loaded = try Loaded(program(seed: seed, events: 400, wordsPerChunk: wordsPerChunk, hasResumes: false).bytes())
        let end = TraceEnd(loaded.trace).ticks.raw, step = (end - start) / 40
        let moments = (0..<20 as Range<UInt64>).map { start + 2 * $0 * step..<start + (2 * $0 + 1) * step }
        var alone: [String: Sums] = [:]
        for moment in moments { alone.merge(sums(Summary(loaded.trace.narrowed(to: TimeWindow([moment])))), uniquingKeysWith: +) }
        #expect(sums(Summary(loaded.trace.narrowed(to: TimeWindow(moments)), workers: 2)) == alone)
    }

    @Test(arguments: [1, 2, 3] as [UInt64], [Int.max, 7])
    func theRowsOfAnExportAreThePartsThatTheReportAddsUp(seed: UInt64, wordsPerChunk: Int) throws {
        let loaded = try Loaded(program(seed: seed, events: 400, wordsPerChunk: wordsPerChunk, hasResumes: false).bytes())
        let end = TraceEnd(loaded.trace).ticks.raw, third = (end - start) / 3
        let part = loaded.trace.narrowed(to: TimeWindow([start + third..<start + third + 40_000, start + 2 * third..<end]))
        var text: [UInt8] = []
        try Export([part]).write(.csv) { text += $0 }
        var selfTimes: [String: Int64] = [:]
        for line in String(decoding: text, as: UTF8.self).split(separator: "\n").dropFirst() {
            let fields = line.split(separator: ",", omittingEmptySubsequences: false)
            if let own = Int64(fields[7]) { selfTimes[String(fields[9]), default: 0] += own }
            let from = try #require(UInt64(fields[5]))
            #expect(part.window.touches(start + from, start + from + (UInt64(fields[6]) ?? 0)))
        }
        #expect(selfTimes.filter { $0.value != 0 } == sums(Summary(part)).mapValues { $0.selfTime }.filter { $0.value != 0 })
    }

    /// Every format has the same slices, in chunks read by several workers as in one.
    @Test(arguments: [1, 2, 3] as [UInt64])
    func anExportOfAWindowDoesNotDependOnTheChunks(seed: UInt64) throws {
        func text(_ wordsPerChunk: Int, _ framesPerChunk: Int) throws -> String {
            let loaded = try Loaded(
                program(seed: seed, events: 400, wordsPerChunk: wordsPerChunk, framesPerChunk: framesPerChunk, hasResumes: false).bytes())
            let end = TraceEnd(loaded.trace).ticks.raw, third = (end - start) / 3
            var text: [UInt8] = []
            let window = TimeWindow([start + third..<start + third + 40_000, start + 2 * third..<end])
            try Export([loaded.trace.narrowed(to: window)], workers: 2).write(.chrome) { text += $0 }
            return String(decoding: text, as: UTF8.self)
        }
        let one = try text(.max, .max)
        #expect(one.contains("before the time window") && one.contains("only partly in the time window"))
        #expect(try text(7, .max) == one)
        #expect(try text(40, 2) == one)
    }

    /// The estimate is right to a factor of three: a gigabyte is not half a megabyte.
    @Test(arguments: [ExportFormat.chrome, .speedscope, .csv]) func theSizeOfAnExportIsEstimated(format: ExportFormat) throws {
        let loaded = try Loaded(program(seed: 3, events: 4000, wordsPerChunk: 100).bytes())
        func byteCounts(_ trace: TraceFile) throws -> (estimated: Double, real: Double) {
            var count = 0
            let export = Export([trace])
            try export.write(format) { count += $0.count }
            return (Double(export.estimatedByteCount(format)), Double(count))
        }
        let whole = try byteCounts(loaded.trace)
        #expect(whole.estimated / whole.real > 1 / 3.0 && whole.estimated / whole.real < 3, "\(whole)")
        let end = TraceEnd(loaded.trace).ticks.raw
        let part = try byteCounts(loaded.trace.narrowed(to: TimeWindow([start..<start + (end - start) / 4])))
        #expect(part.estimated < whole.estimated / 2)
    }

    @Test func aWindowOfADamagedFileIsRead() throws {
        var random = Xorshift(seed: 7)
        let good = program(seed: 5, events: 300, wordsPerChunk: 30).bytes()
        for _ in 0..<60 {
            var bytes = good
            for _ in 0..<1 + random.below(40) { bytes[4096 + random.below(bytes.count - 4096)] = UInt8(random.below(256)) }
            let loaded = try Loaded(bytes)
            let window = TimeWindow([start + 2000..<start + 5000, start + 20_000..<start + 20_001, start + 25_000..<UInt64.max])
            let part = loaded.trace.narrowed(to: window)
            _ = RunSummary([part], path: part.path, workers: 2).table(by: .selfTime, top: 5, style: plain)
            _ = CallTree(part, workers: 2)
            _ = FunctionReport(part, FunctionPattern("*"))
            for format in [ExportFormat.chrome, .perfetto, .csv] { try Export([part]).write(format) { _ in } }
        }
    }

    @Test func nothingThatRanThenIsSaid() throws {
        let loaded = try Loaded(demo { $0.complete($1, 2, from: start + 500, to: start + 600) }.bytes())
        let part = loaded.trace.narrowed(to: TimeWindow([start..<start + 100]))
        let text = RunSummary([part], path: part.path).table(by: .selfTime, top: 5, style: plain)
        #expect(text.contains("(own code)") || text.contains("no recorded call was running then"), "\(text)")
    }

    @Test func aTimelineIsOfTheWindowAlone() throws {
        let loaded = try Loaded(nested.bytes())
        let part = loaded.trace.narrowed(to: TimeWindow([start + 250..<start + 700]))
        let lanes = CallTimeline.all(part, from: start + 250, until: start + 700, mostThreads: 4, mostSlices: 100)
        #expect(lanes[0].calls == 1)
        #expect(lanes[0].slices.map { [$0.start, $0.length] } == [[0, 450], [0, 150], [0, 50], [350, 100]])
    }

    @Test func slicesAreSharedByWhatIsToBeDrawn() {
        let shares = SliceShares.all(of: 60_000, among: [6_000_000] + [UInt64](repeating: 10, count: 63))
        #expect(shares[0] > 55_000 && shares.dropFirst().allSatisfy { $0 >= 20 && $0 < 100 })
        let crowded = SliceShares.all(of: 60_000, among: [6_000_000] + [UInt64](repeating: 100_000, count: 63))
        #expect(crowded[0] > 14_000 && crowded.dropFirst().allSatisfy { $0 >= 500 } && crowded.reduce(0, +) <= 60_000)
        #expect(SliceShares.all(of: 100, among: [.max, 1]).allSatisfy { $0 > 0 } && SliceShares.all(of: 100, among: []).isEmpty)
    }

    @Test func progressOfPartsDoesNotGoBack() {
        let progress = ReadingProgress(), asked: ReadingProgress? = progress
        var shares: [Double] = []
        asked.part(0, 0.5) {
            _ = asked.each([1, 3] as [UInt64], weight: { $0 }) { _ in asked.part(0, 0.5) { shares.append(progress.share) } }
            shares.append(progress.share)
        }
        asked.part(0.5, 1) { shares.append(progress.share) }
        #expect(shares == [0, 0.125, 0.5, 0.5] && progress.share == 1)
    }

    @Test func momentsThatOverlapOrTouchAreOne() {
        let window = TimeWindow([30..<40, 10..<20, 20..<25, 35..<50, 60..<60])
        #expect(window.moments == [10..<25, 30..<50])
        #expect(window.hull == 10..<50)
        #expect(window.length(from: 0, to: 100) == 35)
        #expect(window.length(from: 12, to: 31) == 14)
        #expect(
            [(0, 9, false), (0, 10, true), (24, 24, true), (25, 29, false), (49, 90, true), (50, 90, false)].allSatisfy {
                window.touches($0.0, $0.1) == $0.2
            })
        #expect(TimeWindow([0..<UInt64.max]).isWhole)
        #expect(TimeWindow([5..<UInt64.max]).moments == [5..<UInt64.max])
        #expect(TimeWindow([]).isEmpty && !TimeWindow([]).touches(0, .max))
        #expect(window.intersection(15..<35).moments == [15..<25, 30..<35])
    }

    @Test func theLongestCallsAreFoundWithTheirMoments() throws {
        let loaded = try Loaded(program(seed: 4, events: 800, wordsPerChunk: 40).bytes())
        let found = CallSearch(loaded.trace, FunctionPattern("b"), .longest(5), workers: 2)
        #expect(found.calls.count == 5)
        #expect(found.calls.map(\.length) == found.calls.map(\.length).sorted(by: >))
        #expect(found.longest == found.calls[0].length)
        #expect(found.calls.allSatisfy { found.name(of: $0).name == "b" })
        let least = found.calls[4].length
        let moments = try #require(CallSearch(loaded.trace, FunctionPattern("b"), .moments(least: least)).moments)
        for call in found.calls { #expect(TimeWindow(moments).touches(call.start, call.start)) }
        #expect(CallSearch(loaded.trace, FunctionPattern("nobody"), .longest(3)).count == 0)
    }
}
