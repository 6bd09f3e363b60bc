// The options of `tracer record`, checked here so that a bad value is an error before anything starts. Most set a variable of the agent
// each. An option that was not given leaves the variable as the user's environment has it.
import TraceFormat

package struct RecordOptions: Sendable {
    /// Values of the agent's variables as the user wrote them, by name.
    private var values: [String: Value] = [:]
    private enum Value { case text(String), globs([String]) }
    package var output: String?
    /// A run that is there under the name of the output goes.
    package var replaces = false
    /// When threads run and wait, and which pages come from disk, as the kernel reports it. nil: where that costs little.
    package var states: Bool?
    /// Stacks as well, this many times a second of each CPU that is at work; nil: none.
    package var samplesPerSecond: Int?
    /// Page faults whose page was in memory, too.
    package var minorFaults = false
    /// The snapshots that are wanted; nil: none. `set(_:)` also says so to the agent.
    package private(set) var snapshots: SnapshotPlan?
    /// Signals to the tool that mean something.
    package var signals = SignalWishes()
    package static let sampleRates = 1...20_000, usualSampleRate = 1000
    /// Traces of several processes go into one directory; otherwise each has a file by the template.
    package var gathersProcesses = false

    package init() {}

    /// nil: the option was not given.
    package mutating func set<Grammar>(_ variable: Variable<Grammar>, _ text: String?) {
        values[variable.name.description] = text.map { .text($0) }
    }
    package mutating func set(_ variable: Variable<Variables.Switch>, _ isOn: Bool?) { set(variable, isOn.map(Setting.word)) }
    /// The option is repeated.
    package mutating func set(_ variable: Variable<Variables.Globs>, _ patterns: [String]) {
        values[variable.name.description] = patterns.isEmpty ? nil : .globs(patterns)
    }
    /// A ring that keeps so much time, and the triggers.
    package mutating func set(_ plan: SnapshotPlan) {
        snapshots = plan
        set(Variables.mode, "ring")
        set(Variables.keep, plan.milliseconds)
        set(Variables.triggers, plan.text)
    }
    func isSet<Grammar>(_ variable: Variable<Grammar>) -> Bool { values[variable.name.description] != nil }

    /// Returns the variables that the agent reads, in the order of the manual. Throws a `Refusal` for the first bad value. The
    /// output is not among them: see `outputTemplate`.
    package func variables() throws(Refusal) -> [(name: String, value: String)] {
        var result: [(name: String, value: String)] = []
        for setting in Setting.all {
            guard let text = try given(setting) else { continue }
            guard let value = setting.value(text) else { throw .usage("\(setting.option) \(text): give \(setting.form)") }
            if setting.name == Variables.mode.name.description, Variables.mode.read(text) == .counts, !isSet(Variables.functions) {
                throw .usage("--mode counts needs --functions GLOB: it counts only the functions that --functions selects")
            }
            result.append((setting.name, value))
        }
        return result
    }
    /// Throws a `Refusal` for the first variable of the environment with a bad value that no option replaces.
    package func check(environment: (String) -> String?) throws(Refusal) {
        for setting in Setting.all where values[setting.name] == nil {
            guard let text = environment(setting.name), setting.value(text) == nil else { continue }
            throw .usage("\(setting.name)=\(text): give \(setting.form)")
        }
    }
    private func given(_ setting: Setting) throws(Refusal) -> String? {
        guard let value = values[setting.name] else { return nil }
        switch value {
        case .text(let text):
            if text.isEmpty, setting.name == Variables.ready.name.description { throw .usage("--ready: give \(setting.form)") }
            return text
        case .globs(let patterns):
            for pattern in patterns {
                // ':' separates globs in the variable, so "a:b" is two. "std::*" is none: names are the linker's.
                if pattern.split(separator: ":", omittingEmptySubsequences: false).contains(where: \.isEmpty) {
                    let hint = pattern.contains("::") ? "globs match the linker's names, so std:: is written _ZNSt*" : "a glob is empty"
                    throw .usage("\(setting.option) \"\(pattern)\": \(hint)")
                }
            }
            return patterns.joined(separator: ":")
        }
    }

    /// The option, else the variable; nil when neither says anything. What another `tracer record`, under which this one runs, has set
    /// for its own processes says nothing.
    func wantedOutput(environment: (String) -> String?) -> String? {
        if let output { return output }
        if environment(Variables.session.name.description).flatMap({ Variables.session.read($0) }) != nil { return nil }
        return environment(Variables.output.name.description).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// The wanted output, else the agent's default.
    package func outputTemplate(environment: (String) -> String?, currentDirectory: String) throws(Refusal) -> OutputTemplate {
        try OutputTemplate(wantedOutput(environment: environment) ?? OutputTemplate.standard, currentDirectory: currentDirectory)
    }
}
