// One series of launches as it is remembered.
import Statistics

package struct HistoryEntry: Equatable, Sendable {
    package var id: Int64?
    /// Seconds of the epoch.
    package var time: Double
    package var hostname: String
    package var cpu: String
    package var program: String
    package var command: String
    /// Build-id of the executable, "" when it has none.
    package var build: String
    /// Commit of the git repository that the command was given in, followed by "+" when tracked files were changed; "" outside one.
    package var commit: String
    /// Options that the launches were made with: "--cold --cpu 1".
    package var settings: String
    package var ready: String
    package var runs: Int
    package var disturbed: Int
    package var libraries: Int
    package var relocations: Int
    package var minorFaults: Int, majorFaults: Int
    /// Time that the agent added to a launch, taken out of the times again, nanoseconds; nil: no launch was made without the agent.
    package var overhead: Double?

    package init(
        time: Double, hostname: String, cpu: String, program: String, command: String, build: String, commit: String,
        settings: String, ready: String, runs: Int, disturbed: Int, libraries: Int, relocations: Int, minorFaults: Int,
        majorFaults: Int, overhead: Double?
    ) {
        self.time = time
        self.hostname = hostname
        self.cpu = cpu
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

    init(_ row: DatabaseRow) throws {
        id = try row.integer("id")
        time = try row.real("time")
        hostname = try row.text("host")
        cpu = try row.text("machine")
        program = try row.text("program")
        command = try row.text("command")
        build = try row.text("build")
        commit = try row.text("revision")
        settings = try row.text("settings")
        ready = try row.text("ready")
        runs = Int(try row.integer("runs"))
        disturbed = Int(try row.integer("disturbed"))
        libraries = Int(try row.integer("libraries"))
        relocations = Int(try row.integer("relocations"))
        minorFaults = Int(try row.integer("minor_faults"))
        majorFaults = Int(try row.integer("major_faults"))
        overhead = try row.isNull("overhead_ns") ? nil : row.real("overhead_ns")
    }

    /// The database gives the id.
    var row: KeyValuePairs<String, DatabaseValue> {
        [
            "time": .real(time), "host": .text(hostname), "machine": .text(cpu), "program": .text(program), "command": .text(command),
            "build": .text(build), "revision": .text(commit), "settings": .text(settings), "ready": .text(ready),
            "runs": .integer(Int64(runs)), "disturbed": .integer(Int64(disturbed)), "libraries": .integer(Int64(libraries)),
            "relocations": .integer(Int64(relocations)), "minor_faults": .integer(Int64(minorFaults)),
            "major_faults": .integer(Int64(majorFaults)), "overhead_ns": overhead.map { .real($0) } ?? .null,
        ]
    }
}

/// A stage of a series; the whole launch is the stage "launch". Nanoseconds.
package struct HistoryStage: Equatable, Sendable {
    package var series: Int64
    /// Its position in the launch, 0 the whole.
    package var position: Int
    package var name: String
    package var p50: Double, p90: Double, p95: Double, spread: Double
    /// Times of all launches in whole nanoseconds, separated by commas; nil in a series kept before these were stored.
    private var values: String?

    /// The times of all launches, needed to determine if another series differs; nil in a series kept before these were stored.
    package var sample: Sample? { values.map { Sample($0.split(separator: ",").compactMap { Double($0) }) } }

    package init(
        series: Int64, position: Int, name: String, p50: Double, p90: Double, p95: Double, spread: Double, sample: Sample? = nil
    ) {
        (self.series, self.position, self.name) = (series, position, name)
        (self.p50, self.p90, self.p95, self.spread) = (p50, p90, p95, spread)
        values = sample.map { $0.values.map { String(Int64($0.rounded())) }.joined(separator: ",") }
    }

    init(_ row: DatabaseRow) throws {
        series = try row.integer("series")
        position = Int(try row.integer("position"))
        name = try row.text("name")
        p50 = try row.real("p50_ns")
        p90 = try row.real("p90_ns")
        p95 = try row.real("p95_ns")
        spread = try row.real("spread_ns")
        values = try row.optionalText("values_ns")
    }

    var row: KeyValuePairs<String, DatabaseValue> {
        [
            "series": .integer(series), "position": .integer(Int64(position)), "name": .text(name), "p50_ns": .real(p50),
            "p90_ns": .real(p90), "p95_ns": .real(p95), "spread_ns": .real(spread), "values_ns": values.map { .text($0) } ?? .null,
        ]
    }
}
