// The file that a team commits: what a launch is made of, how long its stages take, and what it is allowed to become. Made
// to be read in a review: names in a fixed order, milliseconds, one library, constructor or stage a line.
import Foundation
import Presentation
import TraceAnalysis

package struct Baseline: Decodable, Equatable, Sendable {
    package static let schema = "tracer.baseline/1"

    package struct Stage: Decodable, Equatable, Sendable {
        package var name: String
        package var p50Ms: Double, p90Ms: Double, p95Ms: Double, spreadMs: Double
        /// The median may not exceed this; nil: the median here, with `budgets.stage`.
        package var budgetMs: Double?
        /// Every run, for the test that distinguishes a change from noise.
        package var runsMs: [Double]
        enum CodingKeys: String, CodingKey {
            case name, p50Ms = "p50_ms", p90Ms = "p90_ms", p95Ms = "p95_ms", spreadMs = "spread_ms", budgetMs = "budget_ms", runsMs =
                "runs_ms"
        }
    }
    /// A part of a launch below its stages: a constructor, a dlopen, a lazy initializer, a call path.
    package struct Part: Decodable, Equatable, Sendable {
        package var kind: CallNode.Kind
        package var module: String, name: String
        /// From the stage inward.
        package var within: [String]
        package var calls: Int
        /// With everything inside: the median, and how far the middle half of the runs lies apart.
        package var ms: Double, spreadMs: Double
        var key: CallNode.Key { CallNode.Key(kind, module: module, name: name) }
        enum CodingKeys: String, CodingKey { case kind, module, name, within = "in", calls, ms, spreadMs = "spread_ms" }
    }
    package struct Library: Decodable, Equatable, Sendable {
        package var name: String
        package var relocations: Int
    }
    /// How much worse each may become before `check` fails.
    package struct Budgets: Decodable, Equatable, Sendable {
        /// Share of a stage's median, and never less than `stageMs`.
        package var stage = 0.10
        package var stageMs = 0.5
        /// A constructor that was not there fails when it takes longer.
        package var constructorMs = 0.2
        /// A start-up item that was not there fails when it takes longer.
        package var itemMs = 0.2
        /// Shares.
        package var relocations = 0.05
        package var pageFaults = 0.10
        package var files = 0.10
        package init() {}
        enum CodingKeys: String, CodingKey {
            case stage, stageMs = "stage_ms", constructorMs = "constructor_ms", itemMs = "item_ms", relocations, pageFaults = "page_faults"
            case files
        }
        /// A file of an older tracer has no budgets for items and files.
        package init(from decoder: any Decoder) throws {
            let members = try decoder.container(keyedBy: CodingKeys.self)
            stage = try members.decode(Double.self, forKey: .stage)
            stageMs = try members.decode(Double.self, forKey: .stageMs)
            constructorMs = try members.decode(Double.self, forKey: .constructorMs)
            itemMs = try members.decodeIfPresent(Double.self, forKey: .itemMs) ?? itemMs
            relocations = try members.decode(Double.self, forKey: .relocations)
            pageFaults = try members.decode(Double.self, forKey: .pageFaults)
            files = try members.decodeIfPresent(Double.self, forKey: .files) ?? files
        }
    }

    package var schema: String
    package var program: String
    package var command: String
    package var ready: String
    /// Options that change how a launch is measured: "--cold --cpu 1".
    package var settings: String
    package var machine: MeasuredMachine
    package var runs: Int
    /// Measured cost of recording a call, nanoseconds; taken out of the times. `check` takes out the same.
    package var callCostNs: Double
    package var budgets: Budgets
    /// The whole launch comes first, under the name "launch".
    package var stages: [Stage]
    package var relocations: Int
    package var minorFaults: Int, majorFaults: Int
    package var libraries: [Library]
    /// Constructors, loads and lazy initializers of at least `listedMs`; calls of at least `callsFromMs`.
    package var constructors: [Part]
    package var loads: [Part]
    package var callsFromMs: Double
    package var calls: [Part]
    /// Start-up items, all of them, of whatever thread: they are few, and named by people. nil: an older tracer has made the file.
    package var items: [Part]?
    /// Paths of the files that most launches use until they are ready; nil: it was not recorded, or an older tracer has made the file.
    package var files: [String]?

    enum CodingKeys: String, CodingKey {
        case schema, program, command, ready, settings, machine, runs, callCostNs = "call_cost_ns", budgets, stages, relocations
        case minorFaults = "minor_faults", majorFaults = "major_faults", libraries, constructors, loads, callsFromMs = "calls_from_ms",
            calls, items, files
    }

    /// Shorter parts are not listed: the file is for people.
    static let listedMs = 0.05
    /// Calls that take a smaller share of the launch are not listed either, nor more calls than somebody reads.
    static let listedShare = 0.01, mostCalls = 60
}

