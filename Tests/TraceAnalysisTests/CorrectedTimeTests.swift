import CTraceLayout
import Foundation
import Presentation
import Testing
import TraceAnalysis
import TraceFormat
import TraceTesting

@Suite struct CorrectedTimeTests {
    /// main calls a for a long time 1,000 times, and b for hardly any 1,000 times. Recording costs 40, 20 of it inside.
    private func loaded(error: UInt32) throws -> Loaded {
        let calls = stride(from: 0, to: 2_000_000, by: 2000).flatMap { at -> [Step] in
            [.call(2, at, at + 1020), .call(3, at + 1100, at + 1122)]
        }
        var builder = demo([.call(1, 0, 2_000_000, calls)])
        builder.cost(leaf: 40, inside: 20)
        builder.header.leaf_error = error
        builder.header.inside_error = error
        return try Loaded(builder.bytes())
    }

    private func corrected(_ loaded: Loaded) throws -> [String: CorrectedTime] {
        var summary = loaded.summary
        summary.correct(by: CallTree(loaded.trace).rows(by: .function))
        return Dictionary(uniqueKeysWithValues: summary.functions.map { ($0.name, $0.correctedSelf!) })
    }

    @Test func aCorrectionHasTheErrorOfTheCost() throws {
        let times = try corrected(loaded(error: 64)) // a quarter
        #expect(times["a"]?.nanoseconds == 1_000_000)
        #expect(times["a"]?.error.count == 5000)
        #expect(times["a"]?.text == "1.000 ms ±5.000 us")
        #expect(times["main"]?.nanoseconds == 917_980, "1,042,000 below it; 40,000 and 20 are the cost")
    }

    @Test func whatMayAsWellBeNothingHasNoNumber() throws {
        let loaded = try loaded(error: 64), b = try #require(try corrected(loaded)["b"])
        #expect(b.nanoseconds == 2000)
        #expect(b.error.count == 5000)
        #expect(!b.isKnown)
        #expect(b.most == 7000)
        #expect(b.text == "< 7.000 us")
        var run = loaded.run
        run.summary.correct(by: CallTree(loaded.trace).rows(by: .function))
        let object = try jsonObject(ReportOutput(run, nil).json.text())
        let row = try #require((object["functions"] as? [[String: Any]])?.first { $0["name"] as? String == "b" })
        #expect(row["corrected_self_ns"] is NSNull)
        #expect(row["corrected_self_most_ns"] as? Int == 7000)
        #expect(row["p50_ns"] as? Int == 22, "percentiles are there")
    }

    @Test func theErrorIsNeverLessThanASixteenthAndAHalfWhereNobodyHasLooked() throws {
        #expect(try corrected(loaded(error: 1))["a"]?.error.count == 1250)
        #expect(try corrected(loaded(error: 0))["a"]?.error.count == 10_000)
    }

    @Test func recordingIsSaidOfRowsThatItIsMoreThanATenthOf() throws {
        let loaded = try loaded(error: 64)
        #expect(loaded["a"]?.recording?.count == 20_000)
        #expect(loaded["a"]?.recordingShare == nil, "2% of it")
        #expect(loaded["b"]?.recordingShare == 20.0 / 22)
        #expect(loaded["main"]?.recording?.count == 40_020)
        let table = loaded.run.table(by: .calls, top: 0, style: plain)
        #expect(table.contains(" ~recording "))
        #expect(table.split(separator: "\n").contains { $0.contains(" 90.9% ") && $0.contains(" b ") })
        #expect(!loaded.run.table(by: .calls, top: 0, width: 80, style: plain).contains(" ~recording "))
    }
}
