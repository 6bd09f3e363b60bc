import Foundation
import LaunchLab
import Presentation
import Statistics
import Testing

@Suite struct HistoryTests {
    private let path = NSTemporaryDirectory() + "history-\(UUID().uuidString)/.tracer/history.sqlite"

    private func entry(_ time: Double, program: String = "app", commit: String = "abc") -> HistoryEntry {
        HistoryEntry(
            time: time, hostname: "h", cpu: "m", program: program, command: "./app, \"x\"", build: "ff", commit: commit, settings: "--cold",
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

    /// A change larger than the spread by chance, and one within it that every launch has.
    @Test func aChangeIsMarkedByTheTestThatLaunchUses() throws {
        let history = try History(path: path, creates: true)
        let steady = Sample((0..<20).map { 1e6 + Double($0) * 10 })
        let slower = Sample((0..<20).map { 1.001e6 + Double($0) * 10 })
        let few = Sample([1.2e6, 1e6 + 50, 1.2e6])
        for (time, sample) in [(1.0, steady), (2, slower), (3, slower), (4, few)] {
            try history.add(entry(time), stages: [("launch", sample)])
        }
        let points = try #require(HistoryTrend.all(try history.series()).first).points("launch")
        #expect(points.map(\.isClear) == [nil, true, false, false])
        #expect(points.map { $0.stage.sample?.count } == [20, 20, 20, 3])
        let table = HistoryText.table(try history.series(), style: TextStyle(isColoured: false))
        #expect(
            table.split(separator: "\n").map { $0.contains(" *") && !$0.contains("medians") } == [false, false, false, true, false, false])
        let json = try #require(
            JSONSerialization.jsonObject(with: Data(HistoryOutput(try history.series()).json.text().utf8)) as? [String: Any])
        let series = try #require((json["trends"] as? [[String: Any]])?.first?["series"] as? [[String: Any]])
        let stages = try series.map { try #require(($0["stages"] as? [[String: Any]])?.first) }
        #expect(stages.map { $0["significant"] as? Bool } == [nil, true, false, false])
    }

    @Test func aSeriesKeptBeforeItsLaunchesWereIsComparedWithoutAMark() throws {
        let history = try History(path: path, creates: true)
        try history.add(entry(1), stages: [("launch", Sample([1e6, 1.1e6]))])
        try Database(path: path, patience: 1).run("UPDATE stage SET values_ns = NULL")
        try history.add(entry(2), stages: [("launch", Sample((0..<20).map { 9e6 + Double($0) }))])
        let points = try #require(HistoryTrend.all(try history.series()).first).points("launch")
        #expect(points.map(\.isClear) == [nil, nil])
        #expect(points[1].change != nil)
    }

    @Test func aHistoryThatIsNotThereIsAClearLine() {
        #expect(throws: LaunchProblem.self) { _ = try History(path: path, creates: false) }
    }

    @Test func aFileThatIsNoDatabaseIsLeftAlone() throws {
        let file = NSTemporaryDirectory() + "not-a-database-\(UUID().uuidString)"
        try "this is a text of more than a hundred bytes, which no database begins with: \(String(repeating: "x", count: 100))".write(
            toFile: file, atomically: true, encoding: .utf8)
        defer { try? FileManager.default.removeItem(atPath: file) }
        #expect(throws: LaunchProblem.self) { _ = try History(path: file, creates: true) }
        #expect(try String(contentsOfFile: file, encoding: .utf8).hasPrefix("this is a text"))
    }

    @Test func aFileOfAnEarlierVersionIsReadAndWrittenAndOneOfThisVersionHasTheSameTables() throws {
        // The file as GRDB wrote it, up to version 0.2.
        let earlier = [
            "CREATE TABLE grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY)",
            "INSERT INTO grdb_migrations VALUES ('series and stages')",
            #"CREATE TABLE "series" ("id" INTEGER PRIMARY KEY AUTOINCREMENT, "time" DOUBLE NOT NULL, "host" TEXT NOT NULL, "machine" TEXT NOT NULL, "#
                + #""program" TEXT NOT NULL, "command" TEXT NOT NULL, "build" TEXT NOT NULL, "revision" TEXT NOT NULL, "settings" TEXT NOT NULL, "#
                + #""ready" TEXT NOT NULL, "runs" INTEGER NOT NULL, "disturbed" INTEGER NOT NULL, "libraries" INTEGER NOT NULL, "#
                + #""relocations" INTEGER NOT NULL, "minor_faults" INTEGER NOT NULL, "major_faults" INTEGER NOT NULL, "overhead_ns" DOUBLE)"#,
            #"CREATE INDEX "series_on_time" ON "series"("time")"#,
            #"CREATE TABLE "stage" ("series" INTEGER NOT NULL REFERENCES "series"("id") ON DELETE CASCADE, "position" INTEGER NOT NULL, "#
                + #""name" TEXT NOT NULL, "p50_ns" DOUBLE NOT NULL, "p90_ns" DOUBLE NOT NULL, "p95_ns" DOUBLE NOT NULL, "spread_ns" DOUBLE NOT NULL, "#
                + #"PRIMARY KEY ("series", "position"))"#,
            "INSERT INTO series VALUES (7, 1795390576.5, 'vm', 'AMD EPYC', 'true', 'true', 'c8', '', '', 'main returned', 3, 0, 1, 141, 218, 1, NULL)",
            "INSERT INTO series VALUES (8, 1795390577, 'vm', 'AMD EPYC', 'true', 'é', 'c8', '', '', 'main returned', 3, 0, 1, 141, 218, 1, 25)",
            "INSERT INTO stage VALUES (7, 1, 'exec → loader', 68953646.0, 75710017.2, 76554563.6, 8909636.0)",
            "INSERT INTO stage VALUES (7, 0, 'launch', 69453185.0, 76373518.6, 77238560.3, 8898664.5)",
        ]
        let tables = "SELECT type, name, sql FROM sqlite_master ORDER BY name"
        func texts(_ path: String, _ statement: String) throws -> [[String?]] {
            try Database(path: path, patience: 1).run(statement).map { row in
                try ["type", "name", "sql"].map { try row.isNull($0) ? nil : row.text($0) }
            }
        }
        let old = NSTemporaryDirectory() + "earlier-\(UUID().uuidString).sqlite"
        defer { try? FileManager.default.removeItem(atPath: old) }
        do {
            let database = try Database(path: old, patience: 1)
            for statement in earlier { try database.run(statement) }
        }
        let history = try History(path: old, creates: false)
        let all = try history.series()
        #expect(all.map(\.entry.id) == [7, 8])
        #expect(all.map(\.entry.time) == [1795390576.5, 1795390577])
        #expect(all.map(\.entry.command) == ["true", "é"])
        #expect(all.map(\.entry.minorFaults) == [218, 218])
        #expect(all.map(\.entry.overhead) == [nil, 25])
        #expect(all[0].stages.map(\.name) == ["launch", "exec → loader"])
        #expect(all[0].stages[1].spread == 8909636)
        #expect(try history.add(entry(1795390578), stages: [("launch", Sample([1e6]))]) == 9)
        #expect(try history.series(last: 2).map(\.entry.id) == [8, 9])

        _ = try History(path: path, creates: true)
        #expect(try texts(path, tables) == texts(old, tables))
        #expect(
            try Database(path: path, patience: 1).run("SELECT identifier FROM grdb_migrations").map { try $0.text("identifier") }
                == ["series and stages"])
    }