extension Baseline {
    package init(
        program: String, command: LaunchCommand, profiles: [LaunchProfile], machine: MeasuredMachine, settings: String = "",
        callCost: Double = 0, budgets: Budgets = Budgets()
    ) {
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
            Stage(
                name: stage.name, p50Ms: milliseconds(stage.sample.median), p90Ms: milliseconds(stage.sample.quantile(0.9)),
                p95Ms: milliseconds(stage.sample.quantile(0.95)), spreadMs: milliseconds(stage.sample.spread), budgetMs: nil,
                runsMs: stage.sample.values.map(milliseconds))
        }
        relocations = summary.relocations
        minorFaults = summary.minorFaults
        majorFaults = summary.majorFaults
        libraries = summary.libraries.map { Library(name: $0.name, relocations: $0.relocations) }
        let parts = LaunchParts(
            profiles, callsFrom: max(stages[0].p50Ms * Baseline.listedShare, Baseline.listedMs), most: Baseline.mostCalls)
        constructors = parts.constructors
        loads = parts.loads
        callsFromMs = parts.callsFrom
        files = summary.files
        calls = parts.calls
        items = summary.items.map { item in
            Part(
                kind: .item, module: item.key.module, name: item.key.name, within: [], calls: 1,
                ms: milliseconds(item.sample.median), spreadMs: milliseconds(item.sample.spread))
        }
    }

    /// Throws a line that says what is wrong with the file.
    package init(contentsOf path: String) throws(LaunchProblem) {
        guard let data = FileManager.default.contents(atPath: path) else {
            throw LaunchProblem("\(path): \(String(cString: strerror(errno))); make one with: tracer baseline -o \(path) -- PROGRAM")
        }
        do {
            self = try JSONDecoder().decode(Baseline.self, from: data)
        } catch {
            throw LaunchProblem("\(path) is not a baseline of tracer: \(Baseline.explain(error))")
        }
        guard schema == Baseline.schema else {
            throw LaunchProblem(
                "\(path) has the schema \"\(schema)\"; this tracer reads \"\(Baseline.schema)\": recreate it with tracer baseline")
        }
    }

    private static func explain(_ error: any Error) -> String {
        switch error as? DecodingError {
        case .keyNotFound(let key, _): "\"\(key.stringValue)\" is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            "\"\(context.codingPath.map(\.stringValue).joined(separator: "."))\" has the wrong type"
        default: "it is not JSON"
        }
    }
}

// MARK: - Text

extension Baseline: Record {
    /// The file's content: one library, constructor or stage a line.
    package var text: String { json.text(lines: 2) + "\n" }

    package static let members = declare {
        Member("schema", \.schema)
        Member("program", \.program)
        Member("command", \.command)
        Member("ready", \.ready)
        Member("settings", \.settings)
        Member("machine", \.machine)
        Member("runs", \.runs)
        Member("call_cost_ns", \.callCostNs)
        Member("budgets", \.budgets)
        Member("stages", \.stages)
        Member("relocations", \.relocations)
        Member("minor_faults", \.minorFaults)
        Member("major_faults", \.majorFaults)
        Member("libraries", \.libraries)
        Member("constructors", \.constructors)
        Member("loads", \.loads)
        Member("calls_from_ms", \.callsFromMs)
        Member("calls", \.calls)
        Member.optional("items") { $0.items }
        Member.optional("files") { $0.files }
    }
}

extension Baseline.Stage: Record {
    package static let members = declare {
        Member("name", \.name)
        Member("p50_ms", \.p50Ms)
        Member("p90_ms", \.p90Ms)
        Member("p95_ms", \.p95Ms)
        Member("spread_ms", \.spreadMs)
        Member.optional("budget_ms") { $0.budgetMs }
        Member("runs_ms", \.runsMs)
    }
}

extension Baseline.Part: Record {
    package static let members = declare {
        Member("kind", \.kind.rawValue)
        Member("module", \.module)
        Member("name", \.name)
        Member("in", \.within)
        Member("calls", \.calls)
        Member("ms", \.ms)
        Member("spread_ms", \.spreadMs)
    }
}

extension Baseline.Library: Record {
    package static let members = declare {
        Member("name", \.name)
        Member("relocations", \.relocations)
    }
}

extension Baseline.Budgets: Record {
    package static let members = declare {
        Member("stage", \.stage)
        Member("stage_ms", \.stageMs)
        Member("constructor_ms", \.constructorMs)
        Member("item_ms", \.itemMs)
        Member("relocations", \.relocations)
        Member("page_faults", \.pageFaults)
        Member("files", \.files)
    }
}

extension MeasuredMachine: Record {
    package static let members = declare {
        Member("architecture", \.architecture)
        Member("processor", \.cpu)
        Member("kernel", \.kernel)
        Member("calibration_ms", \.calibrationMs)
    }
}
