// The options of `tracer record`, one for each environment variable of the agent, checked here so that a bad value is
// an error before anything starts. An option that was not given leaves the variable as the user's environment has it.
import TraceFormat

package struct RecordOptions: Sendable {
    package var output: String?
    /// A run that is there under the name of the output goes.
    package var replaces = false
    package var maximumDepth: String?
    package var minimumMilliseconds: String?
    /// Globs of functions whose every call is recorded, not only calls through slots.
    package var functions: [String] = []
    /// In bytes; smaller ones that call nothing are not.
    package var minimumSize: String?
    /// Also those that are short and called very often.
    package var keepsHot = false
    /// Each call with the address that it returns to.
    package var callSites = false
    package var include: [String] = []
    package var exclude: [String] = []
    package var maximumSize: String?
    package var mode: String?
    package var children: Bool?
    package var cache: Bool?
    package var start: String?
    /// When threads run and wait, and which pages come from disk, as the kernel reports it. nil: where that costs little.
    package var states: Bool?
    /// Stacks as well, this many times a second of each CPU that is at work; nil: none.
    package var samplesPerSecond: Int?
    /// Page faults whose page was in memory, too.
    package var minorFaults = false
    package static let sampleRates = 1...20_000, usualSampleRate = 1000
    /// The function whose first call means that the program is ready.
    package var ready: String?
    package var quiet = false
    /// Traces of several processes go into one directory; otherwise each has a file by the template.
    package var gathersProcesses = false

    package init() {}

    /// Returns the variables that the agent reads, in the order of the manual. Throws a `Refusal` for the first bad value. The
    /// output is not among them: see `outputTemplate`.
    package func variables() throws(Refusal) -> [(name: String, value: String)] {
        var result: [(name: String, value: String)] = []
        func add<Grammar>(
            _ variable: Variable<Grammar>, _ option: String, _ text: String?, as written: (Grammar.Value, String) -> String = { $1 }
        ) throws(Refusal) {
            guard let text else { return }
            guard let value = variable.read(text) else { throw .usage("\(option) \(text): give \(variable.form)") }
            result.append((variable.name.description, written(value, text)))
        }
        func word(_ isOn: Bool) -> String { Variables.Switch.word(isOn).description }
        try add(Variables.maximumDepth, "--max-depth", maximumDepth) { depth, _ in String(depth) }
        try add(Variables.minimumTime, "--min-ms", minimumMilliseconds)
        try add(Variables.functions, "--functions", RecordOptions.globs(functions, option: "--functions"))
        try add(Variables.minimumSize, "--min-size", minimumSize) { bytes, _ in String(bytes) }
        if keepsHot { try add(Variables.keepsHot, "--keep-hot", word(true)) }
        if callSites { try add(Variables.callSites, "--call-sites", word(true)) }
        try add(Variables.include, "--include", RecordOptions.globs(include, option: "--include"))
        try add(Variables.exclude, "--exclude", RecordOptions.globs(exclude, option: "--exclude"))
        try add(Variables.maximumSize, "--max-size", maximumSize)
        try add(Variables.mode, "--mode", mode)
        if mode.map({ Variables.mode.read($0) }) == .counts, functions.isEmpty {
            throw .usage("--mode counts needs --functions GLOB: it counts only the functions that --functions selects")
        }
        try add(Variables.children, "--children", children.map(word))
        try add(Variables.cache, "--cache", cache.map(word))
        try add(Variables.start, "--start", start) { isOn, _ in word(isOn) }
        if ready == "" { throw .usage("--ready: give \(Variables.ready.form)") }
        try add(Variables.ready, "--ready", ready)
        if quiet { try add(Variables.quiet, "--quiet", word(true)) }
        return result
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

    private static func globs(_ patterns: [String], option: String) throws(Refusal) -> String? {
        guard !patterns.isEmpty else { return nil }
        for pattern in patterns {
            // ':' separates globs in the variable, so "a:b" is two. "std::*" is none: names are the linker's.
            if pattern.split(separator: ":", omittingEmptySubsequences: false).contains(where: \.isEmpty) {
                let hint = pattern.contains("::") ? "globs match the linker's names, so std:: is written _ZNSt*" : "a glob is empty"
                throw .usage("\(option) \"\(pattern)\": \(hint)")
            }
        }
        return patterns.joined(separator: ":")
    }
}
