// The file that a team commits: what a launch is made of, how long its stages take, and what it is allowed to become. Made
// to be read in a review: names in a fixed order, milliseconds, one library, constructor or stage a line.
import Foundation
import TraceAnalysis

public struct Baseline: Codable, Equatable, Sendable {
    public static let schema = "tracer.baseline/1"

    public struct Machine: Codable, Equatable, Sendable {
        public var architecture: String
        public var processor: String
        public var kernel: String
        /// Of the calibration arithmetic, milliseconds: how fast the machine was.
        public var calibrationMs: Double
        enum CodingKeys: String, CodingKey { case architecture, processor, kernel, calibrationMs = "calibration_ms" }
    }
    public struct Stage: Codable, Equatable, Sendable {
        public var name: String
        public var p50Ms: Double, p90Ms: Double, p95Ms: Double, spreadMs: Double
        /// The median may not exceed this; nil: the median here, with `budgets.stage`.
        public var budgetMs: Double?
        /// Every run, for the test that tells a change from noise.
        public var runsMs: [Double]
        enum CodingKeys: String, CodingKey {
            case name, p50Ms = "p50_ms", p90Ms = "p90_ms", p95Ms = "p95_ms", spreadMs = "spread_ms", budgetMs = "budget_ms", runsMs = "runs_ms"
        }
    }
    /// What a launch is made of below its stages: a constructor, a dlopen, a lazy initializer, a call path.
    public struct Part: Codable, Equatable, Sendable {
        public var kind: CallNode.Kind
        public var module: String, name: String
        /// From the stage inward.
        public var within: [String]
        public var calls: Int
        /// With everything inside: the median, and how far the middle half of the runs lies apart.
        public var ms: Double, spreadMs: Double
        var key: CallNode.Key { CallNode.Key(kind, module: module, name: name) }
        enum CodingKeys: String, CodingKey { case kind, module, name, within = "in", calls, ms, spreadMs = "spread_ms" }
    }
    public struct Library: Codable, Equatable, Sendable {
        public var name: String
        public var relocations: Int
    }
    /// How much worse each may become before `check` fails.
    public struct Budgets: Codable, Equatable, Sendable {
        /// Share of a stage's median, and never less than `stageMs`.
        public var stage = 0.10
        public var stageMs = 0.5
        /// A constructor that was not there fails when it takes longer.
        public var constructorMs = 0.2
        /// Shares.
        public var relocations = 0.05
        public var pageFaults = 0.10
        public init() {}
        enum CodingKeys: String, CodingKey {
            case stage, stageMs = "stage_ms", constructorMs = "constructor_ms", relocations, pageFaults = "page_faults"
        }
    }

    public var schema: String
    public var program: String
    public var command: String
    public var ready: String
    /// What changes how a launch is measured, as options: "--cold --cpu 1".
    public var settings: String
    public var machine: Machine
    public var runs: Int
    /// What recording a call was found to cost, nanoseconds; taken out of the times. `check` takes out the same.
    public var callCostNs: Double
    public var budgets: Budgets
    /// The whole launch comes first, under the name "launch".
    public var stages: [Stage]
    public var relocations: Int
    public var minorFaults: Int, majorFaults: Int
    public var libraries: [Library]
    /// Constructors, loads and lazy initializers of at least `listedMs`; calls of at least `callsFromMs`.
    public var constructors: [Part]
    public var loads: [Part]
    public var callsFromMs: Double
    public var calls: [Part]

    enum CodingKeys: String, CodingKey {
        case schema, program, command, ready, settings, machine, runs, callCostNs = "call_cost_ns", budgets, stages, relocations
        case minorFaults = "minor_faults", majorFaults = "major_faults", libraries, constructors, loads, callsFromMs = "calls_from_ms", calls
    }

    public static let wholeLaunch = "launch"
    /// What is shorter is not listed: the file is for people.
    static let listedMs = 0.05
    /// Nor are calls that take less of the launch, nor more of them than somebody reads.
    static let listedShare = 0.01, mostCalls = 60
}