    @Test func whatCannotBeWrittenLeavesNothingBehind() throws {
        let history = try History(path: path, creates: true)
        try history.add(entry(1), stages: [("launch", Sample([1e6]))])
        try Database(path: path, patience: 1).run("CREATE TRIGGER no BEFORE INSERT ON stage BEGIN SELECT RAISE(ABORT, 'not now'); END")
        #expect(throws: LaunchProblem("could not write the history: not now")) {
            try history.add(entry(2), stages: [("launch", Sample([1e6]))])
        }
        #expect(try history.series().map(\.entry.time) == [1])
    }

    @Test func severalAtOnceWriteOneAfterTheOther() async throws {
        let path = path, entry = entry(1)
        try await withThrowingTaskGroup { group in
            for _ in 0..<8 {
                group.addTask { _ = try History(path: path, creates: true).add(entry, stages: [("launch", Sample([1e6]))]) }
            }
            try await group.waitForAll()
        }
        #expect(try History(path: path, creates: false).series().map(\.entry.id) == (1...8).map { Int64($0) })
    }

    @Test func exportsHaveARowForEachStage() throws {
        let history = try History(path: path, creates: true)
        try history.add(entry(0), stages: [("launch", Sample([2e6])), ("main → ready", Sample([1e6]))])
        let all = try history.series()
        let csv = HistoryExport.text(all, .csv).split(separator: "\n")
        #expect(csv.count == 3)
        #expect(
            csv[1].hasPrefix(
                "1970-01-01 00:00:00,1,h,m,app,\"./app, \"\"x\"\"\",ff,abc,--cold,first listen,20,1,3,10,5,0,,0,launch,2000000,"))
        for line in HistoryExport.text(all, .ndjson).split(separator: "\n") {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as! [String: Any]
            #expect(object["overhead_ns"] is NSNull)
            #expect(object.count == csv[0].split(separator: ",").count)
        }
    }
}
