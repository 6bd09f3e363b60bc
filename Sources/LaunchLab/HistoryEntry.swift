// One series of launches as it is remembered.
import Foundation
import GRDB

public struct HistoryEntry: Codable, Equatable, Sendable, FetchableRecord, MutablePersistableRecord {
    public static let databaseTableName = "series"

    public var id: Int64?
    /// Seconds of the epoch.
    public var time: Double
    public var host: String
    public var machine: String
    public var program: String
    public var command: String
    /// Build-id of the executable, "" when it has none.
    public var build: String
    /// Of the git repository that the command was given in, "" outside one; "+" behind it when files were changed.
    public var commit: String
    /// What the launches were made with, as options: "--cold --cpu 1".
    public var settings: String
    public var ready: String
    public var runs: Int
    public var disturbed: Int
    public var libraries: Int
    public var relocations: Int
    public var minorFaults: Int, majorFaults: Int
    /// What the agent added to a launch and was taken out again, nanoseconds; nil: no launch was made without it.
    public var overhead: Double?

    enum CodingKeys: String, CodingKey {
        case id, time, host, machine, program, command, build, commit = "revision", settings, ready, runs, disturbed, libraries, relocations
        case minorFaults = "minor_faults", majorFaults = "major_faults", overhead = "overhead_ns"
    }

    public mutating func didInsert(_ inserted: InsertionSuccess) { id = inserted.rowID }

    public init(time: Double, host: String, machine: String, program: String, command: String, build: String, commit: String,
                settings: String, ready: String, runs: Int, disturbed: Int, libraries: Int, relocations: Int, minorFaults: Int,
                majorFaults: Int, overhead: Double?) {
        self.time = time
        self.host = host
        self.machine = machine
        self.program = program
        self.command = command
        self.build = build
        self.commit = commit
        self.settings = settings
        self.ready = ready
        self.runs = runs
        self.disturbed = disturbed
        self.libraries = libraries
        self.relocations = relocations
        self.minorFaults = minorFaults
        self.majorFaults = majorFaults
        self.overhead = overhead
    }
}

/// A stage of a series; the whole launch is the stage "launch". Nanoseconds.
public struct HistoryStage: Codable, Equatable, Sendable, FetchableRecord, PersistableRecord {
    public static let databaseTableName = "stage"

    public var series: Int64
    /// Its place in the launch, 0 the whole.
    public var position: Int
    public var name: String
    public var p50: Double, p90: Double, p95: Double, spread: Double

    enum CodingKeys: String, CodingKey {
        case series, position, name, p50 = "p50_ns", p90 = "p90_ns", p95 = "p95_ns", spread = "spread_ns"
    }
}
