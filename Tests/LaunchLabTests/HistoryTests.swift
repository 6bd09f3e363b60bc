import Foundation
import Testing
@testable import LaunchLab

@Suite struct HistoryTests {
    private let path = NSTemporaryDirectory() + "history-\(UUID().uuidString)/.tracer/history.sqlite"

    private func entry(_ time: Double, program: String = "app", commit: String = "abc") -> HistoryEntry {
        HistoryEntry(time: time, host: "h", machine: "m", program: program, command: "./app, \"x\"", build: "ff", commit: commit, settings: "--cold",
                     ready: "first listen", runs: 20, disturbed: 1, libraries: 3, relocations: 10, minorFaults: 5, majorFaults: 0, overhead: nil)
    }

    @Test func seriesAreReadBackOldestFirstWithTheirStagesInOrder() throws {
        let history = try History(path: path, creates: true)
        try history.add(entry(200), stages: [("launch", Sample([2e6, 4e6])), ("main → ready", Sample([1e6]))])
        try history.add(entry(100, program: "other"), stages: [("launch", Sample([1e6]))])
        let all = try History(path: path, creates: false).series()
        #expect(all.map(\.entry.time) == [100, 200])
        #expect(all[1].stages.map(\.name) == ["launch", "main → ready"])
        #expect(all[1].stages[0].p50 == 3e6)
        #expect(try history.series(program: "other").count == 1)
        #expect(try history.series(last: 1).map(\.entry.time) == [200])
    }

    @Test func aHistoryThatIsNotThereIsAClearLine() {
        #expect(throws: LaunchProblem.self) { _ = try History(path: path, creates: false) }
    }

    @Test func aFileThatIsNoDatabaseIsLeftAlone() throws {
        let file = NSTemporaryDirectory() + "not-a-database-\(UUID().uuidString)"
        try "this is a text of more than a hundred bytes, which no database begins with: \(String(repeating: "x", count: 100))".write(toFile: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: file) }
        #expect(throws: LaunchProblem.self) { _ = try History(path: file, creates: true) }
        #expect(try String(contentsOfFile: file, encoding: .utf8).hasPrefix("this is a text"))
    }

    @Test func exportsHaveARowForEachStage() throws {
        let history = try History(path: path, creates: true)
        try history.add(entry(0), stages: [("launch", Sample([2e6])), ("main → ready", Sample([1e6]))])
        let all = try history.series()
        let csv = HistoryExport.text(all, .csv).split(separator: "\n")
        #expect(csv.count == 3)
        #expect(csv[1].hasPrefix("1970-01-01 00:00:00,1,h,m,app,\"./app, \"\"x\"\"\",ff,abc,--cold,first listen,20,1,3,10,5,0,,0,launch,2000000,"))
        for line in HistoryExport.text(all, .ndjson).split(separator: "\n") {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as! [String: Any]
            #expect(object["overhead_ns"] is NSNull)
            #expect(object.count == csv[0].split(separator: ",").count)
        }
    }
}
