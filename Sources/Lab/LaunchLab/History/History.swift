// The runs kept so far: an SQLite database, by default .tracer/history.sqlite in the current directory.
import Foundation
import Presentation
import Statistics

package struct History: Sendable {
    package static let standardPath = ".tracer/history.sqlite"
    package struct Series: Sendable {
        package var entry: HistoryEntry
        package var stages: [HistoryStage]
    }

    private let path: String

    /// - Parameter creates: makes the file, and its folder, when it is not there.
    package init(path: String, creates: Bool) throws(LaunchProblem) {
        if !FileManager.default.fileExists(atPath: path) {
            guard creates else {
                throw LaunchProblem("\(path) does not exist: no launches are kept yet; tracer launch records them")
            }
            let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
            do {
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            } catch {
                throw LaunchProblem("cannot create \(folder) for the history: \(error.systemReason)")
            }
        }
        self.path = path
        do {
            _ = try database()
        } catch {
            throw LaunchProblem("cannot use \(path) as the history: \(error)")
        }
    }

    /// Two that make the tables at the same time wait for each other.
    private func database() throws -> Database {
        let database = try Database(path: path, patience: 10)
        if try database.run("SELECT 1 FROM sqlite_master WHERE name = 'stage'").isEmpty {
            try database.writing { for statement in History.tables { try database.run(statement) } }
        }
        // The column of each launch's time was added later. A file that cannot be written to is read without it.
        if try !History.hasValues(database) { try? History.addValues(to: database) }
        return database
    }

    private static func hasValues(_ database: borrowing Database) throws -> Bool {
        try database.run("PRAGMA table_info(stage)").contains { try $0.text("name") == "values_ns" }
    }
    private static func addValues(to database: borrowing Database) throws {
        try database.run("ALTER TABLE stage ADD COLUMN values_ns TEXT")
    }

    /// grdb_migrations is how versions up to 0.2 know that the tables are there.
    private static let tables = [
        "CREATE TABLE IF NOT EXISTS grdb_migrations (identifier TEXT NOT NULL PRIMARY KEY)",
        "INSERT OR IGNORE INTO grdb_migrations VALUES ('series and stages')",
        """
        CREATE TABLE IF NOT EXISTS "series" ("id" INTEGER PRIMARY KEY AUTOINCREMENT, "time" DOUBLE NOT NULL, \
        "host" TEXT NOT NULL, "machine" TEXT NOT NULL, "program" TEXT NOT NULL, "command" TEXT NOT NULL, "build" TEXT NOT NULL, \
        "revision" TEXT NOT NULL, "settings" TEXT NOT NULL, "ready" TEXT NOT NULL, "runs" INTEGER NOT NULL, \
        "disturbed" INTEGER NOT NULL, "libraries" INTEGER NOT NULL, "relocations" INTEGER NOT NULL, \
        "minor_faults" INTEGER NOT NULL, "major_faults" INTEGER NOT NULL, "overhead_ns" DOUBLE)
        """,
        "CREATE INDEX IF NOT EXISTS \"series_on_time\" ON \"series\"(\"time\")",
        """
        CREATE TABLE IF NOT EXISTS "stage" ("series" INTEGER NOT NULL REFERENCES "series"("id") ON DELETE CASCADE, \
        "position" INTEGER NOT NULL, "name" TEXT NOT NULL, "p50_ns" DOUBLE NOT NULL, "p90_ns" DOUBLE NOT NULL, \
        "p95_ns" DOUBLE NOT NULL, "spread_ns" DOUBLE NOT NULL, PRIMARY KEY ("series", "position"))
        """,
    ]

    @discardableResult
    package func add(_ entry: HistoryEntry, stages: [(name: String, sample: Sample)]) throws(LaunchProblem) -> Int64 {
        do {
            let database = try database()
            return try database.writing {
                let series = try database.insert(into: "series", entry.row)
                for (position, stage) in stages.enumerated() {
                    let stage = HistoryStage(
                        series: series, position: position, name: stage.name, p50: stage.sample.median,
                        p90: stage.sample.quantile(0.9), p95: stage.sample.quantile(0.95), spread: stage.sample.spread,
                        sample: stage.sample)
                    try database.insert(into: "stage", stage.row)
                }
                return series
            }
        } catch {
            throw LaunchProblem("could not write the history: \(error)")
        }
    }

    /// The oldest first. - Parameter program: only of this one, nil all.
    package func series(program: String? = nil, last count: Int? = nil) throws(LaunchProblem) -> [Series] {
        do {
            let database = try database()
            return try database.reading {
                // A negative limit is none: https://www.sqlite.org/lang_select.html#limitoffset
                try database.run(
                    "SELECT * FROM series WHERE ?1 IS NULL OR program = ?1 ORDER BY time DESC, id DESC LIMIT ?2",
                    [program.map { .text($0) } ?? .null, .integer(Int64(count ?? -1))]
                ).reversed().map { row in
                    let entry = try HistoryEntry(row)
                    let stages = try database.run("SELECT * FROM stage WHERE series = ? ORDER BY position", [.integer(row.integer("id"))])
                    return Series(entry: entry, stages: try stages.map { try HistoryStage($0) })
                }
            }
        } catch {
            throw LaunchProblem("could not read the history: \(error)")
        }
    }
}