extension Baseline {
    public init(program: String, command: LaunchCommand, profiles: [LaunchProfile], machine: Machine, settings: String = "",
                callCost: Double = 0, budgets: Budgets = Budgets()) {
        schema = Baseline.schema
        self.program = program
        self.command = command.text
        self.settings = settings
        self.machine = machine
        self.budgets = budgets
        callCostNs = (callCost * 10).rounded() / 10
        ready = profiles.first?.readyReason ?? "?"
        runs = profiles.count
        let summary = LaunchSummary(profiles)
        stages = summary.stages.map { stage in
            Stage(name: stage.name, p50Ms: milliseconds(stage.sample.median), p90Ms: milliseconds(stage.sample.quantile(0.9)),
                  p95Ms: milliseconds(stage.sample.quantile(0.95)), spreadMs: milliseconds(stage.sample.spread), budgetMs: nil,
                  runsMs: stage.sample.values.map(milliseconds))
        }
        relocations = summary.relocations
        minorFaults = summary.minorFaults
        majorFaults = summary.majorFaults
        libraries = summary.libraries.map { Library(name: $0.name, relocations: $0.relocations) }
        let parts = LaunchParts(profiles, callsFrom: max(stages[0].p50Ms * Baseline.listedShare, Baseline.listedMs), most: Baseline.mostCalls)
        constructors = parts.constructors
        loads = parts.loads
        callsFromMs = parts.callsFrom
        calls = parts.calls
    }

    /// Throws a line that says what is wrong with the file.
    public init(contentsOf path: String) throws(LaunchProblem) {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw LaunchProblem("\(path): \(String(cString: strerror(errno))); make one with: tracer baseline -o \(path) -- PROGRAM")
        }
        do {
            self = try JSONDecoder().decode(Baseline.self, from: data)
        } catch {
            throw LaunchProblem("\(path) is not a baseline of tracer: \(Baseline.explain(error))")
        }
        guard schema == Baseline.schema else {
            throw LaunchProblem("\(path) has the schema \"\(schema)\"; this tracer reads \"\(Baseline.schema)\": make it anew with tracer baseline")
        }
    }

    private static func explain(_ error: any Error) -> String {
        switch error as? DecodingError {
        case .keyNotFound(let key, _): "\"\(key.stringValue)\" is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            "\"\(context.codingPath.map(\.stringValue).joined(separator: "."))\" is not what it should be"
        default: "it is not JSON"
        }
    }

    public var text: String {
        func number(_ value: Double) -> JSON { .number(value) }
        return JSON.object([
            ("schema", .string(schema)), ("program", .string(program)), ("command", .string(command)), ("ready", .string(ready)),
            ("settings", .string(settings)),
            ("machine", .object([
                ("architecture", .string(machine.architecture)), ("processor", .string(machine.processor)),
                ("kernel", .string(machine.kernel)), ("calibration_ms", number(machine.calibrationMs))])),
            ("runs", .unsigned(UInt64(runs))), ("call_cost_ns", number(callCostNs)),
            ("budgets", .object([
                ("stage", number(budgets.stage)), ("stage_ms", number(budgets.stageMs)),
                ("constructor_ms", number(budgets.constructorMs)), ("relocations", number(budgets.relocations)),
                ("page_faults", number(budgets.pageFaults))])),
            ("stages", .array(stages.map { stage in
                .object([("name", .string(stage.name)), ("p50_ms", number(stage.p50Ms)), ("p90_ms", number(stage.p90Ms)),
                         ("p95_ms", number(stage.p95Ms)), ("spread_ms", number(stage.spreadMs))]
                    + (stage.budgetMs.map { [("budget_ms", number($0))] } ?? [])
                    + [("runs_ms", .array(stage.runsMs.map(number)))])
            })),
            ("relocations", .unsigned(UInt64(relocations))),
            ("minor_faults", .unsigned(UInt64(minorFaults))), ("major_faults", .unsigned(UInt64(majorFaults))),
            ("libraries", .array(libraries.map {
                .object([("name", .string($0.name)), ("relocations", .unsigned(UInt64($0.relocations)))])
            })),
            ("constructors", .array(constructors.map(json))), ("loads", .array(loads.map(json))),
            ("calls_from_ms", number(callsFromMs)), ("calls", .array(calls.map(json))),
        ]).text(lines: 2) + "\n"
    }
}

extension Baseline {
    private func json(_ part: Part) -> JSON {
        .object([("kind", .string(part.kind.rawValue)), ("module", .string(part.module)), ("name", .string(part.name)),
                 ("in", .array(part.within.map { .string($0) })), ("calls", .unsigned(UInt64(part.calls))),
                 ("ms", .number(part.ms)), ("spread_ms", .number(part.spreadMs))])
    }
}

/// Something that a command of the lab cannot go on with: one line.
public struct LaunchProblem: Error, Equatable, Sendable {
    public var message: String
    public init(_ message: String) { self.message = message }
}

/// To the microsecond: more is noise, and would change in every review.
func milliseconds(_ nanoseconds: Double) -> Double { (nanoseconds / 1000).rounded() / 1000 }
