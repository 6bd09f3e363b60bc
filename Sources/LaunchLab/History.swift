// The runs kept so far: an SQLite database, by default .tracer/history.sqlite in the current directory.
import Foundation
import GRDB

public struct History: Sendable {
    public static let standardPath = ".tracer/history.sqlite"
    public struct Series: Sendable {
        public var entry: HistoryEntry
        public var stages: [HistoryStage]
    }

    private let database: DatabaseQueue

    /// - Parameter creates: makes the file, and its folder, when it is not there.
    public init(path: String, creates: Bool) throws(LaunchProblem) {
        if !FileManager.default.fileExists(atPath: path) {
            guard creates else {
                throw LaunchProblem("\(path) is not there: no launches are kept yet; tracer launch keeps them")
            }
            let folder = URL(fileURLWithPath: path).deletingLastPathComponent().path
            do {
                try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            } catch {
                throw LaunchProblem("the folder \(folder) for the history cannot be made: \(error.systemReason)")
            }
        }
        do {
            var configuration = Configuration()
            configuration.busyMode = .timeout(10) // another tracer may be writing
            database = try DatabaseQueue(path: path, configuration: configuration)
            try History.migrator.migrate(database)
        } catch {
            throw LaunchProblem("\(path) cannot be used as the history: \(error)")
        }
    }

    private static var migrator: DatabaseMigrator {
        var migrator = DatabaseMigrator()
        migrator.registerMigration("series and stages") { database in
            try database.create(table: "series") { table in
                table.autoIncrementedPrimaryKey("id")
                table.column("time", .double).notNull().indexed()
                for name in ["host", "machine", "program", "command", "build", "revision", "settings", "ready"] {
                    table.column(name, .text).notNull()
                }
                for name in ["runs", "disturbed", "libraries", "relocations", "minor_faults", "major_faults"] {
                    table.column(name, .integer).notNull()
                }
                table.column("overhead_ns", .double)
            }
            try database.create(table: "stage") { table in
                table.column("series", .integer).notNull().references("series", onDelete: .cascade)
                table.column("position", .integer).notNull()
                table.column("name", .text).notNull()
                for name in ["p50_ns", "p90_ns", "p95_ns", "spread_ns"] { table.column(name, .double).notNull() }
                table.primaryKey(["series", "position"])
            }
        }
        return migrator
    }

    @discardableResult
    public func add(_ entry: HistoryEntry, stages: [(name: String, sample: Sample)]) throws(LaunchProblem) -> Int64 {
        do {
            return try database.write { database in
                var entry = entry
                try entry.insert(database)
                for (position, stage) in stages.enumerated() {
                    try HistoryStage(series: entry.id!, position: position, name: stage.name, p50: stage.sample.median,
                                     p90: stage.sample.quantile(0.9), p95: stage.sample.quantile(0.95), spread: stage.sample.spread)
                        .insert(database)
                }
                return entry.id!
            }
        } catch {
            throw LaunchProblem("the history could not be written: \(error)")
        }
    }

    /// The oldest first. - Parameter program: only of this one, nil all.
    public func series(program: String? = nil, last count: Int? = nil) throws(LaunchProblem) -> [Series] {
        do {
            return try database.read { database in
                var request = HistoryEntry.order(Column("time").desc, Column("id").desc)
                if let program { request = request.filter(Column("program") == program) }
                if let count { request = request.limit(count) }
                return try request.fetchAll(database).reversed().map { entry in
                    Series(entry: entry, stages: try HistoryStage.filter(Column("series") == entry.id!).order(Column("position")).fetchAll(database))
                }
            }
        } catch {
            throw LaunchProblem("the history could not be read: \(error)")
        }
    }
}
